#include "window.h"

// Copies a few floats, such as a kernel row, faster than a call of memcpy. The last vector overlaps the previous one.
#define COPY_IN(type)                                                                                 \
    do {                                                                                              \
        const size_t width = sizeof(type) / sizeof(float);                                            \
        for (size_t i = 0; i + width < count; i += width) *(type *)(to + i) = *(const type *)(from + i); \
        *(type *)(to + count - width) = *(const type *)(from + count - width);                        \
    } while (0)

typedef float vec8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef float vec4 __attribute__((vector_size(16), aligned(4), may_alias));

INLINE void copy(float *to, const float *from, size_t count) {
    if (count >= 16) COPY_IN(vec);
    else if (count >= 8) COPY_IN(vec8);
    else if (count >= 4) COPY_IN(vec4);
    else for (size_t i = 0; i < count; i++) to[i] = from[i];
}

INLINE void add(float *to, const float *from, size_t count) {
    size_t i = 0;
    for (; i + 16 <= count; i += 16) STORE(to + i, VEC(to + i) + VEC(from + i));
    if (count & 8) *(vec8 *)(to + i) += *(const vec8 *)(from + i), i += 8;
    if (count & 4) *(vec4 *)(to + i) += *(const vec4 *)(from + i), i += 4;
    for (; i < count; i++) to[i] += from[i];
}

// The direction: im2col copies from the image, col2im adds to the image.
typedef enum { copying, adding } transfer;

// Transfers `count` floats that are contiguous in both the image and the matrix.
INLINE void move(transfer how, float *image, float *column, size_t count) {
    if (how == copying) copy(column, image, count);
    else add(image, column, count);
}

// Transfers the windows of the output pixels first_pixel ..< first_pixel + pixels. A kernel row is contiguous in the image without dilation
// and groups.
INLINE void walk(transfer how, const imprint_window *w, float *image, size_t first_channel, size_t channels,
                 size_t first_pixel, size_t pixels, float *columns) {
    const ptrdiff_t pixel = w->channels, row = w->width * pixel;
    const ptrdiff_t row_step = w->dilation_height * row, tap_step = w->dilation_width * pixel;
    const int contiguous = w->dilation_width == 1 && channels == (size_t)pixel;
    const int32_t runs = contiguous ? 1 : w->kernel_width;
    const size_t length = contiguous ? w->kernel_width * channels : channels;
    const int32_t last_row = w->height - 1 - (w->kernel_height - 1) * w->dilation_height;
    const int32_t last_column = w->width - 1 - (w->kernel_width - 1) * w->dilation_width;
    int32_t oy = (int32_t)(first_pixel / w->output_width), ox = (int32_t)(first_pixel % w->output_width);
    for (size_t left = pixels; left > 0; oy++, ox = 0) {
        const int32_t end = left < (size_t)(w->output_width - ox) ? ox + (int32_t)left : w->output_width;
        const int32_t iy0 = oy * w->stride_height - w->padding_top;
        left -= end - ox;
        for (; ox < end; ox++) {
            const int32_t ix0 = ox * w->stride_width - w->padding_left;
            float *start = image + iy0 * row + ix0 * pixel + first_channel;
            if (iy0 >= 0 && iy0 <= last_row && ix0 >= 0 && ix0 <= last_column) {
                for (int32_t ky = 0; ky < w->kernel_height; ky++, start += row_step)
                    for (int32_t r = 0; r < runs; r++, columns += length)
                        move(how, start + r * tap_step, columns, length);
                continue;
            }
            for (int32_t ky = 0; ky < w->kernel_height; ky++)
                for (int32_t kx = 0; kx < w->kernel_width; kx++, columns += channels) {
                    const int32_t iy = iy0 + ky * w->dilation_height, ix = ix0 + kx * w->dilation_width;
                    if (iy >= 0 && iy < w->height && ix >= 0 && ix < w->width)
                        move(how, start + ky * row_step + kx * tap_step, columns, channels);
                    else if (how == copying)
                        for (size_t c = 0; c < channels; c++) columns[c] = 0;
                }
        }
    }
}

// Square kernels over few channels, as in the first layer of most networks. With constant sizes, the compiler unrolls the copies.
INLINE int is_known(const imprint_window *w, size_t channels, int32_t known_channels, int32_t kernel) {
    return w->channels == known_channels && channels == (size_t)known_channels && w->kernel_height == kernel
        && w->kernel_width == kernel && w->dilation_height == 1 && w->dilation_width == 1;
}

INLINE void walk_known(const imprint_window *w, const float *x, size_t first_pixel, size_t pixels, float *columns,
                       int32_t channels, int32_t kernel) {
    imprint_window known = *w;
    known.channels = channels;
    known.kernel_height = known.kernel_width = kernel;
    known.dilation_height = known.dilation_width = 1;
    walk(copying, &known, (float *)x, 0, (size_t)channels, first_pixel, pixels, columns);
}

KERNEL(void, imprint_im2col,
       (const imprint_window *w, const float *x, size_t first_channel, size_t channels, size_t first_pixel, size_t pixels,
        float *columns),
       (w, x, first_channel, channels, first_pixel, pixels, columns)) {
    if (is_known(w, channels, 3, 3)) walk_known(w, x, first_pixel, pixels, columns, 3, 3);
    else if (is_known(w, channels, 3, 7)) walk_known(w, x, first_pixel, pixels, columns, 3, 7);
    else if (is_known(w, channels, 1, 5)) walk_known(w, x, first_pixel, pixels, columns, 1, 5);
    else walk(copying, w, (float *)x, first_channel, channels, first_pixel, pixels, columns);
}

KERNEL(void, imprint_col2im,
       (const imprint_window *w, const float *dcolumns, size_t first_channel, size_t channels, size_t first_pixel,
        size_t pixels, float *dx),
       (w, dcolumns, first_channel, channels, first_pixel, pixels, dx)) {
    walk(adding, w, dx, first_channel, channels, first_pixel, pixels, (float *)dcolumns);
}
