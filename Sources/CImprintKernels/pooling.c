#include "window.h"

// Pooling without dilation over at least one vector of channels keeps its results in registers, one vector of channels at a time. Other
// windows use the plain loops.

// Replaces ?:, which is slower with SSE2.
#define SELECT(mask, a, b) (((mask) & (a)) | (~(mask) & (b)))

INLINE int has_vectors(const imprint_window *w) {
    return w->channels >= lanes && w->dilation_height == 1 && w->dilation_width == 1;
}

// The part of a window inside the image, and the offset `out` of its output.
typedef struct {
    const float *in;  // the first tap of the window, possibly outside the image
    size_t out;
    int32_t iy0, ix0;
    int32_t ky0, ky1, kx0, kx1;
} part;

// Calls pool(w, part, large, …) for every window, unrolled for 2x2 and 3x3 windows inside the image.
#define FOR_EACH_WINDOW(w, pool, ...)                                                                          \
    do {                                                                                                       \
        size_t channels = (w)->channels;                                                                       \
        int large = is_large(w);                                                                               \
        FOR_EACH_OUTPUT(w)                                                                                     \
        const float *in = x + (iy0 * (ptrdiff_t)(w)->width + ix0) * (ptrdiff_t)channels;                       \
        int whole = ky1 - ky0 == (w)->kernel_height && kx1 - kx0 == (w)->kernel_width && ky1 == kx1;           \
        if (whole && ky1 == 2) pool(w, (part){in, OUTPUT_OFFSET(w), iy0, ix0, 0, 2, 0, 2}, large, __VA_ARGS__);      \
        else if (whole && ky1 == 3) pool(w, (part){in, OUTPUT_OFFSET(w), iy0, ix0, 0, 3, 0, 3}, large, __VA_ARGS__); \
        else pool(w, (part){in, OUTPUT_OFFSET(w), iy0, ix0, ky0, ky1, kx0, kx1}, large, __VA_ARGS__);          \
        END_FOR_EACH_OUTPUT                                                                                    \
    } while (0)

// Maximum ----------------------------------------------------------------------------------------------------------

// Whether a value replaces the maximum so far. NaN does, and no number replaces NaN, so the maximum of a window with NaN is NaN. That makes
// divergence visible in the loss.
#define IS_LARGER(value, best) (((value) > (best)) | ((value) != (value)))

INLINE void max_of(const imprint_window *w, part p, int large, float *y, uint8_t *choice) {
    ptrdiff_t channels = w->channels, row = w->width * channels;
    for (size_t v = 0; v < vec_count(channels); v++) {
        size_t c = vec_start(v, channels);
        const float *in = p.in + c;
        if (large && begins_line(c)) prefetch(in + w->kernel_height * row, w->stride_height, w->stride_width, row, channels);
        vec best = VEC(in + p.ky0 * row + p.kx0 * channels);
        ivec chosen = p.ky0 * w->kernel_width + p.kx0;
        for (int32_t ky = p.ky0; ky < p.ky1; ky++)
            for (int32_t kx = p.kx0; kx < p.kx1; kx++) {
                vec value = VEC(in + ky * row + kx * channels);
                ivec larger = IS_LARGER(value, best);
                best = (vec)SELECT(larger, (ivec)value, (ivec)best);
                chosen = SELECT(larger, (ivec)0 + (ky * w->kernel_width + kx), chosen);
            }
        STORE(y + p.out + c, best);
        if (choice) *(bytes *)(choice + p.out + c) = __builtin_convertvector(chosen, bytes);
    }
}

INLINE void max_plain(const imprint_window *w, const float *x, float *y, uint8_t *choice) {
    size_t channels = w->channels;
    FOR_EACH_OUTPUT(w)
    float *out = y + OUTPUT_OFFSET(w);
    uint8_t *chosen = choice ? choice + OUTPUT_OFFSET(w) : 0;
    for (size_t c = 0; c < channels; c++) {
        float best = 0;
        uint8_t index = 0;
        int first = 1;
        FOR_EACH_TAP {
            float value = x[INPUT_OFFSET(w) + c];
            if (first || IS_LARGER(value, best)) best = value, index = (uint8_t)TAP(w);
            first = 0;
        }
        out[c] = best;
        if (chosen) chosen[c] = index;
    }
    END_FOR_EACH_OUTPUT
}

