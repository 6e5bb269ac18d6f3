#include "imprint_kernels.h"

#include "vectors.h"

// One loop for each way in which the operands' channels go on or stay, so that none is tested for inside.
#define BROADCAST(operation)                                                                          \
    for (size_t p = 0; p < pixels; p++, a += a_steps.pixel, b += b_steps.pixel, y += channels) {      \
        if (a_steps.channel && b_steps.channel) {                                                     \
            IN_PLACE for (size_t c = 0; c < channels; c++) y[c] = a[c] operation b[c];                \
        } else if (a_steps.channel) {                                                                 \
            float same = *b;                                                                          \
            IN_PLACE for (size_t c = 0; c < channels; c++) y[c] = a[c] operation same;                \
        } else if (b_steps.channel) {                                                                 \
            float same = *a;                                                                          \
            IN_PLACE for (size_t c = 0; c < channels; c++) y[c] = same operation b[c];                \
        } else {                                                                                      \
            float same = *a operation *b;                                                             \
            for (size_t c = 0; c < channels; c++) y[c] = same;                                        \
        }                                                                                             \
    }

KERNEL(void, imprint_broadcast_add,
       (const float *a, imprint_steps a_steps, const float *b, imprint_steps b_steps, float *y, size_t pixels,
        size_t channels),
       (a, a_steps, b, b_steps, y, pixels, channels)) {
    BROADCAST(+)
}

KERNEL(void, imprint_broadcast_multiply,
       (const float *a, imprint_steps a_steps, const float *b, imprint_steps b_steps, float *y, size_t pixels,
        size_t channels),
       (a, a_steps, b, b_steps, y, pixels, channels)) {
    BROADCAST(*)
}

// Sums are taken in float over this many pixels and then added in double, as imprint_channel_sums does.
enum { block_pixels = 64, block_channels = 256 };

#define COLUMN_SUMS(term)                                                              \
    for (size_t p = p0; p < end; p++)                                                  \
        for (size_t i = 0; i < width; i++) partial[i] += (term);

// sums[c] += the sum over the pixels.
INLINE void pixel_sums(const float *a, const float *b, imprint_steps steps, double *sums, size_t pixels,
                       size_t channels) {
    for (size_t c0 = 0; c0 < channels; c0 += block_channels) {
        size_t width = channels - c0 < block_channels ? channels - c0 : block_channels;
        for (size_t p0 = 0; p0 < pixels; p0 += block_pixels) {
            size_t end = p0 + block_pixels < pixels ? p0 + block_pixels : pixels;
            float partial[block_channels] = {0};
            const float *from = a + c0;
            if (!b) COLUMN_SUMS(from[p * channels + i])
            else if (steps.channel) COLUMN_SUMS(from[p * channels + i] * b[p * steps.pixel + c0 + i])
            else COLUMN_SUMS(from[p * channels + i] * b[p * steps.pixel])
            for (size_t i = 0; i < width; i++) sums[c0 + i] += partial[i];
        }
    }
}

INLINE void product_part(const float *a, const float *b, vec *sum, size_t i, size_t n) {
    *sum += b ? VEC_OF(n, a + i, 0) * VEC_OF(n, b + i, 0) : VEC_OF(n, a + i, 0);
}

// The sum over one pixel's channels, in 16 parts, so that its order is the same for all processors.
INLINE double channel_sum(const float *a, const float *b, imprint_steps steps, size_t channels) {
    vec sum = 0;
    const float *factors = steps.channel ? b : 0;
    OVER_NUMBERS(channels, product_part, a, factors, &sum)
    double total = 0;
    for (int l = 0; l < lanes; l++) total += sum[l];
    return b && !steps.channel ? total * *b : total;
}

KERNEL(void, imprint_product_sums,
       (const float *a, const float *b, imprint_steps b_steps, double *sums, imprint_steps sums_steps, size_t pixels,
        size_t channels),
       (a, b, b_steps, sums, sums_steps, pixels, channels)) {
    if (sums_steps.channel && !sums_steps.pixel) {
        pixel_sums(a, b, b_steps, sums, pixels, channels);
        return;
    }
    for (size_t p = 0; p < pixels; p++, a += channels, sums += sums_steps.pixel) {
        if (!sums_steps.channel) sums[0] += channel_sum(a, b, b_steps, channels);
        else if (!b) for (size_t c = 0; c < channels; c++) sums[c] += a[c];
        else for (size_t c = 0; c < channels; c++) sums[c] += (double)a[c] * b[c * b_steps.channel];
        if (b) b += b_steps.pixel;
    }
}
