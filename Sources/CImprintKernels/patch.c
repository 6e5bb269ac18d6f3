// Image patches: affine sampling, halving and recolouring.

#include "imprint_kernels.h"

#include "dispatch.h"

INLINE float within(float value, float last) {
    value = value > 0 ? value : 0;
    return value < last ? value : last;
}

KERNEL(void, imprint_sample_patch,
       (const uint8_t *image, int32_t width, int32_t height, const float map[6], uint8_t *patch, int32_t side),
       (image, width, height, map, patch, side)) {
    float last_x = width - 1, last_y = height - 1;
    for (int32_t row = 0; row < side; row++)
        for (int32_t column = 0; column < side; column++) {
            float x = within(map[0] * column + map[1] * row + map[2], last_x);
            float y = within(map[3] * column + map[4] * row + map[5], last_y);
            int32_t left = (int32_t)x, top = (int32_t)y;
            float right = x - left, bottom = y - top;
            const uint8_t *p = image + (top * width + left) * 3;
            int32_t next = left + 1 < width ? 3 : 0, below = top + 1 < height ? width * 3 : 0;
            for (int32_t channel = 0; channel < 3; channel++, p++) {
                float upper = p[0] + right * (p[next] - p[0]);
                float lower = p[below] + right * (p[below + next] - p[below]);
                *patch++ = (uint8_t)(upper + bottom * (lower - upper) + 0.5f);
            }
        }
}

KERNEL(void, imprint_halve,
       (const uint8_t *image, int32_t width, int32_t height, uint8_t *half),
       (image, width, height, half)) {
    int32_t columns = width / 2;
    for (int32_t row = 0; row < height / 2; row++) {
        const uint8_t *upper = image + (size_t)2 * row * width * 3, *lower = upper + (size_t)width * 3;
        for (int32_t column = 0; column < columns; column++, upper += 6, lower += 6, half += 3) {
            half[0] = (upper[0] + upper[3] + lower[0] + lower[3] + 2) / 4;
            half[1] = (upper[1] + upper[4] + lower[1] + lower[4] + 2) / 4;
            half[2] = (upper[2] + upper[5] + lower[2] + lower[5] + 2) / 4;
        }
    }
}

KERNEL(void, imprint_recolor_patch,
       (uint8_t *patch, size_t pixels, const uint8_t *tables, const int32_t order[3], float grey),
       (patch, pixels, tables, order, grey)) {
    for (size_t i = 0; i < pixels; i++, patch += 3) {
        float red = tables[patch[order[0]]], green = tables[256 + patch[order[1]]], blue = tables[512 + patch[order[2]]];
        float luma = 0.299f * red + 0.587f * green + 0.114f * blue;
        patch[0] = (uint8_t)(red + grey * (luma - red) + 0.5f);
        patch[1] = (uint8_t)(green + grey * (luma - green) + 0.5f);
        patch[2] = (uint8_t)(blue + grey * (luma - blue) + 0.5f);
    }
}
