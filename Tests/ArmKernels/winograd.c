// The transforms of Winograd's F(4x4, 3x3), compared with products of matrices, and a whole convolution.

#include "check.h"

static const double B[6][6] = {{4, 0, -5, 0, 1, 0},  {0, -4, -4, 1, 1, 0}, {0, 4, -4, -1, 1, 0},
                               {0, -2, -1, 2, 1, 0}, {0, 2, -1, -2, 1, 0}, {0, 4, 0, -5, 0, 1}};
static const double G[6][3] = {{1 / 4.0, 0, 0},
                               {-1 / 6.0, -1 / 6.0, -1 / 6.0},
                               {-1 / 6.0, 1 / 6.0, -1 / 6.0},
                               {1 / 24.0, 1 / 12.0, 1 / 6.0},
                               {1 / 24.0, -1 / 12.0, 1 / 6.0},
                               {0, 0, 1}};
static const double A[4][6] = {{1, 1, 1, 1, 1, 0}, {0, 1, -1, 2, -2, 0}, {0, 1, 1, 4, 4, 0}, {0, 1, -1, 8, -8, 1}};

// result[n][n] = M x M^T for a matrix M [n, m], or M^T x M for M [m, n] if `transposed`.
static void transform(const double *matrix, int transposed, const double *x, int m, double *result, int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < m; k++)
                for (int l = 0; l < m; l++)
                    sum += (transposed ? matrix[k * n + i] * matrix[l * n + j] : matrix[i * m + k] * matrix[j * m + l]) * x[k * m + l];
            result[i * n + j] = sum;
        }
}

static const struct { int32_t height, width, top, left; } shapes[] = {{8, 8, 1, 1}, {7, 10, 1, 1}, {5, 6, 0, 0}, {13, 3, 2, 1}, {3, 3, 1, 1}};
enum { shape_count = 5, batch = 2 };

static imprint_tiles tiles_of(int shape, int32_t inputs, int32_t outputs) {
    const int32_t h = shapes[shape].height, w = shapes[shape].width, top = shapes[shape].top, left = shapes[shape].left;
    const int32_t oh = h + 2 * top - 2, ow = w + 2 * left - 2;
    return (imprint_tiles){h, w, inputs, oh, ow, outputs, top, left, (oh + 3) / 4, (ow + 3) / 4};
}

// An element of an image [height, width, channels], or 0 outside.
static double at(const float *image, int32_t height, int32_t width, size_t channels, int32_t y, int32_t x, size_t c) {
    return y < 0 || x < 0 || y >= height || x >= width ? 0 : image[((size_t)y * width + x) * channels + c];
}

static void test_images_of_tiles(void) {
    test("transforms of images");
    for (int shape = 0; shape < shape_count; shape++)
        FOR_EACH_COUNT(n) {
            const imprint_tiles t = tiles_of(shape, (int32_t)n, (int32_t)n);
            const size_t rows = (size_t)batch * t.tile_rows, count = rows * t.tile_columns, stride = count * n + 5;
            const size_t image = (size_t)t.height * t.width * n, output = (size_t)t.output_height * t.output_width * n;
            float *x = random_floats(batch * image, 1), *m = random_floats(36 * stride, 1), *dy = random_floats(batch * output, 1);
            float *v = FLOATS(36 * stride), *dm = FLOATS(36 * stride), *y = FLOATS(batch * output);
            double *expected_y = DOUBLES(batch * output);
            // In two parts: the tiles of a part begin at index 0.
            const size_t half = rows / 2;
            for (int part = 0; part < 2; part++) {
                const size_t first = part ? half : 0, end = part ? rows : half;
                imprint_winograd_input(&t, x, first, end - first, v, stride);
                imprint_winograd_output_gradient(&t, dy, first, end - first, dm, stride);
                imprint_winograd_output(&t, m, stride, 0, n, first, end - first, y);
                for (size_t r = first; r < end; r++)
                    for (int32_t column = 0; column < t.tile_columns; column++)
                        for (size_t c = 0; c < n; c++) {
                            const size_t index = ((r - first) * t.tile_columns + column) * n + c, b = r / t.tile_rows;
                            const int32_t iy = (int32_t)(r % t.tile_rows) * 4, ix = column * 4;
                            double d[36], g[16], mm[36], transformed[36], gradient[36], result[16];
                            for (int i = 0; i < 36; i++) {
                                d[i] = at(x + b * image, t.height, t.width, n, iy - t.padding_top + i / 6,
                                          ix - t.padding_left + i % 6, c);
                                mm[i] = m[i * stride + index];
                            }
                            for (int i = 0; i < 16; i++)
                                g[i] = at(dy + b * output, t.output_height, t.output_width, n, iy + i / 4, ix + i % 4, c);
                            transform(B[0], 0, d, 6, transformed, 6);
                            transform(A[0], 1, g, 4, gradient, 6);
                            transform(A[0], 0, mm, 6, result, 4);
                            for (int k = 0; k < 36; k++) {
                                expect(fabs(v[k * stride + index] - transformed[k]) < 2e-5, "V[%d]", k);
                                expect(fabs(dm[k * stride + index] - gradient[k]) < 2e-4, "dM[%d]", k);
                            }
                            for (int i = 0; i < 16; i++)
                                if (iy + i / 4 < t.output_height && ix + i % 4 < t.output_width)
                                    expected_y[b * output + ((size_t)(iy + i / 4) * t.output_width + ix + i % 4) * n + c] = result[i];
                        }
            }
            expect_close("y", y, expected_y, batch * output, 2e-5);
        }
}

