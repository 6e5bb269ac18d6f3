// Batch normalization: moments, and the fused kernels with shortcut, activation and pooling.

#include "check.h"

static void test_moments(void) {
    test("moments");
    FOR_EACH_COUNT(n) {
        enum { blocks = 4, height = 9 };
        const uint32_t rows[blocks] = {3, 0, 1, 5};
        float *x = random_floats(height * n, 3), *means = FLOATS(blocks * n), *m2s = FLOATS(blocks * n);
        float *mean = FLOATS(n), *variance = FLOATS(n);
        for (size_t i = 0; i < height * n; i++) x[i] += 100;
        double *expected = DOUBLES(n), *squares = DOUBLES(n);
        for (size_t c = 0; c < n; c++) {
            for (size_t r = 0; r < height; r++) expected[c] += x[r * n + c] / (double)height;
            for (size_t r = 0; r < height; r++) squares[c] += pow(x[r * n + c] - expected[c], 2) / height;
        }
        size_t first = 0;
        for (int b = 0; b < blocks; b++) {
            if (rows[b]) imprint_moments(x + first * n, rows[b], n, means + b * n, m2s + b * n);
            first += rows[b];
        }
        imprint_merge_moments(rows, means, m2s, blocks, n, n, mean, variance);
        expect_close("mean", mean, expected, n, 1e-6);
        expect_close("variance", variance, squares, n, 1e-5);
    }
}

// The constants of a normalization, and the oracle for an element.
static imprint_normalization constants(size_t n) {
    return (imprint_normalization){random_floats(n, 1), random_floats(n, 2), random_floats(n, 1), random_floats(n, 1),
                                   random_floats(n, 1), random_floats(n, 1), -0.25f, 1.5f, n};
}
static double scaled(const imprint_normalization *t, float x, size_t c) { return (double)t->factor[c] * x + t->offset[c]; }
static double clamped(const imprint_normalization *t, double v) { return v < t->floor ? t->floor : v > t->ceiling ? t->ceiling : v; }
static int passes(const imprint_normalization *t, double v) { return v > t->floor && v < t->ceiling; }
static double gradient(const imprint_normalization *t, double g, float x, size_t c) {
    return (double)t->a[c] * g + (double)t->b[c] * x + t->k[c];
}

static void expect_sums(const double *found, const double *expected, size_t count) {
    for (size_t i = 0; i < count; i++)
        expect(fabs(found[i] - expected[i]) < 1e-4 * (1 + fabs(expected[i])), "sum %g, expected %g", found[i], expected[i]);
}

static void test_fused(void) {
    test("normalization");
    FOR_EACH_COUNT(n)
    for (int has_shortcut = 0; has_shortcut < 2; has_shortcut++) {
        enum { rows = 70 };
        const size_t count = rows * n;
        const imprint_normalization t = constants(n);
        float *x = random_floats(count, 2), *shortcut = random_floats(count, 1), *dz = random_floats(count, 1);
        float *z = FLOATS(count), *dx = FLOATS(count), *dshortcut = FLOATS(count);
        double *expected = DOUBLES(count), *sums = DOUBLES(2 * n), *found = DOUBLES(2 * n);
        double *expected_dx = DOUBLES(count), *expected_g = DOUBLES(count);
        for (size_t i = 0; i < count; i++) {
            size_t c = i % n;
            double v = scaled(&t, x[i], c) + (has_shortcut ? shortcut[i] : 0);
            expected[i] = clamped(&t, v);
            double g = passes(&t, v) ? dz[i] : 0;
            sums[c] += g;
            sums[n + c] += g * ((double)x[i] - t.mean[c]);
            expected_g[i] = g;
            expected_dx[i] = gradient(&t, g, x[i], c);
        }
        imprint_normalization_forward(&t, x, has_shortcut ? shortcut : 0, z, rows);
        expect_close("z", z, expected, count, 1e-6);
        const float *output = has_shortcut ? z : 0;
        imprint_normalization_sums(&t, x, output, dz, found, rows);
        expect_sums(found, sums, 2 * n);
        imprint_normalization_backward(&t, x, output, dz, dx, dshortcut, rows);
        expect_close("dx", dx, expected_dx, count, 1e-6);
        expect_close("dshortcut", dshortcut, expected_g, count, 0);
        imprint_normalization_backward(&t, x, output, dz, 0, dz, rows);
        expect_close("only dshortcut, in place", dz, expected_g, count, 0);
        for (size_t i = 0; i < count; i++) expected_dx[i] = gradient(&t, 0, x[i], i % n);
        imprint_normalization_backward_unpooled(&t, x, dx, rows);
        expect_close("unpooled", dx, expected_dx, count, 1e-6);
    }
}

static void test_pooled(void) {
    test("normalization with pooling");
    FOR_EACH_COUNT(n)
    for (size_t width = 1; width < 8; width++) {
        const size_t line = width * n, count = width / 2 * n;
        const imprint_normalization t = constants(n);
        float *x = random_floats(2 * line, 2), *dz = random_floats(count, 1), *z = FLOATS(count), *dx = FLOATS(2 * line);
        uint8_t *choice = fresh(count), *chosen = fresh(count);
        double *expected = DOUBLES(count), *sums = DOUBLES(2 * n), *found = DOUBLES(2 * n), *expected_dx = DOUBLES(2 * line);
        for (size_t i = 0; i < 2 * line; i++) expected_dx[i] = gradient(&t, 0, x[i], i % n);
        for (size_t i = 0; i < count; i++) {
            const size_t c = i % n, first = i / n * 2 * n + c;
            const size_t pixels[4] = {first, first + n, first + line, first + line + n};
            int best = 0;
            for (int k = 1; k < 4; k++)
                if ((float)scaled(&t, x[pixels[k]], c) > (float)scaled(&t, x[pixels[best]], c)) best = k;
            const float value = x[pixels[best]];
            const double v = scaled(&t, value, c), g = passes(&t, v) ? dz[i] : 0;
            expected[i] = clamped(&t, v);
            chosen[i] = (uint8_t)best;
            sums[c] += g;
            sums[n + c] += g * ((double)value - t.mean[c]);
            expected_dx[pixels[best]] = gradient(&t, g, value, c);
        }
        imprint_normalization_forward_pooled(&t, x, width, z, choice);
        expect_close("z", z, expected, count, 1e-6);
        expect_bytes("choice", choice, chosen, count);
        imprint_normalization_sums_pooled(&t, x, width, choice, dz, found);
        expect_sums(found, sums, 2 * n);
        imprint_normalization_backward_pooled(&t, x, width, choice, dz, dx);
        expect_close("dx", dx, expected_dx, 2 * line, 1e-6);
    }
}

void test_normalization(void) {
    test_moments();
    test_fused();
    test_pooled();
}
