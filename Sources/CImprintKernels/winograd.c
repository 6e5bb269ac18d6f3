// Winograd's F(4x4,3x3) after Lavin & Gray, "Fast algorithms for convolutional neural networks" (2016), with the
// points 0, 1, -1, 2, -2 and infinity. Each transform in two dimensions is one in one dimension, over the rows and then
// over the columns, of 16 channels at a time.

#include "imprint_kernels.h"

#include <string.h>

#include "clones.h"

// The compiler takes x86-64-v4 for processors that slow down with 512 bits and halves such vectors unless told not to.
#define WIDE_CLONES CLONES __attribute__((min_vector_width(512)))
// What a clone calls must become a part of it, or it would be compiled for the default processor alone. Vectors are
// handed over by address because the convention for values depends on the processor.
#define PART_OF_CLONE static inline __attribute__((always_inline))

enum { LANES = 16 };
typedef float vec __attribute__((vector_size(64), aligned(4)));

PART_OF_CLONE void load(const float *p, size_t lanes, vec *x) {
    if (lanes == LANES) {
        *x = *(const vec *)p;
    } else {
        *x = (vec){0};
        memcpy(x, p, lanes * sizeof(float));
    }
}

PART_OF_CLONE void store(const vec *x, size_t lanes, float *p) {
    if (lanes == LANES) *(vec *)p = *x;
    else memcpy(p, x, lanes * sizeof(float));
}

