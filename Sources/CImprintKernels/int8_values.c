// Conversions between float32 and uint8 activations, and operations on uint8 activations. A value is scale · (integer − zero point), with a scale
// and a zero point per channel.

#include "int8.h"

KERNEL(void, imprint_quantize,
       (const float *x, const float *factors, const float *zero_points, size_t pixels, size_t channels, uint8_t *y),
       (x, factors, zero_points, pixels, channels, y)) {
#pragma clang fp contract(off)
    for (size_t p = 0; p < pixels; p++, x += channels, y += channels)
        for (size_t c = 0; c < channels; c++) {
            float value = x[c] * factors[c] + zero_points[c];
            value = value > 0 ? value : 0;
            value = value < 255 ? value : 255;
            y[c] = (uint8_t)(bits_of(value + 12582912.0f) - 0x4b400000);
        }
}

KERNEL(void, imprint_dequantize,
       (const uint8_t *x, const float *scales, const float *zero_points, size_t pixels, size_t channels, float *y),
       (x, scales, zero_points, pixels, channels, y)) {
    for (size_t p = 0; p < pixels; p++, x += channels, y += channels)
        for (size_t c = 0; c < channels; c++) y[c] = ((float)x[c] - zero_points[c]) * scales[c];
}

KERNEL(void, imprint_round_activation,
       (const float *x, const float *factors, const float *scales, const float *zero_points, size_t pixels,
        size_t channels, float *y, uint8_t *inside),
       (x, factors, scales, zero_points, pixels, channels, y, inside)) {
#pragma clang fp contract(off)
    for (size_t p = 0; p < pixels; p++, x += channels, y += channels, inside += channels)
        IN_PLACE for (size_t c = 0; c < channels; c++) {
            float value = x[c] * factors[c] + zero_points[c];
            inside[c] = (value >= 0) & (value <= 255);
            value = value > 0 ? value : 0;
            value = value < 255 ? value : 255;
            float integer = (value + 12582912.0f) - 12582912.0f;
            y[c] = (integer - zero_points[c]) * scales[c];
        }
}

KERNEL(void, imprint_channel_ranges,
       (const float *x, size_t pixels, size_t channels, float *minima, float *maxima),
       (x, pixels, channels, minima, maxima)) {
    for (size_t p = 0; p < pixels; p++, x += channels)
        IN_PLACE for (size_t c = 0; c < channels; c++) {
            minima[c] = x[c] < minima[c] ? x[c] : minima[c];
            maxima[c] = x[c] > maxima[c] ? x[c] : maxima[c];
        }
}

KERNEL(void, imprint_pad_uint8,
       (const uint8_t *x, const imprint_uint8_padding *pad, size_t first_row, size_t rows, uint8_t *y),
       (x, pad, first_row, rows, y)) {
    const size_t from = pad->channels, to = pad->padded_channels, width = pad->left + pad->width + pad->right;
    for (size_t row = first_row; row < first_row + rows; row++) {
        const int inside = row >= pad->top && row - pad->top < pad->height;
        const size_t left = inside ? pad->left : width;
        for (size_t p = 0; p < left; p++, y += to) memcpy(y, pad->zero_points, to);
        if (!inside) continue;
        const uint8_t *in = x + (row - pad->top) * pad->width * from;
        if (from == to) {
            memcpy(y, in, pad->width * from);
            y += pad->width * from;
        } else if (from == 3 && to == 4) {
            for (size_t p = 0; p < pad->width; p++, in += 3, y += 4) {
                y[0] = in[0], y[1] = in[1], y[2] = in[2], y[3] = 0;
            }
        } else {
            for (size_t p = 0; p < pad->width; p++, in += from, y += to) {
                memcpy(y, in, from);
                memset(y + from, 0, to - from);
            }
        }
        for (size_t p = 0; p < pad->right; p++, y += to) memcpy(y, pad->zero_points, to);
    }
}

KERNEL(void, imprint_max_pool_uint8, (const imprint_window *w, const uint8_t *x, uint8_t *y, int32_t first_row, int32_t rows),
       (w, x, y, first_row, rows)) {
    const size_t channels = w->channels;
    for (int32_t oy = first_row; oy < first_row + rows; oy++)
        for (int32_t ox = 0; ox < w->output_width; ox++) {
            uint8_t *out = y + ((size_t)oy * w->output_width + ox) * channels;
            int is_first = 1;
            for (int32_t ky = 0; ky < w->kernel_height; ky++) {
                int32_t iy = oy * w->stride_height - w->padding_top + ky;
                if (iy < 0 || iy >= w->height) continue;
                for (int32_t kx = 0; kx < w->kernel_width; kx++) {
                    int32_t ix = ox * w->stride_width - w->padding_left + kx;
                    if (ix < 0 || ix >= w->width) continue;
                    const uint8_t *in = x + ((size_t)iy * w->width + ix) * channels;
                    if (is_first) memcpy(out, in, channels);
                    else IN_PLACE for (size_t c = 0; c < channels; c++) out[c] = out[c] > in[c] ? out[c] : in[c];
                    is_first = 0;
                }
            }
        }
}

// Sums of up to 2^23 pixels are exact.
KERNEL(void, imprint_average_uint8,
       (const uint8_t *x, const float *scales, const float *zero_points, size_t pixels, size_t channels, float *y),
       (x, scales, zero_points, pixels, channels, y)) {
    for (size_t first = 0; first < channels; first += 256) {
        size_t count = channels - first < 256 ? channels - first : 256;
        int32_t sums[256] = {0};
        for (size_t p = 0; p < pixels; p++)
            for (size_t c = 0; c < count; c++) sums[c] += x[p * channels + first + c];
        for (size_t c = 0; c < count; c++)
            y[first + c] = (float)(((double)sums[c] / (double)pixels - (double)zero_points[first + c]) * (double)scales[first + c]);
    }
}
