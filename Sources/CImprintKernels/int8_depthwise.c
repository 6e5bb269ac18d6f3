// Depthwise convolution of uint8 activations with int8 weights, over an image that includes its padding. Sums are exact 32-bit integers.

#include "int8.h"

#if defined(__aarch64__)
void imprint_int8_depthwise_neon(const imprint_int8_depthwise *d, size_t first_row, size_t rows,
                                 const imprint_int8_output *to) __attribute__((visibility("hidden")));
#else
// Any CPU ----------------------------------------------------------------------------------------------------------

INLINE void plain_pixel(const imprint_int8_depthwise *d, const uint8_t *x, size_t pixel, size_t block,
                        const imprint_int8_output *to) {
    size_t first = block * panel_columns, rest = d->channels - first;
    size_t count = rest < panel_columns ? rest : panel_columns;
    int32_t sums[panel_columns] = {0};
    const int8_t *w = d->weights + first * d->kernel_height * d->kernel_width;
    for (int32_t ky = 0; ky < d->kernel_height; ky++)
        for (int32_t kx = 0; kx < d->kernel_width; kx++, w += panel_columns) {
            const uint8_t *in = x + ky * d->tap_row_step + kx * d->tap_column_step + first;
            for (size_t c = 0; c < count; c++) sums[c] += in[c] * w[c];
        }
    for (size_t c = 0; c < count; c += lanes) {
        const channel_output channel = channel_output_at(to, first + c);
        vec result;
        scale_sums((const ivec *)(sums + c), &channel, &result);
        size_t n = count - c < lanes ? count - c : lanes, at = pixel * d->channels + first + c;
        if (to->floats) {
            clamp(&channel, &result);
            STORE_OF(n, to->floats + at, result);
            continue;
        }
        bytes small;
        clamp_and_round(&channel, &result, &small);
        memcpy(to->bytes + at, &small, n);
    }
}

KERNEL(void, imprint_int8_depthwise_portable,
       (const imprint_int8_depthwise *d, size_t first_row, size_t rows, const imprint_int8_output *to),
       (d, first_row, rows, to)) {
    size_t blocks = (d->channels + panel_columns - 1) / panel_columns;
    for (size_t oy = first_row; oy < first_row + rows; oy++)
        for (size_t ox = 0; ox < (size_t)d->output_width; ox++) {
            const uint8_t *x = d->x + (ptrdiff_t)oy * d->row_step + (ptrdiff_t)ox * d->column_step;
            for (size_t b = 0; b < blocks; b++) plain_pixel(d, x, oy * d->output_width + ox, b, to);
        }
}
#endif

#if defined(__x86_64__)

// AVX512-VNNI: interleaves the bytes of four neighbouring pixels, so that each 32-bit lane has four taps of a channel. The lanes of the sums
// are in the order of the interleaved channels, which packing to bytes reverses.

typedef struct {
    const imprint_int8_depthwise *d;
    const imprint_int8_output *to;
    // The weights of the block: [kernel row][output of the pair][group of four taps][vector], 64 bytes each.
    const int8_t *weights;
    size_t first;
    __mmask64 mask;
} block;

// Writes four vectors with the taps x[0] … x[3] of 16 channels each.
INLINE VNNI_TARGET void interleave(const __m512i *x, __m512i *groups) {
    __m512i low = _mm512_unpacklo_epi8(x[0], x[1]), low2 = _mm512_unpacklo_epi8(x[2], x[3]);
    __m512i high = _mm512_unpackhi_epi8(x[0], x[1]), high2 = _mm512_unpackhi_epi8(x[2], x[3]);
    groups[0] = _mm512_unpacklo_epi16(low, low2);
    groups[1] = _mm512_unpackhi_epi16(low, low2);
    groups[2] = _mm512_unpacklo_epi16(high, high2);
    groups[3] = _mm512_unpackhi_epi16(high, high2);
}

