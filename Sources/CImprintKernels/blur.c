// A blur with a symmetrical kernel, rows and columns one after the other, in whole numbers of 16 bits: twice as many in a
// vector as floats. A sample is kept times 128, and weights are shares of 65536.

#include "imprint_kernels.h"

#include <string.h>

#include "dispatch.h"

#define PART_OF_CLONE static inline __attribute__((always_inline))

enum { lanes = 32, bits = 7 };
typedef uint16_t vec __attribute__((vector_size(lanes * sizeof(uint16_t)), aligned(2)));
typedef uint32_t products __attribute__((vector_size(lanes * sizeof(uint32_t))));
typedef uint8_t bytes __attribute__((vector_size(lanes), aligned(1)));
#define VEC(p) (*(const vec *)(p))
// The upper half of a product, for which processors have an instruction.
#define SHARE(v, weight) \
    __builtin_convertvector(__builtin_convertvector(v, products) * (uint32_t)(weight) >> 16, vec)

// Three parts: all rows, one row with its borders continued, one row of results. Vectors overshoot the end of each.
enum { slack = 2 * lanes };

size_t imprint_blur_scratch(int32_t width, int32_t height, int32_t channels, int32_t radius) {
    return (size_t)width * channels * (height + 2) + 2 * (size_t)radius * channels + 3 * slack;
}

// What cutting off each share takes away on average is added again, but not so much that two samples exceed 16 bits.
PART_OF_CLONE uint16_t bias_of(int32_t radius) { return radius < 200 ? (radius + 1) / 2 : 100; }

// Sums up `count` neighbourhoods along an axis on which samples are `step` apart. Before and after the middle there are so
// many samples, of which the last stands for all beyond it.
PART_OF_CLONE void weigh(const uint16_t *middle, ptrdiff_t step, int32_t before, int32_t after, const uint16_t *weights,
                         int32_t radius, uint16_t *sums, size_t count) {
    for (size_t i = 0; i < count; i += 2 * lanes) {
        vec bias = (vec){} + bias_of(radius);
        vec sum = bias + SHARE(VEC(middle + i), weights[0]);
        vec next = bias + SHARE(VEC(middle + i + lanes), weights[0]);
        for (int32_t tap = 1; tap <= radius; tap++) {
            const uint16_t *left = middle + i - (tap < before ? tap : before) * step;
            const uint16_t *right = middle + i + (tap < after ? tap : after) * step;
            sum += SHARE(VEC(left) + VEC(right), weights[tap]);
            next += SHARE(VEC(left + lanes) + VEC(right + lanes), weights[tap]);
        }
        memcpy(sums + i, &sum, sizeof(sum));
        memcpy(sums + i + lanes, &next, sizeof(next));
    }
}

KERNEL(void, imprint_blur,
       (const uint8_t *source, uint8_t *target, int32_t width, int32_t height, int32_t channels, const uint16_t *weights,
        int32_t radius, uint16_t *scratch),
       (source, target, width, height, channels, weights, radius, scratch)) {
    size_t row = (size_t)width * channels, border = (size_t)radius * channels;
    uint16_t *rows = scratch, *padded = rows + row * height + slack, *line = padded + row + 2 * border + slack;
    for (int32_t y = 0; y < height; y++) {
        for (size_t i = 0; i < row; i++) padded[border + i] = source[y * row + i] << bits;
        for (size_t i = 0; i < border; i++) {
            padded[i] = padded[border + i % channels];
            padded[border + row + i] = padded[border + row - channels + i % channels];
        }
        // What overshoots a row is overwritten by the next.
        weigh(padded + border, channels, radius, radius, weights, radius, rows + y * row, row);
    }
    for (int32_t y = 0; y < height; y++) {
        weigh(rows + y * row, row, y, height - 1 - y, weights, radius, line, row);
        for (size_t i = 0; i < row; i++) target[y * row + i] = (uint16_t)(line[i] + (1 << (bits - 1))) >> bits;
    }
}
