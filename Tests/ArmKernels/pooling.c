// Pooling.

#include "check.h"

// Each window has a tap inside the image.
static const struct { int32_t kernel, stride, dilation, padding, height, width; } shapes[] = {
    {2, 2, 1, 0, 8, 10}, {2, 2, 1, 0, 7, 9}, {3, 2, 1, 1, 9, 12}, {3, 2, 1, 0, 9, 11}, {3, 1, 1, 1, 7, 11},
    {5, 1, 1, 2, 8, 9},  {3, 3, 1, 0, 9, 9}, {2, 1, 2, 1, 7, 8},  {7, 7, 1, 0, 7, 7},  {1, 2, 1, 0, 5, 6},
};

void test_pooling(void) {
    test("pooling");
    for (size_t shape = 0; shape < sizeof shapes / sizeof *shapes; shape++)
        FOR_EACH_COUNT(n) {
            const int32_t k = shapes[shape].kernel, s = shapes[shape].stride, d = shapes[shape].dilation;
            const int32_t p = shapes[shape].padding, h = shapes[shape].height, width = shapes[shape].width;
            const int32_t oh = (h + 2 * p - (k - 1) * d - 1) / s + 1, ow = (width + 2 * p - (k - 1) * d - 1) / s + 1;
            const imprint_window w = {h, width, (int32_t)n, oh, ow, k, k, s, s, d, d, p, p, p, p};
            const size_t inputs = (size_t)h * width * n, results = (size_t)oh * ow * n;
            float *x = random_floats(inputs, 1), *dy = random_floats(results, 1), *y = FLOATS(results), *dx = FLOATS(inputs);
            uint8_t *choice = fresh(results), *chosen = fresh(results), *small = random_bytes(inputs), *most = fresh(results);
            uint8_t *largest = fresh(results);
            double *maxima = DOUBLES(results), *means[2] = {DOUBLES(results), DOUBLES(results)};
            double *max_dx = DOUBLES(inputs), *mean_dx[2] = {DOUBLES(inputs), DOUBLES(inputs)};
            for (int32_t oy = 0; oy < oh; oy++)
                for (int32_t ox = 0; ox < ow; ox++)
                    for (size_t c = 0; c < n; c++) {
                        const size_t out = ((size_t)oy * ow + ox) * n + c;
                        size_t offsets[49], best = 0, found = 0;
                        for (int32_t tap = 0; tap < k * k; tap++) {
                            int32_t iy = oy * s - p + tap / k * d, ix = ox * s - p + tap % k * d;
                            if (iy < 0 || ix < 0 || iy >= h || ix >= width) continue;
                            const size_t in = offsets[found] = ((size_t)iy * width + ix) * n + c;
                            if (!found || x[in] > x[best]) best = in, chosen[out] = (uint8_t)tap;
                            if (!found || small[in] > most[out]) most[out] = small[in];
                            found++;
                        }
                        maxima[out] = x[best];
                        max_dx[best] += dy[out];
                        const double sizes[2] = {found, k * k};
                        for (size_t i = 0; i < found; i++)
                            for (int padded = 0; padded < 2; padded++) {
                                means[padded][out] += x[offsets[i]] / sizes[padded];
                                mean_dx[padded][offsets[i]] += dy[out] / sizes[padded];
                            }
                    }
            imprint_max_pool_forward(&w, x, y, choice);
            expect_close("maximum", y, maxima, results, 0);
            expect_bytes("choice", choice, chosen, results);
            memset(y, 0xff, results * sizeof(float));
            imprint_max_pool_forward(&w, x, y, 0);
            expect_close("maximum without choice", y, maxima, results, 0);
            imprint_max_pool_backward(&w, dy, choice, dx);
            expect_close("gradient of the maximum", dx, max_dx, inputs, 1e-6);
            for (int padded = 0; padded < 2; padded++) {
                imprint_average_pool_forward(&w, x, y, padded);
                expect_close("mean", y, means[padded], results, 1e-6);
                imprint_average_pool_backward(&w, dy, dx, padded);
                expect_close("gradient of the mean", dx, mean_dx[padded], inputs, 2e-6);
            }
            // The kernel for bytes has no dilation.
            if (d > 1) continue;
            imprint_max_pool_uint8(&w, small, largest, 0, oh);
            expect_bytes("maximum of bytes", largest, most, results);
            add_to_digest(largest, results);
        }
}
