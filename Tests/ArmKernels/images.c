// Image kernels. Where a kernel rounds to bytes, an error of 1 is allowed next to a tie.

#include "check.h"

// Expects bytes within half a unit, and a little for rounding, of the exact values.
static void expect_samples(const char *what, const uint8_t *y, const double *exact, size_t count, double slack) {
    for (size_t i = 0; i < count; i++) {
        double value = exact[i] < 0 ? 0 : exact[i] > 255 ? 255 : exact[i];
        expect(fabs(y[i] - value) <= 0.5 + slack, "%s, sample %zu: %d, expected %g", what, i, y[i], value);
    }
}

// The bilinear sample of an image at (x, y), clamped to the image.
static double sample(const uint8_t *image, int width, int height, int channels, double x, double y, int c) {
    x = x > 0 ? x < width - 1 ? x : width - 1 : 0;
    y = y > 0 ? y < height - 1 ? y : height - 1 : 0;
    int left = (int)x, top = (int)y, right = left + 1 < width ? left + 1 : left, bottom = top + 1 < height ? top + 1 : top;
    double fx = x - left, fy = y - top;
#define SAMPLE(column, row) image[((row) * width + (column)) * channels + c]
    return (1 - fy) * ((1 - fx) * SAMPLE(left, top) + fx * SAMPLE(right, top))
        + fy * ((1 - fx) * SAMPLE(left, bottom) + fx * SAMPLE(right, bottom));
}

static void test_patches(void) {
    test("patches");
    const int width = 23, height = 17, side = 19;
    uint8_t *image = random_bytes((size_t)width * height * 3), *patch = fresh((size_t)side * side * 3);
    const float map[6] = {1.25f, -0.5f, 2.125f, 0.375f, 0.75f, -1.5f};
    double *exact = DOUBLES((size_t)side * side * 3);
    for (int i = 0; i < side * side * 3; i++) {
        int column = i / 3 % side, row = i / 3 / side;
        exact[i] = sample(image, width, height, 3, map[0] * column + map[1] * row + map[2], map[3] * column + map[4] * row + map[5], i % 3);
    }
    imprint_sample_patch(image, width, height, map, patch, side);
    expect_samples("patch", patch, exact, (size_t)side * side * 3, 0.001);

    const size_t half_count = (size_t)(width / 2) * (height / 2) * 3;
    uint8_t *half = fresh(half_count), *expected = fresh(half_count);
    for (size_t i = 0; i < half_count; i++) {
        size_t row = i / 3 / (width / 2), column = i / 3 % (width / 2), at = (2 * row * width + 2 * column) * 3 + i % 3;
        expected[i] = (uint8_t)((image[at] + image[at + 3] + image[at + width * 3] + image[at + width * 3 + 3] + 2) / 4);
    }
    imprint_halve(image, width, height, half);
    expect_bytes("half", half, expected, half_count);
    add_to_digest(half, half_count);

    uint8_t *tables = random_bytes(768), *recolored = fresh((size_t)side * side * 3);
    memcpy(recolored, patch, (size_t)side * side * 3);
    const int32_t order[3] = {2, 0, 1};
    for (int p = 0; p < side * side; p++) {
        double colors[3];
        for (int c = 0; c < 3; c++) colors[c] = tables[256 * c + patch[3 * p + order[c]]];
        double luma = 0.299 * colors[0] + 0.587 * colors[1] + 0.114 * colors[2];
        for (int c = 0; c < 3; c++) exact[3 * p + c] = colors[c] + 0.25 * (luma - colors[c]);
    }
    imprint_recolor_patch(recolored, (size_t)side * side, tables, order, 0.25f);
    expect_samples("recoloured", recolored, exact, (size_t)side * side * 3, 0.001);
}

// A linear filter from `size` to `count` samples.
static imprint_axis axis(size_t size, size_t count) {
    enum { stride = 4 };
    int32_t *first = fresh(count * 4), *taps = fresh(count * 4);
    float *weights = FLOATS(count * stride);
    for (size_t i = 0; i < count; i++) {
        taps[i] = size < stride ? (int32_t)size : random_integer(1, stride);
        first[i] = random_integer(0, (int32_t)size - taps[i]);
        float sum = 0;
        for (int t = 0; t < taps[i]; t++) sum += weights[i * stride + t] = fabsf(random_float(1)) + 0.01f;
        for (int t = 0; t < taps[i]; t++) weights[i * stride + t] /= sum;
    }
    // The kernel reads the columns from the first tap of the first sample to the last tap of the last one.
    first[0] = 0;
    first[count - 1] = (int32_t)size - taps[count - 1];
    return (imprint_axis){count, stride, first, taps, weights};
}

