// Elementwise kernels, softmax and cross-entropy.

#include "check.h"

// Tests y = kernel(x), also in place. The formula uses the double v.
#define UNARY(name, size, tolerance, call, formula)                    \
    {                                                                  \
        test(name);                                                    \
        FOR_EACH_COUNT(n) {                                            \
            float *x = random_floats(n, size), *y = FLOATS(n);         \
            double *expected = DOUBLES(n);                             \
            for (size_t i = 0; i < n; i++) {                           \
                double v = x[i];                                       \
                expected[i] = (formula);                               \
            }                                                          \
            call;                                                      \
            expect_close("y", y, expected, n, tolerance);              \
            y = x;                                                     \
            call;                                                      \
            expect_close("in place", y, expected, n, tolerance);       \
        }                                                              \
    }

// Tests dx = kernel(v, dy), in place of dy. The formula uses the doubles v and g.
#define GRADIENT(name, size, tolerance, call, formula)                                     \
    {                                                                                      \
        test(name);                                                                        \
        FOR_EACH_COUNT(n) {                                                                \
            float *x = random_floats(n, size), *dy = random_floats(n, 2), *dx = FLOATS(n); \
            double *expected = DOUBLES(n);                                                 \
            for (size_t i = 0; i < n; i++) {                                               \
                double v = x[i], g = dy[i];                                                \
                expected[i] = (formula);                                                   \
            }                                                                              \
            call;                                                                          \
            expect_close("dx", dx, expected, n, tolerance);                                \
            dx = dy;                                                                       \
            call;                                                                          \
            expect_close("in place", dx, expected, n, tolerance);                          \
        }                                                                                  \
    }

static double sigmoid(double v) { return 1 / (1 + exp(-v)); }
static double swish_slope(double v) { return sigmoid(v) * (1 + v * (1 - sigmoid(v))); }
static double gelu(double v) { return v / 2 * (1 + erf(v / sqrt(2))); }
static double gelu_slope(double v) { return (1 + erf(v / sqrt(2))) / 2 + v * exp(-v * v / 2) / sqrt(2 * M_PI); }
static double inner(double v) { return sqrt(2 / M_PI) * (v + 0.044715 * v * v * v); }
static double gelu_tanh(double v) { return v / 2 * (1 + tanh(inner(v))); }
static double gelu_tanh_slope(double v) {
    double t = tanh(inner(v));
    return (1 + t) / 2 + v / 2 * (1 - t * t) * sqrt(2 / M_PI) * (1 + 3 * 0.044715 * v * v);
}
static double clamped(double v, double low, double high) { return v < low ? low : v > high ? high : v; }

static void test_curves(void) {
    UNARY("sigmoid", 20, 1e-6, imprint_sigmoid_forward(x, y, n), sigmoid(v))
    GRADIENT("sigmoid backward", 1, 1e-6, imprint_sigmoid_backward(x, dy, dx, n), g * v * (1 - v))
    UNARY("swish", 10, 2e-6, imprint_swish_forward(x, y, n), v * sigmoid(v))
    GRADIENT("swish backward", 10, 2e-6, imprint_swish_backward(x, dy, dx, n), g * swish_slope(v))
    UNARY("elu", 5, 1e-6, imprint_elu_forward(x, y, n, 0.75f), v > 0 ? v : 0.75 * (exp(v) - 1))
    GRADIENT("elu backward", 1, 1e-6, imprint_elu_backward(x, dy, dx, n, 0.75f), v > 0 ? g : (v + 0.75) * g)
    UNARY("tanh", 5, 1e-6, imprint_tanh_forward(x, y, n), tanh(v))
    UNARY("tanh of large values", 90, 1e-6, imprint_tanh_forward(x, y, n), tanh(v))
    GRADIENT("tanh backward", 1, 1e-6, imprint_tanh_backward(x, dy, dx, n), g * (1 - v * v))
    UNARY("erf", 4, 2e-6, imprint_erf_forward(x, y, n), erf(v))
    GRADIENT("erf backward", 4, 2e-6, imprint_erf_backward(x, dy, dx, n), g * 2 / sqrt(M_PI) * exp(-v * v))
    UNARY("gelu", 6, 2e-6, imprint_gelu_forward(x, y, n), gelu(v))
    GRADIENT("gelu backward", 6, 4e-6, imprint_gelu_backward(x, dy, dx, n), g * gelu_slope(v))
    UNARY("gelu by tanh", 6, 2e-6, imprint_gelu_tanh_forward(x, y, n), gelu_tanh(v))
    GRADIENT("gelu by tanh backward", 6, 4e-6, imprint_gelu_tanh_backward(x, dy, dx, n), g * gelu_tanh_slope(v))
    UNARY("softplus", 20, 1e-6, imprint_softplus_forward(x, y, n), log1p(exp(-fabs(v))) + (v > 0 ? v : 0))
    GRADIENT("softplus backward", 3, 2e-6, imprint_softplus_backward(x, dy, dx, n), g * (1 - exp(-v)))
}

