// Convolutions of uint8 activations with int8 weights as matrix products. Sums are exact 32-bit integers, so every processor computes the same
// bits. Four neighbours of the inner axis form a group of 32 bits, whose products one instruction of AVX512-VNNI adds to an integer.

#include "int8_product.h"

#if !defined(__aarch64__)
// Any CPU ----------------------------------------------------------------------------------------------------------

INLINE void plain_tile(const product *p, const uint8_t *const *rows, size_t pixel, const int count, const int vectors) {
    (void)vectors;
    const imprint_int8_windows *windows = p->windows;
    ivec sums[most_rows];
    UNROLL for (int r = 0; r < count; r++) sums[r] = (ivec)0;
    const int8_t *w = p->panel + p->column * 4;
    for (size_t t = 0; t < windows->tap_count; t++)
        for (size_t i = 0; i < windows->tap_bytes; i += 4, w += p->width * 4) {
            ivec groups = *(const ivec *)w;
            UNROLL for (int j = 0; j < 4; j++) {
                ivec weights = (groups << (24 - 8 * j)) >> 24;
                UNROLL for (int r = 0; r < count; r++) sums[r] += weights * (ivec)(int32_t)rows[r][windows->taps[t] + i + j];
            }
        }
    store_sums(p, pixel, 0, sums, count, 1);
}

KERNEL(void, imprint_int8_product_portable, (product *p, size_t first, size_t count), (p, first, count)) {
    for (; p->column < p->width && p->channel < p->channels; p->column += lanes, p->channel += lanes)
        FOR_EACH_TILE(p, first, count, plain_tile, 1)
}
#endif

#if defined(__x86_64__)

// AVX2: products of 16-bit integers, whose pairs one instruction adds to 32 bits -------------------------------------

// Three rows at a time fill the 16 registers.
INLINE AVX2_TARGET void pair_rows(const product *p, const uint8_t *const *rows, size_t pixel, const int count) {
    const imprint_int8_windows *windows = p->windows;
    __m256i sums[3][4];
    UNROLL for (int r = 0; r < count; r++)
        UNROLL for (int q = 0; q < 4; q++) sums[r][q] = _mm256_setzero_si256();
    const int8_t *w = p->panel + p->column * 4;
    for (size_t t = 0; t < windows->tap_count; t++)
        for (size_t i = 0; i < windows->tap_bytes; i += 4, w += p->width * 4) {
            __m256i x[3];
            UNROLL for (int r = 0; r < count; r++) {
                int32_t group;
                memcpy(&group, rows[r] + windows->taps[t] + i, 4);
                x[r] = _mm256_cvtepu8_epi16(_mm_set1_epi32(group));
            }
            UNROLL for (int q = 0; q < 4; q++) {
                __m256i weights = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(w + 16 * q)));
                UNROLL for (int r = 0; r < count; r++)
                    sums[r][q] = _mm256_add_epi32(sums[r][q], _mm256_madd_epi16(x[r], weights));
            }
        }
    // Adds the two sums of each column, and restores the order of the columns.
    union { __m256i halves[2]; ivec all; } totals[3];
    UNROLL for (int r = 0; r < count; r++)
        UNROLL for (int h = 0; h < 2; h++)
            totals[r].halves[h] = _mm256_permute4x64_epi64(_mm256_hadd_epi32(sums[r][2 * h], sums[r][2 * h + 1]), 0xd8);
    store_sums(p, pixel, 0, &totals[0].all, count, 1);
}

INLINE AVX2_TARGET void pair_tile(const product *p, const uint8_t *const *rows, size_t pixel, const int count,
                                  const int vectors) {
    (void)vectors;
    pair_rows(p, rows, pixel, count < 3 ? count : 3);
    if (count > 3) pair_rows(p, rows + 3, pixel + 3, count - 3);
}

static AVX2_TARGET void multiply_pairs(product *p, size_t first, size_t count) {
    for (; p->column < p->width && p->channel < p->channels; p->column += lanes, p->channel += lanes)
        FOR_EACH_TILE(p, first, count, pair_tile, 1)
}