static void test_weights(void) {
    test("transforms of weights");
    FOR_EACH_COUNT(outputs)
    FOR_EACH_COUNT(inputs) {
        if (inputs > 33 && outputs != 17) continue;
        const size_t first = outputs / 3, panel = outputs - first, stride = inputs * panel + 3;
        float *w = random_floats(9 * inputs * outputs, 1), *factor = random_floats(outputs, 2), *u = FLOATS(36 * stride);
        float *du = random_floats(36 * stride, 1), *dw = random_floats(9 * inputs * outputs, 1);
        for (int scales = 0; scales < 2; scales++) {
            imprint_winograd_weights(w, scales ? factor : 0, inputs, outputs, first, panel, u, stride);
            for (size_t i = 0; i < inputs; i++)
                for (size_t o = 0; o < panel; o++) {
                    double g[9], expected[36];
                    for (int k = 0; k < 9; k++)
                        g[k] = w[(k * inputs + i) * outputs + first + o] * (scales ? (double)factor[first + o] : 1);
                    transform(G[0], 0, g, 3, expected, 6);
                    for (int k = 0; k < 36; k++)
                        expect(fabs(u[k * stride + i * panel + o] - expected[k]) < 2e-6, "U[%d], input %zu, output %zu", k, i, o);
                }
        }
        imprint_winograd_weights_gradient(du, stride, inputs, outputs, first, panel, dw);
        for (size_t i = 0; i < inputs; i++)
            for (size_t o = 0; o < panel; o++) {
                double d[36], expected[9];
                for (int k = 0; k < 36; k++) d[k] = du[k * stride + i * panel + o];
                transform(G[0], 1, d, 6, expected, 3);
                for (int k = 0; k < 9; k++)
                    expect(fabs(dw[(k * inputs + i) * outputs + first + o] - expected[k]) < 1e-5, "dg[%d]", k);
            }
        // With inputs and outputs exchanged: the panel is a range of the inputs.
        const size_t first_input = inputs / 3, width = inputs - first_input, rotated_stride = outputs * width + 3;
        float *rotated = FLOATS(36 * rotated_stride);
        imprint_winograd_rotated_weights(w, inputs, outputs, first_input, width, rotated, rotated_stride);
        for (size_t o = 0; o < outputs; o++)
            for (size_t i = 0; i < width; i++) {
                double g[9], expected[36];
                for (int k = 0; k < 9; k++) g[k] = w[((8 - k) * inputs + first_input + i) * outputs + o];
                transform(G[0], 0, g, 3, expected, 6);
                for (int k = 0; k < 36; k++)
                    expect(fabs(rotated[k * rotated_stride + o * width + i] - expected[k]) < 2e-6, "rotated U[%d]", k);
            }
    }
}

static void test_convolution(void) {
    test("a convolution by Winograd and panels");
    for (int shape = 0; shape < shape_count; shape++) {
        const size_t inputs = 17, outputs = 20;
        const imprint_tiles t = tiles_of(shape, (int32_t)inputs, (int32_t)outputs);
        const size_t rows = (size_t)batch * t.tile_rows, count = rows * t.tile_columns;
        const size_t image = (size_t)t.height * t.width * inputs, pixels = (size_t)t.output_height * t.output_width;
        float *x = random_floats(batch * image, 1), *w = random_floats(9 * inputs * outputs, 1), *y = FLOATS(batch * pixels * outputs);
        float *v = FLOATS(36 * count * inputs), *u = FLOATS(36 * inputs * outputs), *m = FLOATS(36 * count * outputs);
        imprint_bias_clamp open = {0, -INFINITY, INFINITY};
        imprint_winograd_input(&t, x, 0, rows, v, count * inputs);
        imprint_winograd_weights(w, 0, inputs, outputs, 0, outputs, u, inputs * outputs);
        for (size_t k = 0; k < 36; k++)
            imprint_multiply_panel(v + k * count * inputs, inputs, u + k * inputs * outputs, inputs, outputs,
                                   m + k * count * outputs, outputs, count, &open);
        imprint_winograd_output(&t, m, count * outputs, 0, outputs, 0, rows, y);
        double *expected = DOUBLES(batch * pixels * outputs);
        for (size_t p = 0; p < batch * pixels; p++)
            for (size_t o = 0; o < outputs; o++)
                for (size_t k = 0; k < 9; k++)
                    for (size_t i = 0; i < inputs; i++) {
                        int32_t iy = (int32_t)(p % pixels) / t.output_width - t.padding_top + (int32_t)k / 3;
                        int32_t ix = (int32_t)(p % pixels) % t.output_width - t.padding_left + (int32_t)k % 3;
                        expected[p * outputs + o] += at(x + p / pixels * image, t.height, t.width, inputs, iy, ix, i)
                            * w[(k * inputs + i) * outputs + o];
                    }
        expect_close("y", y, expected, batch * pixels * outputs, 5e-5);
    }
}

void test_winograd(void) {
    test_images_of_tiles();
    test_weights();
    test_convolution();
}
