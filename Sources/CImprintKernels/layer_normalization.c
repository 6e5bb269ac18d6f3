#include "imprint_kernels.h"

#include "vectors.h"

#include <math.h>

// Each row is normalized by its mean and variance. Sums are accumulated in 16 lanes, which are added in order, so results do not depend on
// the vector width of the CPU.

INLINE float lane_sum(const vec *v) {
    float sum = 0;
    UNROLL for (int lane = 0; lane < lanes; lane++) sum += (*v)[lane];
    return sum;
}

// Computes the mean of a row and 1 / sqrt(variance + epsilon).
INLINE void row_statistics(const float *x, size_t channels, float epsilon, float *mean, float *inverse) {
    vec sum = 0;
    size_t c = 0;
    for (; c + lanes <= channels; c += lanes) sum += VEC(x + c);
    sum += VEC_OF(channels - c, x + c, 0);
    *mean = lane_sum(&sum) / channels;
    vec squares = 0;
    for (c = 0; c + lanes <= channels; c += lanes) {
        vec d = VEC(x + c) - *mean;
        squares += d * d;
    }
    vec rest = VEC_OF(channels - c, x + c, (vec)*mean) - *mean;
    squares += rest * rest;
    *inverse = 1 / sqrtf(lane_sum(&squares) / channels + epsilon);
}

KERNEL(void, imprint_layer_norm_forward,
       (const float *x, const float *scale, const float *shift, float *y, size_t rows, size_t channels, float epsilon),
       (x, scale, shift, y, rows, channels, epsilon)) {
    for (size_t r = 0; r < rows; r++, x += channels, y += channels) {
        float mean, inverse;
        row_statistics(x, channels, epsilon, &mean, &inverse);
        IN_PLACE for (size_t c = 0; c < channels; c++) y[c] = (x[c] - mean) * inverse * scale[c] + shift[c];
    }
}

KERNEL(void, imprint_layer_norm_sums,
       (const float *x, const float *dy, double *sums, size_t rows, size_t channels, float epsilon),
       (x, dy, sums, rows, channels, epsilon)) {
    memset(sums, 0, 2 * channels * sizeof(double));
    for (size_t r = 0; r < rows; r++, x += channels, dy += channels) {
        float mean, inverse;
        row_statistics(x, channels, epsilon, &mean, &inverse);
        for (size_t c = 0; c < channels; c++) {
            sums[c] += dy[c] * ((x[c] - mean) * inverse);
            sums[channels + c] += dy[c];
        }
    }
}

INLINE void backward_sums_part(const float *x, const float *dy, const float *scale, float mean, float inverse, vec *sum,
                            vec *product, size_t i, size_t n) {
    vec g = VEC_OF(n, dy + i, 0) * VEC_OF(n, scale + i, 0);
    *sum += g;
    *product += g * ((VEC_OF(n, x + i, 0) - mean) * inverse);
}

KERNEL(void, imprint_layer_norm_backward,
       (const float *x, const float *dy, const float *scale, float *dx, size_t rows, size_t channels, float epsilon),
       (x, dy, scale, dx, rows, channels, epsilon)) {
    for (size_t r = 0; r < rows; r++, x += channels, dy += channels, dx += channels) {
        float mean, inverse;
        row_statistics(x, channels, epsilon, &mean, &inverse);
        vec sum = 0, product = 0;
        FOR_EACH_VECTOR(channels, backward_sums_part, x, dy, scale, mean, inverse, &sum, &product)
        float a = lane_sum(&sum) / channels, b = lane_sum(&product) / channels;
        IN_PLACE for (size_t c = 0; c < channels; c++) {
            dx[c] = inverse * (dy[c] * scale[c] - a - (x[c] - mean) * inverse * b);
        }
    }
}
