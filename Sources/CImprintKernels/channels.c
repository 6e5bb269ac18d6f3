#define NEON_REGISTERS 1
#include "imprint_kernels.h"

#include "vectors.h"

// Sums over this many rows are computed in float and added in double, which is fast and accurate for any image size.
enum { block_rows = 64, block_channels = 256 };
// The floats of a cache line.
enum { line = 16 };

KERNEL(void, imprint_broadcast_row,
       (const float *row, float *y, size_t rows, size_t channels),
       (row, y, rows, channels)) {
    for (size_t r = 0; r < rows; r++) memcpy(y + r * channels, row, channels * sizeof(float));
}

// sums[c] = the sum over the rows of a term, which can use the index of the element, `index`. The sum of a channel does not depend on the number of
// channels.
#define CHANNEL_SUMS(term)                                                             \
    for (size_t c0 = 0; c0 < channels; c0 += block_channels) {                         \
        size_t width = channels - c0 < block_channels ? channels - c0 : block_channels; \
        for (size_t i = 0; i < width; i++) sums[c0 + i] = 0;                           \
        for (size_t r0 = 0; r0 < rows; r0 += block_rows) {                             \
            size_t end = r0 + block_rows < rows ? r0 + block_rows : rows;              \
            float partial[block_channels] = {0};                                       \
            for (size_t r = r0; r < end; r++)                                          \
                for (size_t i = 0; i < width; i++) {                                   \
                    size_t index = r * stride + c0 + i;                                \
                    partial[i] += (term);                                              \
                }                                                                      \
            for (size_t i = 0; i < width; i++) sums[c0 + i] += partial[i];             \
        }                                                                              \
    }

KERNEL(void, imprint_channel_sums,
       (const float *x, size_t stride, double *sums, size_t rows, size_t channels),
       (x, stride, sums, rows, channels)) {
    CHANNEL_SUMS(x[index])
}

KERNEL(void, imprint_prelu_slope_sums,
       (const float *x, const float *dy, size_t stride, double *sums, size_t rows, size_t channels),
       (x, dy, stride, sums, rows, channels)) {
    CHANNEL_SUMS((x[index] > 0 ? 0 : x[index]) * dy[index])
}

KERNEL(void, imprint_prelu_forward,
       (const float *x, const float *slope, float *y, size_t rows, size_t channels),
       (x, slope, y, rows, channels)) {
    for (size_t r = 0; r < rows; r++, x += channels, y += channels)
        IN_PLACE for (size_t c = 0; c < channels; c++) y[c] = x[c] > 0 ? x[c] : slope[c] * x[c];
}

KERNEL(void, imprint_prelu_backward,
       (const float *x, const float *dy, const float *slope, float *dx, size_t rows, size_t channels),
       (x, dy, slope, dx, rows, channels)) {
    for (size_t r = 0; r < rows; r++, x += channels, dy += channels, dx += channels)
        IN_PLACE for (size_t c = 0; c < channels; c++) dx[c] = x[c] > 0 ? dy[c] : slope[c] * dy[c];
}

// One loop per combination of operands, so the inner loops have no branches.
#define AFFINE(value)                                                    \
    for (size_t r = 0; r < rows; r++, x += channels, y += channels)      \
        IN_PLACE for (size_t c = 0; c < channels; c++) y[c] = (value);

KERNEL(void, imprint_affine,
       (const float *x, const float *scale, const float *shift, float *y, size_t rows, size_t channels),
       (x, scale, shift, y, rows, channels)) {
    if (scale && shift) AFFINE(scale[c] * x[c] + shift[c])
    else if (scale) AFFINE(scale[c] * x[c])
    else AFFINE(x[c] + shift[c])
}

KERNEL(void, imprint_copy_columns,
       (const float *x, size_t x_stride, float *y, size_t y_stride, size_t rows, size_t columns),
       (x, x_stride, y, y_stride, rows, columns)) {
    if (columns == 1)
        for (size_t r = 0; r < rows; r++) y[r * y_stride] = x[r * x_stride];
    else
        for (size_t r = 0; r < rows; r++) memcpy(y + r * y_stride, x + r * x_stride, columns * sizeof(float));
}

KERNEL(void, imprint_add_columns,
       (const float *x, size_t x_stride, float *y, size_t y_stride, size_t rows, size_t columns),
       (x, x_stride, y, y_stride, rows, columns)) {
    for (size_t r = 0; r < rows; r++)
        IN_PLACE for (size_t c = 0; c < columns; c++) y[r * y_stride + c] += x[r * x_stride + c];
}

KERNEL(void, imprint_scale_columns,
       (const float *x, size_t stride, const float *factor, float *y, size_t rows, size_t columns),
       (x, stride, factor, y, rows, columns)) {
    for (size_t r = 0; r < rows; r++, x += stride, y += columns) {
        // Hardware prefetchers do not follow rows that are pages apart.
        for (size_t c = 0; c < columns; c += line) __builtin_prefetch(x + 16 * stride + c);
        if (factor)
            for (size_t c = 0; c < columns; c++) y[c] = factor[c] * x[c];
        else memcpy(y, x, columns * sizeof(float));
    }
}

// Transposes a square of `lanes` rows and columns.
#define TRANSPOSE_SQUARE(row, column)                                                                            \
    {                                                                                                            \
        vec block[lanes];                                                                                        \
        UNROLL for (size_t r = 0; r < lanes; r++) block[r] = VEC(x + ((row) + r) * stride + (column));           \
        TRANSPOSE(block)                                                                                         \
        UNROLL for (size_t c = 0; c < lanes; c++) STORE(y + ((column) + c) * rows + (row), block[c]);            \
    }

KERNEL(void, imprint_transpose,
       (const float *x, size_t stride, float *y, size_t rows, size_t columns),
       (x, stride, y, rows, columns)) {
    for (size_t r0 = 0; r0 < rows; r0 += line)
        for (size_t c0 = 0; c0 < columns; c0 += line) {
            size_t r1 = r0 + line, c1 = c0 + line;
            if (r1 <= rows && c1 <= columns) {
                if (lanes == line) TRANSPOSE_SQUARE(r0, c0)
                else
                    UNROLL for (size_t i = 0; i < line; i += lanes)
                        UNROLL for (size_t j = 0; j < line; j += lanes) TRANSPOSE_SQUARE(r0 + i, c0 + j)
            } else {
                for (size_t r = r0; r < rows && r < r1; r++)
                    for (size_t c = c0; c < columns && c < c1; c++) y[c * rows + r] = x[r * stride + c];
            }
        }
}
