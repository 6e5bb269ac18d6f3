// Winograd's F(4x4, 3x3) (Lavin and Gray, "Fast algorithms for convolutional neural networks", 2016) with the points 0, 1, -1, 2, -2 and
// infinity. Each 2D transform applies a 1D transform to the columns and then to the rows, for one vector
// of channels at a time.

#define NEON_REGISTERS 1
#include "imprint_kernels.h"

#include "vectors.h"

// Hides the value of x from the optimizer. Otherwise the compiler hoists computations with x, such as 36 addresses or bit tests, out of the
// loop and spills them to the stack.
#define FORGET(x) __asm__("" : "+r"(x))

// In one dimension -------------------------------------------------------------------------------------------------

// v = B^T d.
INLINE void input_transform(const vec d[6], vec v[6]) {
    vec even = d[4] - 4 * d[2], odd = d[3] - 4 * d[1];
    vec even2 = d[4] - d[2], odd2 = d[3] - d[1];
    v[0] = even - (d[2] - 4 * d[0]);
    v[1] = even + odd;
    v[2] = even - odd;
    v[3] = even2 + 2 * odd2;
    v[4] = even2 - 2 * odd2;
    v[5] = (d[5] - d[3]) - 4 * odd2;
}

// y = A^T m.
INLINE void output_transform(const vec m[6], vec y[4]) {
    vec sum = m[1] + m[2], difference = m[1] - m[2];
    vec sum2 = m[3] + m[4], difference2 = m[3] - m[4];
    y[0] = (m[0] + sum) + sum2;
    y[1] = difference + 2 * difference2;
    y[2] = sum + 4 * sum2;
    y[3] = (difference + m[5]) + 8 * difference2;
}

