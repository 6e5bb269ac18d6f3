#include "imprint_kernels.h"

#include "logarithm.h"

// Activations that use the exponential function.

INLINE void swish_part(const float *x, float *y, size_t i, size_t n) {
    vec v = VEC_OF(n, x + i, 0), e = -v;
    exponential(&e);
    STORE_OF(n, y + i, v / (1 + e));
}

KERNEL(void, imprint_swish_forward, (const float *x, float *y, size_t count), (x, y, count)) {
    FOR_EACH_VECTOR(count, swish_part, x, y)
}

INLINE void swish_backward_part(const float *x, const float *dy, float *dx, size_t i, size_t n) {
    vec v = VEC_OF(n, x + i, 0), g = VEC_OF(n, dy + i, 0), e = -v;
    exponential(&e);
    vec s = 1 / (1 + e);
    STORE_OF(n, dx + i, g * (s * (1 + v * (1 - s))));
}

KERNEL(void, imprint_swish_backward, (const float *x, const float *dy, float *dx, size_t count), (x, dy, dx, count)) {
    FOR_EACH_VECTOR(count, swish_backward_part, x, dy, dx)
}

INLINE void elu_part(const float *x, float *y, float alpha, size_t i, size_t n) {
    vec v = VEC_OF(n, x + i, 0), e = v;
    exponential(&e);
    vec below = alpha * (e - 1);
    STORE_OF(n, y + i, v > 0 ? v : below);
}

KERNEL(void, imprint_elu_forward, (const float *x, float *y, size_t count, float alpha), (x, y, count, alpha)) {
    FOR_EACH_VECTOR(count, elu_part, x, y, alpha)
}

KERNEL(void, imprint_elu_backward,
       (const float *y, const float *dy, float *dx, size_t count, float alpha),
       (y, dy, dx, count, alpha)) {
    IN_PLACE for (size_t i = 0; i < count; i++) {
        float slope = y[i] > 0 ? 1 : y[i] + alpha;
        dx[i] = dy[i] * slope;
    }
}

INLINE void tanh_part(const float *x, float *y, size_t i, size_t n) {
    vec v = VEC_OF(n, x + i, 0);
    vec size = v < 0 ? -v : v;
    vec e = -2 * size;
    exponential(&e);
    vec far = (1 - e) / (1 + e);
    // Near 0 the difference 1 - e cancels, so the polynomial of tanhf in Moshier's Cephes library replaces it.
    vec z = v * v;
    vec p = -5.70498872745e-3f * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    vec near = p * z * v + v;
    far = v < 0 ? -far : far;
    STORE_OF(n, y + i, size < 0.625f ? near : far);
}

KERNEL(void, imprint_tanh_forward, (const float *x, float *y, size_t count), (x, y, count)) {
    FOR_EACH_VECTOR(count, tanh_part, x, y)
}

KERNEL(void, imprint_tanh_backward, (const float *y, const float *dy, float *dx, size_t count), (y, dy, dx, count)) {
    IN_PLACE for (size_t i = 0; i < count; i++) dx[i] = dy[i] * (1 - y[i] * y[i]);
}

INLINE void softplus_part(const float *x, float *y, size_t i, size_t n) {
    vec v = VEC_OF(n, x + i, 0);
    // This order of comparison passes NaN.
    vec above = v < 0 ? (vec)0 : v;
    vec e = v > 0 ? -v : v;
    exponential(&e);
    // log(1 + e), with 1 + e halved if it is far from 1.
    ivec halved = e > 0.41421356f;
    vec z = halved ? 0.5f * (e - 1) : e;
    logarithm_near_one(&z);
    STORE_OF(n, y + i, above + (halved ? z + 0.69314718f : z));
}

KERNEL(void, imprint_softplus_forward, (const float *x, float *y, size_t count), (x, y, count)) {
    FOR_EACH_VECTOR(count, softplus_part, x, y)
}

INLINE void softplus_backward_part(const float *y, const float *dy, float *dx, size_t i, size_t n) {
    vec e = -VEC_OF(n, y + i, 0), g = VEC_OF(n, dy + i, 0);
    exponential(&e);
    STORE_OF(n, dx + i, g * (1 - e));
}

KERNEL(void, imprint_softplus_backward,
       (const float *y, const float *dy, float *dx, size_t count),
       (y, dy, dx, count)) {
    FOR_EACH_VECTOR(count, softplus_backward_part, y, dy, dx)
}
