#include "imprint_kernels.h"

#include <math.h>

#include "dispatch.h"

KERNEL(void, imprint_sgd,
       (float *parameters, const float *gradients, float *velocities, size_t count, float rate, float momentum,
        float weight_decay, float gradient_scale, int nesterov),
       (parameters, gradients, velocities, count, rate, momentum, weight_decay, gradient_scale, nesterov)) {
    float from_gradient = nesterov ? rate : 0;
    float from_velocity = nesterov ? rate * momentum : rate;
    for (size_t i = 0; i < count; i++) {
        float g = gradient_scale * gradients[i] + weight_decay * parameters[i];
        float v = momentum * velocities[i] + g;
        velocities[i] = v;
        parameters[i] -= from_gradient * g + from_velocity * v;
    }
}

KERNEL(double, imprint_sum_of_squares, (const float *x, size_t count), (x, count)) {
    double total = 0;
    for (size_t start = 0; start < count; start += 1024) {
        size_t end = start + 1024 < count ? start + 1024 : count;
        float lanes[16] = {0};
        size_t i = start;
        for (; i + 16 <= end; i += 16)
            for (size_t lane = 0; lane < 16; lane++) lanes[lane] += x[i + lane] * x[i + lane];
        for (; i < end; i++) lanes[0] += x[i] * x[i];
        for (size_t lane = 0; lane < 16; lane++) total += lanes[lane];
    }
    return total;
}

KERNEL(void, imprint_move_towards,
       (float *values, const float *targets, size_t count, float rate),
       (values, targets, count, rate)) {
    for (size_t i = 0; i < count; i++) values[i] += rate * (targets[i] - values[i]);
}

KERNEL(void, imprint_adamw,
       (float *parameters, const float *gradients, float *means, float *squares, size_t count,
        const imprint_adamw_step *step),
       (parameters, gradients, means, squares, count, step)) {
    float beta1 = step->beta1, beta2 = step->beta2, scale = step->gradient_scale;
    // m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon), with the constant divisors hoisted out of the loop.
    float rate = step->rate / step->mean_correction, root = 1 / sqrtf(step->square_correction);
    float keep = 1 - step->rate * step->weight_decay;
    for (size_t i = 0; i < count; i++) {
        float g = scale * gradients[i];
        float m = beta1 * means[i] + (1 - beta1) * g;
        float v = beta2 * squares[i] + (1 - beta2) * g * g;
        means[i] = m;
        squares[i] = v;
        parameters[i] = keep * parameters[i] - rate * m / (sqrtf(v) * root + step->epsilon);
    }
}
