// An image seen through a projective map and a colour matrix in one pass. Where each pixel comes from is computed for a
// stretch of a row at once, with as many pixels in a vector as fit; its samples are then fetched pixel by pixel, two
// neighbours with one read, and interpolated with all of its channels in a vector.

#include "imprint_kernels.h"

#include <string.h>

#include "dispatch.h"

#define PART_OF_CLONE static inline __attribute__((always_inline))

enum { stretch = 64, wide = 4 };  // pixels at once, and bytes of a widened pixel

typedef uint8_t bytes4 __attribute__((vector_size(4)));
typedef uint8_t bytes8 __attribute__((vector_size(8)));
typedef int32_t ints4 __attribute__((vector_size(16)));
typedef float floats4 __attribute__((vector_size(16)));
typedef float floats8 __attribute__((vector_size(32)));

size_t imprint_warp_scratch(const imprint_warp *warp) {
    return (size_t)(warp->width + 1) * (warp->height + 1) * wide;
}

// Copies the image into pixels of 4 bytes with its last column and row once more, so that every pixel has neighbours.
PART_OF_CLONE void widen(const imprint_warp *w, const uint8_t *source, uint8_t *widened, int32_t channels) {
    size_t width = w->width, row = (width + 1) * wide;
    for (int32_t y = 0; y < w->height; y++, source += width * channels) {
        uint8_t *target = widened + y * row;
        // Four bytes are copied of each pixel but the last, after which the image may end.
        size_t whole = channels == 3 ? width - 1 : 0;
        for (size_t x = 0; x < whole; x++) memcpy(target + x * wide, source + x * channels, wide);
        for (size_t x = whole; x < width; x++) memcpy(target + x * wide, source + x * channels, channels);
        memcpy(target + width * wide, target + (width - 1) * wide, wide);
    }
    memcpy(widened + w->height * row, widened + (w->height - 1) * row, row);
}

PART_OF_CLONE float clamped(float value, float last) {
    // Compared this way round, NaN becomes 0.
    value = value > 0 ? value : 0;
    return value < last ? value : last;
}

PART_OF_CLONE void warp_channels(const imprint_warp *w, const uint8_t *source, uint8_t *target, uint8_t *scratch,
                                 int32_t channels) {
    widen(w, source, scratch, channels);
    const float *m = w->map;
    float last_x = w->width - 1, last_y = w->height - 1;
    int32_t row = (w->width + 1) * wide;
    floats4 color[5];
    memcpy(color, w->color, sizeof(color));
    for (int32_t y = 0; y < w->height; y++)
        for (int32_t first = 0; first < w->width; first += stretch) {
            int32_t count = w->width - first < stretch ? w->width - first : stretch;
            int32_t place[stretch];
            float share_x[stretch], share_y[stretch];
            float base_x = m[1] * y + m[2], base_y = m[4] * y + m[5], base = m[7] * y + m[8];
            for (int32_t i = 0; i < stretch; i++) {
                float x = first + i, scale = 1 / (m[6] * x + base);
                float from_x = clamped((m[0] * x + base_x) * scale, last_x);
                float from_y = clamped((m[3] * x + base_y) * scale, last_y);
                int32_t left = (int32_t)from_x, top = (int32_t)from_y;
                place[i] = top * row + left * wide;
                share_x[i] = from_x - left;
                share_y[i] = from_y - top;
            }
            uint8_t results[stretch * wide];
            for (int32_t i = 0; i < count; i++) {
                bytes8 above, below;
                memcpy(&above, scratch + place[i], sizeof(above));
                memcpy(&below, scratch + place[i] + row, sizeof(below));
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
                // What is too much of it is overwritten by the next.
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
