#include "imprint_kernels.h"

#include "vectors.h"

// Every pass processes channels in vectors of 16, then 8, then single elements: any number of channels works, and common ones reach memory
// bandwidth. The body of a pass (`part`) is written once, for a vector of `n` channels.
typedef double wide_vec __attribute__((ext_vector_type(lanes)));

#define READ(address) VEC_OF(n, address, 0)
#define WRITE(address, value) STORE_OF(n, address, value)

// Calls part(..., c, n) for all channels.
#define OVER_CHANNELS(channels, part, ...)                                       \
    {                                                                            \
        size_t c = 0;                                                            \
        for (; c + lanes <= (channels); c += lanes) part(__VA_ARGS__, c, lanes); \
        if (c + 8 <= (channels)) { part(__VA_ARGS__, c, 8); c += 8; }            \
        for (; c < (channels); c++) part(__VA_ARGS__, c, 1);                     \
    }

// Calls part(..., r, 4, c, n) for four rows at a time and part(..., r, 1, c, n) for the remaining rows. Sums are in memory, and four rows at a
// time access them a quarter as often. Long rows are processed one by one, because sequential access is fastest.
#define OVER_ROWS(rows, channels, part, ...)                                                                  \
    {                                                                                                         \
        size_t r = 0;                                                                                         \
        for (; (channels) < 64 && r + 4 <= (rows); r += 4) OVER_CHANNELS(channels, part, __VA_ARGS__, r, 4)   \
        for (; r < (rows); r++) OVER_CHANNELS(channels, part, __VA_ARGS__, r, 1)                              \
    }

// Moments ----------------------------------------------------------------------------------------------------------

INLINE void add_deviations(const float *x, size_t stride, const float *centre, float *sum, size_t first, size_t rows,
                           size_t c, size_t n) {
    vec total = READ(sum + c), from = READ(centre + c);
    for (size_t r = first; r < first + rows; r++) total += READ(x + r * stride + c) - from;
    WRITE(sum + c, total);
}

INLINE void add_squares(const float *x, size_t stride, const float *centre, float *sum, size_t first, size_t rows,
                        size_t c, size_t n) {
    vec total = READ(sum + c), from = READ(centre + c);
    for (size_t r = first; r < first + rows; r++) {
        vec d = READ(x + r * stride + c) - from;
        total += d * d;
    }
    WRITE(sum + c, total);
}

KERNEL(void, imprint_moments,
       (const float *x, size_t rows, size_t channels, float *mean, float *m2),
       (x, rows, channels, mean, m2)) {
    memset(mean, 0, channels * sizeof(float));
    memset(m2, 0, channels * sizeof(float));
    // Sums the differences from the first row, which avoids cancellation if the mean is large.
    OVER_ROWS(rows, channels, add_deviations, x, channels, x, mean)
    for (size_t c = 0; c < channels; c++) mean[c] = x[c] + mean[c] / rows;
    OVER_ROWS(rows, channels, add_squares, x, channels, mean, m2)
}

INLINE void merge_part(const uint32_t *rows, const float *means, const float *m2s, size_t blocks, size_t stride,
                       float *mean, float *variance, size_t c, size_t n) {
    double count = 0;
    wide_vec centre = 0, squares = 0;
    for (size_t block = 0; block < blocks; block++) {
        if (rows[block] == 0) continue;
        double before = count;
        count += rows[block];
        double share = rows[block] / count;
        wide_vec delta = __builtin_convertvector(READ(means + block * stride + c), wide_vec) - centre;
        centre += delta * share;
        squares += __builtin_convertvector(READ(m2s + block * stride + c), wide_vec) + delta * delta * (before * share);
    }
    WRITE(mean + c, __builtin_convertvector(centre, vec));
    WRITE(variance + c, __builtin_convertvector(squares / count, vec));
}

KERNEL(void, imprint_merge_moments,
       (const uint32_t *rows, const float *means, const float *m2s, size_t blocks, size_t stride, size_t channels,
        float *mean, float *variance),
       (rows, means, m2s, blocks, stride, channels, mean, variance)) {
    OVER_CHANNELS(channels, merge_part, rows, means, m2s, blocks, stride, mean, variance)
}

// Forward ----------------------------------------------------------------------------------------------------------

#define SCALED(t, x) (READ((t)->factor + c) * (x) + READ((t)->offset + c))
// This order of comparison passes NaN, which makes divergence visible in the loss.
#define CLAMPED(t, value)                            \
    ({                                               \
        vec w_ = (value);                            \
        w_ = w_ < (t)->floor ? (vec)(t)->floor : w_; \
        w_ > (t)->ceiling ? (vec)(t)->ceiling : w_;  \
    })
// g if the activation passes the value, else 0.
#define MASKED(t, value, g)                                       \
    ({                                                            \
        vec w_ = (value);                                         \
        ((w_ > (t)->floor) & (w_ < (t)->ceiling)) ? (g) : (vec)0; \
    })
