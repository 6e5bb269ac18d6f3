// Int8 operations. All outputs are exact, and part of the digest that must be the same on every CPU. This file is compiled without fused
// multiply-add.

#include "check.h"

static int32_t quantized(float w, float factor, float scale) {
    float q = scale > 0 ? w * factor / scale : 0;
    return (int32_t)nearbyintf(q < -127 ? -127 : q > 127 ? 127 : q);
}

// Constants for each channel, with room for a multiple of 64.
typedef struct {
    float *factors, *bias, *floor, *ceiling, *shortcut_factors;
    uint8_t *shortcut;
} constants;

static constants random_constants(size_t channels, size_t pixels, size_t inner, int has_shortcut) {
    const size_t padded = (channels + 63) / 64 * 64;
    constants k = {random_floats(padded, 1), random_floats(padded, 20), FLOATS(padded), FLOATS(padded),
                   random_floats(padded, 0.5f), has_shortcut ? random_bytes(pixels * channels) : 0};
    for (size_t c = 0; c < padded; c++) {
        k.factors[c] = (0.5f + fabsf(k.factors[c])) * 0.05f / sqrtf((float)inner);
        k.bias[c] += 100;
        k.floor[c] = (float)(c % 7);
        k.ceiling[c] = 200 + (float)(c % 55);
    }
    return k;
}

static imprint_int8_output output_of(const constants *k, uint8_t *bytes, float *floats) {
    return (imprint_int8_output){k->factors, k->bias, k->floor, k->ceiling, k->shortcut, k->shortcut_factors, bytes, floats};
}

// The output of a channel, with the roundings of the kernels.
static float output_value(const constants *k, int64_t sum, size_t c, size_t at) {
    expect(sum == (int32_t)sum, "a sum of the test overflows");
    float value = (float)sum * k->factors[c];
    value = value + k->bias[c];
    if (k->shortcut) {
        float added = (float)k->shortcut[at] * k->shortcut_factors[c];
        value = value + added;
    }
    value = value > k->floor[c] ? value : k->floor[c];
    return value < k->ceiling[c] ? value : k->ceiling[c];
}

static void expect_output(const constants *k, const int64_t *sums, size_t pixels, size_t channels, const uint8_t *bytes,
                          const float *floats) {
    for (size_t i = 0; i < pixels * channels; i++) {
        float expected = output_value(k, sums[i], i % channels, i);
        expect(floats[i] == expected, "float %zu of channel %zu: %.9g, expected %.9g", i, i % channels, floats[i], expected);
        expect(bytes[i] == nearbyintf(expected), "byte %zu of channel %zu: %d, expected %g", i, i % channels, bytes[i], expected);
    }
    add_to_digest(bytes, pixels * channels);
    add_to_digest(floats, pixels * channels * sizeof(float));
}

// Activations and weights; `extreme` ones have the largest sums.
static uint8_t *activations(size_t count, int extreme) {
    uint8_t *x = random_bytes(count);
    for (size_t i = 0; extreme && i < count; i++) x[i] = x[i] & 1 ? 255 : 0;
    return x;
}
static float *weights(size_t count, int extreme) {
    float *w = random_floats(count, 1);
    for (size_t i = 0; extreme && i < count; i++) w[i] = w[i] < 0.5f ? -1 : 1;
    return w;
}

static void product(size_t kernel, size_t inputs, size_t outputs, size_t width, int has_shortcut, int extreme) {
    const size_t padded = (inputs + 3) / 4 * 4, side = width + kernel - 1, pixels = width * width;
    const size_t inner = kernel * kernel * padded, panels = (outputs + 63) / 64;
    uint8_t *x = activations(side * side * padded, extreme), *zero_points = random_bytes(inputs), *bytes = fresh(pixels * outputs);
    float *w = weights(kernel * kernel * inputs * outputs, extreme), *scales = random_floats(outputs, 1), *input_factors = random_floats(inputs, 1);
    for (size_t c = 0; c < outputs; c++) scales[c] = c == 5 ? 0 : (1 + fabsf(scales[c])) / 150;
    for (size_t i = 0; i < inputs; i++) input_factors[i] = extreme ? 2 : 0.5f + fabsf(input_factors[i]);
    int8_t *panel = fresh(panels * 64 * inner);
    int32_t *corrections = fresh(outputs * 4), *expected = fresh(outputs * 4);
    for (size_t first = 0; first < outputs; first += 64)
        imprint_pack_int8(w, kernel * kernel, inputs, padded, outputs, input_factors, zero_points, scales, first,
                          outputs - first < 64 ? outputs - first : 64, panel + first * inner, corrections + first);
    int64_t *sums = fresh(pixels * outputs * 8);
    memset(sums, 0, pixels * outputs * 8);
    memset(expected, 0, outputs * 4);
    for (size_t t = 0; t < kernel * kernel; t++)
        for (size_t i = 0; i < inputs; i++)
            for (size_t o = 0; o < outputs; o++) {
                const int32_t q = quantized(w[(t * inputs + i) * outputs + o], input_factors[i], scales[o]);
                expected[o] += q * zero_points[i];
                for (size_t p = 0; p < pixels; p++)
                    sums[p * outputs + o] += q * x[((p / width + t / kernel) * side + p % width + t % kernel) * padded + i];
            }
    expect_bytes("corrections", corrections, expected, outputs * 4);
    // Rows of the kernel are contiguous.
    int32_t *taps = fresh(kernel * 4);
    for (size_t t = 0; t < kernel; t++) taps[t] = (int32_t)(t * side * padded);
    const imprint_int8_windows windows = {x, width, (ptrdiff_t)(side * padded), (ptrdiff_t)padded, taps, kernel, kernel * padded};
    const constants k = random_constants(outputs, pixels, inner * (extreme ? 100 : 1), has_shortcut);
    float *floats = FLOATS(pixels * outputs);
    for (int target = 0; target < 2; target++) {
        const imprint_int8_output to = output_of(&k, target ? bytes : 0, target ? 0 : floats);
        for (size_t first = 0; first < outputs; first += 64) {
            imprint_int8_product(&windows, 0, pixels / 3, panel + first * inner, first, outputs, &to);
            imprint_int8_product(&windows, pixels / 3, pixels - pixels / 3, panel + first * inner, first, outputs, &to);
        }
    }
    expect_output(&k, sums, pixels, outputs, bytes, floats);
}

