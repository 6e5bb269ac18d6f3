// Matrix products with panels, in float32 and bfloat16.

#include "check.h"

static const size_t row_counts[] = {1, 2, 3, 5, 6, 7, 8, 13, 49};
static const size_t widths[] = {16, 17, 20, 24, 28, 31, 32, 40, 48, 52, 64, 65, 72};
static const size_t inners[] = {1, 2, 3, 4, 5, 7, 8, 27, 64, 130};
#define FOR_EACH_SIZE(rows, columns, inner)                                                \
    for (size_t r_ = 0; r_ < sizeof row_counts / sizeof *row_counts; r_++)                 \
        for (size_t c_ = 0; c_ < sizeof widths / sizeof *widths; c_++)                     \
            for (size_t i_ = 0, rows = row_counts[r_], columns = widths[c_], inner;        \
                 i_ < sizeof inners / sizeof *inners && (inner = inners[i_], 1); i_++)

// The results of x[rows][inner] with a stride and a panel, with bias and clamp.
static double *product(const float *x, size_t stride, const float *panel, size_t rows, size_t columns, size_t inner,
                       const imprint_bias_clamp *clamp) {
    double *results = DOUBLES(rows * columns);
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++) {
            double sum = clamp->bias ? clamp->bias[c] : 0;
            for (size_t i = 0; i < inner; i++) sum += (double)x[r * stride + i] * panel[i * columns + c];
            results[r * columns + c] = sum < clamp->floor ? clamp->floor : sum > clamp->ceiling ? clamp->ceiling : sum;
        }
    return results;
}

// Compares rows of y with a stride; the elements between the rows must not change.
static void expect_rows(const float *y, size_t stride, const double *expected, size_t rows, size_t columns, double tolerance) {
    for (size_t r = 0; r < rows; r++) {
        expect_close("row", y + r * stride, expected + r * columns, columns, tolerance);
        for (size_t c = columns; r + 1 < rows && c < stride; c++)
            expect(isnan(y[r * stride + c]), "column %zu of row %zu was written", c, r);
    }
}

static void test_float32(void) {
    test("product with a panel");
    FOR_EACH_SIZE(rows, columns, inner) {
        const size_t x_stride = inner + 3, y_stride = columns + 5;
        float *x = random_floats((rows - 1) * x_stride + inner, 1), *panel = random_floats(inner * columns, 1);
        float *y = FLOATS((rows - 1) * y_stride + columns);
        imprint_bias_clamp open = {0, -INFINITY, INFINITY}, closed = {random_floats(columns, 1), -0.5f, 1.25f};
        const imprint_bias_clamp *clamp = inner % 2 ? &open : &closed;
        imprint_multiply_panel(x, x_stride, panel, inner, columns, y, y_stride, rows, clamp);
        expect_rows(y, y_stride, product(x, x_stride, panel, rows, columns, inner, clamp), rows, columns, 1e-5);
    }

    test("product with NaN");
    float *x = random_floats(4, 1), *panel = random_floats(4 * 20, 1), *y = FLOATS(20);
    panel[33] = NAN;
    imprint_bias_clamp clamp = {0, 0, 6};
    imprint_multiply_panel(x, 4, panel, 4, 20, y, 20, 1, &clamp);
    for (int c = 0; c < 20; c++) expect(isnan(y[c]) == (c == 13), "column %d is %g", c, y[c]);
}

// The nearest bfloat16 number, by arithmetic instead of bits.
static float rounded(float x) {
    if (x == 0 || isnan(x) || isinf(x)) return x;
    int exponent;
    double fraction = frexp(x, &exponent) * 256;
    return (float)ldexp(nearbyint(fraction), exponent - 8);
}
static float widened(uint16_t half) {
    uint32_t bits = (uint32_t)half << 16;
    float x;
    memcpy(&x, &bits, 4);
    return x;
}

static void test_bfloat16(void) {
    test("conversion to bfloat16");
    FOR_EACH_COUNT(n) {
        const size_t rows = 3, stride = n + 2, y_stride = n + n % 2 + 2;
        float *x = random_floats(rows * stride, 100);
        for (size_t i = 0; i < rows * stride; i++) {
            uint32_t bits = random_bits();
            memcpy(&x[i], &bits, 4);
            // Subnormal numbers may become 0.
            if (fabsf(x[i]) < 1e-37f) x[i] = 0;
        }
        x[0] = 1.00390625f, x[stride] = 1.01171875f, x[2 * stride] = INFINITY;
        uint16_t *y = fresh(rows * y_stride * 2);
        imprint_to_bfloat16(x, stride, rows, n, y, y_stride);
        for (size_t r = 0; r < rows; r++)
            for (size_t i = 0; i < y_stride; i++) {
                float found = widened(y[r * y_stride + i]), expected = i < n ? rounded(x[r * stride + i]) : 0;
                expect(found == expected || (isnan(found) && isnan(expected)), "element %zu: %g, expected %g", i, found, expected);
            }
    }

    test("product in bfloat16");
    FOR_EACH_SIZE(rows, columns, inner) {
        const size_t stride = inner + inner % 2 + (inner > 5 ? 2 : 0), y_stride = columns + 3, w_stride = columns + 1;
        float *x = random_floats(rows * inner, 1), *w = random_floats(inner * w_stride, 1), *factors = random_floats(columns, 2);
        uint16_t *pairs = fresh(rows * stride * 2), *panel = fresh((inner + 1) / 2 * columns * 4);
        float *y = FLOATS((rows - 1) * y_stride + columns), *exact = FLOATS(inner * columns);
        const int scales = inner % 3 != 0;
        for (size_t i = 0; i < inner; i++)
            for (size_t c = 0; c < columns; c++)
                exact[i * columns + c] = rounded(w[i * w_stride + c] * (scales ? factors[c] : 1));
        imprint_to_bfloat16(x, inner, rows, inner, pairs, stride);
        imprint_pack_bfloat16(w, w_stride, scales ? factors : 0, inner, columns, panel);
        for (size_t i = 0; i < rows * inner; i++) x[i] = rounded(x[i]);
        imprint_bias_clamp open = {0, -INFINITY, INFINITY}, closed = {random_floats(columns, 1), -0.75f, 2};
        const imprint_bias_clamp *clamp = inner % 2 ? &closed : &open;
        imprint_multiply_panel_bfloat16(pairs, stride, panel, inner, columns, y, y_stride, rows, clamp);
        expect_rows(y, y_stride, product(x, inner, exact, rows, columns, inner, clamp), rows, columns, 1e-5);
    }
}

void test_products(void) {
    test_float32();
    test_bfloat16();
}