// A compiler barrier between loads and a selection. Without it, the loads become masked, which does not trigger hardware prefetching and
// takes three times as long.
#define LOADED __asm__("" ::: "memory")

INLINE void forward_part(const imprint_normalization *t, const float *x, const float *shortcut, float *z, size_t c,
                         size_t n) {
    vec v = SCALED(t, READ(x + c));
    if (shortcut) v += READ(shortcut + c);
    WRITE(z + c, CLAMPED(t, v));
}

KERNEL(void, imprint_normalization_forward,
       (const imprint_normalization *t, const float *x, const float *shortcut, float *z, size_t rows),
       (t, x, shortcut, z, rows)) {
    size_t channels = t->channels;
    for (size_t r = 0; r < rows; r++, x += channels, z += channels) {
        OVER_CHANNELS(channels, forward_part, t, x, shortcut, z)
        if (shortcut) shortcut += channels;
    }
}

// Pixel `tap` of the 2x2 window that begins at x; `line` is the number of elements per image row.
#define PIXEL(x, line, channels, tap) ((x) + ((tap) >> 1) * (line) + ((tap) & 1) * (channels))

INLINE void forward_pooled_part(const imprint_normalization *t, const float *x, size_t line, float *z, uint8_t *choice,
                                size_t c, size_t n) {
    vec best = SCALED(t, READ(x + c));
    ivec winner = 0;
    for (int32_t tap = 1; tap < 4; tap++) {
        vec v = SCALED(t, READ(PIXEL(x, line, t->channels, tap) + c));
        // NaN replaces the maximum, as in max pooling.
        ivec larger = (v > best) | (v != v);
        best = larger ? v : best;
        winner = larger ? (ivec)tap : winner;
    }
    // Clamping after the maximum gives the same index, except for values that pass no gradient.
    WRITE(z + c, CLAMPED(t, best));
    bytes chosen = __builtin_convertvector(winner, bytes);
    memcpy(choice + c, &chosen, n);
}

KERNEL(void, imprint_normalization_forward_pooled,
       (const imprint_normalization *t, const float *x, size_t width, float *z, uint8_t *choice),
       (t, x, width, z, choice)) {
    size_t channels = t->channels, line = width * channels;
    for (size_t i = 0; i < width / 2; i++, x += 2 * channels, z += channels, choice += channels)
        OVER_CHANNELS(channels, forward_pooled_part, t, x, line, z, choice)
}

// Backward: sums ---------------------------------------------------------------------------------------------------

// Sums over this many rows are computed in float and added in double, which is fast and accurate for any image size.
enum { block_rows = 64, block_channels = 2048 };

// Sums in float: of the gradients, and of the gradients times (x - mean).
typedef struct {
    float gradients[block_channels], products[block_channels];
} block_sums;

INLINE void sums_part(const imprint_normalization *t, const float *x, const float *z, const float *dz, block_sums *sums,
                      size_t c0, size_t first, size_t rows, size_t i, size_t n) {
    size_t c = c0 + i;
    vec gradients = READ(sums->gradients + i), products = READ(sums->products + i), mean = READ(t->mean + c);
    for (size_t r = first; r < first + rows; r++) {
        size_t index = r * t->channels + c;
        vec value = READ(x + index), g = READ(dz + index);
        LOADED;
        g = MASKED(t, z ? READ(z + index) : SCALED(t, value), g);
        gradients += g;
        products += g * (value - mean);
    }
    WRITE(sums->gradients + i, gradients);
    WRITE(sums->products + i, products);
}

static inline void clear_block(block_sums *block, size_t width) {
    memset(block->gradients, 0, width * sizeof(float));
    memset(block->products, 0, width * sizeof(float));
}

static inline void add_block(const block_sums *block, double *sums, size_t channels, size_t c0, size_t width) {
    for (size_t i = 0; i < width; i++) {
        sums[c0 + i] += block->gradients[i];
        sums[channels + c0 + i] += block->products[i];
    }
}

static inline size_t minimum(size_t a, size_t b) { return a < b ? a : b; }

KERNEL(void, imprint_normalization_sums,
       (const imprint_normalization *t, const float *x, const float *z, const float *dz, double *sums, size_t rows),
       (t, x, z, dz, sums, rows)) {
    size_t channels = t->channels;
    for (size_t r0 = 0; r0 < rows; r0 += block_rows) {
        size_t height = minimum(block_rows, rows - r0), start = r0 * channels;
        for (size_t c0 = 0; c0 < channels; c0 += block_channels) {
            size_t width = minimum(block_channels, channels - c0);
            block_sums block;
            clear_block(&block, width);
            OVER_ROWS(height, width, sums_part, t, x + start, z ? z + start : 0, dz + start, &block, c0)
            add_block(&block, sums, channels, c0, width);
        }
    }
}

#define CHOSEN(choice) \
    ({ bytes b_ = 0; memcpy(&b_, (choice), n); __builtin_convertvector(b_, ivec); })

