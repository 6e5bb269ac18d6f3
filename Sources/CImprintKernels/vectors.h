// Vectors of 16 floats for explicitly vectorized kernels, and conversions between floats and their bits.

#ifndef IMPRINT_VECTORS_H
#define IMPRINT_VECTORS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "dispatch.h"

#define UNROLL _Pragma("clang loop unroll(full)")

// One register of AVX-512, two of AVX2, four of SSE or NEON. Vectors need no alignment.
enum { lanes = 16 };
typedef float vec __attribute__((ext_vector_type(lanes), aligned(4), may_alias));
// Integers, and the results of comparing vectors: all bits set for true, all bits clear for false.
typedef int32_t ivec __attribute__((ext_vector_type(lanes), aligned(4), may_alias));
typedef uint8_t bytes __attribute__((ext_vector_type(lanes), aligned(1), may_alias));

#define VEC(p) (*(const vec *)(p))
#define STORE(p, v) (*(vec *)(p) = (v))
// The same for the first n lanes; the other lanes are read as `rest`.
#define VEC_OF(n, p, rest) ({ vec v_ = (rest); memcpy(&v_, (p), (n) * sizeof(float)); v_; })
#define STORE_OF(n, p, v) ({ vec v_ = (v); memcpy((p), &v_, (n) * sizeof(float)); })

// Calls part(..., i, n) for vectors of n = 16 elements from index i, then for the remaining elements.
#define FOR_EACH_VECTOR(count, part, ...)                                     \
    {                                                                         \
        size_t i = 0;                                                         \
        for (; i + lanes <= (count); i += lanes) part(__VA_ARGS__, i, lanes); \
        if (i < (count)) part(__VA_ARGS__, i, (count) - i);                   \
    }

// Transposes a 16x16 block in four rounds, each of which interleaves the lanes of rows r and r + 8.
INLINE void transpose(vec block[lanes]) {
    UNROLL for (int round = 0; round < 4; round++) {
        vec interleaved[lanes];
        UNROLL for (int r = 0; r < lanes / 2; r++) {
            vec a = block[r], b = block[r + lanes / 2];
            interleaved[2 * r] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            interleaved[2 * r + 1] =
                __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        }
        UNROLL for (int r = 0; r < lanes; r++) block[r] = interleaved[r];
    }
}

INLINE uint32_t bits_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

INLINE float float_of(uint32_t bits) {
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

#endif