static void test_pieces(void) {
    UNARY("relu", 4, 0, imprint_relu_forward(x, y, n, INFINITY), v > 0 ? v : 0)
    UNARY("relu with a ceiling", 4, 0, imprint_relu_forward(x, y, n, 2), clamped(v, 0, 2))
    GRADIENT("relu backward", 4, 0, imprint_relu_backward(x, dy, dx, n, 2), v > 0 && v < 2 ? g : 0)
    UNARY("leaky relu", 4, 1e-6, imprint_leaky_relu_forward(x, y, n, 0.1f), v > 0 ? v : 0.1f * v)
    GRADIENT("leaky relu backward", 4, 1e-6, imprint_leaky_relu_backward(x, dy, dx, n, 0.1f), v > 0 ? g : 0.1f * g)
    UNARY("hard swish", 5, 1e-6, imprint_hard_swish_forward(x, y, n), v * clamped(v + 3, 0, 6) / 6)
    GRADIENT("hard swish backward", 5, 1e-6, imprint_hard_swish_backward(x, dy, dx, n),
             g * (v <= -3 ? 0 : v >= 3 ? 1 : v / 3 + 0.5))
    UNARY("scale", 4, 1e-6, imprint_scale(x, -1.7f, y, n), -1.7f * v)
    UNARY("clip", 4, 0, imprint_clip_forward(x, y, n, -1, 0.5f), clamped(v, -1, 0.5))
    GRADIENT("clip backward", 4, 0, imprint_clip_backward(x, dy, dx, n, -1, 0.5f), v > -1 && v < 0.5 ? g : 0)
    UNARY("hard sigmoid", 4, 1e-6, imprint_hard_sigmoid_forward(x, y, n, 0.2f, 0.5f), clamped(0.2f * v + 0.5, 0, 1))
    GRADIENT("hard sigmoid backward", 1, 1e-6, imprint_hard_sigmoid_backward(x, dy, dx, n, 0.2f),
             v > 0 && v < 1 ? 0.2f * g : 0)
    GRADIENT("add", 4, 0, imprint_add(x, dy, dx, n), (float)(v + g))

    test("masked scale");
    FOR_EACH_COUNT(n) {
        float *x = random_floats(n, 4), *y = FLOATS(n);
        uint8_t *keep = random_bytes(n);
        double *expected = DOUBLES(n);
        for (size_t i = 0; i < n; i++) keep[i] &= 1, expected[i] = keep[i] ? 1.5 * x[i] : 0;
        imprint_masked_scale(x, keep, 1.5f, y, n);
        expect_close("y", y, expected, n, 0);
    }

    test("maximum");
    FOR_EACH_COUNT(n) {
        float *a = random_floats(n, 1), *b = random_floats(n, 1), *dy = random_floats(n, 1), *y = FLOATS(n), *dx = FLOATS(n);
        if (n > 6) b[5] = NAN, a[6] = NAN, b[3] = a[3];
        uint8_t *choice = fresh(n), *chosen = fresh(n);
        double *expected = DOUBLES(n), *gradient = DOUBLES(n);
        for (size_t i = 0; i < n; i++) {
            choice[i] = 1;
            chosen[i] = b[i] > a[i] || isnan(b[i]) ? 3 : 1;
            expected[i] = isnan(a[i]) || isnan(b[i]) ? NAN : b[i] > a[i] ? b[i] : a[i];
            gradient[i] = chosen[i] == 3 ? dy[i] : 0;
        }
        imprint_maximum_forward(a, b, y, choice, 3, n);
        expect_close("y", y, expected, n, 0);
        expect_bytes("choice", choice, chosen, n);
        imprint_maximum_forward(a, b, y, 0, 3, n);
        expect_close("without choice", y, expected, n, 0);
        imprint_maximum_backward(choice, 3, dy, dx, n);
        expect_close("dx", dx, gradient, n, 0);
    }
}

static void test_softmax(void) {
    test("softmax");
    FOR_EACH_COUNT(n) {
        float *x = random_floats(n, 10), *dy = random_floats(n, 2), *y = FLOATS(n), *dx = FLOATS(n);
        double *expected = DOUBLES(n), *gradient = DOUBLES(n), most = -INFINITY, sum = 0, dot = 0;
        for (size_t i = 0; i < n; i++) most = x[i] > most ? x[i] : most;
        for (size_t i = 0; i < n; i++) sum += expected[i] = exp(x[i] - most);
        for (size_t i = 0; i < n; i++) expected[i] /= sum, dot += dy[i] * expected[i];
        for (size_t i = 0; i < n; i++) gradient[i] = expected[i] * (dy[i] - dot);
        imprint_softmax_forward(x, y, n);
        expect_close("y", y, expected, n, 1e-6);
        imprint_softmax_backward(y, dy, dx, n);
        expect_close("dx", dx, gradient, n, 1e-6);
    }

    test("cross-entropy");
    FOR_EACH_COUNT(n)
    for (int options = 0; options < 4; options++) {
        float *x = random_floats(n, 5), *weights = random_floats(n, 1), *dx = FLOATS(n);
        double s = options & 1 ? 0.1 : 0, most = -INFINITY, sum = 0, loss = 0, total = 0, *expected = DOUBLES(n);
        size_t label = n / 2, first = 0;
        for (size_t i = 0; i < n; i++) weights[i] = options & 2 ? fabsf(weights[i]) : 1;
        for (size_t i = 0; i < n; i++)
            if (x[i] > most) most = x[i], first = i;
        for (size_t i = 0; i < n; i++) sum += exp(x[i] - most);
        for (size_t k = 0; k < n; k++) {
            double q = ((1 - s) * (k == label) + s / n) * weights[k];
            loss += q * (log(sum) + most - x[k]);
            total += q;
        }
        for (size_t k = 0; k < n; k++) {
            double q = ((1 - s) * (k == label) + s / n) * weights[k];
            expected[k] = 0.5 * (total * exp(x[k] - most) / sum - q);
        }
        imprint_cross_entropy_options o = {n, (float)s, options & 2 ? weights : 0, 0.5f};
        int correct = -1;
        double found = imprint_softmax_cross_entropy(&o, x, label, dx, &correct);
        expect(fabs(found - loss) <= 1e-5 * (1 + loss), "loss %g, expected %g", found, loss);
        expect(correct == (first == label), "correct is %d", correct);
        expect_close("dx", dx, expected, n, 2e-6);
    }
}

void test_elementwise(void) {
    test_pieces();
    test_curves();
    test_softmax();
}
