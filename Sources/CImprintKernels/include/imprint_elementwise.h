// Elementwise kernels; imprint_kernels.h states the conventions.

#ifndef IMPRINT_ELEMENTWISE_H
#define IMPRINT_ELEMENTWISE_H

#include <stddef.h>
#include <stdint.h>

// y = min(max(x, 0), ceiling); NaN stays NaN. A ceiling of infinity gives ReLU, 6 gives ReLU6. y may be x.
void imprint_relu_forward(const float *x, float *y, size_t count, float ceiling);
// dx = dy if 0 < y < ceiling, else 0. dx may be dy.
void imprint_relu_backward(const float *y, const float *dy, float *dx, size_t count, float ceiling);
// y = x if x > 0, else slope * x. y may be x.
void imprint_leaky_relu_forward(const float *x, float *y, size_t count, float slope);
// dx = dy if y > 0, else slope * dy; x works instead of y. dx may be y or dy.
void imprint_leaky_relu_backward(const float *y, const float *dy, float *dx, size_t count, float slope);
// y = 1 / (1 + exp(-x)). y may be x.
void imprint_sigmoid_forward(const float *x, float *y, size_t count);
// dx = dy * y * (1 - y). dx may be dy.
void imprint_sigmoid_backward(const float *y, const float *dy, float *dx, size_t count);
// y = x * min(max(x + 3, 0), 6) / 6. y may be x.
void imprint_hard_swish_forward(const float *x, float *y, size_t count);
// dx = dy * (0 if x <= -3, 1 if x >= 3, else x / 3 + 1/2). dx may be dy.
void imprint_hard_swish_backward(const float *x, const float *dy, float *dx, size_t count);
// y = a + b. y may be a or b.
void imprint_add(const float *a, const float *b, float *y, size_t count);
// y = factor * x. y may be x.
void imprint_scale(const float *x, float factor, float *y, size_t count);
// y = factor * x if keep is 1, 0 if keep is 0. y may be x.
void imprint_masked_scale(const float *x, const uint8_t *keep, float factor, float *y, size_t count);

// y = min(max(x, minimum), maximum); NaN stays NaN. y may be x.
void imprint_clip_forward(const float *x, float *y, size_t count, float minimum, float maximum);
// dx = dy if minimum < y < maximum, else 0. dx may be dy.
void imprint_clip_backward(const float *y, const float *dy, float *dx, size_t count, float minimum, float maximum);
// y = min(max(slope * x + offset, 0), 1); NaN stays NaN. y may be x.
void imprint_hard_sigmoid_forward(const float *x, float *y, size_t count, float slope, float offset);
// dx = slope * dy if 0 < y < 1, else 0. dx may be dy.
void imprint_hard_sigmoid_backward(const float *y, const float *dy, float *dx, size_t count, float slope);
// y = x / (1 + exp(-x)). y may be x.
void imprint_swish_forward(const float *x, float *y, size_t count);
// dx = dy * s * (1 + x * (1 - s)) with s = 1 / (1 + exp(-x)). dx may be x or dy.
void imprint_swish_backward(const float *x, const float *dy, float *dx, size_t count);
// y = x if x > 0, else alpha * (exp(x) - 1). y may be x.
void imprint_elu_forward(const float *x, float *y, size_t count, float alpha);
// dx = dy if y > 0, else (y + alpha) * dy. dx may be dy.
void imprint_elu_backward(const float *y, const float *dy, float *dx, size_t count, float alpha);
// y = (exp(x) - exp(-x)) / (exp(x) + exp(-x)). y may be x.
void imprint_tanh_forward(const float *x, float *y, size_t count);
// dx = dy * (1 - y * y). dx may be dy.
void imprint_tanh_backward(const float *y, const float *dy, float *dx, size_t count);
// y = erf(x), dx = dy * 2 / sqrt(pi) * exp(-x * x). y may be x, dx may be x or dy.
void imprint_erf_forward(const float *x, float *y, size_t count);
void imprint_erf_backward(const float *x, const float *dy, float *dx, size_t count);
// y = x / 2 * (1 + erf(x / sqrt(2))), and dx. y may be x, dx may be x or dy.
void imprint_gelu_forward(const float *x, float *y, size_t count);
void imprint_gelu_backward(const float *x, const float *dy, float *dx, size_t count);
// y = x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3))), and dx. y may be x, dx may be x or dy.
void imprint_gelu_tanh_forward(const float *x, float *y, size_t count);
void imprint_gelu_tanh_backward(const float *x, const float *dy, float *dx, size_t count);
// y = log(1 + exp(x)). y may be x.
void imprint_softplus_forward(const float *x, float *y, size_t count);
// dx = dy * (1 - exp(-y)). dx may be dy.
void imprint_softplus_backward(const float *y, const float *dy, float *dx, size_t count);
// y = max(a, b), NaN if a or b is NaN. choice = index if b > a or b is NaN, otherwise unchanged; choice may be null. y may be a.
void imprint_maximum_forward(const float *a, const float *b, float *y, uint8_t *choice, uint8_t index, size_t count);
// dx = dy if choice is index, else 0.
void imprint_maximum_backward(const uint8_t *choice, uint8_t index, const float *dy, float *dx, size_t count);

#endif
