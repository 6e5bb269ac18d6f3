#include "imprint_kernels.h"

#include "vectors.h"

// One loop per combination of channel strides, so the inner loops have no branches.
#define BROADCAST(operation)                                                                          \
    for (size_t p = 0; p < pixels; p++, a += a_strides.pixel, b += b_strides.pixel, y += channels) {  \
        if (a_strides.channel && b_strides.channel) {                                                 \
            IN_PLACE for (size_t c = 0; c < channels; c++) y[c] = a[c] operation b[c];                \
        } else if (a_strides.channel) {                                                               \
            float same = *b;                                                                          \
            IN_PLACE for (size_t c = 0; c < channels; c++) y[c] = a[c] operation same;                \
        } else if (b_strides.channel) {                                                               \
            float same = *a;                                                                          \
            IN_PLACE for (size_t c = 0; c < channels; c++) y[c] = same operation b[c];                \
        } else {                                                                                      \
            float same = *a operation *b;                                                             \
            for (size_t c = 0; c < channels; c++) y[c] = same;                                        \
        }                                                                                             \
    }

KERNEL(void, imprint_broadcast_add,
       (const float *a, imprint_strides a_strides, const float *b, imprint_strides b_strides, float *y, size_t pixels,
        size_t channels),
       (a, a_strides, b, b_strides, y, pixels, channels)) {
    BROADCAST(+)
}

KERNEL(void, imprint_broadcast_multiply,
       (const float *a, imprint_strides a_strides, const float *b, imprint_strides b_strides, float *y, size_t pixels,
        size_t channels),
       (a, a_strides, b, b_strides, y, pixels, channels)) {
    BROADCAST(*)
}

// Sums over this many pixels are computed in float and added in double, as in imprint_channel_sums.
enum { block_pixels = 64, block_channels = 256 };

#define COLUMN_SUMS(term)                                                              \
    for (size_t p = p0; p < end; p++)                                                  \
        for (size_t i = 0; i < width; i++) partial[i] += (term);

// sums[c] += the sum over the pixels p of a[p][c] * b, or of a[p][c] if b is null.
INLINE void pixel_sums(const float *a, const float *b, imprint_strides strides, double *sums, size_t pixels,
                       size_t channels) {
    for (size_t c0 = 0; c0 < channels; c0 += block_channels) {
        size_t width = channels - c0 < block_channels ? channels - c0 : block_channels;
        for (size_t p0 = 0; p0 < pixels; p0 += block_pixels) {
            size_t end = p0 + block_pixels < pixels ? p0 + block_pixels : pixels;
            float partial[block_channels] = {0};
            const float *from = a + c0;
            if (!b) COLUMN_SUMS(from[p * channels + i])
            else if (strides.channel) COLUMN_SUMS(from[p * channels + i] * b[p * strides.pixel + c0 + i])
            else COLUMN_SUMS(from[p * channels + i] * b[p * strides.pixel])
            for (size_t i = 0; i < width; i++) sums[c0 + i] += partial[i];
        }
    }
}

INLINE void product_part(const float *a, const float *b, vec *sum, size_t i, size_t n) {
    *sum += b ? VEC_OF(n, a + i, 0) * VEC_OF(n, b + i, 0) : VEC_OF(n, a + i, 0);
}

// The sum over the channels of a pixel, in 16 lanes on every CPU, which makes it bitwise reproducible.
INLINE double channel_sum(const float *a, const float *b, imprint_strides strides, size_t channels) {
    vec sum = 0;
    const float *factors = strides.channel ? b : 0;
    FOR_EACH_VECTOR(channels, product_part, a, factors, &sum)
    double total = 0;
    for (int l = 0; l < lanes; l++) total += sum[l];
    return b && !strides.channel ? total * *b : total;
}

KERNEL(void, imprint_product_sums,
       (const float *a, const float *b, imprint_strides b_strides, double *sums, imprint_strides sums_strides,
        size_t pixels, size_t channels),
       (a, b, b_strides, sums, sums_strides, pixels, channels)) {
    if (sums_strides.channel && !sums_strides.pixel) {
        pixel_sums(a, b, b_strides, sums, pixels, channels);
        return;
    }
    for (size_t p = 0; p < pixels; p++, a += channels, sums += sums_strides.pixel) {
        if (!sums_strides.channel) sums[0] += channel_sum(a, b, b_strides, channels);
        else if (!b) for (size_t c = 0; c < channels; c++) sums[c] += a[c];
        else for (size_t c = 0; c < channels; c++) sums[c] += (double)a[c] * b[c * b_strides.channel];
        if (b) b += b_strides.pixel;
    }
}
