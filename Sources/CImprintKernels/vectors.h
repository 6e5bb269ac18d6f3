// Vectors of 16 numbers, for kernels that say themselves what goes together; and the bits of one number.

#ifndef IMPRINT_VECTORS_H
#define IMPRINT_VECTORS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "dispatch.h"

// What a clone calls must become a part of it, or it would be compiled for the default processor alone. Vectors go
// through pointers or macros, since how they are passed by value depends on the processor.
#define INLINE static inline __attribute__((always_inline))

#define UNROLL _Pragma("clang loop unroll(full)")

// A register of AVX-512, two of AVX2, four of SSE or NEON. Vectors may begin at any number.
enum { lanes = 16 };
typedef float vec __attribute__((ext_vector_type(lanes), aligned(4), may_alias));
// The numbers, and what comparisons of vec give: all bits set where it is true, else none.
typedef int32_t ivec __attribute__((ext_vector_type(lanes), aligned(4), may_alias));
typedef uint8_t bytes __attribute__((ext_vector_type(lanes), aligned(1), may_alias));

#define VEC(p) (*(const vec *)(p))
#define STORE(p, v) (*(vec *)(p) = (v))
// The same of the first n lanes alone; the others are read as `rest`.
#define VEC_OF(n, p, rest) ({ vec v_ = (rest); memcpy(&v_, (p), (n) * sizeof(float)); v_; })
#define STORE_OF(n, p, v) ({ vec v_ = (v); memcpy((p), &v_, (n) * sizeof(float)); })

// Calls part(..., i, n) for all numbers: for 16 at a time, then for those that are left.
#define OVER_NUMBERS(count, part, ...)                                        \
    {                                                                         \
        size_t i = 0;                                                         \
        for (; i + lanes <= (count); i += lanes) part(__VA_ARGS__, i, lanes); \
        if (i < (count)) part(__VA_ARGS__, i, (count) - i);                   \
    }

// Transposes a block of 16 x 16: four rounds, each of which deals out the lanes of rows r and r + 8 in turn.
INLINE void transpose(vec block[lanes]) {
    UNROLL for (int round = 0; round < 4; round++) {
        vec dealt[lanes];
        UNROLL for (int r = 0; r < lanes / 2; r++) {
            vec a = block[r], b = block[r + lanes / 2];
            dealt[2 * r] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            dealt[2 * r + 1] =
                __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        }
        UNROLL for (int r = 0; r < lanes; r++) block[r] = dealt[r];
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
