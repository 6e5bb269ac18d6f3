#define NEON_REGISTERS 1
#include "window.h"

// Depthwise convolution. Kernels of 3x3 or 5x5 with stride 1 or 2 and at least one vector of channels are computed in tiles of pixels: their
// sums stay in registers, and each input pixel is read once per tile. The compiler unrolls these loops for each kernel and stride. Other
// kernels use the plain loops.

// The height and width of a tile in output pixels.
INLINE int32_t tile_rows(int32_t kernel) { return kernel == 3 ? 2 : 1; }
enum { tile_columns = 4, max_rows = 2, max_taps = 25 };

// The number of vectors of channels whose weight gradients are accumulated at once, small enough for the L1 cache.
enum { group = 128 / lanes };

INLINE int has(const imprint_window *w, int32_t kernel, int32_t stride) {
    return w->kernel_height == kernel && w->kernel_width == kernel && w->stride_height == stride
        && w->stride_width == stride && w->dilation_height == 1 && w->dilation_width == 1 && w->channels >= lanes;
}

// Calls tiled(…, kernel, stride) with constants if the window has a tiled version, else plain(…).
#define CHOOSE(w, tiled, plain, ...)                        \
    if (has(w, 3, 1)) tiled(w, __VA_ARGS__, 3, 1);          \
    else if (has(w, 3, 2)) tiled(w, __VA_ARGS__, 3, 2);     \
    else if (has(w, 5, 1)) tiled(w, __VA_ARGS__, 5, 1);     \
    else if (has(w, 5, 2)) tiled(w, __VA_ARGS__, 5, 2);     \
    else plain(w, __VA_ARGS__);

// One bit for each pixel of an axis from `first` on, set if it lies inside 0 ..< limit.
INLINE uint32_t bits_inside(int32_t first, int32_t limit) {
    int32_t begin = first < 0 ? -first : 0, end = limit - first < 31 ? limit - first : 31;
    return begin < end ? (1u << end) - (1u << begin) : 0;
}

// Whether pixel `first` + i lies outside 0 ..< limit. On arm64, where a tile at an edge has many vectors, a bit is tested; KEPT prevents the
// compiler from moving the tests out of the loop over vectors, which would need too many registers.
#define OUTSIDE(bits, i, first, limit) ON_ARM64(!((bits) >> (i) & 1), (first) + (i) < 0 || (first) + (i) >= (limit))
#define KEPT(bits) if (ON_ARM64(1, 0)) __asm__("" : "+r"(bits))

INLINE void load_taps(const float *weight, size_t channels, int32_t kernel, vec *taps) {
    UNROLL for (int32_t t = 0; t < kernel * kernel; t++) taps[t] = VEC(weight + t * channels);
}

// Whether the output tile at (oy, ox) lies inside the output, and its windows lie inside the input.
INLINE int is_whole(const imprint_window *w, int32_t oy, int32_t ox, int32_t kernel, int32_t stride) {
    const int32_t rows = tile_rows(kernel);
    int32_t iy = oy * stride - w->padding_top, ix = ox * stride - w->padding_left;
    return oy + rows <= w->output_height && ox + tile_columns <= w->output_width && iy >= 0 && ix >= 0
        && iy + (rows - 1) * stride + kernel <= w->height && ix + (tile_columns - 1) * stride + kernel <= w->width;
}

// Forward ----------------------------------------------------------------------------------------------------------