static void test_filters(void) {
    test("resampling");
    for (size_t channels = 1; channels <= 4; channels++) {
        if (channels == 2) continue;
        for (size_t width = 4; width < 40; width += 7) {
            const size_t height = 11;
            const imprint_axis rows = axis(height, 9), columns = axis(width, width / 2 + 3);
            const size_t count = rows.count * columns.count * channels;
            uint8_t *source = random_bytes(width * height * channels), *target = fresh(count);
            double *exact = DOUBLES(count);
            for (size_t i = 0; i < count; i++) {
                size_t row = i / channels / columns.count, column = i / channels % columns.count;
                for (int t = 0; t < rows.taps[row]; t++)
                    for (int s = 0; s < columns.taps[column]; s++)
                        exact[i] += (double)rows.weights[row * rows.stride + t] * columns.weights[column * columns.stride + s]
                            * source[((rows.first[row] + t) * width + columns.first[column] + s) * channels + i % channels];
            }
            imprint_resample(&rows, &columns, source, width, channels, target, FLOATS(imprint_resample_scratch(width, &columns, channels)));
            expect_samples("target", target, exact, count, 0.001);
        }
    }

    test("blur");
    for (int channels = 1; channels <= 4; channels++) {
        if (channels == 2) continue;
        for (int radius = 0; radius < 7; radius += 3) {
            const int width = 29, height = 8;
            const size_t count = (size_t)width * height * channels;
            uint8_t *source = random_bytes(count), *target = fresh(count);
            uint16_t weights[8] = {0};
            int rest = 65535;
            for (int i = radius; i > 0; i--) rest -= 2 * (weights[i] = (uint16_t)(65535 / (2 * radius + 2 + i)));
            weights[0] = (uint16_t)rest;
            double *exact = DOUBLES(count), *lines = DOUBLES(count);
            for (int pass = 0; pass < 2; pass++)
                for (int i = 0; i < (int)count; i++) {
                    const int c = i % channels, x = i / channels % width, y = i / channels / width;
                    double sum = 0;
                    for (int d = -radius; d <= radius; d++) {
                        int column = pass ? x : x + d < 0 ? 0 : x + d >= width ? width - 1 : x + d;
                        int row = !pass ? y : y + d < 0 ? 0 : y + d >= height ? height - 1 : y + d;
                        int at = (row * width + column) * channels + c;
                        sum += weights[abs(d)] / 65536.0 * (pass ? lines[at] : source[at]);
                    }
                    (pass ? exact : lines)[i] = sum;
                }
            imprint_blur(source, target, width, height, channels, weights, radius,
                         fresh(imprint_blur_scratch(width, height, channels, radius) * 2));
            expect_samples("target", target, exact, count, 0.1);
            add_to_digest(target, count);
        }
    }
}

static void test_warp(void) {
    test("warp");
    for (int channels = 1; channels <= 4; channels++) {
        if (channels == 2) continue;
        imprint_warp warp = {71, 13, channels, {0.9f, 0.2f, -3, -0.1f, 1.1f, 1.5f, 0.002f, 0.001f, 1}, {{0}}};
        for (int k = 0; k < 5; k++)
            for (int c = 0; c < 4; c++) warp.color[k][c] = k == 4 ? 5 + c : k == c ? 0.8f : 0.05f;
        const size_t count = (size_t)warp.width * warp.height * channels;
        uint8_t *source = random_bytes(count), *target = fresh(count);
        double *exact = DOUBLES(count);
        const float *m = warp.map;
        for (int i = 0; i < (int)count; i++) {
            const int x = i / channels % warp.width, y = i / channels / warp.width;
            const double s = m[6] * x + m[7] * y + m[8];
            exact[i] = warp.color[4][i % channels];
            for (int k = 0; k < channels; k++)
                exact[i] += warp.color[k][i % channels]
                    * sample(source, warp.width, warp.height, channels, (m[0] * x + m[1] * y + m[2]) / s,
                             (m[3] * x + m[4] * y + m[5]) / s, k);
        }
        imprint_warp_image(&warp, source, target, fresh(imprint_warp_scratch(&warp)));
        expect_samples("target", target, exact, count, 0.02);
    }
}

static void test_samples(void) {
    test("noise and normalization of samples");
    FOR_EACH_COUNT(n) {
        uint8_t *samples = random_bytes(3 * n), *noisy = fresh(3 * n);
        memcpy(noisy, samples, 3 * n);
        imprint_add_noise(noisy, 3 * n, 0x123456789abcdef0, 9000);
        add_to_digest(noisy, 3 * n);
        for (size_t i = 0; i < 3 * n; i++) {
            uint32_t hash = ((uint32_t)i + 0x9abcdef0) * 0x9e3779b1 ^ 0x12345678;
            hash = (hash ^ hash >> 16) * 0x7feb352d;
            hash = (hash ^ hash >> 15) * 0x846ca68b;
            hash ^= hash >> 16;
            int sum = (int)((hash & 255) + (hash >> 8 & 255) + (hash >> 16 & 255) + (hash >> 24)) - 510;
            double value = samples[i] + floor(sum * 9000 / 65536.0 + 0.5);
            expect(noisy[i] == (value < 0 ? 0 : value > 255 ? 255 : value), "noise of sample %zu: %d, expected %g", i, noisy[i], value);
        }
        for (size_t channels = 1; channels <= 3; channels += 2) {
            const float mean[3] = {120, 110, 100}, scale[3] = {0.01f, 0.02f, 0.03f};
            float *values = FLOATS(n * channels);
            double *expected = DOUBLES(n * channels);
            for (size_t i = 0; i < n * channels; i++) expected[i] = (samples[i] - mean[i % channels]) * (double)scale[i % channels];
            imprint_normalize_samples(samples, values, n, channels, mean, scale);
            expect_close("values", values, expected, n * channels, 1e-6);
        }
    }
}

void test_images(void) {
    test_patches();
    test_filters();
    test_warp();
    test_samples();
}
