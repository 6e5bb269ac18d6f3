// Runs a kernel a number of times: cases NAME TIMES. Without arguments, it lists the cases: name, unit and units per run.

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "imprint_kernels.h"

static float *floats(size_t count) {
    float *values = malloc((count + 64) * sizeof(float));
    for (size_t i = 0; i < count; i++) values[i] = (float)(int)(i * 37 % 101 - 50) / 64;
    return values;
}
static uint8_t *bytes(size_t count) {
    uint8_t *values = malloc(count + 64);
    for (size_t i = 0; i < count; i++) values[i] = (uint8_t)(i * 31 % 127);
    return values;
}

typedef struct { const char *name, *unit; double units; void (*run)(int times); } benchmark;

static imprint_window window(int size, int channels, int kernel, int stride) {
    int output = (size + stride - 1) / stride, padding = kernel / 2;
    return (imprint_window){size, size, channels, output, output, kernel, kernel, stride, stride, 1, 1, padding, padding, padding, padding};
}

static const imprint_bias_clamp relu = {0, 0, INFINITY};

#define DEPTHWISE(name, kernel, stride)                                                                     \
    static void name(int times) {                                                                           \
        imprint_window w = window(28, 64, kernel, stride);                                                  \
        float *x = floats(28 * 28 * 64), *weight = floats(kernel * kernel * 64), *y = floats(28 * 28 * 64); \
        while (times--) imprint_depthwise_forward(&w, x, weight, y, 0, w.output_height, &relu);             \
    }
DEPTHWISE(depthwise_3, 3, 1)
DEPTHWISE(depthwise_3_2, 3, 2)
DEPTHWISE(depthwise_5, 5, 1)

static void depthwise_input(int times) {
    imprint_window w = window(28, 64, 3, 1);
    float *dy = floats(28 * 28 * 64), *weight = floats(9 * 64), *dx = floats(28 * 28 * 64);
    while (times--) imprint_depthwise_backward_input(&w, dy, weight, dx);
}
static void depthwise_weight(int times) {
    imprint_window w = window(28, 64, 3, 1);
    float *dy = floats(28 * 28 * 64), *x = floats(28 * 28 * 64), *dweight = floats(9 * 64);
    while (times--) imprint_depthwise_backward_weight(&w, x, dy, dweight);
}

static void product(int times) {
    float *x = floats(96 * 256), *panel = floats(256 * 64), *y = floats(96 * 64);
    while (times--) imprint_multiply_panel(x, 256, panel, 256, 64, y, 64, 96, &relu);
}
static void product_bfloat16(int times) {
    float *x = floats(96 * 256), *w = floats(256 * 64), *y = floats(96 * 64);
    uint16_t *pairs = (uint16_t *)floats(96 * 256), *panel = (uint16_t *)floats(256 * 64);
    imprint_to_bfloat16(x, 256, 96, 256, pairs, 256);
    imprint_pack_bfloat16(w, 64, 0, 256, 64, panel);
    while (times--) imprint_multiply_panel_bfloat16(pairs, 256, panel, 256, 64, y, 64, 96, &relu);
}
static void to_bfloat16(int times) {
    float *x = floats(96 * 256);
    uint16_t *y = (uint16_t *)floats(96 * 256);
    while (times--) imprint_to_bfloat16(x, 256, 96, 256, y, 256);
}

static const imprint_tiles tiles = {28, 28, 64, 28, 28, 64, 1, 1, 7, 7};
static void winograd_input(int times) {
    float *x = floats(28 * 28 * 64), *v = floats(36 * 3200);
    while (times--) imprint_winograd_input(&tiles, x, 0, 7, v, 3152);
}
static void winograd_output(int times) {
    float *m = floats(36 * 3200), *y = floats(28 * 28 * 64);
    while (times--) imprint_winograd_output(&tiles, m, 3152, 0, 64, 0, 7, y);
}
static void winograd_weights(int times) {
    float *w = floats(9 * 64 * 64), *u = floats(36 * 4200);
    while (times--) imprint_winograd_weights(w, 0, 64, 64, 0, 64, u, 4112);
}
static void winograd_rotated(int times) {
    float *w = floats(9 * 64 * 64), *u = floats(36 * 4200);
    while (times--) imprint_winograd_rotated_weights(w, 64, 64, 0, 64, u, 4112);
}

