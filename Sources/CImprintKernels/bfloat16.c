// Products of matrices of bfloat16 numbers: the upper 16 bits of a float. Two neighbours of the inner axis form a pair of 32 bits, whose products
// one instruction of AVX512-BF16, or BFDOT of arm64, adds to a float.

#define NEON_REGISTERS 1
#include "imprint_kernels.h"

#include "vectors.h"

#include "panels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define BFLOAT16_TARGET __attribute__((target(IMPRINT_V4 ",avx512bf16")))
#elif defined(__aarch64__)
#include <arm_neon.h>
#define BFLOAT16_TARGET ARM64_BFLOAT16_TARGET
#endif

// Two bfloat16 numbers, the first one in the lower bits.
typedef uint32_t pair __attribute__((may_alias));

// The nearest bfloat16 number, ties to even. NaN stays NaN.
INLINE uint32_t rounded(float x) {
    uint32_t bits = bits_of(x);
    if ((bits & 0x7fffffff) > 0x7f800000) return (bits >> 16) | 0x40;
    return (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
}

KERNEL(void, imprint_to_bfloat16_portable, (const float *x, size_t count, uint16_t *y), (x, count, y)) {
    for (size_t i = 0; i < count; i++) y[i] = (uint16_t)rounded(x[i]);
}

#if defined(__x86_64__)
// The instruction also flushes subnormal numbers to zero.
static BFLOAT16_TARGET void to_bfloat16(const float *x, size_t count, uint16_t *y) {
    size_t i = 0;
    for (; i + 16 <= count; i += 16) {
        _mm256_storeu_si256((__m256i *)(y + i), (__m256i)_mm512_cvtneps_pbh(_mm512_loadu_ps(x + i)));
    }
    if (i < count) {
        __mmask16 rest = (__mmask16)((1u << (count - i)) - 1);
        _mm256_mask_storeu_epi16(y + i, rest, (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(rest, x + i)));
    }
}
#elif defined(__aarch64__)
static BFLOAT16_TARGET void to_bfloat16(const float *x, size_t count, uint16_t *y) {
    size_t i = 0;
    for (; i + 4 <= count; i += 4) vst1_bf16((bfloat16_t *)(y + i), vcvt_bf16_f32(vld1q_f32(x + i)));
    for (; i < count; i++) y[i] = (uint16_t)rounded(x[i]);
}
#endif

void imprint_to_bfloat16(const float *x, size_t x_stride, size_t rows, size_t inner, uint16_t *y, size_t y_stride) {
    for (size_t r = 0; r < rows; r++, x += x_stride, y += y_stride) {
#if defined(BFLOAT16_TARGET)
        if (imprint_kernels_use_bfloat16()) to_bfloat16(x, inner, y);
        else imprint_to_bfloat16_portable(x, inner, y);
#else
        imprint_to_bfloat16_portable(x, inner, y);
#endif
        for (size_t i = inner; i < y_stride; i++) y[i] = 0;
    }
}

KERNEL(void, imprint_pack_bfloat16,
       (const float *w, size_t stride, const float *factors, size_t inner, size_t columns, uint16_t *panel),
       (w, stride, factors, inner, columns, panel)) {
    pair *pairs = (pair *)panel;
    for (size_t i = 0; i < inner; i += 2, w += 2 * stride, pairs += columns) {
        const float *next = i + 1 < inner ? w + stride : 0;
        for (size_t c = 0; c < columns; c++) {
            float factor = factors ? factors[c] : 1;
            pairs[c] = rounded(w[c] * factor) | (next ? rounded(next[c] * factor) << 16 : 0);
        }
    }
}

KERNEL(void, imprint_pack_transposed_bfloat16,
       (const float *w, size_t stride, size_t inner, size_t columns, uint16_t *panel), (w, stride, inner, columns, panel)) {
    pair *pairs = (pair *)panel;
    for (size_t i = 0; i < inner; i += 2, pairs += columns) {
        for (size_t c = 0; c < columns; c++) {
            const float *source = w + c * stride + i;
            pairs[c] = rounded(source[0]) | (i + 1 < inner ? rounded(source[1]) << 16 : 0);
        }
    }
}

typedef struct {
    const pair *x;
    size_t x_stride;
    const pair *panel;
    size_t pairs, columns;
    float *y;
    size_t y_stride, rows;
    const imprint_bias_clamp *bias_clamp;
} pair_product;

// The number of rows of a tile with `vectors` vectors: for instructions that multiply bfloat16 numbers, and for widened numbers, which occupy
// two registers per row of x.
#define PAIR_ROWS(vectors) ON_ARM64((vectors) > 2 ? 4 : 8, (vectors) > 3 ? 6 : 8)
#define WIDE_ROWS(vectors) ON_ARM64((vectors) > 1 ? 4 : 8, (vectors) > 3 ? 6 : 8)

// The number of pairs of a row of x that are read at once; see product.c.
enum { elements = ON_ARM64(4, 1) };

// Any CPU: widens both numbers of a pair to floats.
INLINE void wide_tile(const pair_product *p, size_t row, size_t column, const int rows, const int vectors) {
    const pair *x = p->x + row * p->x_stride, *w = p->panel + column;
    vec sums[8][4];
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vectors; v++) sums[r][v] = (vec)0;
    size_t i = 0;
    if (elements > 1)
        for (; i + elements <= p->pairs; i += elements) {
            vec firsts[8], seconds[8];
            UNROLL for (int r = 0; r < rows; r++) {
                ivec both = *(const ivec *)(x + (size_t)r * p->x_stride + i), low = both << 16;
                ivec high = both & (int32_t)0xffff0000;
                firsts[r] = *(vec *)&low, seconds[r] = *(vec *)&high;
            }
            UNROLL for (int e = 0; e < elements; e++, w += p->columns)
                UNROLL for (int v = 0; v < vectors; v++) {
                    ivec both = *(const ivec *)(w + v * lanes), low = both << 16, high = both & (int32_t)0xffff0000;
                    vec first = *(vec *)&low, second = *(vec *)&high;
                    UNROLL for (int r = 0; r < rows; r++) sums[r][v] += seconds[r][e] * second;
                    UNROLL for (int r = 0; r < rows; r++) sums[r][v] += firsts[r][e] * first;
                }
        }
    for (; i < p->pairs; i++, w += p->columns) {
        UNROLL for (int v = 0; v < vectors; v++) {
            ivec both = *(const ivec *)(w + v * lanes), low = both << 16, high = both & (int32_t)0xffff0000;
            vec first = *(vec *)&low, second = *(vec *)&high;
            UNROLL for (int r = 0; r < rows; r++) {
                uint32_t value = x[(size_t)r * p->x_stride + i];
                sums[r][v] += (vec)float_of(value & 0xffff0000) * second;
                sums[r][v] += (vec)float_of(value << 16) * first;
            }
        }
    }
    STORE_SUMS
}
STRIP(pair_product, wide_tile, )

