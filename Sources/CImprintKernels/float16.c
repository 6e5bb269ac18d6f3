#include "imprint_kernels.h"

#include "vectors.h"

// Float16 (IEEE 754 binary16) has 1 sign, 5 exponent and 10 fraction bits, float32 has 1, 8 and 23. Converting a normal number shifts its
// bits by 13 and changes the exponent bias by 112. The functions compute all cases and select one, which vectorizes.

enum { bias = 112 << 23 };

INLINE float float32_from_float16(uint32_t half) {
    uint32_t magnitude = half & 0x7FFF;
    uint32_t normal = (magnitude << 13) + bias;
    // The low bits of 1/2 have the weight 2^-24, as in a subnormal float16.
    uint32_t subnormal = bits_of(float_of(magnitude | 0x3F000000) - 0.5f);
    uint32_t result = magnitude < 0x0400 ? subnormal : normal;
    result = magnitude < 0x7C00 ? result : normal + bias;
    return float_of(result | (half & 0x8000) << 16);
}

INLINE uint32_t float16_from_float32(float x) {
    uint32_t bits = bits_of(x), magnitude = bits & 0x7FFFFFFF;
    // Magnitudes from 2^16 become infinite; from 65520 to 2^16, rounding carries into the exponent.
    uint32_t limited = magnitude < 0x47800000 ? magnitude : 0x47800000;
    // Adds just under half of the last place, or exactly half if the last bit is odd: rounds to nearest, ties to even.
    uint32_t normal = (limited - bias + 0xFFF + (limited >> 13 & 1)) >> 13;
    // The addition rounds to the low bits of 1/2.
    uint32_t subnormal = bits_of(float_of(magnitude) + 0.5f) - 0x3F000000;
    uint32_t result = magnitude < 0x38800000 ? subnormal : normal;
    result = magnitude > 0x7F800000 ? 0x7E00 | (magnitude >> 13 & 0x3FF) : result;
    return result | (bits >> 16 & 0x8000);
}

KERNEL(void, imprint_float16_to_float32, (const uint16_t *x, float *y, size_t count), (x, y, count)) {
    for (size_t i = 0; i < count; i++) y[i] = float32_from_float16(x[i]);
}

KERNEL(size_t, imprint_float32_to_float16, (const float *x, uint16_t *y, size_t count), (x, y, count)) {
    size_t overflows = 0;
    for (size_t i = 0; i < count; i++) {
        y[i] = (uint16_t)float16_from_float32(x[i]);
        uint32_t magnitude = bits_of(x[i]) & 0x7FFFFFFF;
        overflows += (magnitude >= 0x477FF000) & (magnitude < 0x7F800000);
    }
    return overflows;
}