// m = A y.
INLINE void output_gradient_transform(const vec y[4], vec m[6]) {
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
INLINE void weights_transform(const vec g[3], vec u[6]) {
    vec even = (-1.0f / 6) * (g[0] + g[2]), even2 = (1.0f / 24) * g[0] + (1.0f / 6) * g[2];
    u[0] = 0.25f * g[0];
    u[1] = even - (1.0f / 6) * g[1];
    u[2] = even + (1.0f / 6) * g[1];
    u[3] = even2 + (1.0f / 12) * g[1];
    u[4] = even2 - (1.0f / 12) * g[1];
    u[5] = g[2];
}

// g = G^T u.
INLINE void weights_gradient_transform(const vec u[6], vec g[3]) {
    vec sum = u[1] + u[2], sum2 = u[3] + u[4];
    g[0] = 0.25f * u[0] - (1.0f / 6) * sum + (1.0f / 24) * sum2;
    g[1] = (1.0f / 6) * (u[2] - u[1]) + (1.0f / 12) * (u[3] - u[4]);
    g[2] = (1.0f / 6) * (sum2 - sum) + u[5];
}

// In two dimensions ------------------------------------------------------------------------------------------------

// A square of vectors in memory, such as a tile of an image, the taps of a kernel or one element of the 36 matrices. `row` and `column` are
// strides in floats; `exists` has one bit per vector, row by row, set if the vector exists.
typedef struct {
    float *first;
    ptrdiff_t row, column;
    uint64_t exists;
} square;

#define ALL(size) ((1ull << (size) * (size)) - 1)

static inline square in_matrices(const float *first, size_t stride) {
    return (square){(float *)first, 6 * (ptrdiff_t)stride, (ptrdiff_t)stride, ALL(6)};
}

// The taps are `step` floats apart; a negative step rotates the kernel by 180 degrees.
static inline square in_kernel(const float *first_tap, ptrdiff_t step) {
    return (square){(float *)first_tap, 3 * step, step, ALL(3)};
}

// Computes rows begin ..< end of the 2D transform of a square of `size` to a square of `result_size`. Vectors that do not exist are read as
// 0 and not written.
INLINE void transform_rows(void (*transform)(const vec *, vec *), square from, int size, square to,
                           int result_size, int begin, int end) {
    vec x[6], y[6], columns[6][6];
    UNROLL for (int j = 0; j < size; j++) {
        UNROLL for (int i = 0; i < size; i++) {
            if (from.exists >> (size * i + j) & 1) x[i] = VEC(from.first + i * from.row + j * from.column);
            else x[i] = (vec)0;
        }
        transform(x, y);
        UNROLL for (int i = begin; i < end; i++) columns[i][j] = y[i];
    }
    float *row = to.first + begin * to.row;
    UNROLL for (int i = begin; i < end; i++) {
        transform(columns[i], y);
        UNROLL for (int j = 0; j < result_size; j++)
            if (to.exists >> (result_size * i + j) & 1) STORE(row + j * to.column, y[j]);
        row += to.row;
        FORGET(row);
    }
}

// Compiles a statement twice: without bit tests for squares that lie inside the image, and with bit tests for the others.
#define WHOLE_OR_PART(s, size, statement) \
    if ((s).exists == ALL(size)) {        \
        (s).exists = ALL(size);           \
        statement;                        \
    } else {                              \
        FORGET((s).exists);               \
        statement;                        \
    }

// Computes the transform in two halves, so that the values fit into the registers.
INLINE void input_halves(square d, square v) {
    transform_rows(input_transform, d, 6, v, 6, 0, 3);
    transform_rows(input_transform, d, 6, v, 6, 3, 6);
}

INLINE void input_square(square d, square v) { WHOLE_OR_PART(d, 6, input_halves(d, v)) }

INLINE void output_square(square m, square y) {
    WHOLE_OR_PART(y, 4, transform_rows(output_transform, m, 6, y, 4, 0, 4))
}

INLINE void output_gradient_square(square dy, square dm) {
    WHOLE_OR_PART(dy, 4, transform_rows(output_gradient_transform, dy, 4, dm, 6, 0, 6))
}

INLINE void weights_square(square g, square u) { transform_rows(weights_transform, g, 3, u, 6, 0, 6); }

INLINE void weights_gradient_square(square du, square dg) {
    transform_rows(weights_gradient_transform, du, 6, dg, 3, 0, 3);
}

static void copy_lanes(square from, square to, int size, size_t count) {
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++)
            if (from.exists & to.exists & 1ull << (size * i + j))
                memcpy(to.first + i * to.row + j * to.column, from.first + i * from.row + j * from.column,
                       count * sizeof(float));
}

// Transforms fewer channels than lanes, through buffers.
INLINE void transform_few(void (*transform)(square, square), square from, int size, square to, int result_size,
                          size_t channels) {
    float in[36][lanes] = {0}, out[36][lanes];
    square x = {in[0], size * lanes, lanes, ALL(size)}, y = {out[0], result_size * lanes, lanes, ALL(result_size)};
    copy_lanes(from, x, size, channels);
    transform(x, y);
    copy_lanes(y, to, result_size, channels);
}

// The first channel of the block of `lanes` channels for `next`; the last block overlaps the previous one. A smaller count has one block.
static inline size_t block_start(size_t next, size_t count) {
    return next + lanes <= count || count < lanes ? next : count - lanes;
}

// Transforms all channels in blocks of `lanes`; the last block may recompute some channels.
INLINE void transform_channels(void (*transform)(square, square), square from, int size, square to,
                               int result_size, size_t channels) {
    if (channels < lanes) {
        transform_few(transform, from, size, to, result_size, channels);
        return;
    }
    for (size_t next = 0; next < channels; next += lanes) {
        size_t c = block_start(next, channels);
        square x = from, y = to;
        x.first += c;
        y.first += c;
        transform(x, y);
    }
}

// Images -----------------------------------------------------------------------------------------------------------

// The squares of an image that are read or written, 4 pixels apart.
typedef struct {
    int32_t height, width, channels;
    int32_t top, left;  // of the first square
    int size;
} squares;