// Walks over `channels` in blocks of 16 from `c` on; the last block begins early enough to be a whole one, so some
// channels are computed twice. Fewer than 16 channels are one block of fewer lanes.
#define FOR_EACH_BLOCK(c, channels)                       \
    for (size_t next = 0; next < (channels); next += LANES) { \
        size_t c = next + LANES <= (channels) ? next : (channels) < LANES ? 0 : (channels)-LANES;

#define END_FOR_EACH_BLOCK }

// In one dimension -------------------------------------------------------------------------------------------------

// v = B^T d.
PART_OF_CLONE void input_transform(const vec d[6], vec v[6]) {
    vec even = d[4] - 4 * d[2], odd = d[3] - 4 * d[1];
    vec even2 = d[4] - d[2], odd2 = d[3] - d[1];
    v[0] = 4 * d[0] + (d[4] - 5 * d[2]);
    v[1] = even + odd;
    v[2] = even - odd;
    v[3] = even2 + 2 * odd2;
    v[4] = even2 - 2 * odd2;
    v[5] = 4 * d[1] + (d[5] - 5 * d[3]);
}

// y = A^T m.
PART_OF_CLONE void output_transform(const vec m[6], vec y[4]) {
    vec sum = m[1] + m[2], difference = m[1] - m[2];
    vec sum2 = m[3] + m[4], difference2 = m[3] - m[4];
    y[0] = (m[0] + sum) + sum2;
    y[1] = difference + 2 * difference2;
    y[2] = sum + 4 * sum2;
    y[3] = (difference + m[5]) + 8 * difference2;
}

// m = A y.
PART_OF_CLONE void output_gradient_transform(const vec y[4], vec m[6]) {
    vec even = y[0] + y[2], odd = y[1] + y[3];
    vec even2 = y[0] + 4 * y[2], odd2 = y[1] + 4 * y[3];
    m[0] = y[0];
    m[1] = even + odd;
    m[2] = even - odd;
    m[3] = even2 + 2 * odd2;
    m[4] = even2 - 2 * odd2;
    m[5] = y[3];
}

// u = G g.
PART_OF_CLONE void weights_transform(const vec g[3], vec u[6]) {
    vec even = (-1.0f / 6) * (g[0] + g[2]), even2 = (1.0f / 24) * g[0] + (1.0f / 6) * g[2];
    u[0] = 0.25f * g[0];
    u[1] = even - (1.0f / 6) * g[1];
    u[2] = even + (1.0f / 6) * g[1];
    u[3] = even2 + (1.0f / 12) * g[1];
    u[4] = even2 - (1.0f / 12) * g[1];
    u[5] = g[2];
}

// g = G^T u.
PART_OF_CLONE void weights_gradient_transform(const vec u[6], vec g[3]) {
    vec sum = u[1] + u[2], sum2 = u[3] + u[4];
    g[0] = 0.25f * u[0] - (1.0f / 6) * sum + (1.0f / 24) * sum2;
    g[1] = (1.0f / 6) * (u[2] - u[1]) + (1.0f / 12) * (u[3] - u[4]);
    g[2] = (1.0f / 6) * (sum2 - sum) + u[5];
}

// Images -----------------------------------------------------------------------------------------------------------

// The window of one tile: its six rows, each with the distance from pixel to pixel, and its columns from `column` on.
typedef struct {
    const float *rows[6];
    size_t steps[6];
    int32_t column, width;
} window;

// What lies above and below the image: a row of one pixel that is stepped over by 0.
static const float nothing[LANES];

// Three of the six rows of B^T d B: halves, because their values fit into the registers.
PART_OF_CLONE void input_half(const window *w, size_t c, size_t lanes, int half, float *v, size_t stride) {
    vec d[6], r[6], t[3][6];
#pragma clang loop unroll(full)
    for (int32_t j = 0; j < 6; j++) {
        int32_t ix = w->column + j;
        if (ix >= 0 && ix < w->width) {
#pragma clang loop unroll(full)
            for (int i = 0; i < 6; i++)
                load(w->rows[i] + (w->steps[i] ? ix * w->steps[i] + c : 0), lanes, &d[i]);
            input_transform(d, r);
            for (int i = 0; i < 3; i++) t[i][j] = r[3 * half + i];
        } else {
            for (int i = 0; i < 3; i++) t[i][j] = (vec){0};
        }
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < 3; i++) {
        input_transform(t[i], r);
#pragma clang loop unroll(full)
        for (int j = 0; j < 6; j++) store(&r[j], lanes, v + (6 * (3 * half + i) + j) * stride + c);
    }
}

PART_OF_CLONE void input_block(const window *w, size_t c, size_t lanes, float *v, size_t stride) {
    input_half(w, c, lanes, 0, v, stride);
    input_half(w, c, lanes, 1, v, stride);
}

WIDE_CLONES void imprint_winograd_input(const imprint_tiles *tiles, const float *x, size_t first_row, size_t rows,
                                        float *v, size_t stride) {
    size_t channels = tiles->channels, row_size = tiles->width * channels;
    for (size_t r = first_row; r < first_row + rows; r++) {
        const float *image = x + r / tiles->tile_rows * tiles->height * row_size;
        int32_t first = (int32_t)(r % tiles->tile_rows) * 4 - tiles->padding_top;
        window w = {.width = tiles->width};
        for (int32_t i = 0; i < 6; i++) {
            int inside = first + i >= 0 && first + i < tiles->height;
            w.rows[i] = inside ? image + (first + i) * row_size : nothing;
            w.steps[i] = inside ? channels : 0;
        }
        for (int32_t column = 0; column < tiles->tile_columns; column++, v += channels) {
            w.column = column * 4 - tiles->padding_left;
            FOR_EACH_BLOCK(c, channels)
            if (channels < LANES) input_block(&w, c, channels, v, stride);
            else input_block(&w, c, LANES, v, stride);
            END_FOR_EACH_BLOCK
        }
    }
}

// The part of a tile of the output that lies inside the image, as a pointer to its first pixel.
#define FOR_EACH_OUTPUT_TILE(tiles, y)                                                                             \
    size_t output_channels = (tiles)->output_channels, row_size = (tiles)->output_width * output_channels;         \
    for (size_t r = first_row; r < first_row + rows; r++) {                                                        \
        int32_t oy = (int32_t)(r % (tiles)->tile_rows) * 4;                                                        \
        int32_t height = (tiles)->output_height - oy < 4 ? (tiles)->output_height - oy : 4;                        \
        for (int32_t ox = 0; ox < (tiles)->tile_columns * 4; ox += 4) {                                            \
            int32_t width = (tiles)->output_width - ox < 4 ? (tiles)->output_width - ox : 4;                       \
            size_t pixel = (r / (tiles)->tile_rows * (tiles)->output_height + oy) * (tiles)->output_width + ox;    \
            size_t origin = pixel * output_channels;

#define END_FOR_EACH_OUTPUT_TILE \
    }                            \
    }

PART_OF_CLONE void output_block(const float *m, size_t stride, size_t lanes, int32_t height, int32_t width, float *y,
                                size_t row_size, size_t channels) {
    vec d[6], r[4], t[4][6];
#pragma clang loop unroll(full)
    for (int i = 0; i < 6; i++) {
#pragma clang loop unroll(full)
        for (int j = 0; j < 6; j++) load(m + (6 * i + j) * stride, lanes, &d[j]);
        output_transform(d, r);
        for (int j = 0; j < 4; j++) t[j][i] = r[j];
    }
#pragma clang loop unroll(full)
    for (int j = 0; j < 4; j++) {
        output_transform(t[j], r);
#pragma clang loop unroll(full)
        for (int i = 0; i < 4; i++)
            if (i < height && j < width) store(&r[i], lanes, y + i * row_size + j * channels);
    }
}

WIDE_CLONES void imprint_winograd_output(const imprint_tiles *tiles, const float *m, size_t stride,
                                         size_t first_channel, size_t panel, size_t first_row, size_t rows,
                                         float *y) {
    FOR_EACH_OUTPUT_TILE(tiles, y)
    FOR_EACH_BLOCK(c, panel)
    float *tile = y + origin + first_channel + c;
    if (panel < LANES) output_block(m + c, stride, panel, height, width, tile, row_size, output_channels);
    else if (height < 4 || width < 4) output_block(m + c, stride, LANES, height, width, tile, row_size, output_channels);
    else output_block(m + c, stride, LANES, 4, 4, tile, row_size, output_channels);
    END_FOR_EACH_BLOCK
    m += panel;
    END_FOR_EACH_OUTPUT_TILE
}

PART_OF_CLONE void output_gradient_block(const float *dy, size_t row_size, size_t channels, int32_t height,
                                         int32_t width, size_t lanes, float *dm, size_t stride) {
    vec d[4], r[6], t[6][4];
#pragma clang loop unroll(full)
    for (int j = 0; j < 4; j++) {
#pragma clang loop unroll(full)
        for (int i = 0; i < 4; i++) {
            if (i < height && j < width) load(dy + i * row_size + j * channels, lanes, &d[i]);
            else d[i] = (vec){0};
        }
        output_gradient_transform(d, r);
        for (int i = 0; i < 6; i++) t[i][j] = r[i];
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < 6; i++) {
        output_gradient_transform(t[i], r);
#pragma clang loop unroll(full)
        for (int j = 0; j < 6; j++) store(&r[j], lanes, dm + (6 * i + j) * stride);
    }
}

WIDE_CLONES void imprint_winograd_output_gradient(const imprint_tiles *tiles, const float *dy, size_t first_row,
                                                  size_t rows, float *dm, size_t stride) {
    FOR_EACH_OUTPUT_TILE(tiles, dy)
    FOR_EACH_BLOCK(c, output_channels)
    const float *tile = dy + origin + c;
    if (output_channels < LANES)
        output_gradient_block(tile, row_size, output_channels, height, width, output_channels, dm + c, stride);
    else if (height < 4 || width < 4)
        output_gradient_block(tile, row_size, output_channels, height, width, LANES, dm + c, stride);
    else output_gradient_block(tile, row_size, output_channels, 4, 4, LANES, dm + c, stride);
    END_FOR_EACH_BLOCK
    dm += output_channels;
    END_FOR_EACH_OUTPUT_TILE
}

// Weights ----------------------------------------------------------------------------------------------------------

// u = G g G^T of a kernel whose taps are `step` apart, which is negative for a kernel turned by 180 degrees.
PART_OF_CLONE void weights_block(const float *g, ptrdiff_t step, size_t lanes, float *u, size_t stride) {
    vec d[3], r[6], t[6][3];
#pragma clang loop unroll(full)
    for (int q = 0; q < 3; q++) {
#pragma clang loop unroll(full)
        for (int p = 0; p < 3; p++) load(g + (3 * p + q) * step, lanes, &d[p]);
        weights_transform(d, r);
        for (int i = 0; i < 6; i++) t[i][q] = r[i];
    }
#pragma clang loop unroll(full)
    for (int i = 0; i < 6; i++) {
        weights_transform(t[i], r);
#pragma clang loop unroll(full)
        for (int j = 0; j < 6; j++) store(&r[j], lanes, u + (6 * i + j) * stride);
    }
}

WIDE_CLONES void imprint_winograd_weights(const float *w, size_t inputs, size_t outputs, size_t first_output,
                                          size_t panel, float *u, size_t stride) {
    ptrdiff_t step = (ptrdiff_t)(inputs * outputs);
    for (size_t i = 0; i < inputs; i++) {
        const float *row = w + i * outputs + first_output;
        FOR_EACH_BLOCK(o, panel)
        if (panel < LANES) weights_block(row + o, step, panel, u + i * panel + o, stride);
        else weights_block(row + o, step, LANES, u + i * panel + o, stride);
        END_FOR_EACH_BLOCK
    }
}

// Transposes a block of 16 x 16: four rounds, each of which deals the lanes of rows r and r + 8 out in turn.
PART_OF_CLONE void transpose(vec block[LANES]) {
#pragma clang loop unroll(full)
    for (int round = 0; round < 4; round++) {
        vec dealt[LANES];
#pragma clang loop unroll(full)
        for (int r = 0; r < LANES / 2; r++) {
            vec a = block[r], b = block[r + LANES / 2];
            dealt[2 * r] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            dealt[2 * r + 1] =
                __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        }
#pragma clang loop unroll(full)
        for (int r = 0; r < LANES; r++) block[r] = dealt[r];
    }
}

PART_OF_CLONE void turned_weights_block(const float *w, size_t inputs, size_t outputs, size_t rows, size_t lanes,
                                        float *u, size_t panel, size_t stride) {
    float taps[9][LANES][LANES];
    for (int tap = 0; tap < 9; tap++) {
        vec block[LANES];
#pragma clang loop unroll(full)
        for (size_t i = 0; i < LANES; i++) {
            if (i < rows) load(w + (tap * inputs + i) * outputs, lanes, &block[i]);
            else block[i] = (vec){0};
        }
        transpose(block);
#pragma clang loop unroll(full)
        for (int o = 0; o < LANES; o++) store(&block[o], LANES, taps[tap][o]);
    }
    for (size_t o = 0; o < lanes; o++)
        weights_block(taps[8][o], -LANES * LANES, rows, u + o * panel, stride);
}

WIDE_CLONES void imprint_winograd_turned_weights(const float *w, size_t inputs, size_t outputs, size_t first_input,
                                                 size_t panel, float *u, size_t stride) {
    for (size_t o0 = 0; o0 < outputs; o0 += LANES) {
        size_t o = o0 + LANES <= outputs ? o0 : outputs < LANES ? 0 : outputs - LANES;
        FOR_EACH_BLOCK(i, panel)
        const float *block = w + (first_input + i) * outputs + o;
        float *out = u + o * panel + i;
        if (panel < LANES || outputs < LANES)
            turned_weights_block(block, inputs, outputs, panel < LANES ? panel : LANES,
                                 outputs < LANES ? outputs : LANES, out, panel, stride);
        else turned_weights_block(block, inputs, outputs, LANES, LANES, out, panel, stride);
        END_FOR_EACH_BLOCK
    }
}

PART_OF_CLONE void weights_gradient_block(const float *du, size_t stride, size_t lanes, float *dw, size_t step) {
    vec d[6], r[3], t[3][6];
#pragma clang loop unroll(full)
    for (int i = 0; i < 6; i++) {
#pragma clang loop unroll(full)
        for (int j = 0; j < 6; j++) load(du + (6 * i + j) * stride, lanes, &d[j]);
        weights_gradient_transform(d, r);
        for (int q = 0; q < 3; q++) t[q][i] = r[q];
    }
#pragma clang loop unroll(full)
    for (int q = 0; q < 3; q++) {
        weights_gradient_transform(t[q], r);
#pragma clang loop unroll(full)
        for (int p = 0; p < 3; p++) store(&r[p], lanes, dw + (3 * p + q) * step);
    }
}

WIDE_CLONES void imprint_winograd_weights_gradient(const float *du, size_t stride, size_t inputs, size_t outputs,
                                                   size_t first_output, size_t panel, float *dw) {
    for (size_t i = 0; i < inputs; i++) {
        float *row = dw + i * outputs + first_output;
        FOR_EACH_BLOCK(o, panel)
        if (panel < LANES) weights_gradient_block(du + i * panel + o, stride, panel, row + o, inputs * outputs);
        else weights_gradient_block(du + i * panel + o, stride, LANES, row + o, inputs * outputs);
        END_FOR_EACH_BLOCK
    }
}