KERNEL(void, imprint_max_pool_forward,
       (const imprint_window *w, const float *x, float *y, uint8_t *choice),
       (w, x, y, choice)) {
    if (!has_vectors(w)) max_plain(w, x, y, choice);
    else if (choice) FOR_EACH_WINDOW(w, max_of, y, choice);
    else FOR_EACH_WINDOW(w, max_of, y, 0);
}

INLINE int has_tiles(const imprint_window *w, int32_t kernel, int32_t stride) {
    return has_vectors(w) && w->kernel_height == kernel && w->kernel_width == kernel && w->stride_height == stride
        && w->stride_width == stride;
}

// The number of rows and columns of windows per tile of dx, which has `stride` pixels per window along each axis.
INLINE int32_t tile_rows(int32_t stride) { return stride == 1 ? 2 : 1; }
INLINE int32_t tile_columns(int32_t stride) { return stride == 1 ? 4 : 1; }

// Computes the tile of dx under the tile of windows at (oy, ox). Each overlapping window is read once, each pixel is written once. Windows
// up to `before` rows and columns earlier also overlap the tile.
INLINE void max_backward_tile(const imprint_window *w, const float *dy, const uint8_t *choice, float *dx, int32_t oy,
                              int32_t ox, int32_t kernel, int32_t stride, int at_edge) {
    const int32_t rows = tile_rows(stride), columns = tile_columns(stride), before = (kernel - 1) / stride;
    ptrdiff_t channels = w->channels, x_row = w->width * channels, y_row = w->output_width * channels;
    int32_t iy = oy * stride - w->padding_top, ix = ox * stride - w->padding_left;
    ptrdiff_t out = (oy - before) * y_row + (ox - before) * channels;
    float *in = dx + iy * x_row + ix * channels;
    for (size_t v = 0; v < vec_count(channels); v++) {
        size_t c = vec_start(v, channels);
        vec sums[2][4];
        UNROLL for (int32_t r = 0; r < rows * stride; r++)
            UNROLL for (int32_t p = 0; p < columns * stride; p++) sums[r][p] = (vec)0;
        UNROLL for (int32_t i = 0; i < rows + before; i++) {
            if (at_edge && (oy - before + i < 0 || oy - before + i >= w->output_height)) continue;
            UNROLL for (int32_t j = 0; j < columns + before; j++) {
                if (at_edge && (ox - before + j < 0 || ox - before + j >= w->output_width)) continue;
                ptrdiff_t window = out + i * y_row + j * channels + c;
                ivec value = (ivec)VEC(dy + window);
                ivec chosen = __builtin_convertvector(*(const bytes *)(choice + window), ivec);
                UNROLL for (int32_t r = 0; r < rows * stride; r++)
                    UNROLL for (int32_t p = 0; p < columns * stride; p++) {
                        int32_t ky = r - (i - before) * stride, kx = p - (j - before) * stride;
                        if (ky >= 0 && ky < kernel && kx >= 0 && kx < kernel)
                            sums[r][p] += (vec)((chosen == ky * kernel + kx) & value);
                    }
            }
        }
        UNROLL for (int32_t r = 0; r < rows * stride; r++)
            UNROLL for (int32_t p = 0; p < columns * stride; p++)
                if (!at_edge || (iy + r >= 0 && iy + r < w->height && ix + p >= 0 && ix + p < w->width))
                    STORE(in + r * x_row + p * channels + c, sums[r][p]);
    }
}

INLINE void max_backward_tiles(const imprint_window *w, const float *dy, const uint8_t *choice, float *dx,
                               int32_t kernel, int32_t stride) {
    const int32_t rows = tile_rows(stride), columns = tile_columns(stride), before = (kernel - 1) / stride;
    for (int32_t oy = w->padding_top / stride; oy * stride < w->height + w->padding_top; oy += rows)
        for (int32_t ox = w->padding_left / stride; ox * stride < w->width + w->padding_left; ox += columns) {
            int32_t iy = oy * stride - w->padding_top, ix = ox * stride - w->padding_left;
            int whole = oy >= before && ox >= before && oy + rows <= w->output_height
                && ox + columns <= w->output_width && iy >= 0 && ix >= 0
                && iy + rows * stride <= w->height && ix + columns * stride <= w->width;
            if (whole) max_backward_tile(w, dy, choice, dx, oy, ox, kernel, stride, 0);
            else max_backward_tile(w, dy, choice, dx, oy, ox, kernel, stride, 1);
        }
}