static inline squares windows(const imprint_tiles *t) {
    return (squares){t->height, t->width, t->channels, -t->padding_top, -t->padding_left, 6};
}

static inline squares output_tiles(const imprint_tiles *t) {
    return (squares){t->output_height, t->output_width, t->output_channels, 0, 0, 4};
}

// One bit for each pixel of first ..< first + size, set if it lies inside an axis of `limit` pixels.
static inline uint64_t inside(int32_t first, int32_t limit, int size) {
    int32_t begin = first < 0 ? -first : 0, end = limit - first < size ? limit - first : size;
    return begin < end ? (1ull << end) - (1ull << begin) : 0;
}

// Repeats the bits of a column for all columns of a square.
static inline uint64_t whole_rows(uint64_t column, int size) {
    uint64_t bits = 0;
    for (int i = 0; i < size; i++)
        if (column >> i & 1) bits |= ((1ull << size) - 1) << size * i;
    return bits;
}

// Repeats the bits of a row for all rows of a square.
static inline uint64_t whole_columns(uint64_t row, int size) { return row * (ALL(size) / ((1ull << size) - 1)); }

// Iterates over rows of tiles. The body can use `pixels`, the square of the image, and `matrices`, the tile's row in the matrices, whose rows
// have `panel` channels.
#define FOR_EACH_SQUARE(s, x, matrices, panel)                                                                     \
    ptrdiff_t pixel_size = (s).channels, row_size = (s).width * pixel_size;                                        \
    for (size_t r = first_row; r < first_row + rows; r++) {                                                        \
        const float *image = (x) + r / tiles->tile_rows * (s).height * row_size;                                   \
        int32_t iy = (s).top + (int32_t)(r % tiles->tile_rows) * 4;                                                \
        uint64_t rows_inside = whole_rows(inside(iy, (s).height, (s).size), (s).size);                             \
        for (int32_t column = 0; column < tiles->tile_columns; column++, (matrices) += (panel)) {                  \
            int32_t ix = (s).left + column * 4;                                                                    \
            square pixels = {(float *)image + iy * row_size + ix * pixel_size, row_size, pixel_size,               \
                             rows_inside & whole_columns(inside(ix, (s).width, (s).size), (s).size)};

#define END_FOR_EACH_SQUARE \
    }                       \
    }

KERNEL(void, imprint_winograd_input,
       (const imprint_tiles *tiles, const float *x, size_t first_row, size_t rows, float *v, size_t stride),
       (tiles, x, first_row, rows, v, stride)) {
    squares s = windows(tiles);
    FOR_EACH_SQUARE(s, x, v, s.channels)
    transform_channels(input_square, pixels, 6, in_matrices(v, stride), 6, s.channels);
    END_FOR_EACH_SQUARE
}

KERNEL(void, imprint_winograd_output,
       (const imprint_tiles *tiles, const float *m, size_t stride, size_t first_channel, size_t panel, size_t first_row,
        size_t rows, float *y),
       (tiles, m, stride, first_channel, panel, first_row, rows, y)) {
    squares s = output_tiles(tiles);
    FOR_EACH_SQUARE(s, y + first_channel, m, panel)
    transform_channels(output_square, in_matrices(m, stride), 6, pixels, 4, panel);
    END_FOR_EACH_SQUARE
}

KERNEL(void, imprint_winograd_output_gradient,
       (const imprint_tiles *tiles, const float *dy, size_t first_row, size_t rows, float *dm, size_t stride),
       (tiles, dy, first_row, rows, dm, stride)) {
    squares s = output_tiles(tiles);
    FOR_EACH_SQUARE(s, dy, dm, s.channels)
    transform_channels(output_gradient_square, pixels, 4, in_matrices(dm, stride), 6, s.channels);
    END_FOR_EACH_SQUARE
}

// Weights ----------------------------------------------------------------------------------------------------------