// Computes the tile whose first pixel is (oy, ox). If `at_edge`, parts of the tile or its windows may lie outside.
INLINE void forward_tile(const imprint_window *w, const float *x, const float *weight, float *y,
                         const imprint_bias_clamp *bias_clamp, int32_t oy, int32_t ox, int32_t kernel, int32_t stride,
                         int at_edge) {
    const int32_t rows = tile_rows(kernel);
    ptrdiff_t channels = w->channels, x_row = w->width * channels, y_row = w->output_width * channels;
    int32_t iy = oy * stride - w->padding_top, ix = ox * stride - w->padding_left;
    const float *in = x + iy * x_row + ix * channels;
    const float *next = in + (rows * stride + kernel - stride) * x_row + (kernel - stride) * channels;
    float *out = y + oy * y_row + ox * channels;
    int large = is_large(w);
    uint32_t rows_in = bits_inside(iy, w->height), columns_in = bits_inside(ix, w->width);
    uint32_t rows_out = bits_inside(oy, w->output_height), columns_out = bits_inside(ox, w->output_width);
    for (size_t v = 0; v < vec_count(channels); v++) {
        if (at_edge) {
            KEPT(rows_in);
            KEPT(columns_in);
            KEPT(rows_out);
            KEPT(columns_out);
        }
        size_t c = vec_start(v, channels);
        vec taps[max_taps], sums[max_rows][tile_columns];
        load_taps(weight + c, channels, kernel, taps);
        UNROLL for (int32_t r = 0; r < rows; r++)
            UNROLL for (int32_t p = 0; p < tile_columns; p++) sums[r][p] = 0;
        if (large && begins_line(c)) prefetch(next + c, rows * stride, tile_columns * stride, x_row, channels);
        UNROLL for (int32_t i = 0; i < (rows - 1) * stride + kernel; i++) {
            if (at_edge && (OUTSIDE(rows_in, i, iy, w->height))) continue;
            UNROLL for (int32_t j = 0; j < (tile_columns - 1) * stride + kernel; j++) {
                if (at_edge && (OUTSIDE(columns_in, j, ix, w->width))) continue;
                vec value = VEC(in + i * x_row + j * channels + c);
                UNROLL for (int32_t r = 0; r < rows; r++)
                    UNROLL for (int32_t p = 0; p < tile_columns; p++) {
                        int32_t ky = i - r * stride, kx = j - p * stride;
                        if (ky >= 0 && ky < kernel && kx >= 0 && kx < kernel)
                            sums[r][p] += value * taps[ky * kernel + kx];
                    }
            }
        }
        vec bias = bias_clamp->bias ? VEC(bias_clamp->bias + c) : (vec)0;
        UNROLL for (int32_t r = 0; r < rows; r++)
            UNROLL for (int32_t p = 0; p < tile_columns; p++) {
                vec sum = CLAMPED_TO(bias_clamp->floor, bias_clamp->ceiling, sums[r][p] + bias);
                if (!at_edge || ON_ARM64(rows_out >> r & columns_out >> p & 1, oy + r < w->output_height && ox + p < w->output_width))
                    STORE(out + r * y_row + p * channels + c, sum);
            }
    }
}

INLINE void forward_tiles(const imprint_window *w, const float *x, const float *weight, float *y, int32_t first_row,
                          int32_t end_row, const imprint_bias_clamp *bias_clamp, int32_t kernel, int32_t stride) {
    WITH_COPY_ON_ARM64(imprint_window, w)
    WITH_COPY_ON_ARM64(imprint_bias_clamp, bias_clamp)
    const int32_t rows = tile_rows(kernel);
    for (int32_t oy = first_row; oy < end_row; oy += rows)
        for (int32_t ox = 0; ox < w->output_width; ox += tile_columns)
            if (is_whole(w, oy, ox, kernel, stride))
                forward_tile(w, x, weight, y, bias_clamp, oy, ox, kernel, stride, 0);
            else forward_tile(w, x, weight, y, bias_clamp, oy, ox, kernel, stride, 1);
}

INLINE void forward_plain(const imprint_window *w, const float *x, const float *weight, float *y, int32_t first_row,
                          int32_t end_row, const imprint_bias_clamp *bias_clamp) {
    size_t channels = w->channels;
    FOR_EACH_OUTPUT_OF(w, first_row, end_row)
    float *out = y + OUTPUT_OFFSET(w);
    memset(out, 0, channels * sizeof(float));
    FOR_EACH_TAP {
        const float *in = x + INPUT_OFFSET(w), *tap = weight + TAP(w) * channels;
        for (size_t c = 0; c < channels; c++) out[c] += in[c] * tap[c];
    }
    for (size_t c = 0; c < channels; c++) {
        float sum = bias_clamp->bias ? out[c] + bias_clamp->bias[c] : out[c];
        sum = sum < bias_clamp->floor ? bias_clamp->floor : sum;
        out[c] = sum > bias_clamp->ceiling ? bias_clamp->ceiling : sum;
    }
    END_FOR_EACH_OUTPUT
}

KERNEL(void, imprint_depthwise_forward,
       (const imprint_window *w, const float *x, const float *weight, float *y, int32_t first_row, int32_t rows,
        const imprint_bias_clamp *bias_clamp),
       (w, x, weight, y, first_row, rows, bias_clamp)) {
    CHOOSE(w, forward_tiles, forward_plain, x, weight, y, first_row, first_row + rows, bias_clamp)
}

// Backward, input --------------------------------------------------------------------------------------------------