static void test_products_of_int8(void) {
    test("int8 product");
    FOR_EACH_COUNT(outputs)
    FOR_EACH_COUNT(inputs) product(1, inputs, outputs, 1 + (inputs + outputs) % 5, inputs % 2, 0);
    test("int8 convolution");
    FOR_EACH_COUNT(inputs) product(3, inputs, 20, 5, 1, 0);
    product(3, 3, 130, 4, 0, 0);
    product(2, 16, 65, 3, 1, 0);
    product(5, 7, 16, 4, 0, 0);
    test("int8 product of the largest numbers");
    product(1, 2048, 17, 2, 0, 1);
    product(3, 512, 16, 2, 0, 1);
}

typedef struct { int32_t kernel_height, kernel_width, stride, dilation, width; } depthwise_shape;

static void depthwise(depthwise_shape s, size_t channels, int extreme) {
    const int32_t height = 3, rows = (height - 1) * s.stride + (s.kernel_height - 1) * s.dilation + 1;
    const int32_t columns = (s.width - 1) * s.stride + (s.kernel_width - 1) * s.dilation + 1;
    const size_t taps = (size_t)s.kernel_height * s.kernel_width, pixels = (size_t)height * s.width;
    const size_t padded = (channels + 63) / 64 * 64;
    uint8_t *x = activations((size_t)rows * columns * channels, extreme), *zero_points = random_bytes(channels);
    float *w = weights(taps * channels, extreme), *scales = random_floats(channels, 1), *input_factors = random_floats(channels, 1);
    for (size_t c = 0; c < channels; c++) {
        scales[c] = (1 + fabsf(scales[c])) / 150;
        input_factors[c] = extreme ? 2 : 0.5f + fabsf(input_factors[c]);
    }
    int64_t *sums = fresh(pixels * channels * 8);
    int32_t *corrections = fresh(channels * 4), *expected = fresh(channels * 4);
    memset(expected, 0, channels * 4);
    memset(sums, 0, pixels * channels * 8);
    for (size_t t = 0; t < taps; t++)
        for (size_t c = 0; c < channels; c++) {
            const int32_t q = quantized(w[t * channels + c], input_factors[c], scales[c]);
            expected[c] += q * zero_points[c];
            for (size_t p = 0; p < pixels; p++) {
                const size_t row = p / s.width * s.stride + t / s.kernel_width * s.dilation;
                const size_t column = p % s.width * s.stride + t % s.kernel_width * s.dilation;
                sums[p * channels + c] += q * x[(row * columns + column) * channels + c];
            }
        }
    const constants k = random_constants(channels, pixels, taps, 0);
    uint8_t *bytes = fresh(pixels * channels);
    float *floats = FLOATS(pixels * channels);
    for (int is_uint8 = 0; is_uint8 < 2; is_uint8++) {
        const ptrdiff_t row = columns * (ptrdiff_t)channels, pixel = (ptrdiff_t)channels;
        imprint_int8_depthwise d = {x, 0, channels, s.width, s.kernel_height, s.kernel_width, s.stride, s.stride, s.dilation,
                                    s.dilation, s.stride * row, s.stride * pixel, s.dilation * row, s.dilation * pixel, is_uint8};
        int8_t *packed = fresh(imprint_int8_depthwise_bytes(&d));
        imprint_int8_depthwise_pack(&d, w, input_factors, zero_points, scales, packed, corrections);
        expect_bytes("corrections", corrections, expected, channels * 4);
        d.weights = packed;
        constants arranged = {FLOATS(padded), FLOATS(padded), FLOATS(padded), FLOATS(padded), 0, 0};
        float *to[4] = {arranged.factors, arranged.bias, arranged.floor, arranged.ceiling};
        const float *from[4] = {k.factors, k.bias, k.floor, k.ceiling};
        for (int i = 0; i < 4; i++) {
            memcpy(to[i], from[i], padded * sizeof(float));
            imprint_int8_depthwise_arrange(&d, to[i]);
        }
        const imprint_int8_output output = output_of(&arranged, is_uint8 ? bytes : 0, is_uint8 ? 0 : floats);
        imprint_int8_depthwise_forward(&d, 0, 1, &output);
        imprint_int8_depthwise_forward(&d, 1, 2, &output);
    }
    expect_output(&k, sums, pixels, channels, bytes, floats);
}

