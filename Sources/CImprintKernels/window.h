// Helpers of the kernels with sliding windows: the part of a window inside the image, and vectors of channels.

#ifndef IMPRINT_WINDOW_H
#define IMPRINT_WINDOW_H

#include "imprint_kernels.h"
#include "vectors.h"

// The number of vectors for `channels` channels, at least one vector, and the first channel of a vector. The last vector overlaps the previous one
// and ends with the last channel.
INLINE size_t vec_count(size_t channels) { return (channels + lanes - 1) / lanes; }
INLINE size_t vec_start(size_t index, size_t channels) {
    size_t c = index * lanes;
    return c + lanes <= channels ? c : channels - lanes;
}

// Whether an image exceeds the L2 cache. Kernels prefetch such images explicitly, because hardware prefetchers cannot follow their access
// to several rows and columns at once.
INLINE int is_large(const imprint_window *w) { return (size_t)w->height * w->width * w->channels > (1 << 17); }

// Copies *w and lets w point to the copy on arm64, where the compiler would otherwise read *w again for each vector of channels, because an
// output might overlap it.
#define WITH_COPY_ON_ARM64(type, w)        \
    const type w##_copy = *w;              \
    if (ON_ARM64(1, 0)) w = &w##_copy;

// Whether a vector that begins at channel c begins a cache line, for an aligned image. Only these vectors prefetch.
INLINE int begins_line(size_t c) { return lanes == 16 || c % 16 == 0; }

// Prefetches `rows` rows of `columns` pixels.
INLINE void prefetch(const float *first, int32_t rows, int32_t columns, ptrdiff_t row, ptrdiff_t channels) {
    for (int32_t i = 0; i < rows; i++)
        for (int32_t j = 0; j < columns; j++) __builtin_prefetch(first + i * row + j * channels);
}

INLINE int32_t smaller(int32_t a, int32_t b) { return a < b ? a : b; }

// Computes the taps [first, end) of the kernel that lie inside an axis of `size` pixels, for a first tap at `origin`, which may be
// negative.
INLINE void inside(int32_t origin, int32_t size, int32_t kernel, int32_t dilation, int32_t *first, int32_t *end) {
    *first = origin < 0 ? (-origin + dilation - 1) / dilation : 0;
    *end = origin < size ? (size - origin + dilation - 1) / dilation : 0;
    if (*end > kernel) *end = kernel;
    if (*end < *first) *end = *first;
}

// Iterates over all output pixels. The body can use oy, ox, iy0, ix0, and the ranges of taps inside the image, ky0 ..< ky1 and kx0 ..< kx1.
#define FOR_EACH_OUTPUT(w) FOR_EACH_OUTPUT_OF(w, 0, (w)->output_height)

// The same for rows first_row ..< end_row of the output.
#define FOR_EACH_OUTPUT_OF(w, first_row, end_row)                                                         \
    for (int32_t oy = (first_row); oy < (end_row); oy++) {                                                \
        int32_t iy0 = oy * (w)->stride_height - (w)->padding_top, ky0, ky1;                               \
        inside(iy0, (w)->height, (w)->kernel_height, (w)->dilation_height, &ky0, &ky1);                   \
        for (int32_t ox = 0; ox < (w)->output_width; ox++) {                                              \
            int32_t ix0 = ox * (w)->stride_width - (w)->padding_left, kx0, kx1;                           \
            inside(ix0, (w)->width, (w)->kernel_width, (w)->dilation_width, &kx0, &kx1);

#define END_FOR_EACH_OUTPUT \
    }                       \
    }

#define FOR_EACH_TAP                         \
    for (int32_t ky = ky0; ky < ky1; ky++)   \
        for (int32_t kx = kx0; kx < kx1; kx++)

#define INPUT_OFFSET(w) \
    (((size_t)(iy0 + ky * (w)->dilation_height) * (w)->width + (ix0 + kx * (w)->dilation_width)) * channels)
#define OUTPUT_OFFSET(w) (((size_t)oy * (w)->output_width + ox) * channels)
#define TAP(w) ((size_t)ky * (w)->kernel_width + kx)

INLINE size_t input_count(const imprint_window *w) { return (size_t)w->height * w->width * w->channels; }

#endif
