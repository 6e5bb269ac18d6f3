// Depthwise convolutions and im2col.

#include "check.h"

// Windows with and without tiles, padding, stride and dilation.
static const struct { int32_t kernel_height, kernel_width, stride, dilation, padding, height, width; } shapes[] = {
    {3, 3, 1, 1, 1, 9, 13}, {3, 3, 2, 1, 1, 11, 14}, {5, 5, 1, 1, 2, 8, 11}, {5, 5, 2, 1, 2, 13, 17}, {3, 3, 1, 1, 0, 6, 7},
    {3, 3, 2, 1, 0, 7, 9},  {3, 3, 1, 2, 2, 9, 8},   {1, 3, 1, 1, 0, 4, 9},  {2, 2, 2, 1, 0, 6, 7},   {7, 7, 1, 1, 3, 9, 8},
    {5, 5, 1, 1, 1, 5, 5},  {3, 3, 1, 1, 1, 1, 1},   {4, 1, 3, 1, 2, 8, 5},
};
enum { shape_count = sizeof shapes / sizeof *shapes };

static int32_t outputs(int32_t size, int32_t kernel, int32_t stride, int32_t dilation, int32_t padding) {
    return (size + 2 * padding - (kernel - 1) * dilation - 1) / stride + 1;
}

static imprint_window window_of(int index, size_t channels) {
    int32_t kh = shapes[index].kernel_height, kw = shapes[index].kernel_width, s = shapes[index].stride;
    int32_t d = shapes[index].dilation, p = shapes[index].padding, h = shapes[index].height, w = shapes[index].width;
    int32_t pw = kw == 1 ? 0 : p;
    return (imprint_window){h, w, (int32_t)channels, outputs(h, kh, s, d, p), outputs(w, kw, s, d, pw), kh, kw, s, s, d, d,
                            p, pw, p, pw};
}

// Iterates over the taps inside the image: the body can use the offsets `in`, `out` and `tap` of channel c.
#define FOR_EACH_PRODUCT(w, channels)                                                                  \
    for (int32_t oy = 0; oy < (w).output_height; oy++)                                                 \
        for (int32_t ox = 0; ox < (w).output_width; ox++)                                              \
            for (int32_t ky = 0; ky < (w).kernel_height; ky++)                                         \
                for (int32_t kx = 0; kx < (w).kernel_width; kx++) {                                    \
                    int32_t iy = oy * (w).stride_height - (w).padding_top + ky * (w).dilation_height;  \
                    int32_t ix = ox * (w).stride_width - (w).padding_left + kx * (w).dilation_width;   \
                    int is_inside = iy >= 0 && ix >= 0 && iy < (w).height && ix < (w).width;           \
                    size_t in = ((size_t)iy * (w).width + ix) * (channels);                            \
                    size_t out = ((size_t)oy * (w).output_width + ox) * (channels);                    \
                    size_t tap = ((size_t)ky * (w).kernel_width + kx) * (channels);                    \
                    (void)in, (void)out, (void)tap;

static void test_depthwise(void) {
    test("depthwise convolution");
    for (int shape = 0; shape < shape_count; shape++)
        FOR_EACH_COUNT(n) {
            const imprint_window w = window_of(shape, n);
            const size_t inputs = (size_t)w.height * w.width * n, taps = (size_t)w.kernel_height * w.kernel_width * n;
            const size_t results = (size_t)w.output_height * w.output_width * n;
            float *x = random_floats(inputs, 1), *weight = random_floats(taps, 1), *dy = random_floats(results, 1);
            float *y = FLOATS(results), *dx = FLOATS(inputs), *dweight = FLOATS(taps), *bias = random_floats(n, 1);
            double *expected = DOUBLES(results), *expected_dx = DOUBLES(inputs), *expected_dweight = DOUBLES(taps);
            for (size_t i = 0; i < taps; i++) expected_dweight[i] = dweight[i] = 0.5f;
            FOR_EACH_PRODUCT(w, n)
            if (is_inside)
                for (size_t c = 0; c < n; c++) {
                    expected[out + c] += (double)x[in + c] * weight[tap + c];
                    expected_dx[in + c] += (double)dy[out + c] * weight[tap + c];
                    expected_dweight[tap + c] += (double)x[in + c] * dy[out + c];
                }
            }
            imprint_depthwise_backward_input(&w, dy, weight, dx);
            expect_close("dx", dx, expected_dx, inputs, 4e-6);
            imprint_depthwise_backward_weight(&w, x, dy, dweight);
            expect_close("dweight", dweight, expected_dweight, taps, 2e-5);
            imprint_bias_clamp open = {0, -INFINITY, INFINITY}, closed = {bias, -0.5f, 1};
            imprint_depthwise_forward(&w, x, weight, y, 0, w.output_height, &open);
            expect_close("y", y, expected, results, 4e-6);
            memset(y, 0xff, results * sizeof(float));
            for (size_t i = 0; i < results; i++) expected[i] = fmin(fmax(expected[i] + bias[i % n], -0.5), 1);
            for (int32_t row = 0; row < w.output_height; row += 2)
                imprint_depthwise_forward(&w, x, weight, y, row, w.output_height - row < 2 ? w.output_height - row : 2, &closed);
            expect_close("y with bias, in parts", y, expected, results, 4e-6);
        }
}

static void test_im2col(void) {
    test("im2col and col2im");
    for (int shape = 0; shape < shape_count; shape++)
        FOR_EACH_COUNT(n) {
            const imprint_window w = window_of(shape, n);
            const size_t first = n > 8 ? 4 : 0, channels = n - first, taps = (size_t)w.kernel_height * w.kernel_width;
            const size_t pixels = (size_t)w.output_height * w.output_width, start = pixels / 3, count = pixels - start;
            float *x = random_floats((size_t)w.height * w.width * n, 1), *columns = FLOATS(count * taps * channels);
            double *expected = DOUBLES(count * taps * channels), *sums = DOUBLES((size_t)w.height * w.width * n);
            for (size_t i = 0; i < (size_t)w.height * w.width * n; i++) sums[i] = x[i];
            FOR_EACH_PRODUCT(w, n)
            size_t pixel = out / n;
            if (pixel < start || !is_inside) continue;
            for (size_t c = 0; c < channels; c++)
                expected[((pixel - start) * taps + tap / n) * channels + c] = x[in + first + c];
            }
            imprint_im2col(&w, x, first, channels, start, count, columns);
            expect_close("columns", columns, expected, count * taps * channels, 0);
            FOR_EACH_PRODUCT(w, n)
            size_t pixel = out / n;
            if (pixel < start || !is_inside) continue;
            for (size_t c = 0; c < channels; c++)
                sums[in + first + c] += columns[((pixel - start) * taps + tap / n) * channels + c];
            }
            imprint_col2im(&w, columns, first, channels, start, count, x);
            expect_close("dx", x, sums, (size_t)w.height * w.width * n, 1e-5);
        }
}

void test_windows(void) {
    test_depthwise();
    test_im2col();
}