INLINE void max_backward_plain(const imprint_window *w, const float *dy, const uint8_t *choice, float *dx) {
    size_t channels = w->channels;
    memset(dx, 0, input_count(w) * sizeof(float));
    FOR_EACH_OUTPUT(w)
    const float *out = dy + OUTPUT_OFFSET(w);
    const uint8_t *chosen = choice + OUTPUT_OFFSET(w);
    FOR_EACH_TAP {
        float *in = dx + INPUT_OFFSET(w);
        uint8_t tap = (uint8_t)TAP(w);
        for (size_t c = 0; c < channels; c++) {
            // The unconditional load lets the loop vectorize without masked loads, which only AVX has.
            float g = out[c];
            in[c] += chosen[c] == tap ? g : 0;
        }
    }
    END_FOR_EACH_OUTPUT
}

KERNEL(void, imprint_max_pool_backward,
       (const imprint_window *w, const float *dy, const uint8_t *choice, float *dx),
       (w, dy, choice, dx)) {
    if (has_tiles(w, 2, 2)) max_backward_tiles(w, dy, choice, dx, 2, 2);
    else if (has_tiles(w, 3, 2)) max_backward_tiles(w, dy, choice, dx, 3, 2);
    else if (has_tiles(w, 3, 1)) max_backward_tiles(w, dy, choice, dx, 3, 1);
    else max_backward_plain(w, dy, choice, dx);
}

// Mean -------------------------------------------------------------------------------------------------------------

// The length of a window that begins at `origin` inside an axis of `size` pixels and its far padding; the last window may extend beyond.
INLINE int32_t counted(int32_t origin, int32_t kernel, int32_t size, int32_t padding) {
    return smaller(kernel, size + padding - origin);
}

// The reciprocal of the number of averaged pixels.
INLINE float share(const imprint_window *w, int32_t iy0, int32_t ix0, int32_t rows, int32_t columns,
                   int counts_padding) {
    if (!counts_padding) return 1.0f / (rows * columns);
    return 1.0f / (counted(iy0, w->kernel_height, w->height, w->padding_bottom)
                   * counted(ix0, w->kernel_width, w->width, w->padding_right));
}

INLINE void mean_of(const imprint_window *w, part p, int large, float *y, int counts_padding) {
    ptrdiff_t channels = w->channels, row = w->width * channels;
    float factor = share(w, p.iy0, p.ix0, p.ky1 - p.ky0, p.kx1 - p.kx0, counts_padding);
    for (size_t v = 0; v < vec_count(channels); v++) {
        size_t c = vec_start(v, channels);
        const float *in = p.in + c;
        if (large && begins_line(c)) prefetch(in + w->kernel_height * row, w->stride_height, w->stride_width, row, channels);
        vec sum = 0;
        for (int32_t ky = p.ky0; ky < p.ky1; ky++)
            for (int32_t kx = p.kx0; kx < p.kx1; kx++) sum += VEC(in + ky * row + kx * channels);
        STORE(y + p.out + c, sum * factor);
    }
}

INLINE void mean_plain(const imprint_window *w, const float *x, float *y, int counts_padding) {
    size_t channels = w->channels;
    FOR_EACH_OUTPUT(w)
    float *out = y + OUTPUT_OFFSET(w);
    float factor = share(w, iy0, ix0, ky1 - ky0, kx1 - kx0, counts_padding);
    memset(out, 0, channels * sizeof(float));
    FOR_EACH_TAP {
        const float *in = x + INPUT_OFFSET(w);
        for (size_t c = 0; c < channels; c++) out[c] += in[c];
    }
    for (size_t c = 0; c < channels; c++) out[c] *= factor;
    END_FOR_EACH_OUTPUT
}

KERNEL(void, imprint_average_pool_forward,
       (const imprint_window *w, const float *x, float *y, int counts_padding),
       (w, x, y, counts_padding)) {
    if (has_vectors(w)) FOR_EACH_WINDOW(w, mean_of, y, counts_padding);
    else mean_plain(w, x, y, counts_padding);
}

KERNEL(void, imprint_average_pool_backward,
       (const imprint_window *w, const float *dy, float *dx, int counts_padding),
       (w, dy, dx, counts_padding)) {
    size_t channels = w->channels;
    memset(dx, 0, input_count(w) * sizeof(float));
    FOR_EACH_OUTPUT(w)
    const float *out = dy + OUTPUT_OFFSET(w);
    float factor = share(w, iy0, ix0, ky1 - ky0, kx1 - kx0, counts_padding);
    FOR_EACH_TAP {
        float *in = dx + INPUT_OFFSET(w);
        for (size_t c = 0; c < channels; c++) in[c] += factor * out[c];
    }
    END_FOR_EACH_OUTPUT
}