// AVX512-VNNI ------------------------------------------------------------------------------------------------------

INLINE VNNI_TARGET void group_tile(const product *p, const uint8_t *const *rows, size_t pixel, const int count,
                                   const int vectors) {
    const imprint_int8_windows *windows = p->windows;
    union { __m512i groups; ivec all; } sums[most_rows][4];
    UNROLL for (int r = 0; r < count; r++)
        UNROLL for (int v = 0; v < vectors; v++) sums[r][v].groups = _mm512_setzero_si512();
    const int8_t *w = p->panel + p->column * 4;
    const size_t step = p->width * 4;
    for (size_t t = 0; t < windows->tap_count; t++) {
        ptrdiff_t at = windows->taps[t], end = at + (ptrdiff_t)windows->tap_bytes;
        for (; at < end; at += 4, w += step) {
            __m512i weights[4];
            UNROLL for (int v = 0; v < vectors; v++) weights[v] = _mm512_loadu_si512(w + v * 64);
            UNROLL for (int r = 0; r < count; r++) {
                int32_t group;
                memcpy(&group, rows[r] + at, 4);
                __m512i x = _mm512_set1_epi32(group);
                UNROLL for (int v = 0; v < vectors; v++)
                    sums[r][v].groups = _mm512_dpbusd_epi32(sums[r][v].groups, x, weights[v]);
            }
        }
    }
    UNROLL for (int v = 0; v < vectors; v++) store_sums(p, pixel, (size_t)v, &sums[0][v].all, count, 4);
}

static VNNI_TARGET void multiply_groups(product *p, size_t first, size_t count) {
    switch ((p->width - p->column) / lanes) {
    case 4: FOR_EACH_TILE(p, first, count, group_tile, 4) break;
    case 3: FOR_EACH_TILE(p, first, count, group_tile, 3) break;
    case 2: FOR_EACH_TILE(p, first, count, group_tile, 2) break;
    default: FOR_EACH_TILE(p, first, count, group_tile, 1)
    }
}
#endif

void imprint_int8_product(const imprint_int8_windows *windows, size_t first, size_t count, const int8_t *panel,
                          size_t first_channel, size_t channels, const imprint_int8_output *to) {
    size_t rest = channels - first_channel;
    size_t width = rest < panel_columns ? (rest + lanes - 1) / lanes * lanes : panel_columns;
    product p = {windows, panel, width, 0, first_channel, channels, to};
#if defined(__x86_64__)
    if (imprint_kernels_use_vnni()) return multiply_groups(&p, first, count);
    if (imprint_instruction_set >= imprint_v3) return multiply_pairs(&p, first, count);
#endif
#if defined(__aarch64__)
    imprint_int8_product_neon(&p, first, count);
#else
    imprint_int8_product_portable(&p, first, count);
#endif
}

KERNEL(void, imprint_pack_int8,
       (const float *w, size_t taps, size_t inputs, size_t padded_inputs, size_t outputs, const float *input_factors,
        const uint8_t *zero_points, const float *scales, size_t first, size_t count, int8_t *panel, int32_t *corrections),
       (w, taps, inputs, padded_inputs, outputs, input_factors, zero_points, scales, first, count, panel, corrections)) {
    size_t width = (count + lanes - 1) / lanes * lanes;
    memset(corrections, 0, count * sizeof *corrections);
    memset(panel, 0, (taps * padded_inputs + 3) / 4 * 4 * width);
    for (size_t t = 0; t < taps; t++)
        for (size_t i = 0; i < inputs; i++, w += outputs) {
            size_t k = t * padded_inputs + i;
            int8_t *to = panel + k / 4 * width * 4 + k % 4;
            int32_t zero = zero_points[i];
            for (size_t c = 0; c < count; c++) {
                int32_t q = imprint_quantized_weight(w[first + c], input_factors[i], scales[first + c]);
                to[4 * c] = (int8_t)q;
                corrections[c] += q * zero;
            }
        }
}
