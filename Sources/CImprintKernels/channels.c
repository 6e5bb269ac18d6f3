#include "imprint_kernels.h"

#include "vectors.h"

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

CLONES void imprint_transpose(const float *x, size_t stride, float *y, size_t rows, size_t columns) {
    for (size_t r0 = 0; r0 < rows; r0 += lanes)
        for (size_t c0 = 0; c0 < columns; c0 += lanes) {
            size_t r1 = r0 + lanes, c1 = c0 + lanes;
            if (r1 <= rows && c1 <= columns) {
                vec block[lanes];
                UNROLL for (size_t r = 0; r < lanes; r++) block[r] = VEC(x + (r0 + r) * stride + c0);
                transpose(block);
                UNROLL for (size_t c = 0; c < lanes; c++) STORE(y + (c0 + c) * rows + r0, block[c]);
            } else {
                for (size_t r = r0; r < rows && r < r1; r++)
                    for (size_t c = c0; c < columns && c < c1; c++) y[c * rows + r] = x[r * stride + c];
            }
        }
}
