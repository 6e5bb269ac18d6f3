// One source, several machine codes: on x86-64 Linux the loader picks the clone for the processor it finds.
// "arch=x86-64-v3" rather than "avx2": only the former has fused multiply-add.

#if defined(__x86_64__) && defined(__linux__)
#define CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CLONES
#endif

#pragma clang fp contract(fast)

// Before a loop whose turns are independent, though what it writes may be what it reads, element for element. The
// compiler would otherwise test whether the buffers overlap and take the scalar loop for a result in place.
#define IN_PLACE _Pragma("clang loop vectorize(assume_safety)")
