// Vectors of floats for explicitly vectorized kernels, and conversions between floats and their bits.

#ifndef IMPRINT_VECTORS_H
#define IMPRINT_VECTORS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "dispatch.h"

#define UNROLL _Pragma("clang loop unroll(full)")

// A vector has 16 floats: one register of AVX-512, two of AVX2, four of SSE or NEON. That hides the latency of long computations, but a tile
// of vectors would need four times the registers of NEON. Files with such tiles define NEON_REGISTERS, the number of registers of a vector on
// arm64, before they include this header: with 1, a tile for the 32 registers of AVX-512 also fits into the 32 of NEON.
#ifndef NEON_REGISTERS
#define NEON_REGISTERS 4
#endif
// Vectors need no alignment.
enum { lanes = ON_ARM64(4 * NEON_REGISTERS, 16) };
typedef float vec __attribute__((ext_vector_type(lanes), aligned(4), may_alias));
// Integers, and the results of comparing vectors: all bits set for true, all bits clear for false.
typedef int32_t ivec __attribute__((ext_vector_type(lanes), aligned(4), may_alias));
typedef uint8_t bytes __attribute__((ext_vector_type(lanes), aligned(1), may_alias));

#define VEC(p) (*(const vec *)(p))
#define STORE(p, v) (*(vec *)(p) = (v))
// The same for the first n lanes; the other lanes are read as `rest`.
#define VEC_OF(n, p, rest) ({ vec v_ = (rest); memcpy(&v_, (p), (n) * sizeof(float)); v_; })
#define STORE_OF(n, p, v) ({ vec v_ = (v); memcpy((p), &v_, (n) * sizeof(float)); })

// min(max(value, low), high) of a vector and two numbers; NaN stays NaN. If low is 0, −0 stays −0 on x86-64 and in files with several NEON
// registers per vector, because comparisons treat −0 and 0 as equal. With one NEON register it becomes 0: FMAX and FMIN order −0 below 0. They
// return NaN if an operand is NaN. In the same way, if high is −0, 0 stays 0 or becomes −0.
#if defined(__aarch64__) && NEON_REGISTERS == 1
#include <arm_neon.h>
#define CLAMPED_TO(low, high, value) \
    ((vec)vminq_f32(vmaxq_f32((float32x4_t)(value), vdupq_n_f32(low)), vdupq_n_f32(high)))
#else
#define CLAMPED_TO(low, high, value)          \
    ({                                        \
        vec v_ = (value);                     \
        v_ = v_ < (low) ? (vec)(low) : v_;    \
        v_ > (high) ? (vec)(high) : v_;       \
    })
#endif

// Calls part(..., i, n) for vectors of n = lanes elements from index i, then for the remaining elements.
#define FOR_EACH_VECTOR(count, part, ...)                                     \
    {                                                                         \
        size_t i = 0;                                                         \
        for (; i + lanes <= (count); i += lanes) part(__VA_ARGS__, i, lanes); \
        if (i < (count)) part(__VA_ARGS__, i, (count) - i);                   \
    }

// Interleaves the first halves of two vectors of 4 or 16 floats, and the second halves.
#define INTERLEAVED_4(a, b, half) __builtin_shufflevector(a, b, 2 * half, 2 * half + 4, 2 * half + 1, 2 * half + 5)
#define INTERLEAVED_16(a, b, half)                                                                                     \
    __builtin_shufflevector(a, b, 8 * half, 8 * half + 16, 8 * half + 1, 8 * half + 17, 8 * half + 2, 8 * half + 18,   \
                            8 * half + 3, 8 * half + 19, 8 * half + 4, 8 * half + 20, 8 * half + 5, 8 * half + 21,     \
                            8 * half + 6, 8 * half + 22, 8 * half + 7, 8 * half + 23)
#if defined(__aarch64__)
#define INTERLEAVED INTERLEAVED_4
#else
#define INTERLEAVED INTERLEAVED_16
#endif

// Transposes a square block of `lanes` rows in log2(lanes) rounds. A round interleaves the lanes of rows r and r + lanes / 2. On
// arm64, only vectors of 4 floats can be transposed.
#define TRANSPOSE(block)                                                                  \
    UNROLL for (int round = 0; round < ON_ARM64(2, 4); round++) {                         \
        vec interleaved[lanes];                                                           \
        UNROLL for (int r = 0; r < lanes / 2; r++) {                                      \
            vec a = (block)[r], b = (block)[r + lanes / 2];                               \
            interleaved[2 * r] = INTERLEAVED(a, b, 0);                                    \
            interleaved[2 * r + 1] = INTERLEAVED(a, b, 1);                                \
        }                                                                                 \
        UNROLL for (int r = 0; r < lanes; r++) (block)[r] = interleaved[r];               \
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
