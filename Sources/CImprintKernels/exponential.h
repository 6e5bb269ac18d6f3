// The exponential function of vectors.

#ifndef IMPRINT_EXPONENTIAL_H
#define IMPRINT_EXPONENTIAL_H

#include "vectors.h"

// x = e^x, with an error of at most 1.1 ULP. -infinity gives 0, overflow gives infinity, NaN stays NaN.
//
// With n the integer nearest to x / log 2, e^x = 2^n e^r and |r| <= log 2 / 2. To compute r accurately, log 2 is split into two
// parts. The first part has so few bits that its product with n is exact (Cody and Waite, "Software manual for the elementary
// functions", 1980). The polynomial in r comes from expf in Moshier's Cephes library.
INLINE void exponential(vec *x) {
    // Results outside these bounds are 0 or infinite. This order of comparison passes NaN.
    vec v = *x < -104 ? (vec)-104 : *x;
    v = v > 89 ? (vec)89 : v;
    // Adding 1.5 * 2^23 rounds to an integer, and leaves n in the low bits.
    vec shifted = v * 1.44269504f + 0x1.8p23f;
    ivec n = (ivec)shifted - (ivec)(vec)0x1.8p23f;
    vec whole = shifted - 0x1.8p23f;
    vec r = (v - whole * 0.693359375f) - whole * -2.12194440e-4f;
    vec p = 1.9875691500e-4f * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = (p * (r * r) + r) + 1;
    // In two steps, because 2^n may overflow or underflow even if the result does not.
    ivec half = n >> 1;
    *x = p * (vec)((half + 127) << 23) * (vec)((n - half + 127) << 23);
}

#endif