static void test_depthwise_of_int8(void) {
    static const depthwise_shape shapes[] = {{3, 3, 1, 1, 9}, {3, 3, 2, 1, 6}, {5, 5, 1, 1, 7}, {5, 5, 2, 1, 5}, {3, 3, 1, 2, 5},
                                             {2, 4, 1, 1, 6}, {7, 7, 1, 1, 4}, {1, 1, 1, 1, 3}, {3, 3, 1, 1, 1}};
    test("int8 depthwise convolution");
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
        FOR_EACH_COUNT(n) depthwise(shapes[s], n, 0);
        depthwise(shapes[s], 131, 1);
    }
}

static void test_values(void) {
    test("quantization");
    FOR_EACH_COUNT(n) {
        const size_t pixels = 5, count = pixels * n;
        float *x = random_floats(count, 200), *factors = random_floats(n, 2), *scales = random_floats(n, 2), *zeros = FLOATS(n);
        float *y = FLOATS(count), *again = FLOATS(count), *minima = random_floats(n, 1), *maxima = FLOATS(n), *means = FLOATS(n);
        uint8_t *bytes = fresh(count), *inside = fresh(count), *expected = fresh(count), *expected_inside = fresh(count);
        double *values = DOUBLES(count), *low = DOUBLES(n), *high = DOUBLES(n), *sums = DOUBLES(n);
        x[count / 2] = NAN;
        for (size_t c = 0; c < n; c++) {
            zeros[c] = (float)(random_bits() & 255);
            maxima[c] = minima[c];
            low[c] = high[c] = minima[c];
        }
        for (size_t i = 0; i < count; i++) {
            size_t c = i % n;
            float value = x[i] * factors[c];
            value = value + zeros[c];
            expected_inside[i] = value >= 0 && value <= 255;
            value = value > 0 ? value : 0;
            expected[i] = (uint8_t)nearbyintf(value < 255 ? value : 255);
            values[i] = ((float)expected[i] - zeros[c]) * scales[c];
            low[c] = x[i] < low[c] ? x[i] : low[c];
            high[c] = x[i] > high[c] ? x[i] : high[c];
            sums[c] += expected[i];
        }
        imprint_quantize(x, factors, zeros, pixels, n, bytes);
        expect_bytes("quantized", bytes, expected, count);
        imprint_dequantize(bytes, scales, zeros, pixels, n, y);
        expect_close("dequantized", y, values, count, 0);
        imprint_round_activation(x, factors, scales, zeros, pixels, n, again, inside);
        expect_close("rounded", again, values, count, 0);
        expect_bytes("inside", inside, expected_inside, count);
        imprint_channel_ranges(x, pixels, n, minima, maxima);
        expect_close("minima", minima, low, n, 0);
        expect_close("maxima", maxima, high, n, 0);
        imprint_average_uint8(bytes, scales, zeros, pixels, n, means);
        for (size_t c = 0; c < n; c++) sums[c] = (sums[c] / pixels - zeros[c]) * scales[c];
        expect_close("means", means, sums, n, 1e-6);
        add_to_digest(bytes, count);
        add_to_digest(y, count * sizeof(float));
        add_to_digest(means, n * sizeof(float));
    }
}

static void test_padding(void) {
    test("padding of int8 images");
    FOR_EACH_COUNT(n)
    for (size_t rest = 0; rest < 4; rest += 1 + (n == 3 ? 0 : 2)) {
        const size_t to = n + rest, height = 3, width = 4, top = 2, left = 1, right = 3, rows = height + top + 1;
        uint8_t *x = random_bytes(height * width * n), *zeros = random_bytes(to);
        const imprint_uint8_padding padding = {height, width, n, to, top, left, right, zeros};
        const size_t row = (left + width + right) * to;
        uint8_t *y = fresh(rows * row), *expected = fresh(rows * row);
        for (size_t i = 0; i < rows * row; i++) {
            const size_t c = i % to, column = i % row / to, r = i / row;
            const int is_inside = r >= top && r < top + height && column >= left && column < left + width;
            expected[i] = !is_inside ? zeros[c] : c < n ? x[((r - top) * width + column - left) * n + c] : 0;
        }
        imprint_pad_uint8(x, &padding, 0, 1, y);
        imprint_pad_uint8(x, &padding, 1, rows - 1, y + row);
        expect_bytes("y", y, expected, rows * row);
    }
}

void test_int8(void) {
    test_products_of_int8();
    test_depthwise_of_int8();
    test_values();
    test_padding();
}
