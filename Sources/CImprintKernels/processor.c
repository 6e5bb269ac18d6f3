#include "imprint_kernels.h"

#include "clones.h"

int imprint_kernels_use_avx512(void) {
#if defined(HAS_AVX512_CLONES)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512cd");
#else
    return 0;
#endif
}

const char *imprint_kernels_vector_instructions(void) {
#if defined(__x86_64__) && defined(__linux__) && !defined(IMPRINT_KERNELS_DEFAULT)
    if (imprint_kernels_use_avx512()) return "AVX-512";
    if (__builtin_cpu_supports("x86-64-v3")) return "AVX2";
#endif
#if defined(__x86_64__)
    return "SSE2";
#elif defined(__aarch64__)
    return "NEON";
#else
    return "none";
#endif
}
