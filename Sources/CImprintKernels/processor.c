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
