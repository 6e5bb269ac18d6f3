#include "imprint_kernels.h"

#include <string.h>

#include "dispatch.h"

typedef uint8_t bytes4 __attribute__((vector_size(4)));
typedef int32_t ints4 __attribute__((vector_size(16)));
typedef float floats4 __attribute__((vector_size(16), aligned(4)));

enum { wide = 4 };  // samples per vector, which may include samples of the next pixel

// A row of sums and a row of result bytes; vectors write past the end of each.
size_t imprint_resample_scratch(size_t width, const imprint_axis *columns, size_t channels) {
    return width * channels + wide + columns->count * wide / sizeof(float) + 1;
}

// sums[i] = the weighted sum over the rows of sample i, for begin <= i < end.
INLINE void add_rows(const uint8_t *source, size_t row, size_t begin, size_t end, size_t taps,
                     const float *weights, float *sums) {
    for (size_t i = begin; i < end; i++) sums[i] = weights[0] * source[i];
    for (size_t tap = 1; tap < taps; tap++) {
        const uint8_t *samples = source + tap * row;
        for (size_t i = begin; i < end; i++) sums[i] += weights[tap] * samples[i];
    }
}

INLINE void resample_channels(const imprint_axis *rows, const imprint_axis *columns, const uint8_t *source,
                              size_t row, size_t channels, uint8_t *target, float *scratch) {
    size_t target_row = columns->count * channels, last = columns->count - 1;
    size_t begin = columns->first[0] * channels, end = (columns->first[last] + columns->taps[last]) * channels;
    float *sums = scratch;
    uint8_t *results = (uint8_t *)(scratch + row + wide);
    for (size_t y = 0; y < rows->count; y++, target += target_row) {
        add_rows(source + rows->first[y] * row, row, begin, end, rows->taps[y], rows->weights + y * rows->stride, sums);
        for (size_t x = 0; x < columns->count; x++) {
            const float *weights = columns->weights + x * columns->stride, *from = sums + columns->first[x] * channels;
            floats4 sum = (floats4){} + 0.5f;
            for (int32_t tap = 0; tap < columns->taps[x]; tap++, from += channels)
                sum += weights[tap] * *(const floats4 *)from;
            ints4 whole = __builtin_elementwise_min(__builtin_convertvector(sum, ints4), (ints4){} + 255);
            bytes4 result = __builtin_convertvector(whole, bytes4);
            // The next pixel overwrites the extra bytes.
            memcpy(results + x * channels, &result, wide);
        }
        memcpy(target, results, target_row);
    }
}

// Combines rows first, one target row at a time: memory access is sequential, columns are gathered from fewer rows, and the only
// intermediate is one row of sums.
KERNEL(void, imprint_resample,
       (const imprint_axis *rows, const imprint_axis *columns, const uint8_t *source, size_t width, size_t channels,
        uint8_t *target, float *scratch),
       (rows, columns, source, width, channels, target, scratch)) {
    switch (channels) {
        case 1: resample_channels(rows, columns, source, width, 1, target, scratch); break;
        case 3: resample_channels(rows, columns, source, width * 3, 3, target, scratch); break;
        default: resample_channels(rows, columns, source, width * 4, 4, target, scratch); break;
    }
}
