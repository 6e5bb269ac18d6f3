#include "imprint_kernels.h"

#include <string.h>

#include "clones.h"

// Sums are taken in float over this many rows and then added in double: fast, and exact enough for any image size.
enum { block_rows = 64, block_channels = 256 };

CLONES void imprint_broadcast_row(const float *row, float *y, size_t rows, size_t channels) {
    for (size_t r = 0; r < rows; r++) memcpy(y + r * channels, row, channels * sizeof(float));
}

CLONES void imprint_channel_sums(const float *x, double *sums, size_t rows, size_t channels) {
    for (size_t c0 = 0; c0 < channels; c0 += block_channels) {
        size_t width = channels - c0 < block_channels ? channels - c0 : block_channels;
        for (size_t i = 0; i < width; i++) sums[c0 + i] = 0;
        for (size_t r0 = 0; r0 < rows; r0 += block_rows) {
            size_t end = r0 + block_rows < rows ? r0 + block_rows : rows;
            float partial[block_channels] = {0};
            for (size_t r = r0; r < end; r++)
                for (size_t i = 0; i < width; i++) partial[i] += x[r * channels + c0 + i];
            for (size_t i = 0; i < width; i++) sums[c0 + i] += partial[i];
        }
    }
}

CLONES void imprint_scale_channels(const float *x, const float *factor, float *y, size_t rows, size_t channels) {
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < channels; c++) y[r * channels + c] = factor[c] * x[r * channels + c];
}

void imprint_transpose(const float *x, size_t stride, float *y, size_t rows, size_t columns) {
    // In squares whose lines stay in cache.
    for (size_t r0 = 0; r0 < rows; r0 += 16)
        for (size_t c0 = 0; c0 < columns; c0 += 16)
            for (size_t r = r0; r < rows && r < r0 + 16; r++)
                for (size_t c = c0; c < columns && c < c0 + 16; c++) y[c * rows + r] = x[r * stride + c];
}