KERNEL(void, imprint_multiply_pairs_portable, (const pair_product *p), (p)) { FOR_EACH_STRIP(p, wide_tile_strip, WIDE_ROWS) }

#if defined(__x86_64__)
static inline __attribute__((always_inline)) BFLOAT16_TARGET void pair_tile(
    const pair_product *p, size_t row, size_t column, const int rows, const int vectors) {
    const pair *x = p->x + row * p->x_stride, *w = p->panel + column;
    __m512 sums[8][4];
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vectors; v++) sums[r][v] = _mm512_setzero_ps();
    for (size_t i = 0; i < p->pairs; i++, w += p->columns) {
        __m512bh weights[4];
        UNROLL for (int v = 0; v < vectors; v++) weights[v] = (__m512bh)_mm512_loadu_si512(w + v * lanes);
        UNROLL for (int r = 0; r < rows; r++) {
            __m512bh value = (__m512bh)_mm512_set1_epi32((int32_t)x[(size_t)r * p->x_stride + i]);
            UNROLL for (int v = 0; v < vectors; v++) sums[r][v] = _mm512_dpbf16_ps(sums[r][v], value, weights[v]);
        }
    }
    const imprint_bias_clamp *f = p->bias_clamp;
    __m512 floor = _mm512_set1_ps(f->floor), ceiling = _mm512_set1_ps(f->ceiling);
    UNROLL for (int v = 0; v < vectors; v++) {
        __m512 bias = f->bias ? _mm512_loadu_ps(f->bias + column + v * lanes) : _mm512_setzero_ps();
        UNROLL for (int r = 0; r < rows; r++) {
            __m512 sum = _mm512_add_ps(sums[r][v], bias);
            // In this order, NaN stays NaN.
            sum = _mm512_min_ps(ceiling, _mm512_max_ps(floor, sum));
            _mm512_storeu_ps(p->y + (row + (size_t)r) * p->y_stride + column + v * lanes, sum);
        }
    }
}
#elif defined(__aarch64__)
// BFDOT rounds the sum of two products to odd, and then the sum with the float: the error of a step is up to one unit in the last place.
#define ADD_PRODUCTS(e)                                                                              \
    UNROLL for (int v = 0; v < vectors; v++) {                                                       \
        bfloat16x8_t weights = vld1q_bf16((const bfloat16_t *)(w + v * lanes));                      \
        UNROLL for (int r = 0; r < rows; r++)                                                        \
            sums[r][v] = vbfdotq_laneq_f32(sums[r][v], weights, values[r], e);                       \
    }                                                                                                \
    w += p->columns;

