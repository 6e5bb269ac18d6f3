// The end of an int8 operation: sums become float32, or uint8 with the scale and zero point of the output.

#ifndef IMPRINT_INT8_H
#define IMPRINT_INT8_H

#include "imprint_kernels.h"
#include "vectors.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define AVX2_TARGET __attribute__((target(IMPRINT_V3)))
#define VNNI_TARGET __attribute__((target(IMPRINT_V4 ",avx512vnni")))
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

// The channels of a panel of weights, and of a block of a depthwise convolution.
enum { panel_columns = 64 };

// The constants of a vector of channels.
typedef struct {
    vec factor, bias, floor, ceiling;
} channel_output;

INLINE channel_output channel_output_at(const imprint_int8_output *to, size_t c) {
    return (channel_output){VEC(to->factors + c), VEC(to->bias + c), VEC(to->floor + c), VEC(to->ceiling + c)};
}

// Each operation is rounded separately, so that processors with and without fused multiply-add give the same bits.
INLINE void scale_sums(const ivec *sums, const channel_output *channel, vec *result) {
#pragma clang fp contract(off)
    vec product = __builtin_convertvector(*sums, vec) * channel->factor;
    *result = product + channel->bias;
}

INLINE void add_shortcut(const bytes *shortcut, const vec *factor, vec *result) {
#pragma clang fp contract(off)
    vec product = __builtin_convertvector(*shortcut, vec) * *factor;
    *result = *result + product;
}

INLINE void clamp(const channel_output *channel, vec *value) {
    *value = *value > channel->floor ? *value : channel->floor;
    *value = *value < channel->ceiling ? *value : channel->ceiling;
}

// Rounds floats of 0…255 to the nearest integers, ties to even: adding 1.5 · 2²³ leaves no bits for fractions.
INLINE void round_small(const vec *values, ivec *result) {
#pragma clang fp contract(off)
    vec sum = *values + 12582912.0f;
    *result = *(const ivec *)&sum - 0x4b400000;
}

#if defined(__aarch64__)
// The same with fewer instructions: FMAXNM and FMINNM return the number if one operand is NaN, FCVTNS rounds to the nearest integer.
INLINE void clamp_and_round(const channel_output *channel, const vec *value, bytes *result) {
    typedef struct { float32x4_t quarters[lanes / 4]; } parts;
    const parts *from = (const parts *)value, *floor = (const parts *)&channel->floor, *ceiling = (const parts *)&channel->ceiling;
    ivec integers;
    UNROLL for (int q = 0; q < lanes / 4; q++) {
        float32x4_t clamped = vminnmq_f32(vmaxnmq_f32(from->quarters[q], floor->quarters[q]), ceiling->quarters[q]);
        ((int32x4_t *)&integers)[q] = vcvtnq_s32_f32(clamped);
    }
    *result = __builtin_convertvector(integers, bytes);
}
#else
INLINE void clamp_and_round(const channel_output *channel, const vec *value, bytes *result) {
    vec clamped = *value;
    ivec integers;
    clamp(channel, &clamped);
    round_small(&clamped, &integers);
    *result = __builtin_convertvector(integers, bytes);
}
#endif

// The quantized weight w · input_factor / scale: −127…127; 0 if the scale is 0.
INLINE int32_t imprint_quantized_weight(float w, float factor, float scale) {
#pragma clang fp contract(off)
    float q = scale > 0 ? w * factor / scale : 0;
    q = q > -127 ? q : -127;
    q = q < 127 ? q : 127;
    return (int32_t)bits_of(q + 12582912.0f) - 0x4b400000;
}

#endif
