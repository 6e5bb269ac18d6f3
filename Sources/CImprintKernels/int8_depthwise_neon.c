// Depthwise convolution of int8 numbers on arm64, for 8 channels at a time: activations and weights are widened to 16 bits, and an instruction
// adds four of their products to four sums. SDOT would need the taps of a channel side by side; arranging them takes as long as it saves.

#if defined(__aarch64__)
#define NEON_REGISTERS 2
#include "int8.h"

// A row of the output for a vector of channels.
typedef struct {
    const imprint_int8_depthwise *d;
    const imprint_int8_output *to;
    const int8_t *weights;
    channel_output channel;
    // The first channel, and the number of channels: 8, or fewer at the end of the pixels.
    size_t first, count;
} strip;

// The pixels of a tile.
enum { tile_columns = 4, most_taps = 25 };

typedef union {
    int32x4_t parts[2];
    ivec all;
} channel_sums;

// Reads the channels of a pixel; `whole` is whether there are 8.
INLINE int16x8_t pixel_at(const uint8_t *x, size_t count, const int whole) {
    uint8x8_t values = vdup_n_u8(0);
    if (whole) values = vld1_u8(x);
    else memcpy(&values, x, count);
    return vreinterpretq_s16_u16(vmovl_u8(values));
}

INLINE void add_products(channel_sums *sums, int16x8_t x, int16x8_t w) {
    sums->parts[0] = vmlal_s16(sums->parts[0], vget_low_s16(x), vget_low_s16(w));
    sums->parts[1] = vmlal_high_s16(sums->parts[1], x, w);
}

INLINE void store_pixel(const strip *s, size_t pixel, const channel_sums *sums, const int whole) {
    const size_t at = pixel * s->d->channels + s->first;
    vec result;
    scale_sums(&sums->all, &s->channel, &result);
    if (s->to->floats) {
        clamp(&s->channel, &result);
        STORE_OF(s->count, s->to->floats + at, result);
        return;
    }
    bytes small;
    clamp_and_round(&s->channel, &result, &small);
    if (whole) *(bytes *)(s->to->bytes + at) = small;
    else memcpy(s->to->bytes + at, &small, s->count);
}

// Computes `columns` pixels from `pixel` on. Each value of a row is read once for all windows that contain it.
INLINE void sum_tile(const strip *s, const int16x8_t *w, const uint8_t *x, size_t pixel, const int columns,
                     const int kernel, const int stride, const int whole) {
    const imprint_int8_depthwise *d = s->d;
    channel_sums sums[tile_columns] = {0};
    UNROLL for (int ky = 0; ky < kernel; ky++, x += d->tap_row_step)
        UNROLL for (int j = 0; j < (columns - 1) * stride + kernel; j++) {
            const int16x8_t value = pixel_at(x + j * d->tap_column_step, s->count, whole);
            UNROLL for (int p = 0; p < columns; p++) {
                const int kx = j - p * stride;
                if (kx >= 0 && kx < kernel) add_products(&sums[p], value, w[ky * kernel + kx]);
            }
        }
    UNROLL for (int p = 0; p < columns; p++) store_pixel(s, pixel + (size_t)p, &sums[p], whole);
}

// Computes a row for kernels of 3x3 or 5x5 with stride 1 or 2 without dilation.
INLINE void known_row(const strip *s, const uint8_t *x, size_t pixel, const int kernel, const int stride, const int whole) {
    int16x8_t w[most_taps];
    UNROLL for (int t = 0; t < kernel * kernel; t++) w[t] = vmovl_s8(vld1_s8(s->weights + t * panel_columns));
    const size_t width = (size_t)s->d->output_width;
    size_t ox = 0;
    for (; ox + tile_columns <= width; ox += tile_columns)
        sum_tile(s, w, x + (ptrdiff_t)ox * s->d->column_step, pixel + ox, tile_columns, kernel, stride, whole);
    for (; ox < width; ox++) sum_tile(s, w, x + (ptrdiff_t)ox * s->d->column_step, pixel + ox, 1, kernel, stride, whole);
}

INLINE void plain_row(const strip *s, const uint8_t *x, size_t pixel, const int whole) {
    const imprint_int8_depthwise *d = s->d;
    for (int32_t ox = 0; ox < d->output_width; ox++, x += d->column_step, pixel++) {
        channel_sums sums = {0};
        const int8_t *w = s->weights;
        for (int32_t ky = 0; ky < d->kernel_height; ky++)
            for (int32_t kx = 0; kx < d->kernel_width; kx++, w += panel_columns)
                add_products(&sums, pixel_at(x + ky * d->tap_row_step + kx * d->tap_column_step, s->count, whole),
                             vmovl_s8(vld1_s8(w)));
        store_pixel(s, pixel, &sums, whole);
    }
}

INLINE int has(const imprint_int8_depthwise *d, int32_t kernel, int32_t stride) {
    return d->kernel_height == kernel && d->kernel_width == kernel && d->stride_height == stride && d->stride_width == stride
        && d->dilation_height == 1 && d->dilation_width == 1;
}

INLINE void row(const strip *s, const uint8_t *x, size_t pixel, const int whole) {
    if (has(s->d, 3, 1)) known_row(s, x, pixel, 3, 1, whole);
    else if (has(s->d, 3, 2)) known_row(s, x, pixel, 3, 2, whole);
    else if (has(s->d, 5, 1)) known_row(s, x, pixel, 5, 1, whole);
    else if (has(s->d, 5, 2)) known_row(s, x, pixel, 5, 2, whole);
    else plain_row(s, x, pixel, whole);
}

void imprint_int8_depthwise_neon(const imprint_int8_depthwise *d, size_t first_row, size_t rows,
                                 const imprint_int8_output *to) {
    const size_t taps = (size_t)d->kernel_height * d->kernel_width;
    for (size_t oy = first_row; oy < first_row + rows; oy++)
        for (size_t c = 0; c < d->channels; c += lanes) {
            const size_t rest = d->channels - c;
            const int8_t *block = d->weights + c / panel_columns * taps * panel_columns;
            strip s = {d, to, block + c % panel_columns, channel_output_at(to, c), c, rest < lanes ? rest : lanes};
            const uint8_t *x = d->x + (ptrdiff_t)oy * d->row_step + c;
            if (rest >= lanes) row(&s, x, oy * d->output_width, 1);
            else row(&s, x, oy * d->output_width, 0);
        }
}
#endif