static inline __attribute__((always_inline)) BFLOAT16_TARGET void pair_tile(
    const pair_product *p, size_t row, size_t column, const int rows, const int vectors) {
    const pair *x = p->x + row * p->x_stride, *w = p->panel + column;
    float32x4_t sums[8][4];
    bfloat16x8_t values[8];
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vectors; v++) sums[r][v] = vdupq_n_f32(0);
    size_t i = 0;
    for (; i + 4 <= p->pairs; i += 4) {
        UNROLL for (int r = 0; r < rows; r++) values[r] = vld1q_bf16((const bfloat16_t *)(x + (size_t)r * p->x_stride + i));
        ADD_PRODUCTS(0)
        ADD_PRODUCTS(1)
        ADD_PRODUCTS(2)
        ADD_PRODUCTS(3)
    }
    for (; i < p->pairs; i++) {
        UNROLL for (int r = 0; r < rows; r++)
            values[r] = vreinterpretq_bf16_u32(vdupq_n_u32(x[(size_t)r * p->x_stride + i]));
        ADD_PRODUCTS(0)
    }
    STORE_SUMS
}
#endif

#if defined(BFLOAT16_TARGET)
STRIP(pair_product, pair_tile, BFLOAT16_TARGET)

static BFLOAT16_TARGET void multiply_pairs(const pair_product *p) { FOR_EACH_STRIP(p, pair_tile_strip, PAIR_ROWS) }
#endif

void imprint_multiply_panel_bfloat16(const uint16_t *x, size_t x_stride, const uint16_t *panel, size_t inner,
                                     size_t columns, float *y, size_t y_stride, size_t rows,
                                     const imprint_bias_clamp *bias_clamp) {
    if (columns < lanes || x_stride % 2) __builtin_trap();
    pair_product p = {(const pair *)x, x_stride / 2, (const pair *)panel, (inner + 1) / 2, columns, y,
                      y_stride, rows, bias_clamp};
#if defined(BFLOAT16_TARGET)
    if (imprint_kernels_use_bfloat16()) return multiply_pairs(&p);
#endif
    imprint_multiply_pairs_portable(&p);
}