KERNEL(void, imprint_winograd_weights,
       (const float *w, const float *factor, size_t inputs, size_t outputs, size_t first_output, size_t panel, float *u,
        size_t stride),
       (w, factor, inputs, outputs, first_output, panel, u, stride)) {
    enum { widest = 64 };
    float taps[9][widest];
    for (size_t i = 0; i < inputs; i++) {
        const float *row = w + i * outputs + first_output;
        if (!factor) {
            square g = in_kernel(row, (ptrdiff_t)(inputs * outputs));
            transform_channels(weights_square, g, 3, in_matrices(u + i * panel, stride), 6, panel);
            continue;
        }
        for (size_t first = 0; first < panel; first += widest) {
            size_t count = panel - first < widest ? panel - first : widest;
            for (size_t k = 0; k < 9; k++)
                for (size_t o = 0; o < count; o++)
                    taps[k][o] = factor[first_output + first + o] * row[k * inputs * outputs + first + o];
            square transformed = in_matrices(u + i * panel + first, stride);
            transform_channels(weights_square, in_kernel(taps[0], widest), 3, transformed, 6, count);
        }
    }
}

KERNEL(void, imprint_winograd_weights_gradient,
       (const float *du, size_t stride, size_t inputs, size_t outputs, size_t first_output, size_t panel, float *dw),
       (du, stride, inputs, outputs, first_output, panel, dw)) {
    for (size_t i = 0; i < inputs; i++) {
        square dg = in_kernel(dw + i * outputs + first_output, (ptrdiff_t)(inputs * outputs));
        transform_channels(weights_gradient_square, in_matrices(du + i * panel, stride), 6, dg, 3, panel);
    }
}

// taps[k][o][i] = w[k][i][o] for a block of `lanes` inputs and outputs; `row` and `tap` are the strides of i and k.
INLINE void transpose_taps(const float *w, size_t row, size_t tap, float taps[9][lanes][lanes]) {
    for (int k = 0; k < 9; k++, w += tap) {
        vec block[lanes];
        UNROLL for (int i = 0; i < lanes; i++) block[i] = VEC(w + i * row);
        TRANSPOSE(block)
        UNROLL for (int o = 0; o < lanes; o++) STORE(taps[k][o], block[o]);
    }
}

// The same for a smaller block.
static void transpose_few_taps(const float *w, size_t row, size_t tap, size_t inputs, size_t outputs,
                               float taps[9][lanes][lanes]) {
    for (int k = 0; k < 9; k++, w += tap)
        for (size_t o = 0; o < outputs; o++)
            for (size_t i = 0; i < inputs; i++) taps[k][o][i] = w[i * row + o];
}

KERNEL(void, imprint_winograd_rotated_weights,
       (const float *w, size_t inputs, size_t outputs, size_t first_input, size_t panel, float *u, size_t stride),
       (w, inputs, outputs, first_input, panel, u, stride)) {
    float taps[9][lanes][lanes];
    size_t rows = panel < lanes ? panel : lanes, columns = outputs < lanes ? outputs : lanes;
    for (size_t next_o = 0; next_o < outputs; next_o += lanes)
        for (size_t next_i = 0; next_i < panel; next_i += lanes) {
            size_t o = block_start(next_o, outputs), i = block_start(next_i, panel);
            const float *block = w + (first_input + i) * outputs + o;
            if (rows == lanes && columns == lanes) transpose_taps(block, outputs, inputs * outputs, taps);
            else transpose_few_taps(block, outputs, inputs * outputs, rows, columns, taps);
            for (size_t k = 0; k < columns; k++) {
                square g = in_kernel(taps[8][k], -lanes * lanes);
                square transformed = in_matrices(u + (o + k) * panel + i, stride);
                if (rows == lanes) weights_square(g, transformed);
                else transform_few(weights_square, g, 3, transformed, 6, rows);
            }
        }
}
