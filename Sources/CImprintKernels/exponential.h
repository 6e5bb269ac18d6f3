// The exponential function, 16 numbers at a time.

#ifndef IMPRINT_EXPONENTIAL_H
#define IMPRINT_EXPONENTIAL_H

#include "vectors.h"

// x = e^x, at most 1.1 units in the last place off: 0 of -infinity, infinity beyond the greatest float, NaN of NaN.
//
// With n the integer nearest to x / log 2, e^x = 2^n e^r and |r| <= log 2 / 2. r is exact enough because log 2 is taken
// in two parts, the first of so few bits that n times it is exact (Cody and Waite, "Software manual for the elementary
// functions", 1980). The polynomial in r is that of expf in Moshier's Cephes library.
INLINE void exponential(vec *x) {
    // Beyond these it is infinite and rounds to 0. Compared this way round, NaN stays.
    vec v = *x < -104 ? (vec)-104 : *x;
    v = v > 89 ? (vec)89 : v;
    // A sum with 1.5 * 2^23 has no bits after the point, and n in its last ones.
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
    // In two steps, since 2^n alone may be too large or too small for a float where the result is not.
    ivec half = n >> 1;
    *x = p * (vec)((half + 127) << 23) * (vec)((n - half + 127) << 23);
}

#endif
