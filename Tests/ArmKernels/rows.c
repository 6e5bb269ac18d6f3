// Kernels on matrices [rows, channels], broadcasting, layer normalization and local response normalization.

#include "check.h"

enum { rows = 5 };

static void test_affine(void) {
    test("affine, PReLU and channel sums");
    FOR_EACH_COUNT(n) {
        float *x = random_floats(rows * n, 2), *dy = random_floats(rows * n, 2), *y = FLOATS(rows * n);
        float *scale = random_floats(n, 2), *shift = random_floats(n, 2);
        double *expected = DOUBLES(rows * n), *sums = DOUBLES(2 * n), *found = DOUBLES(n);
        for (int options = 1; options < 4; options++) {
            for (size_t i = 0; i < rows * n; i++)
                expected[i] = (options & 1 ? scale[i % n] : 1.0) * x[i] + (options & 2 ? shift[i % n] : 0);
            imprint_affine(x, options & 1 ? scale : 0, options & 2 ? shift : 0, y, rows, n);
            expect_close("affine", y, expected, rows * n, 1e-6);
        }
        for (size_t i = 0; i < rows * n; i++) {
            expected[i] = x[i] > 0 ? x[i] : (double)scale[i % n] * x[i];
            sums[i % n] += x[i] > 0 ? 0 : (double)x[i] * dy[i];
            sums[n + i % n] += x[i];
        }
        imprint_prelu_forward(x, scale, y, rows, n);
        expect_close("PReLU", y, expected, rows * n, 1e-6);
        imprint_prelu_slope_sums(x, dy, n, found, rows, n);
        for (size_t c = 0; c < n; c++) expect(fabs(found[c] - sums[c]) < 1e-5, "slope sum %g, expected %g", found[c], sums[c]);
        imprint_channel_sums(x, n, found, rows, n);
        for (size_t c = 0; c < n; c++) expect(fabs(found[c] - sums[n + c]) < 1e-5, "sum %g, expected %g", found[c], sums[n + c]);
        for (size_t i = 0; i < rows * n; i++) expected[i] = x[i] > 0 ? dy[i] : (double)scale[i % n] * dy[i];
        imprint_prelu_backward(x, dy, scale, x, rows, n);
        expect_close("PReLU backward in place", x, expected, rows * n, 1e-6);
    }
}

static void test_columns(void) {
    test("columns: copies, sums, scaling, transposition");
    FOR_EACH_COUNT(n)
    FOR_EACH_COUNT(height) {
        const size_t stride = n + 3;
        float *x = random_floats(height * stride, 2), *factor = random_floats(n, 2), *y = FLOATS(height * stride);
        double *copied = DOUBLES(height * n), *scaled = DOUBLES(height * n), *transposed = DOUBLES(height * n);
        for (size_t r = 0; r < height; r++)
            for (size_t c = 0; c < n; c++) {
                float v = x[r * stride + c];
                copied[r * n + c] = v;
                scaled[r * n + c] = (double)factor[c] * v;
                transposed[c * height + r] = v;
            }
        imprint_copy_columns(x, stride, y, n, height, n);
        expect_close("copy", y, copied, height * n, 0);
        for (size_t i = 0; i < height * n; i++) copied[i] *= 2;
        imprint_add_columns(x, stride, y, n, height, n);
        expect_close("add", y, copied, height * n, 0);
        imprint_scale_columns(x, stride, factor, y, height, n);
        expect_close("scale", y, scaled, height * n, 1e-6);
        imprint_transpose(x, stride, y, height, n);
        expect_close("transpose", y, transposed, height * n, 0);
        for (size_t i = 0; i < height * n; i++) copied[i] = factor[i % n];
        imprint_broadcast_row(factor, y, height, n);
        expect_close("row", y, copied, height * n, 0);
    }
}

static void test_epilogue(void) {
    test("epilogue");
    FOR_EACH_COUNT(n)
    for (int options = 0; options < 4; options++) {
        float *y = random_floats(rows * n, 2), *bias = random_floats(n, 1), *shortcut = random_floats(rows * n, 1);
        y[0] = NAN;
        double *expected = DOUBLES(rows * n);
        for (size_t i = 0; i < rows * n; i++) {
            double v = y[i] + (options & 1 ? bias[i % n] : 0.0) + (options & 2 ? shortcut[i] : 0.0);
            expected[i] = v < -0.5 ? -0.5 : v > 1 ? 1 : v;
        }
        imprint_epilogue(y, options & 1 ? bias : 0, options & 2 ? shortcut : 0, -0.5f, 1, rows, n);
        expect_close("y", y, expected, rows * n, 1e-6);
    }
}

