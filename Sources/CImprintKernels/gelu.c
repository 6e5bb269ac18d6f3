#define NEON_REGISTERS 2
#include "imprint_kernels.h"

#include "exponential.h"

// The error function and the Gaussian error linear unit.

// near = erf(|v|), valid for |v| < 1; far = erfc(|v|), valid for |v| >= 1; e = exp(-v * v).
//
// near = |v| p(v^2) and far = e q(1 / (1 + |v| / 2)). The polynomials p and q interpolate erf(x) / x on [0, 1] and exp(x^2) erfc(x) on
// [1, 11] at Chebyshev nodes. The error is at most 6 ULP, plus the rounding of v^2.
INLINE void error_functions(const vec *v, vec *near, vec *far, vec *e) {
    vec size = *v < 0 ? -*v : *v;
    vec s = size * size;
    vec p = 7.875874871e-05f * s - 8.016864303e-04f;
    p = p * s + 5.189087242e-03f;
    p = p * s - 2.685421146e-02f;
    p = p * s + 1.128359437e-01f;
    p = p * s - 3.761262596e-01f;
    p = p * s + 1.128379107e+00f;
    *near = size * p;
    vec t = 1 / (1 + 0.5f * size);
    vec q = 7.770105451e-02f * t - 1.750707030e-01f;
    q = q * t + 1.191014796e-02f;
    q = q * t + 1.148613840e-01f;
    q = q * t + 1.539269984e-01f;
    q = q * t + 2.540481091e-01f;
    q = q * t + 2.808235884e-01f;
    q = q * t + 2.822131813e-01f;
    q = q * t - 4.560796697e-06f;
    *e = -s;
    exponential(e);
    *far = *e * q;
}

INLINE void erf_part(const float *x, float *y, size_t i, size_t n) {
    vec v = VEC_OF(n, x + i, 0), near, far, e;
    error_functions(&v, &near, &far, &e);
    vec size = v < 0 ? -v : v;
    vec result = size < 1 ? near : 1 - far;
    STORE_OF(n, y + i, v < 0 ? -result : result);
}

KERNEL(void, imprint_erf_forward, (const float *x, float *y, size_t count), (x, y, count)) {
    FOR_EACH_VECTOR(count, erf_part, x, y)
}

INLINE void erf_backward_part(const float *x, const float *dy, float *dx, size_t i, size_t n) {
    vec v = VEC_OF(n, x + i, 0), e = -v * v;
    exponential(&e);
    // 2 / sqrt(pi).
    STORE_OF(n, dx + i, VEC_OF(n, dy + i, 0) * e * 1.12837917f);
}

KERNEL(void, imprint_erf_backward, (const float *x, const float *dy, float *dx, size_t count), (x, dy, dx, count)) {
    FOR_EACH_VECTOR(count, erf_backward_part, x, dy, dx)
}

// twice = 1 + erf(v / sqrt(2)), e = exp(-v * v / 2).
INLINE void normal_distribution(const vec *v, vec *twice, vec *e) {
    vec u = *v * 0.707106781f, near, far;
    error_functions(&u, &near, &far, e);
    vec size = u < 0 ? -u : u;
    vec inside = u < 0 ? 1 - near : 1 + near;
    vec outside = u < 0 ? far : 2 - far;
    *twice = size < 1 ? inside : outside;
}

INLINE void gelu_part(const float *x, float *y, size_t i, size_t n) {
    vec v = VEC_OF(n, x + i, 0), twice, e;
    normal_distribution(&v, &twice, &e);
    STORE_OF(n, y + i, 0.5f * v * twice);
}

KERNEL(void, imprint_gelu_forward, (const float *x, float *y, size_t count), (x, y, count)) {
    FOR_EACH_VECTOR(count, gelu_part, x, y)
}

INLINE void gelu_backward_part(const float *x, const float *dy, float *dx, size_t i, size_t n) {
    vec v = VEC_OF(n, x + i, 0), twice, e;
    normal_distribution(&v, &twice, &e);
    // 1 / sqrt(2 pi).
    STORE_OF(n, dx + i, VEC_OF(n, dy + i, 0) * (0.5f * twice + v * e * 0.398942280f));
}

KERNEL(void, imprint_gelu_backward, (const float *x, const float *dy, float *dx, size_t count), (x, dy, dx, count)) {
    FOR_EACH_VECTOR(count, gelu_backward_part, x, dy, dx)
}

// y = x / (1 + exp(-2 sqrt(2 / pi) (x + 0.044715 x^3))), which equals the formula with the hyperbolic tangent.
INLINE void gelu_tanh_part(const float *x, float *y, size_t i, size_t n) {
    vec v = VEC_OF(n, x + i, 0);
    vec e = v * (-1.59576912f - 0.0713548163f * v * v);
    exponential(&e);
    STORE_OF(n, y + i, v / (1 + e));
}

KERNEL(void, imprint_gelu_tanh_forward, (const float *x, float *y, size_t count), (x, y, count)) {
    FOR_EACH_VECTOR(count, gelu_tanh_part, x, y)
}

INLINE void gelu_tanh_backward_part(const float *x, const float *dy, float *dx, size_t i, size_t n) {
    vec v = VEC_OF(n, x + i, 0);
    // For |x| > 16 the derivative is 0 or 1, and its terms would overflow. This order of comparison passes NaN.
    v = v < -16 ? (vec)-16 : v;
    v = v > 16 ? (vec)16 : v;
    vec e = v * (-1.59576912f - 0.0713548163f * v * v);
    exponential(&e);
    vec s = 1 / (1 + e);
    vec slope = s + v * s * (1 - s) * (1.59576912f + 3 * 0.0713548163f * v * v);
    STORE_OF(n, dx + i, VEC_OF(n, dy + i, 0) * slope);
}

KERNEL(void, imprint_gelu_tanh_backward,
       (const float *x, const float *dy, float *dx, size_t count),
       (x, dy, dx, count)) {
    FOR_EACH_VECTOR(count, gelu_tanh_backward_part, x, dy, dx)
}
