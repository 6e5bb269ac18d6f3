#include "imprint_kernels.h"

#include "clones.h"

CLONES void imprint_sgd(float *parameters, const float *gradients, float *velocities, size_t count, float rate,
                        float momentum, float weight_decay, float gradient_scale, int nesterov) {
    float from_gradient = nesterov ? rate : 0;
    float from_velocity = nesterov ? rate * momentum : rate;
    for (size_t i = 0; i < count; i++) {
        float g = gradient_scale * gradients[i] + weight_decay * parameters[i];
        float v = momentum * velocities[i] + g;
        velocities[i] = v;
        parameters[i] -= from_gradient * g + from_velocity * v;
    }
}

CLONES double imprint_sum_of_squares(const float *x, size_t count) {
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

CLONES void imprint_move_towards(float *values, const float *targets, size_t count, float rate) {
    for (size_t i = 0; i < count; i++) values[i] += rate * (targets[i] - values[i]);
}
