// One source, several machine codes: on x86-64 Linux the loader picks the clone for the processor it finds.
// "arch=x86-64-v3" rather than "avx2": only the former has fused multiply-add.

// The environment's IMPRINT_KERNELS leaves one of them alone, to run on any processor what an older one would.
#if defined(IMPRINT_KERNELS_UNKNOWN)
#error IMPRINT_KERNELS must be "default" or "v3", or not be set at all, which compiles for all processors.
#endif

#if !defined(__x86_64__) || !defined(__linux__) || defined(IMPRINT_KERNELS_DEFAULT)
#define CLONES
#elif defined(IMPRINT_KERNELS_V3)
#define CLONES __attribute__((target("arch=x86-64-v3")))
#else
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define HAS_AVX512_CLONES
#endif

// x86-64-v4 counts as slow with 512 bits, so the compiler halves such vectors unless told not to.
#define WIDE_CLONES CLONES __attribute__((min_vector_width(512)))

#pragma clang fp contract(fast)

// Before a loop whose turns are independent, though what it writes may be what it reads, element for element. The
// compiler would otherwise test whether the buffers overlap and take the scalar loop for a result in place.
#define IN_PLACE _Pragma("clang loop vectorize(assume_safety)")