static void test_broadcast(void) {
    test("broadcasting");
    FOR_EACH_COUNT(n)
    for (int kind = 0; kind < 4; kind++) {
        const imprint_strides whole = {n, 1}, strides = {kind & 1 ? n : 0, kind & 2 ? 1 : 0};
        const imprint_strides b_strides = kind == 1 ? (imprint_strides){1, 0} : strides;
        float *a = random_floats(rows * n, 2), *b = random_floats(rows * n, 2), *y = FLOATS(rows * n);
        double *sum = DOUBLES(rows * n), *product = DOUBLES(rows * n);
        for (size_t p = 0; p < rows; p++)
            for (size_t c = 0; c < n; c++) {
                float other = b[p * b_strides.pixel + c * b_strides.channel];
                sum[p * n + c] = (double)a[p * n + c] + other;
                product[p * n + c] = (double)a[p * n + c] * other;
            }
        imprint_broadcast_add(a, whole, b, b_strides, y, rows, n);
        expect_close("sum", y, sum, rows * n, 1e-6);
        imprint_broadcast_multiply(b, b_strides, a, whole, y, rows, n);
        expect_close("product", y, product, rows * n, 1e-6);
        for (int target = 0; target < 4; target++)
            for (int has_b = 0; has_b < 2; has_b++) {
                const imprint_strides to =
                    {target & 1 ? (target & 2 ? n : 1) : 0, target & 2 ? 1 : 0};
                double *sums = DOUBLES(rows * n), *expected = DOUBLES(rows * n);
                for (size_t i = 0; i < rows * n; i++) sums[i] = expected[i] = 1;
                for (size_t p = 0; p < rows; p++)
                    for (size_t c = 0; c < n; c++) {
                        double factor = has_b ? b[p * b_strides.pixel + c * b_strides.channel] : 1;
                        expected[p * to.pixel + c * to.channel] += a[p * n + c] * factor;
                    }
                imprint_product_sums(a, has_b ? b : 0, b_strides, sums, to, rows, n);
                for (size_t i = 0; i < rows * n; i++)
                    expect(fabs(sums[i] - expected[i]) < 1e-4, "product sum %g, expected %g", sums[i], expected[i]);
            }
    }
}

static void test_layer_norm(void) {
    test("layer normalization");
    FOR_EACH_COUNT(n) {
        if (n < 3) continue;
        float *x = random_floats(rows * n, 2), *dy = random_floats(rows * n, 2), *y = FLOATS(rows * n);
        float *scale = random_floats(n, 2), *shift = random_floats(n, 2);
        double *expected = DOUBLES(rows * n), *dx = DOUBLES(rows * n), *sums = DOUBLES(2 * n), *found = DOUBLES(2 * n);
        for (size_t r = 0; r < rows; r++) {
            const float *row = x + r * n, *g = dy + r * n;
            double mean = 0, variance = 0, g_mean = 0, product = 0;
            for (size_t c = 0; c < n; c++) mean += row[c] / (double)n;
            for (size_t c = 0; c < n; c++) variance += (row[c] - mean) * (row[c] - mean) / n;
            double inverse = 1 / sqrt(variance + 0.01);
            for (size_t c = 0; c < n; c++) {
                double v = (row[c] - mean) * inverse;
                expected[r * n + c] = v * scale[c] + shift[c];
                sums[c] += g[c] * v;
                sums[n + c] += g[c];
                g_mean += (double)g[c] * scale[c] / n;
                product += (double)g[c] * scale[c] * v / n;
            }
            for (size_t c = 0; c < n; c++)
                dx[r * n + c] = inverse * ((double)g[c] * scale[c] - g_mean - (row[c] - mean) * inverse * product);
        }
        imprint_layer_norm_forward(x, scale, shift, y, rows, n, 0.01f);
        expect_close("y", y, expected, rows * n, 5e-6);
        imprint_layer_norm_sums(x, dy, found, rows, n, 0.01f);
        for (size_t c = 0; c < 2 * n; c++) expect(fabs(found[c] - sums[c]) < 1e-4, "sum %g, expected %g", found[c], sums[c]);
        imprint_layer_norm_backward(x, dy, scale, y, rows, n, 0.01f);
        expect_close("dx", y, dx, rows * n, 2e-5);
    }
}

static void test_response(void) {
    test("local response normalization");
    FOR_EACH_COUNT(n) {
        const size_t before = n < 3 ? 0 : 2, after = n < 3 ? 0 : 1;
        const imprint_response t = {n, before, after, 0.3f, 0.75f, 1.5f};
        float *x = random_floats(rows * n, 2), *dy = random_floats(rows * n, 2), *y = FLOATS(rows * n), *scratch = FLOATS(3 * n);
        double *expected = DOUBLES(rows * n), *dx = DOUBLES(rows * n), *divisor = DOUBLES(n);
        for (size_t r = 0; r < rows; r++) {
            const float *row = x + r * n, *g = dy + r * n;
            for (size_t c = 0; c < n; c++) {
                divisor[c] = t.bias;
                for (size_t i = 0; i < n; i++)
                    if (i + before >= c && i <= c + after) divisor[c] += (double)t.factor * row[i] * row[i];
                expected[r * n + c] = row[c] * pow(divisor[c], -t.beta);
            }
            for (size_t c = 0; c < n; c++) {
                double sum = 0;
                for (size_t i = 0; i < n; i++)
                    if (c + before >= i && c <= i + after) sum += (double)g[i] * row[i] * pow(divisor[i], -t.beta - 1);
                dx[r * n + c] = g[c] * pow(divisor[c], -t.beta) - 2 * t.factor * t.beta * row[c] * sum;
            }
        }
        imprint_response_forward(&t, x, y, rows, scratch);
        expect_close("y", y, expected, rows * n, 4e-6);
        imprint_response_backward(&t, x, dy, y, rows, scratch);
        expect_close("dx", y, dx, rows * n, 1e-5);
    }
}

void test_rows(void) {
    test_affine();
    test_columns();
    test_epilogue();
    test_broadcast();
    test_layer_norm();
    test_response();
}
