#include "imprint_kernels.h"

#include "vectors.h"

// Float16 (IEEE 754 binary16) has 1 sign, 5 exponent and 10 fraction bits, float32 1, 8 and 23: a normal number's bits
// move by 13, and its exponent's bias differs by 112. All cases are computed and one chosen: that vectorises.

enum { bias = 112 << 23 };

INLINE float widened(uint32_t half) {
    uint32_t magnitude = half & 0x7FFF;
    uint32_t normal = (magnitude << 13) + bias;
    // The last bits of 1/2 count 2^-24 each, as those of a subnormal float16 do.
    uint32_t subnormal = bits_of(float_of(magnitude | 0x3F000000) - 0.5f);
    uint32_t result = magnitude < 0x0400 ? subnormal : normal;
    result = magnitude < 0x7C00 ? result : normal + bias;
    return float_of(result | (half & 0x8000) << 16);
}

INLINE uint32_t narrowed(float x) {
    uint32_t bits = bits_of(x), magnitude = bits & 0x7FFFFFFF;
    // From 2^16 on, everything is infinite; between 65520 and that, rounding carries over into the exponent.
    uint32_t least = magnitude < 0x47800000 ? magnitude : 0x47800000;
    // Almost a half of the last place, and all of it where that is odd: to nearest, ties to even.
    uint32_t normal = (least - bias + 0xFFF + (least >> 13 & 1)) >> 13;
    // The sum rounds to the last bits of 1/2.
    uint32_t subnormal = bits_of(float_of(magnitude) + 0.5f) - 0x3F000000;
    uint32_t result = magnitude < 0x38800000 ? subnormal : normal;
    result = magnitude > 0x7F800000 ? 0x7E00 | (magnitude >> 13 & 0x3FF) : result;
    return result | (bits >> 16 & 0x8000);
}

KERNEL(void, imprint_float16_to_float32, (const uint16_t *x, float *y, size_t count), (x, y, count)) {
    for (size_t i = 0; i < count; i++) y[i] = widened(x[i]);
}

KERNEL(size_t, imprint_float32_to_float16, (const float *x, uint16_t *y, size_t count), (x, y, count)) {
    size_t overflows = 0;
    for (size_t i = 0; i < count; i++) {
        y[i] = (uint16_t)narrowed(x[i]);
        uint32_t magnitude = bits_of(x[i]) & 0x7FFFFFFF;
        overflows += (magnitude >= 0x477FF000) & (magnitude < 0x7F800000);
    }
    return overflows;
}