static imprint_int8_output int8_output(float *constants, uint8_t *y) {
    return (imprint_int8_output){constants, constants, constants + 64, constants + 128, 0, 0, y, 0};
}
static float *int8_constants(void) {
    float *constants = floats(192);
    for (int c = 0; c < 64; c++) constants[c] = 0.001f, constants[64 + c] = 0, constants[128 + c] = 255;
    return constants;
}
#define INT8_PRODUCT(name, kernel, inputs)                                                                          \
    static void name(int times) {                                                                                   \
        enum { side = 14 + kernel - 1, inner = kernel * kernel * inputs };                                          \
        uint8_t *x = bytes(side * side * inputs), *zeros = bytes(inputs), *y = bytes(14 * 14 * 64);                 \
        float *w = floats(inner * 64), *factors = floats(inputs), *scales = floats(64);                             \
        int8_t *panel = (int8_t *)bytes(inner * 64);                                                                \
        int32_t corrections[64], taps[kernel];                                                                      \
        imprint_pack_int8(w, kernel * kernel, inputs, inputs, 64, factors, zeros, scales, 0, 64, panel, corrections); \
        for (int t = 0; t < kernel; t++) taps[t] = t * side * inputs;                                               \
        imprint_int8_windows windows = {x, 14, side * inputs, inputs, taps, kernel, kernel * inputs};               \
        imprint_int8_output to = int8_output(int8_constants(), y);                                                  \
        while (times--) imprint_int8_product(&windows, 0, 14 * 14, panel, 0, 64, &to);                              \
    }
INT8_PRODUCT(int8_1, 1, 256)
INT8_PRODUCT(int8_3, 3, 64)

#define INT8_DEPTHWISE(name, kernel, stride)                                                                        \
    static void name(int times) {                                                                                   \
        enum { output = 28 / stride, side = (output - 1) * stride + kernel };                                       \
        imprint_int8_depthwise d = {bytes(side * side * 64), 0, 64, output, kernel, kernel, stride, stride, 1, 1,   \
                                    side * 64 * stride, 64 * stride, side * 64, 64, 1};                             \
        float *w = floats(kernel * kernel * 64), *factors = floats(64), *scales = floats(64);                       \
        int8_t *packed = (int8_t *)bytes(imprint_int8_depthwise_bytes(&d));                                         \
        int32_t corrections[64];                                                                                    \
        imprint_int8_depthwise_pack(&d, w, factors, bytes(64), scales, packed, corrections);                        \
        d.weights = packed;                                                                                         \
        imprint_int8_output to = int8_output(int8_constants(), bytes(output * output * 64));                        \
        while (times--) imprint_int8_depthwise_forward(&d, 0, output, &to);                                         \
    }
INT8_DEPTHWISE(int8_depthwise_3, 3, 1)
INT8_DEPTHWISE(int8_depthwise_3_2, 3, 2)
INT8_DEPTHWISE(int8_depthwise_5, 5, 1)

static void max_pool(int times) {
    imprint_window w = window(28, 64, 3, 2);
    float *x = floats(28 * 28 * 64), *y = floats(14 * 14 * 64);
    uint8_t *choice = bytes(14 * 14 * 64);
    while (times--) imprint_max_pool_forward(&w, x, y, choice);
}
static void max_pool_backward(int times) {
    imprint_window w = window(28, 64, 3, 2);
    float *dx = floats(28 * 28 * 64), *dy = floats(14 * 14 * 64);
    uint8_t *choice = bytes(14 * 14 * 64);
    for (int i = 0; i < 14 * 14 * 64; i++) choice[i] %= 9;
    while (times--) imprint_max_pool_backward(&w, dy, choice, dx);
}
static void average_pool(int times) {
    imprint_window w = window(28, 64, 3, 2);
    float *x = floats(28 * 28 * 64), *y = floats(14 * 14 * 64);
    while (times--) imprint_average_pool_forward(&w, x, y, 0);
}