// Computes one or two neighbouring pixels of the output.
INLINE VNNI_TARGET void pixels(const block *b, const uint8_t *x, size_t pixel, const int outputs, const int kernel,
                               const int stride) {
    const imprint_int8_depthwise *d = b->d;
    const int span = (outputs - 1) * stride + kernel, groups = (span + 3) / 4;
    union { __m512i groups; ivec all; } sums[2][4];
    UNROLL for (int o = 0; o < outputs; o++)
        UNROLL for (int v = 0; v < 4; v++) sums[o][v].groups = _mm512_setzero_si512();
    const int8_t *w = b->weights;
    const int pair_groups = (stride + kernel + 3) / 4;
    for (int ky = 0; ky < kernel; ky++, x += d->tap_row_step, w += 2 * pair_groups * 256) {
        UNROLL for (int g = 0; g < groups; g++) {
            __m512i taps[4], values[4];
            UNROLL for (int j = 0; j < 4; j++)
                taps[j] = 4 * g + j < span
                    ? _mm512_maskz_loadu_epi8(b->mask, x + (4 * g + j) * d->tap_column_step) : _mm512_setzero_si512();
            interleave(taps, values);
            UNROLL for (int o = 0; o < outputs; o++) {
                // The taps of this output are o * stride ..< o * stride + kernel.
                if (4 * g + 4 <= o * stride || 4 * g >= o * stride + kernel) continue;
                UNROLL for (int v = 0; v < 4; v++)
                    sums[o][v].groups = _mm512_dpbusd_epi32(
                        sums[o][v].groups, values[v], _mm512_loadu_si512(w + ((o * pair_groups + g) * 4 + v) * 64));
            }
        }
    }
    UNROLL for (int o = 0; o < outputs; o++) {
        union { __m512i groups; ivec all; } integers[4];
        UNROLL for (int v = 0; v < 4; v++) {
            const channel_output channel = channel_output_at(b->to, b->first + (size_t)v * lanes);
            vec result;
            scale_sums(&sums[o][v].all, &channel, &result);
            clamp(&channel, &result);
            round_small(&result, &integers[v].all);
        }
        __m512i low = _mm512_packs_epi32(integers[0].groups, integers[1].groups);
        __m512i high = _mm512_packs_epi32(integers[2].groups, integers[3].groups);
        _mm512_mask_storeu_epi8(b->to->bytes + (pixel + o) * d->channels + b->first, b->mask,
                                _mm512_packus_epi16(low, high));
    }
}

INLINE VNNI_TARGET void depthwise_rows(const imprint_int8_depthwise *d, size_t first_row, size_t rows,
                                       const imprint_int8_output *to, const int kernel, const int stride) {
    const size_t bytes_per_block = (size_t)kernel * 2 * ((stride + kernel + 3) / 4) * 256;
    for (size_t first = 0, index = 0; first < d->channels; first += panel_columns, index++) {
        size_t rest = d->channels - first;
        block b = {d, to, d->weights + index * bytes_per_block, first,
                   rest < panel_columns ? ((__mmask64)1 << rest) - 1 : ~(__mmask64)0};
        for (size_t oy = first_row; oy < first_row + rows; oy++) {
            const uint8_t *x = d->x + (ptrdiff_t)oy * d->row_step + first;
            size_t pixel = oy * d->output_width, ox = 0;
            for (; ox + 2 <= (size_t)d->output_width; ox += 2, x += 2 * d->column_step)
                pixels(&b, x, pixel + ox, 2, kernel, stride);
            if (ox < (size_t)d->output_width) pixels(&b, x, pixel + ox, 1, kernel, stride);
        }
    }
}

#define DEPTHWISE(kernel, stride)                                                                          \
    static VNNI_TARGET void depthwise_##kernel##_##stride(const imprint_int8_depthwise *d, size_t first,   \
                                                          size_t rows, const imprint_int8_output *to) {    \
        depthwise_rows(d, first, rows, to, kernel, stride);                                                \
    }