INLINE void sums_pooled_part(const imprint_normalization *t, const float *x, size_t line, const uint8_t *choice,
                             const float *dz, block_sums *sums, size_t c0, size_t i, size_t n) {
    size_t c = c0 + i;
    ivec chosen = CHOSEN(choice + c);
    vec values[4], g = READ(dz + c);
    for (int32_t tap = 0; tap < 4; tap++) values[tap] = READ(PIXEL(x, line, t->channels, tap) + c);
    LOADED;
    vec value = values[0];
    for (int32_t tap = 1; tap < 4; tap++) value = chosen == tap ? values[tap] : value;
    g = MASKED(t, SCALED(t, value), g);
    WRITE(sums->gradients + i, READ(sums->gradients + i) + g);
    WRITE(sums->products + i, READ(sums->products + i) + g * (value - READ(t->mean + c)));
}

KERNEL(void, imprint_normalization_sums_pooled,
       (const imprint_normalization *t, const float *x, size_t width, const uint8_t *choice, const float *dz, double *sums),
       (t, x, width, choice, dz, sums)) {
    size_t channels = t->channels, line = width * channels;
    for (size_t i0 = 0; i0 < width / 2; i0 += block_rows) {
        size_t end = minimum(i0 + block_rows, width / 2);
        for (size_t c0 = 0; c0 < channels; c0 += block_channels) {
            size_t part = minimum(block_channels, channels - c0);
            block_sums block;
            clear_block(&block, part);
            for (size_t i = i0; i < end; i++)
                OVER_CHANNELS(part, sums_pooled_part, t, x + 2 * i * channels, line, choice + i * channels,
                              dz + i * channels, &block, c0)
            add_block(&block, sums, channels, c0, part);
        }
    }
}

// Backward: gradients ----------------------------------------------------------------------------------------------

#define COMBINED(t, g, x) (READ((t)->a + c) * (g) + (READ((t)->b + c) * (x) + READ((t)->k + c)))

INLINE void backward_part(const imprint_normalization *t, const float *x, const float *z, const float *dz, float *dx,
                          float *dshortcut, size_t c, size_t n) {
    vec value = READ(x + c), g = READ(dz + c);
    LOADED;
    g = MASKED(t, z ? READ(z + c) : SCALED(t, value), g);
    if (dshortcut) WRITE(dshortcut + c, g);
    if (dx) WRITE(dx + c, COMBINED(t, g, value));
}

KERNEL(void, imprint_normalization_backward,
       (const imprint_normalization *t, const float *x, const float *z, const float *dz, float *dx, float *dshortcut,
        size_t rows),
       (t, x, z, dz, dx, dshortcut, rows)) {
    size_t channels = t->channels;
    for (size_t r = 0; r < rows; r++) {
        size_t start = r * channels;
        OVER_CHANNELS(channels, backward_part, t, x + start, z ? z + start : 0, dz + start, dx ? dx + start : 0,
                      dshortcut ? dshortcut + start : 0)
    }
}

INLINE void backward_pooled_part(const imprint_normalization *t, const float *x, size_t line, const uint8_t *choice,
                                 const float *dz, float *dx, size_t c, size_t n) {
    ivec chosen = CHOSEN(choice + c);
    vec all = READ(dz + c);
    LOADED;
    for (int32_t tap = 0; tap < 4; tap++) {
        vec value = READ(PIXEL(x, line, t->channels, tap) + c);
        vec g = MASKED(t, SCALED(t, value), chosen == tap ? all : (vec)0);
        WRITE(PIXEL(dx, line, t->channels, tap) + c, COMBINED(t, g, value));
    }
}

INLINE void unpooled_part(const imprint_normalization *t, const float *x, float *dx, size_t c, size_t n) {
    WRITE(dx + c, READ(t->b + c) * READ(x + c) + READ(t->k + c));
}

KERNEL(void, imprint_normalization_backward_unpooled,
       (const imprint_normalization *t, const float *x, float *dx, size_t rows),
       (t, x, dx, rows)) {
    size_t channels = t->channels;
    for (size_t r = 0; r < rows; r++)
        OVER_CHANNELS(channels, unpooled_part, t, x + r * channels, dx + r * channels)
}

KERNEL(void, imprint_normalization_backward_pooled,
       (const imprint_normalization *t, const float *x, size_t width, const uint8_t *choice, const float *dz, float *dx),
       (t, x, width, choice, dz, dx)) {
    size_t channels = t->channels, line = width * channels;
    for (size_t i = 0; i < width / 2; i++)
        OVER_CHANNELS(channels, backward_pooled_part, t, x + 2 * i * channels, line, choice + i * channels,
                      dz + i * channels, dx + 2 * i * channels)
    if (width % 2 == 0) return;
    for (size_t last = line - channels; last < 2 * line; last += line)
        OVER_CHANNELS(channels, unpooled_part, t, x + last, dx + last)
}