// Computes a tile of dx: the pixels under the first taps of a tile of windows, `stride` pixels per window along each axis. (oy, ox) is the
// first window; windows up to `before` rows and columns earlier also overlap the tile.
INLINE void backward_input_tile(const imprint_window *w, const float *dy, const float *weight, float *dx, int32_t oy,
                                int32_t ox, int32_t kernel, int32_t stride, int at_edge) {
    const int32_t rows = stride == 1 ? tile_rows(kernel) : 1, before = (kernel - 1) / stride;
    ptrdiff_t channels = w->channels, x_row = w->width * channels, y_row = w->output_width * channels;
    int32_t iy = oy * stride - w->padding_top, ix = ox * stride - w->padding_left;
    const float *out = dy + (oy - before) * y_row + (ox - before) * channels;
    const float *next = out + (before + rows) * y_row + before * channels;
    float *in = dx + iy * x_row + ix * channels;
    int large = is_large(w);
    for (size_t v = 0; v < vec_count(channels); v++) {
        size_t c = vec_start(v, channels);
        vec taps[max_taps], sums[2 * max_rows][2 * tile_columns];
        load_taps(weight + c, channels, kernel, taps);
        UNROLL for (int32_t r = 0; r < rows * stride; r++)
            UNROLL for (int32_t p = 0; p < tile_columns * stride; p++) sums[r][p] = (vec)0;
        if (large && begins_line(c)) prefetch(next + c, rows, tile_columns, y_row, channels);
        UNROLL for (int32_t i = 0; i < rows + before; i++) {
            if (at_edge && (oy - before + i < 0 || oy - before + i >= w->output_height)) continue;
            UNROLL for (int32_t j = 0; j < tile_columns + before; j++) {
                if (at_edge && (ox - before + j < 0 || ox - before + j >= w->output_width)) continue;
                vec value = VEC(out + i * y_row + j * channels + c);
                UNROLL for (int32_t r = 0; r < rows * stride; r++)
                    UNROLL for (int32_t p = 0; p < tile_columns * stride; p++) {
                        int32_t ky = r - (i - before) * stride, kx = p - (j - before) * stride;
                        if (ky >= 0 && ky < kernel && kx >= 0 && kx < kernel)
                            sums[r][p] += value * taps[ky * kernel + kx];
                    }
            }
        }
        UNROLL for (int32_t r = 0; r < rows * stride; r++)
            UNROLL for (int32_t p = 0; p < tile_columns * stride; p++)
                if (!at_edge || (iy + r >= 0 && iy + r < w->height && ix + p >= 0 && ix + p < w->width))
                    STORE(in + r * x_row + p * channels + c, sums[r][p]);
    }
}

INLINE void backward_input_tiles(const imprint_window *w, const float *dy, const float *weight, float *dx,
                                 int32_t kernel, int32_t stride) {
    WITH_COPY_ON_ARM64(imprint_window, w)
    const int32_t rows = stride == 1 ? tile_rows(kernel) : 1, before = (kernel - 1) / stride;
    for (int32_t oy = w->padding_top / stride; oy * stride < w->height + w->padding_top; oy += rows)
        for (int32_t ox = w->padding_left / stride; ox * stride < w->width + w->padding_left; ox += tile_columns) {
            int32_t iy = oy * stride - w->padding_top, ix = ox * stride - w->padding_left;
            int whole = oy >= before && ox >= before && oy + rows <= w->output_height
                && ox + tile_columns <= w->output_width && iy >= 0 && ix >= 0
                && iy + rows * stride <= w->height && ix + tile_columns * stride <= w->width;
            if (whole) backward_input_tile(w, dy, weight, dx, oy, ox, kernel, stride, 0);
            else backward_input_tile(w, dy, weight, dx, oy, ox, kernel, stride, 1);
        }
}

INLINE void backward_input_plain(const imprint_window *w, const float *dy, const float *weight, float *dx) {
    size_t channels = w->channels;
    memset(dx, 0, input_count(w) * sizeof(float));
    FOR_EACH_OUTPUT(w)
    const float *out = dy + OUTPUT_OFFSET(w);
    FOR_EACH_TAP {
        float *in = dx + INPUT_OFFSET(w);
        const float *tap = weight + TAP(w) * channels;
        for (size_t c = 0; c < channels; c++) in[c] += out[c] * tap[c];
    }
    END_FOR_EACH_OUTPUT
}

KERNEL(void, imprint_depthwise_backward_input,
       (const imprint_window *w, const float *dy, const float *weight, float *dx),
       (w, dy, weight, dx)) {
    CHOOSE(w, backward_input_tiles, backward_input_plain, dy, weight, dx)
}

// Backward, weight -------------------------------------------------------------------------------------------------

