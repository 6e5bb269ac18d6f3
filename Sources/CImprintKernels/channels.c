#include "imprint_kernels.h"

#include <string.h>

#include "clones.h"

// Sums are taken in float over this many rows and then added in double: fast, and exact enough for any image size.
enum { block_rows = 64, block_channels = 256 };

CLONES void imprint_broadcast_row(const float *row, float *y, size_t rows, size_t channels) {
    for (size_t r = 0; r < rows; r++) memcpy(y + r * channels, row, channels * sizeof(float));
}

CLONES void imprint_scale_shift(const float *x, const float *scale, const float *shift, float *y, size_t rows,
                                size_t channels) {
    for (size_t r = 0; r < rows; r++) {
        const float *xr = x + r * channels;
        float *yr = y + r * channels;
        IN_PLACE for (size_t c = 0; c < channels; c++) yr[c] = scale[c] * xr[c] + shift[c];
    }
}

// Adds `term`, an expression in r (row) and c (channel), over all rows into sums[c].
#define SUM_OVER_ROWS(term)                                                                       \
    for (size_t c0 = 0; c0 < channels; c0 += block_channels) {                                    \
        size_t width = channels - c0 < block_channels ? channels - c0 : block_channels;           \
        for (size_t i = 0; i < width; i++) sums[c0 + i] = 0;                                      \
        for (size_t r0 = 0; r0 < rows; r0 += block_rows) {                                        \
            size_t end = r0 + block_rows < rows ? r0 + block_rows : rows;                         \
            float partial[block_channels] = {0};                                                  \
            for (size_t r = r0; r < end; r++)                                                     \
                for (size_t i = 0; i < width; i++) {                                              \
                    size_t c = c0 + i;                                                            \
                    partial[i] += (term);                                                         \
                }                                                                                 \
            for (size_t i = 0; i < width; i++) sums[c0 + i] += partial[i];                        \
        }                                                                                         \
    }

CLONES void imprint_channel_sums(const float *x, double *sums, size_t rows, size_t channels) {
    SUM_OVER_ROWS(x[r * channels + c])
}

CLONES void imprint_channel_squares(const float *x, const float *mean, double *sums, size_t rows, size_t channels) {
    SUM_OVER_ROWS((x[r * channels + c] - mean[c]) * (x[r * channels + c] - mean[c]))
}

CLONES void imprint_channel_products(const float *x, const float *mean, const float *dy, double *sums, size_t rows,
                                     size_t channels) {
    SUM_OVER_ROWS(dy[r * channels + c] * (x[r * channels + c] - mean[c]))
}

CLONES void imprint_batch_norm_backward(const float *x, const float *dy, const float *a, const float *b,
                                        const float *k, float *dx, size_t rows, size_t channels) {
    for (size_t r = 0; r < rows; r++) {
        size_t row = r * channels;
        IN_PLACE for (size_t c = 0; c < channels; c++) dx[row + c] = a[c] * dy[row + c] + b[c] * x[row + c] + k[c];
    }
}
