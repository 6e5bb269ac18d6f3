// A separable blur with a symmetric kernel in 16-bit fixed point, which fits twice as many elements into a vector as floats. Samples are
// scaled by 128, weights by 65536.

#include "imprint_kernels.h"

#include <string.h>

#include "dispatch.h"

enum { lanes = 32, bits = 7 };
typedef uint16_t vec __attribute__((vector_size(lanes * sizeof(uint16_t)), aligned(2)));
typedef uint32_t products __attribute__((vector_size(lanes * sizeof(uint32_t))));
typedef uint8_t bytes __attribute__((vector_size(lanes), aligned(1)));
#define VEC(p) (*(const vec *)(p))
// The upper half of the product, which CPUs compute in one instruction.
#define WEIGHTED(v, weight) \
    __builtin_convertvector(__builtin_convertvector(v, products) * (uint32_t)(weight) >> 16, vec)

// Scratch memory has three parts: all rows, one padded row, one row of results. Vectors write past the end of each part.
enum { slack = 2 * lanes };

size_t imprint_blur_scratch(int32_t width, int32_t height, int32_t channels, int32_t radius) {
    return (size_t)width * channels * (height + 2) + 2 * (size_t)radius * channels + 3 * slack;
}

// Compensates the mean rounding error of the truncated products. It is limited because the sum of two samples must fit into 16 bits.
INLINE uint16_t bias_of(int32_t radius) { return radius < 200 ? (radius + 1) / 2 : 100; }

// Computes `count` weighted sums along an axis on which samples are `step` apart. `before` and `after` samples exist on each side of the
// middle; the outermost ones are repeated beyond the border.
INLINE void weighted_sums(const uint16_t *middle, ptrdiff_t step, int32_t before, int32_t after,
                          const uint16_t *weights, int32_t radius, uint16_t *sums, size_t count) {
    for (size_t i = 0; i < count; i += 2 * lanes) {
        vec bias = (vec){} + bias_of(radius);
        vec sum = bias + WEIGHTED(VEC(middle + i), weights[0]);
        vec next = bias + WEIGHTED(VEC(middle + i + lanes), weights[0]);
        for (int32_t tap = 1; tap <= radius; tap++) {
            const uint16_t *left = middle + i - (tap < before ? tap : before) * step;
            const uint16_t *right = middle + i + (tap < after ? tap : after) * step;
            sum += WEIGHTED(VEC(left) + VEC(right), weights[tap]);
            next += WEIGHTED(VEC(left + lanes) + VEC(right + lanes), weights[tap]);
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
        // The next row overwrites the elements written past the end.
        weighted_sums(padded + border, channels, radius, radius, weights, radius, rows + y * row, row);
    }
    for (int32_t y = 0; y < height; y++) {
        weighted_sums(rows + y * row, row, y, height - 1 - y, weights, radius, line, row);
        for (size_t i = 0; i < row; i++) target[y * row + i] = (uint16_t)(line[i] + (1 << (bits - 1))) >> bits;
    }
}
