// The natural logarithm and powers of vectors.

#ifndef IMPRINT_LOGARITHM_H
#define IMPRINT_LOGARITHM_H

#include "exponential.h"

// z = log(1 + z) for sqrt(1/2) <= 1 + z <= sqrt(2); the polynomial comes from logf in Moshier's Cephes library.
INLINE void logarithm_near_one(vec *z) {
    vec v = *z, square = v * v;
    vec p = 7.0376836292e-2f * v - 1.1514610310e-1f;
    p = p * v + 1.1676998740e-1f;
    p = p * v - 1.2420140846e-1f;
    p = p * v + 1.4249322787e-1f;
    p = p * v - 1.6668057665e-1f;
    p = p * v + 2.0000714765e-1f;
    p = p * v - 2.4999993993e-1f;
    p = p * v + 3.3333331174e-1f;
    *z = p * v * square - 0.5f * square + v;
}

// x = x^exponent, for x of at least the smallest normal float, infinity or NaN.
INLINE void power(vec *x, float exponent) {
    // x = 2^n m with m between sqrt(1/2), whose bits are subtracted, and sqrt(2).
    ivec bits = (ivec)*x;
    ivec n = (bits - 0x3f3504f3) >> 23;
    vec m = (vec)(bits - (n << 23)) - 1;
    logarithm_near_one(&m);
    vec whole = __builtin_convertvector(n, vec);
    m = whole * -2.12194440e-4f + m + whole * 0.693359375f;
    vec logarithm = *x < __builtin_inff() ? m : *x;
    *x = logarithm * exponent;
    exponential(x);
}

#endif