DEPTHWISE(3, 1)
DEPTHWISE(3, 2)
DEPTHWISE(5, 1)
DEPTHWISE(5, 2)
#endif

// Whether the kernel with interleaved channels computes a convolution.
INLINE int interleaves(const imprint_int8_depthwise *d) {
    return imprint_kernels_use_vnni() && d->is_uint8 && d->kernel_height == d->kernel_width
        && (d->kernel_width == 3 || d->kernel_width == 5) && d->stride_height == d->stride_width && d->stride_width <= 2
        && d->dilation_height == 1 && d->dilation_width == 1;
}

void imprint_int8_depthwise_forward(const imprint_int8_depthwise *d, size_t first_row, size_t rows,
                                    const imprint_int8_output *to) {
#if defined(__x86_64__)
    if (interleaves(d)) {
        if (d->kernel_width == 3) return d->stride_width == 1 ? depthwise_3_1(d, first_row, rows, to)
                                                              : depthwise_3_2(d, first_row, rows, to);
        return d->stride_width == 1 ? depthwise_5_1(d, first_row, rows, to) : depthwise_5_2(d, first_row, rows, to);
    }
#endif
#if defined(__aarch64__)
    imprint_int8_depthwise_neon(d, first_row, rows, to);
#else
    imprint_int8_depthwise_portable(d, first_row, rows, to);
#endif
}

// Packing ----------------------------------------------------------------------------------------------------------

size_t imprint_int8_depthwise_bytes(const imprint_int8_depthwise *d) {
    size_t blocks = (d->channels + panel_columns - 1) / panel_columns;
    size_t taps = interleaves(d) ? (size_t)d->kernel_height * 2 * ((d->stride_width + d->kernel_width + 3) / 4) * 4
                                 : (size_t)d->kernel_height * d->kernel_width;
    return blocks * taps * panel_columns;
}

// The lane of a channel of a block after interleaving.
INLINE size_t interleaved(size_t c) { return c % 16 / 4 * 16 + c / 16 * 4 + c % 4; }

void imprint_int8_depthwise_arrange(const imprint_int8_depthwise *d, float *values) {
    if (!interleaves(d)) return;
    for (size_t first = 0; first < d->channels; first += panel_columns, values += panel_columns) {
        float copy[panel_columns];
        memcpy(copy, values, sizeof copy);
        for (size_t c = 0; c < panel_columns; c++) values[interleaved(c)] = copy[c];
    }
}

void imprint_int8_depthwise_pack(const imprint_int8_depthwise *d, const float *w, const float *input_factors,
                                 const uint8_t *zero_points, const float *scales, int8_t *packed,
                                 int32_t *corrections) {
    memset(packed, 0, imprint_int8_depthwise_bytes(d));
    memset(corrections, 0, d->channels * sizeof *corrections);
    const int interleaving = interleaves(d);
    const size_t groups = (size_t)(d->stride_width + d->kernel_width + 3) / 4, kernel = d->kernel_width;
    for (size_t ky = 0; ky < (size_t)d->kernel_height; ky++)
        for (size_t kx = 0; kx < kernel; kx++)
            for (size_t c = 0; c < d->channels; c++, w++) {
                int32_t q = imprint_quantized_weight(*w, input_factors[c], scales[c]);
                corrections[c] += q * zero_points[c];
                size_t block = c / panel_columns, lane = c % panel_columns;
                if (!interleaving) {
                    packed[((block * d->kernel_height + ky) * kernel + kx) * panel_columns + lane] = (int8_t)q;
                    continue;
                }
                for (size_t o = 0; o < 2; o++) {
                    size_t tap = o * d->stride_width + kx;
                    size_t group = ((block * d->kernel_height + ky) * 2 + o) * groups + tap / 4;
                    packed[group * 256 + interleaved(lane) * 4 + tap % 4] = (int8_t)q;
                }
            }
}
