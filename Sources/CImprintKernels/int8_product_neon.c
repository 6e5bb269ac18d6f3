// Int8 products on arm64. The instructions multiply signed numbers, so activations x become x − 128, and the sums begin at 128 times the sum of
// the weights: Σ (x − 128) w + 128 Σ w = Σ x w. All sums are exact, so both versions compute the same bits as other processors.

#if defined(__aarch64__)
#include "int8_product.h"

// The product, and 128 times the sum of the weights of each of its columns from `column` on.
typedef struct {
    const product *p;
    int32_t starts[lanes];
} neon_product;

// The registers of the sums of 16 columns.
enum { registers = lanes / 4 };
typedef union {
    int32x4_t parts[registers];
    ivec all;
} column_sums;

static void sum_weights(neon_product *n) {
    const product *p = n->p;
    int32x4_t totals[registers];
    UNROLL for (int v = 0; v < registers; v++) totals[v] = vdupq_n_s32(0);
    const int8_t *w = p->panel + p->column * 4;
    for (size_t i = 0; i < p->windows->tap_count * p->windows->tap_bytes; i += 4, w += p->width * 4)
        UNROLL for (int v = 0; v < registers; v++) totals[v] = vpadalq_s16(totals[v], vpaddlq_s8(vld1q_s8(w + 16 * v)));
    UNROLL for (int v = 0; v < registers; v++) vst1q_s32(n->starts + 4 * v, vshlq_n_s32(totals[v], 7));
}

// x − 128, for 16 activations, and for a group of four that is repeated.
INLINE int8x16_t signed_values(const uint8_t *x) { return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(x), vdupq_n_u8(0x80))); }
INLINE int8x16_t signed_group(const uint8_t *x) {
    uint32_t group;
    memcpy(&group, x, 4);
    return vreinterpretq_s8_u32(vdupq_n_u32(group ^ 0x80808080));
}

// Calls tile(…, &n) for the windows of each block of 16 columns.
#define FOR_EACH_BLOCK(tile)                                                                          \
    for (; p->column < p->width && p->channel < p->channels; p->column += lanes, p->channel += lanes) { \
        sum_weights(&n);                                                                              \
        FOR_EACH_TILE(p, first, count, tile, &n)                                                      \
    }

// SDOT: each instruction adds four products to each of four sums -----------------------------------------------------

#define ADD_GROUP(element)                                                                      \
    UNROLL for (int v = 0; v < registers; v++) {                                                \
        int8x16_t weights = vld1q_s8(w + 16 * v);                                               \
        UNROLL for (int r = 0; r < count; r++)                                                  \
            sums[r].parts[v] = vdotq_laneq_s32(sums[r].parts[v], weights, x[r], element);       \
    }                                                                                           \
    w += step;

INLINE DOT_PRODUCT_TARGET void dot_tile(const product *p, const uint8_t *const *rows, size_t pixel, const int count,
                                        const neon_product *n) {
    const imprint_int8_windows *windows = p->windows;
    column_sums sums[most_rows];
    int8x16_t x[most_rows];
    UNROLL for (int r = 0; r < count; r++)
        UNROLL for (int v = 0; v < registers; v++) sums[r].parts[v] = vld1q_s32(n->starts + 4 * v);
    const int8_t *w = p->panel + p->column * 4;
    const size_t step = p->width * 4;
    for (size_t t = 0; t < windows->tap_count; t++) {
        ptrdiff_t at = windows->taps[t], end = at + (ptrdiff_t)windows->tap_bytes;
        for (; at + 16 <= end; at += 16) {
            UNROLL for (int r = 0; r < count; r++) x[r] = signed_values(rows[r] + at);
            ADD_GROUP(0)
            ADD_GROUP(1)
            ADD_GROUP(2)
            ADD_GROUP(3)
        }
        for (; at < end; at += 4) {
            UNROLL for (int r = 0; r < count; r++) x[r] = signed_group(rows[r] + at);
            ADD_GROUP(0)
        }
    }
    store_sums(p, pixel, 0, &sums[0].all, count, 1);
}

static DOT_PRODUCT_TARGET void multiply_dots(product *p, size_t first, size_t count) {
    neon_product n = {.p = p};
    FOR_EACH_BLOCK(dot_tile)
}

// Any CPU: sums of two products fit into 16 bits, because weights are at least −127 ---------------------------------

// Two rows at a time fill the 32 registers. A register has two sums for each of two columns.
INLINE void pair_rows(const product *p, const uint8_t *const *rows, size_t pixel, const int count, const neon_product *n) {
    const imprint_int8_windows *windows = p->windows;
    int32x4_t sums[2][2 * registers];
    UNROLL for (int r = 0; r < count; r++)
        UNROLL for (int v = 0; v < 2 * registers; v++) sums[r][v] = vdupq_n_s32(0);
    const int8_t *w = p->panel + p->column * 4;
    const size_t step = p->width * 4;
    for (size_t t = 0; t < windows->tap_count; t++) {
        ptrdiff_t at = windows->taps[t], end = at + (ptrdiff_t)windows->tap_bytes;
        for (; at + 8 <= end; at += 8, w += 2 * step) {
            int8x8_t x[2], next[2];
            UNROLL for (int r = 0; r < count; r++) {
                x[r] = vget_low_s8(signed_group(rows[r] + at));
                next[r] = vget_low_s8(signed_group(rows[r] + at + 4));
            }
            UNROLL for (int v = 0; v < 2 * registers; v++) {
                int8x8_t weights = vld1_s8(w + 8 * v), more = vld1_s8(w + step + 8 * v);
                UNROLL for (int r = 0; r < count; r++)
                    sums[r][v] = vpadalq_s16(sums[r][v], vmlal_s8(vmull_s8(weights, x[r]), more, next[r]));
            }
        }
        if (at == end) continue;
        UNROLL for (int r = 0; r < count; r++) {
            int8x8_t x = vget_low_s8(signed_group(rows[r] + at));
            UNROLL for (int v = 0; v < 2 * registers; v++)
                sums[r][v] = vpadalq_s16(sums[r][v], vmull_s8(vld1_s8(w + 8 * v), x));
        }
        w += step;
    }
    column_sums totals[2];
    UNROLL for (int r = 0; r < count; r++)
        UNROLL for (int v = 0; v < registers; v++)
            totals[r].parts[v] = vaddq_s32(vpaddq_s32(sums[r][2 * v], sums[r][2 * v + 1]), vld1q_s32(n->starts + 4 * v));
    store_sums(p, pixel, 0, &totals[0].all, count, 1);
}

INLINE void pair_tile(const product *p, const uint8_t *const *rows, size_t pixel, const int count, const neon_product *n) {
    UNROLL for (int r = 0; r < count; r += 2)
        pair_rows(p, rows + r, pixel + (size_t)r, count - r < 2 ? count - r : 2, n);
}

static void multiply_pairs(product *p, size_t first, size_t count) {
    neon_product n = {.p = p};
    FOR_EACH_BLOCK(pair_tile)
}

void imprint_int8_product_neon(product *p, size_t first, size_t count) {
    if (imprint_arm64.dot_product) multiply_dots(p, first, count);
    else multiply_pairs(p, first, count);
}
#endif
