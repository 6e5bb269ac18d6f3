#include "imprint_kernels.h"

#include "exponential.h"

KERNEL(void, imprint_relu_forward, (const float *x, float *y, size_t count, float ceiling), (x, y, count, ceiling)) {
    // This order of comparison passes NaN, which makes divergence visible in the loss.
    IN_PLACE for (size_t i = 0; i < count; i++) {
        float v = x[i] < 0 ? 0 : x[i];
        y[i] = v > ceiling ? ceiling : v;
    }
}

KERNEL(void, imprint_relu_backward,
       (const float *y, const float *dy, float *dx, size_t count, float ceiling),
       (y, dy, dx, count, ceiling)) {
    IN_PLACE for (size_t i = 0; i < count; i++) {
        // The unconditional load lets the loop vectorize without masked loads, which only AVX has.
        float g = dy[i];
        dx[i] = ((y[i] > 0) & (y[i] < ceiling)) ? g : 0;
    }
}

KERNEL(void, imprint_leaky_relu_forward,
       (const float *x, float *y, size_t count, float slope),
       (x, y, count, slope)) {
    IN_PLACE for (size_t i = 0; i < count; i++) y[i] = x[i] > 0 ? x[i] : slope * x[i];
}

KERNEL(void, imprint_leaky_relu_backward,
       (const float *y, const float *dy, float *dx, size_t count, float slope),
       (y, dy, dx, count, slope)) {
    IN_PLACE for (size_t i = 0; i < count; i++) dx[i] = y[i] > 0 ? dy[i] : slope * dy[i];
}

INLINE void sigmoid_part(const float *x, float *y, size_t i, size_t n) {
    vec v = -VEC_OF(n, x + i, 0);
    exponential(&v);
    STORE_OF(n, y + i, 1 / (1 + v));
}

KERNEL(void, imprint_sigmoid_forward, (const float *x, float *y, size_t count), (x, y, count)) {
    FOR_EACH_VECTOR(count, sigmoid_part, x, y)
}

KERNEL(void, imprint_sigmoid_backward,
       (const float *y, const float *dy, float *dx, size_t count),
       (y, dy, dx, count)) {
    IN_PLACE for (size_t i = 0; i < count; i++) dx[i] = dy[i] * y[i] * (1 - y[i]);
}

KERNEL(void, imprint_hard_swish_forward, (const float *x, float *y, size_t count), (x, y, count)) {
    IN_PLACE for (size_t i = 0; i < count; i++) {
        float v = x[i] + 3;
        v = v > 0 ? v : 0;
        v = v < 6 ? v : 6;
        y[i] = x[i] * v * (1.0f / 6);
    }
}

KERNEL(void, imprint_hard_swish_backward,
       (const float *x, const float *dy, float *dx, size_t count),
       (x, dy, dx, count)) {
    IN_PLACE for (size_t i = 0; i < count; i++) {
        float slope = x[i] * (1.0f / 3) + 0.5f;
        slope = x[i] > -3 ? slope : 0;
        slope = x[i] < 3 ? slope : 1;
        dx[i] = dy[i] * slope;
    }
}

KERNEL(void, imprint_add, (const float *a, const float *b, float *y, size_t count), (a, b, y, count)) {
    IN_PLACE for (size_t i = 0; i < count; i++) y[i] = a[i] + b[i];
}

KERNEL(void, imprint_scale, (const float *x, float factor, float *y, size_t count), (x, factor, y, count)) {
    IN_PLACE for (size_t i = 0; i < count; i++) y[i] = factor * x[i];
}

KERNEL(void, imprint_masked_scale,
       (const float *x, const uint8_t *keep, float factor, float *y, size_t count),
       (x, keep, factor, y, count)) {
    // A bit mask instead of a conditional, which would compile to masked loads; these do not trigger hardware prefetching.
    IN_PLACE for (size_t i = 0; i < count; i++) y[i] = float_of(bits_of(factor * x[i]) & -(uint32_t)keep[i]);
}

KERNEL(void, imprint_clip_forward,
       (const float *x, float *y, size_t count, float minimum, float maximum),
       (x, y, count, minimum, maximum)) {
    // This order of comparison passes NaN.
    IN_PLACE for (size_t i = 0; i < count; i++) {
        float v = x[i] < minimum ? minimum : x[i];
        y[i] = v > maximum ? maximum : v;
    }
}

KERNEL(void, imprint_clip_backward,
       (const float *y, const float *dy, float *dx, size_t count, float minimum, float maximum),
       (y, dy, dx, count, minimum, maximum)) {
    IN_PLACE for (size_t i = 0; i < count; i++) {
        float g = dy[i];
        dx[i] = ((y[i] > minimum) & (y[i] < maximum)) ? g : 0;
    }
}

KERNEL(void, imprint_hard_sigmoid_forward,
       (const float *x, float *y, size_t count, float slope, float offset),
       (x, y, count, slope, offset)) {
    IN_PLACE for (size_t i = 0; i < count; i++) {
        float v = slope * x[i] + offset;
        v = v < 0 ? 0 : v;
        y[i] = v > 1 ? 1 : v;
    }
}

KERNEL(void, imprint_hard_sigmoid_backward,
       (const float *y, const float *dy, float *dx, size_t count, float slope),
       (y, dy, dx, count, slope)) {
    IN_PLACE for (size_t i = 0; i < count; i++) {
        float g = slope * dy[i];
        dx[i] = ((y[i] > 0) & (y[i] < 1)) ? g : 0;
    }
}

KERNEL(void, imprint_maximum_forward,
       (const float *a, const float *b, float *y, uint8_t *choice, uint8_t index, size_t count),
       (a, b, y, choice, index, count)) {
    if (choice) {
        IN_PLACE for (size_t i = 0; i < count; i++) {
            float u = a[i], v = b[i];
            uint8_t before = choice[i];
            choice[i] = ((v > u) | (v != v)) ? index : before;
            y[i] = ((v > u) | (v != v)) ? v : u;
        }
    } else {
        IN_PLACE for (size_t i = 0; i < count; i++) {
            float u = a[i], v = b[i];
            y[i] = ((v > u) | (v != v)) ? v : u;
        }
    }
}

KERNEL(void, imprint_maximum_backward,
       (const uint8_t *choice, uint8_t index, const float *dy, float *dx, size_t count),
       (choice, index, dy, dx, count)) {
    IN_PLACE for (size_t i = 0; i < count; i++) {
        float g = dy[i];
        dx[i] = choice[i] == index ? g : 0;
    }
}
