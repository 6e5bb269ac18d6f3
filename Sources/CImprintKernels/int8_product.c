// Convolutions of uint8 activations with int8 weights as matrix products. Sums are exact 32-bit integers, so every processor computes the same
// bits. Four neighbours of the inner axis form a group of 32 bits, whose products one instruction of AVX512-VNNI adds to an integer.

#include "int8.h"

typedef struct {
    const imprint_int8_windows *windows;
    // The panel, its number of columns (a multiple of 16), the column in the panel, and the same column in the output.
    const int8_t *panel;
    size_t width, column, channel;
    size_t channels;
    const imprint_int8_output *to;
} product;

enum { most_rows = 6 };

// Stores the sums of 16 columns of `rows` rows; `stride` is the distance from row to row in `sums`.
INLINE void store_sums(const product *p, size_t pixel, size_t v, const ivec *sums, const int rows, const int stride) {
    const size_t c = p->channel + v * lanes, count = p->channels - c;
    const imprint_int8_output *to = p->to;
    const channel_output channel = channel_output_at(to, c);
    if (count >= lanes && to->bytes) {
        const size_t at = pixel * p->channels + c;
        uint8_t *y = to->bytes + at;
        if (!to->shortcut) {
            UNROLL for (int r = 0; r < rows; r++, y += p->channels) {
                vec result;
                scale_sums(&sums[r * stride], &channel, &result);
                clamp_and_round(&channel, &result, (bytes *)y);
            }
            return;
        }
        const uint8_t *shortcut = to->shortcut + at;
        const vec factor = VEC(to->shortcut_factors + c);
        UNROLL for (int r = 0; r < rows; r++, y += p->channels, shortcut += p->channels) {
            vec result;
            scale_sums(&sums[r * stride], &channel, &result);
            add_shortcut((const bytes *)shortcut, &factor, &result);
            clamp_and_round(&channel, &result, (bytes *)y);
        }
        return;
    }
    // The sums stay in registers only if every index is constant, so a copy is read in a loop.
    ivec copies[most_rows];
    UNROLL for (int r = 0; r < rows; r++) copies[r] = sums[r * stride];
    for (int r = 0; r < rows; r++) {
        size_t at = (pixel + r) * p->channels + c;
        vec result;
        scale_sums(&copies[r], &channel, &result);
        if (to->shortcut) {
            bytes values = {0};
            if (count >= lanes) values = *(const bytes *)(to->shortcut + at);
            else memcpy(&values, to->shortcut + at, count);
            const vec factor = VEC(to->shortcut_factors + c);
            add_shortcut(&values, &factor, &result);
        }
        if (to->floats) {
            clamp(&channel, &result);
            if (count >= lanes) STORE(to->floats + at, result);
            else STORE_OF(count, to->floats + at, result);
            continue;
        }
        bytes small;
        clamp_and_round(&channel, &result, &small);
        if (count >= lanes) *(bytes *)(to->bytes + at) = small;
        else memcpy(to->bytes + at, &small, count);
    }
}

// Calls tile(p, rows, pixel, number of rows, vectors) for all windows, and groups of up to four vectors of columns.
#define FOR_EACH_TILE(p, first, count, tile, vectors)                                              \
    {                                                                                              \
        const imprint_int8_windows *w = (p)->windows;                                              \
        size_t column = (first) % w->width;                                                        \
        const uint8_t *row = w->x + (ptrdiff_t)((first) / w->width) * w->row_step;                 \
        for (size_t pixel = (first), end = (first) + (count); pixel < end;) {                      \
            const uint8_t *rows[most_rows];                                                        \
            size_t found = end - pixel < most_rows ? end - pixel : most_rows;                      \
            for (size_t r = 0; r < found; r++) {                                                   \
                rows[r] = row + (ptrdiff_t)column * w->column_step;                                \
                if (++column == w->width) column = 0, row += w->row_step;                          \
            }                                                                                      \
            switch (found) {                                                                       \
            case 1: tile(p, rows, pixel, 1, vectors); break;                                       \
            case 2: tile(p, rows, pixel, 2, vectors); break;                                       \
            case 3: tile(p, rows, pixel, 3, vectors); break;                                       \
            case 4: tile(p, rows, pixel, 4, vectors); break;                                       \
            case 5: tile(p, rows, pixel, 5, vectors); break;                                       \
            default: tile(p, rows, pixel, 6, vectors);                                             \
            }                                                                                      \
            pixel += found;                                                                        \
        }                                                                                          \
    }

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
    imprint_int8_product_portable(&p, first, count);
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