// Adds the products of a tile of dy and its windows in x to `sums`, for the vectors of channels first ..< end. Outside the output, dy
// counts as 0.
INLINE void backward_weight_tile(const imprint_window *w, const float *x, const float *dy, size_t first, size_t end,
                                 vec *sums, int32_t oy, int32_t ox, int32_t kernel, int32_t stride, int at_edge) {
    const int32_t rows = tile_rows(kernel);
    ptrdiff_t channels = w->channels, x_row = w->width * channels, y_row = w->output_width * channels;
    int32_t iy = oy * stride - w->padding_top, ix = ox * stride - w->padding_left;
    const float *in = x + iy * x_row + ix * channels, *out = dy + oy * y_row + ox * channels;
    const float *next = in + (rows * stride + kernel - stride) * x_row + (kernel - stride) * channels;
    int large = is_large(w);
    uint32_t rows_in = bits_inside(iy, w->height), columns_in = bits_inside(ix, w->width);
    for (size_t v = first; v < end; v++, sums += kernel * kernel) {
        if (at_edge) {
            KEPT(rows_in);
            KEPT(columns_in);
        }
        size_t c = vec_start(v, channels);
        vec products[max_taps], outs[max_rows][tile_columns];
        UNROLL for (int32_t t = 0; t < kernel * kernel; t++) products[t] = sums[t];
        UNROLL for (int32_t r = 0; r < rows; r++)
            UNROLL for (int32_t p = 0; p < tile_columns; p++)
                outs[r][p] = at_edge && (oy + r >= w->output_height || ox + p >= w->output_width)
                    ? (vec)0 : VEC(out + r * y_row + p * channels + c);
        if (large && begins_line(c)) {
            prefetch(next + c, rows * stride, tile_columns * stride, x_row, channels);
            prefetch(out + rows * y_row + c, rows, tile_columns, y_row, channels);
        }
        UNROLL for (int32_t i = 0; i < (rows - 1) * stride + kernel; i++) {
            if (at_edge && (OUTSIDE(rows_in, i, iy, w->height))) continue;
            UNROLL for (int32_t j = 0; j < (tile_columns - 1) * stride + kernel; j++) {
                if (at_edge && (OUTSIDE(columns_in, j, ix, w->width))) continue;
                vec value = VEC(in + i * x_row + j * channels + c);
                UNROLL for (int32_t r = 0; r < rows; r++)
                    UNROLL for (int32_t p = 0; p < tile_columns; p++) {
                        int32_t ky = i - r * stride, kx = j - p * stride;
                        if (ky >= 0 && ky < kernel && kx >= 0 && kx < kernel)
                            products[ky * kernel + kx] += value * outs[r][p];
                    }
            }
        }
        UNROLL for (int32_t t = 0; t < kernel * kernel; t++) sums[t] = products[t];
    }
}

INLINE void backward_weight_tiles(const imprint_window *w, const float *x, const float *dy, float *dweight,
                                  int32_t kernel, int32_t stride) {
    WITH_COPY_ON_ARM64(imprint_window, w)
    const int32_t rows = tile_rows(kernel), taps = kernel * kernel;
    size_t channels = w->channels, all = vec_count(channels);
    for (size_t first = 0; first < all; first += group) {
        size_t end = all < first + group ? all : first + group;
        vec sums[group * max_taps] __attribute__((aligned(64)));
        memset(sums, 0, group * taps * sizeof(vec));
        for (int32_t oy = 0; oy < w->output_height; oy += rows)
            for (int32_t ox = 0; ox < w->output_width; ox += tile_columns)
                if (is_whole(w, oy, ox, kernel, stride))
                    backward_weight_tile(w, x, dy, first, end, sums, oy, ox, kernel, stride, 0);
                else backward_weight_tile(w, x, dy, first, end, sums, oy, ox, kernel, stride, 1);
        for (size_t v = first; v < end; v++)
            for (int32_t t = 0; t < taps; t++) {
                // Skips channels that overlap with the previous vector.
                size_t c = vec_start(v, channels);
                for (size_t lane = v * lanes - c; lane < lanes; lane++)
                    dweight[t * channels + c + lane] += sums[(v - first) * taps + t][lane];
            }
    }
}

INLINE void backward_weight_plain(const imprint_window *w, const float *x, const float *dy, float *dweight) {
    size_t channels = w->channels;
    FOR_EACH_OUTPUT(w)
    const float *out = dy + OUTPUT_OFFSET(w);
    FOR_EACH_TAP {
        const float *in = x + INPUT_OFFSET(w);
        float *tap = dweight + TAP(w) * channels;
        for (size_t c = 0; c < channels; c++) tap[c] += in[c] * out[c];
    }
    END_FOR_EACH_OUTPUT
}

KERNEL(void, imprint_depthwise_backward_weight,
       (const imprint_window *w, const float *x, const float *dy, float *dweight),
       (w, x, dy, dweight)) {
    CHOOSE(w, backward_weight_tiles, backward_weight_plain, x, dy, dweight)
}