static void softmax(int times) {
    float *x = floats(1000), *y = floats(1000);
    while (times--) imprint_softmax_forward(x, y, 1000);
}
static void gelu(int times) {
    float *x = floats(4096), *y = floats(4096);
    while (times--) imprint_gelu_forward(x, y, 4096);
}
static void swish(int times) {
    float *x = floats(4096), *y = floats(4096);
    while (times--) imprint_swish_forward(x, y, 4096);
}
static void normalization(int times) {
    float *x = floats(256 * 64), *z = floats(256 * 64), *c = floats(64);
    imprint_normalization t = {c, c, c, c, c, c, 0, INFINITY, 64};
    while (times--) imprint_normalization_forward(&t, x, 0, z, 256);
}
static void transpose(int times) {
    float *x = floats(128 * 128), *y = floats(128 * 128);
    while (times--) imprint_transpose(x, 128, y, 128, 128);
}
static void checksum(int times) {
    uint8_t *x = bytes(65536);
    uint32_t sum = 0;
    while (times--) sum = imprint_crc32c(sum, x, 65536);
    if (sum == 1) puts("");
}

static const char mac[] = "multiply-accumulate", value[] = "output value", element[] = "element";
static const benchmark cases[] = {
    {"depthwise 3x3", mac, 9.0 * 28 * 28 * 64, depthwise_3},
    {"depthwise 3x3, stride 2", mac, 9.0 * 14 * 14 * 64, depthwise_3_2},
    {"depthwise 5x5", mac, 25.0 * 28 * 28 * 64, depthwise_5},
    {"depthwise 3x3, gradient of the input", mac, 9.0 * 28 * 28 * 64, depthwise_input},
    {"depthwise 3x3, gradient of the weights", mac, 9.0 * 28 * 28 * 64, depthwise_weight},
    {"product with a panel", mac, 96.0 * 256 * 64, product},
    {"bfloat16 product", mac, 96.0 * 256 * 64, product_bfloat16},
    {"float32 to bfloat16", element, 96.0 * 256, to_bfloat16},
    {"int8 product, 1x1, 256 to 64", mac, 14.0 * 14 * 256 * 64, int8_1},
    {"int8 product, 3x3, 64 to 64", mac, 14.0 * 14 * 9 * 64 * 64, int8_3},
    {"int8 depthwise 3x3", mac, 9.0 * 28 * 28 * 64, int8_depthwise_3},
    {"int8 depthwise 3x3, stride 2", mac, 9.0 * 14 * 14 * 64, int8_depthwise_3_2},
    {"int8 depthwise 5x5", mac, 25.0 * 28 * 28 * 64, int8_depthwise_5},
    {"Winograd, input", value, 36.0 * 49 * 64, winograd_input},
    {"Winograd, output", value, 28.0 * 28 * 64, winograd_output},
    {"Winograd, weights", value, 36.0 * 64 * 64, winograd_weights},
    {"Winograd, rotated weights", value, 36.0 * 64 * 64, winograd_rotated},
    {"max pooling 3x3, stride 2", value, 14.0 * 14 * 64, max_pool},
    {"max pooling 3x3, gradient", value, 28.0 * 28 * 64, max_pool_backward},
    {"average pooling 3x3, stride 2", value, 14.0 * 14 * 64, average_pool},
    {"softmax of 1,000 values", element, 1000, softmax},
    {"GELU", element, 4096, gelu},
    {"Swish", element, 4096, swish},
    {"batch normalization with ReLU", element, 256.0 * 64, normalization},
    {"transposition", element, 128.0 * 128, transpose},
    {"CRC-32C", "byte", 65536, checksum},
};

int main(int count, char **arguments) {
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (count < 3) printf("%s\t%s\t%.0f\n", cases[i].name, cases[i].unit, cases[i].units);
        else if (strcmp(arguments[1], cases[i].name) == 0) cases[i].run(atoi(arguments[2]));
    }
}
