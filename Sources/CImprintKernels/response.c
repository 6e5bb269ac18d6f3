#define NEON_REGISTERS 2
#include "imprint_kernels.h"

#include "logarithm.h"

// Local response normalization.

// sums[c] = the sum over the existing channels of values[c - before ... c + after].
INLINE void window_sums(const float *values, float *sums, ptrdiff_t channels, ptrdiff_t before, ptrdiff_t after) {
    memset(sums, 0, channels * sizeof(float));
    for (ptrdiff_t d = -before; d <= after; d++) {
        ptrdiff_t first = d < 0 ? -d : 0, end = d > 0 ? channels - d : channels;
        for (ptrdiff_t c = first; c < end; c++) sums[c] += values[c + d];
    }
}

// sums = the divisors of a pixel before exponentiation.
INLINE void divisors(const imprint_response *t, const float *x, float *squares, float *sums) {
    for (size_t c = 0; c < t->channels; c++) squares[c] = x[c] * x[c];
    window_sums(squares, sums, t->channels, t->before, t->after);
    for (size_t c = 0; c < t->channels; c++) sums[c] = t->bias + t->factor * sums[c];
}

INLINE void response_part(const float *x, const float *divisor, float *y, float beta, size_t i, size_t n) {
    vec p = VEC_OF(n, divisor + i, 1);
    power(&p, -beta);
    STORE_OF(n, y + i, VEC_OF(n, x + i, 0) * p);
}

KERNEL(void, imprint_response_forward,
       (const imprint_response *t, const float *x, float *y, size_t rows, float *scratch),
       (t, x, y, rows, scratch)) {
    size_t channels = t->channels;
    for (size_t r = 0; r < rows; r++, x += channels, y += channels) {
        divisors(t, x, scratch, scratch + channels);
        FOR_EACH_VECTOR(channels, response_part, x, scratch + channels, y, t->beta)
    }
}

// products = dy * x * divisor^(-beta - 1), powers = divisor^-beta, which overwrites the divisors.
INLINE void response_terms_part(const float *x, const float *dy, float *powers, float *products, float beta, size_t i,
                                size_t n) {
    vec divisor = VEC_OF(n, powers + i, 1), p = divisor;
    power(&p, -beta);
    STORE_OF(n, powers + i, p);
    STORE_OF(n, products + i, VEC_OF(n, dy + i, 0) * VEC_OF(n, x + i, 0) * p / divisor);
}

KERNEL(void, imprint_response_backward,
       (const imprint_response *t, const float *x, const float *dy, float *dx, size_t rows, float *scratch),
       (t, x, dy, dx, rows, scratch)) {
    size_t channels = t->channels;
    float *products = scratch, *powers = scratch + channels, *sums = scratch + 2 * channels;
    float factor = 2 * t->factor * t->beta;
    for (size_t r = 0; r < rows; r++, x += channels, dy += channels, dx += channels) {
        divisors(t, x, products, powers);
        FOR_EACH_VECTOR(channels, response_terms_part, x, dy, powers, products, t->beta)
        // Channel c is in the windows of the channels c - after ... c + before.
        window_sums(products, sums, channels, t->after, t->before);
        IN_PLACE for (size_t c = 0; c < channels; c++) dx[c] = dy[c] * powers[c] - factor * x[c] * sums[c];
    }
}
