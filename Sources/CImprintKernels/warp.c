// Applies a projective map and a colour matrix to an image in one pass. The source coordinates are computed for a block of pixels of a row,
// vectorized over pixels. Then the samples are gathered pixel by pixel, two neighbours per load, and interpolated with the channels in a
// vector.

#include "imprint_kernels.h"

#include <string.h>

#include "dispatch.h"

enum { block = 64, wide = 4 };  // pixels per block, and bytes of a widened pixel

typedef uint8_t bytes4 __attribute__((vector_size(4)));
typedef uint8_t bytes8 __attribute__((vector_size(8)));
typedef int32_t ints4 __attribute__((vector_size(16)));
typedef float floats4 __attribute__((vector_size(16)));
typedef float floats8 __attribute__((vector_size(32)));

size_t imprint_warp_scratch(const imprint_warp *warp) {
    return (size_t)(warp->width + 1) * (warp->height + 1) * wide;
}

// Copies the image into pixels of 4 bytes and repeats its last column and row, so every pixel has a right and a lower neighbour.
INLINE void widen(const imprint_warp *w, const uint8_t *source, uint8_t *widened, int32_t channels) {
    size_t width = w->width, row = (width + 1) * wide;
    for (int32_t y = 0; y < w->height; y++, source += width * channels) {
        uint8_t *target = widened + y * row;
        // Copies four bytes of each pixel except the last, because the image may end after it.
        size_t whole = channels == 3 ? width - 1 : 0;
        for (size_t x = 0; x < whole; x++) memcpy(target + x * wide, source + x * channels, wide);
        for (size_t x = whole; x < width; x++) memcpy(target + x * wide, source + x * channels, channels);
        memcpy(target + width * wide, target + (width - 1) * wide, wide);
    }
    memcpy(widened + w->height * row, widened + (w->height - 1) * row, row);
}

INLINE float clamped(float value, float last) {
    // This order of comparison turns NaN into 0.
    value = value > 0 ? value : 0;
    return value < last ? value : last;
}

INLINE void warp_channels(const imprint_warp *w, const uint8_t *source, uint8_t *target, uint8_t *scratch,
                          int32_t channels) {
    widen(w, source, scratch, channels);
    const float *m = w->map;
    float last_x = w->width - 1, last_y = w->height - 1;
    int32_t row = (w->width + 1) * wide;
    floats4 color[5];
    memcpy(color, w->color, sizeof(color));
    for (int32_t y = 0; y < w->height; y++)
        for (int32_t first = 0; first < w->width; first += block) {
            int32_t count = w->width - first < block ? w->width - first : block;
            int32_t offsets[block];
            float share_x[block], share_y[block];
            float base_x = m[1] * y + m[2], base_y = m[4] * y + m[5], base = m[7] * y + m[8];
            for (int32_t i = 0; i < block; i++) {
                float x = first + i, scale = 1 / (m[6] * x + base);
                float from_x = clamped((m[0] * x + base_x) * scale, last_x);
                float from_y = clamped((m[3] * x + base_y) * scale, last_y);
                int32_t left = (int32_t)from_x, top = (int32_t)from_y;
                offsets[i] = top * row + left * wide;
                share_x[i] = from_x - left;
                share_y[i] = from_y - top;
            }
            uint8_t results[block * wide];
            for (int32_t i = 0; i < count; i++) {
                bytes8 above, below;
                memcpy(&above, scratch + offsets[i], sizeof(above));
                memcpy(&below, scratch + offsets[i] + row, sizeof(below));
                floats8 upper = __builtin_convertvector(above, floats8);
                floats8 pair = upper + (__builtin_convertvector(below, floats8) - upper) * share_y[i];
                floats4 left = __builtin_shufflevector(pair, pair, 0, 1, 2, 3);
                floats4 right = __builtin_shufflevector(pair, pair, 4, 5, 6, 7);
                floats4 pixel = left + (right - left) * share_x[i];
                floats4 sum = color[4];
                for (int32_t c = 0; c < channels; c++) sum += color[c] * pixel[c];
                ints4 rounded = __builtin_convertvector(sum + 0.5f, ints4);
                rounded = __builtin_elementwise_min(__builtin_elementwise_max(rounded, (ints4){0}), (ints4){} + 255);
                bytes4 result = __builtin_convertvector(rounded, bytes4);
                // The next pixel overwrites the extra bytes.
                memcpy(results + i * channels, &result, wide);
            }
            memcpy(target, results, count * channels);
            target += count * channels;
        }
}

KERNEL(void, imprint_warp_image,
       (const imprint_warp *warp, const uint8_t *source, uint8_t *target, uint8_t *scratch),
       (warp, source, target, scratch)) {
    switch (warp->channels) {
        case 1: warp_channels(warp, source, target, scratch, 1); break;
        case 3: warp_channels(warp, source, target, scratch, 3); break;
        default: warp_channels(warp, source, target, scratch, 4); break;
    }
}
