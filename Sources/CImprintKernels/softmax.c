#include "imprint_kernels.h"

#include <math.h>

#include "exponential.h"

INLINE float sum_of(const vec *v) {
    float sums[lanes];
    STORE(sums, *v);
    UNROLL for (int width = lanes / 2; width > 0; width /= 2)
        UNROLL for (int i = 0; i < width; i++) sums[i] += sums[i + width];
    return sums[0];
}

// Softmax ----------------------------------------------------------------------------------------------------------

INLINE void maximum_part(const float *x, vec *maximum, size_t i, size_t n) {
    vec v = VEC_OF(n, x + i, -INFINITY);
    *maximum = v > *maximum ? v : *maximum;
}

// Ignores NaN; the exponentials of NaN are NaN in any case.
INLINE float maximum_of(const float *x, size_t count) {
    vec maximum = -INFINITY;
    FOR_EACH_VECTOR(count, maximum_part, x, &maximum)
    float result = maximum[0];
    for (int i = 1; i < lanes; i++) result = maximum[i] > result ? maximum[i] : result;
    return result;
}

// y may be null.
INLINE void exponential_part(const float *x, float maximum, float *y, vec *sums, size_t i, size_t n) {
    vec v = VEC_OF(n, x + i, -INFINITY) - maximum;
    exponential(&v);
    if (y) STORE_OF(n, y + i, v);
    *sums += v;
}

// y = e^(x - maximum); returns the sum of y.
INLINE float exponentials(const float *x, float maximum, float *y, size_t count) {
    vec sums = 0;
    FOR_EACH_VECTOR(count, exponential_part, x, maximum, y, &sums)
    return sum_of(&sums);
}

KERNEL(void, imprint_softmax_forward, (const float *x, float *y, size_t count), (x, y, count)) {
    float factor = 1 / exponentials(x, maximum_of(x, count), y, count);
    for (size_t i = 0; i < count; i++) y[i] *= factor;
}

INLINE void dot_part(const float *x, const float *y, vec *sums, size_t i, size_t n) {
    *sums += VEC_OF(n, x + i, 0) * VEC_OF(n, y + i, 0);
}

KERNEL(void, imprint_softmax_backward,
       (const float *y, const float *dy, float *dx, size_t count),
       (y, dy, dx, count)) {
    vec sums = 0;
    FOR_EACH_VECTOR(count, dot_part, y, dy, &sums)
    float dot = sum_of(&sums);
    IN_PLACE for (size_t i = 0; i < count; i++) dx[i] = y[i] * (dy[i] - dot);
}

// Cross-entropy ----------------------------------------------------------------------------------------------------

// Sums over the labels for label smoothing, the part of the target that is distributed over all labels.
typedef struct {
    vec weights, products;
} spread_sums;

INLINE void spread_part(const float *x, float maximum, const float *weights, spread_sums *sums, size_t i, size_t n) {
    vec one = 1, weight = weights ? VEC_OF(n, weights + i, 0) : VEC_OF(n, &one, 0);
    vec distance = maximum - VEC_OF(n, x + i, 0);
    sums->weights += weight;
    // Infinity times a weight of 0 counts as 0.
    sums->products += weight > 0 ? weight * distance : (vec)0;
}

KERNEL(double, imprint_softmax_cross_entropy,
       (const imprint_cross_entropy_options *options, const float *x, size_t label, float *dx, int *correct),
       (options, x, label, dx, correct)) {
    float maximum = maximum_of(x, options->classes), distance = maximum - x[label];
    *correct = x[label] == maximum;
    if (*correct)
        for (size_t i = 0; i < label; i++) *correct &= x[i] != maximum;

    float spread = options->label_smoothing / options->classes;
    float target = (1 - options->label_smoothing) * (options->weights ? options->weights[label] : 1), mass = target;
    spread_sums sums = {0, 0};
    if (spread > 0) {
        FOR_EACH_VECTOR(options->classes, spread_part, x, maximum, options->weights, &sums)
        mass += spread * sum_of(&sums.weights);
    }

    // dx may be x, so it must not be written before this line.
    float sum = exponentials(x, maximum, dx, options->classes), log_sum = logf(sum);
    double loss = target > 0 ? (double)target * (log_sum + distance) : 0;
    if (spread > 0) loss += (double)spread * (sum_of(&sums.weights) * log_sum + sum_of(&sums.products));
    if (!dx) return loss;
    float scale = options->factor * mass / sum, offset = options->factor * spread;
    if (options->weights)
        IN_PLACE for (size_t i = 0; i < options->classes; i++) dx[i] = scale * dx[i] - offset * options->weights[i];
    else
        IN_PLACE for (size_t i = 0; i < options->classes; i++) dx[i] = scale * dx[i] - offset;
    dx[label] -= options->factor * target;
    return loss;
}
