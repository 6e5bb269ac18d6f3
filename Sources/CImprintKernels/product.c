// The product of a matrix and a packed panel, for the 32 registers of AVX-512 or NEON. Sums stay in registers over the whole inner axis, and
// bias and clamp are applied before they are stored.

#define NEON_REGISTERS 1
#include "imprint_kernels.h"

#include "vectors.h"

#include "panels.h"

typedef struct {
    const float *x;
    size_t x_stride;
    const float *panel;
    size_t inner, columns;
    float *y;
    size_t y_stride, rows;
    const imprint_bias_clamp *bias_clamp;
} product;

// The number of elements of a row of x that are read at once. An instruction of NEON can multiply by an element of a register; other
// instruction sets read each element into all lanes of a register.
enum { elements = ON_ARM64(4, 1) };

// Computes `rows` rows and `vectors` vectors of y.
INLINE void tile(const product *p, size_t row, size_t column, const int rows, const int vectors) {
    const float *x = p->x + row * p->x_stride, *w = p->panel + column;
    vec sums[8][4];
    UNROLL for (int r = 0; r < rows; r++)
        UNROLL for (int v = 0; v < vectors; v++) sums[r][v] = (vec)0;
    size_t i = 0;
    if (elements > 1)
        for (; i + elements <= p->inner; i += elements) {
            vec values[8];
            UNROLL for (int r = 0; r < rows; r++) values[r] = VEC(x + r * p->x_stride + i);
            UNROLL for (int e = 0; e < elements; e++, w += p->columns)
                UNROLL for (int v = 0; v < vectors; v++) {
                    vec weights = VEC(w + v * lanes);
                    UNROLL for (int r = 0; r < rows; r++) sums[r][v] += values[r][e] * weights;
                }
        }
    for (; i < p->inner; i++, w += p->columns) {
        vec weights[4];
        UNROLL for (int v = 0; v < vectors; v++) weights[v] = VEC(w + v * lanes);
        UNROLL for (int r = 0; r < rows; r++) {
            vec value = (vec)x[r * p->x_stride + i];
            UNROLL for (int v = 0; v < vectors; v++) sums[r][v] += value * weights[v];
        }
    }
    STORE_SUMS
}

// The number of rows of a tile with `vectors` vectors.
#define ROWS(vectors) ON_ARM64((vectors) > 2 ? 6 : 8, (vectors) > 3 ? 6 : 8)

STRIP(product, tile, )

KERNEL(void, imprint_multiply_panel,
       (const float *x, size_t x_stride, const float *panel, size_t inner, size_t columns, float *y, size_t y_stride,
        size_t rows, const imprint_bias_clamp *bias_clamp),
       (x, x_stride, panel, inner, columns, y, y_stride, rows, bias_clamp)) {
    if (columns < lanes) __builtin_trap();
    product p = {x, x_stride, panel, inner, columns, y, y_stride, rows, bias_clamp};
    FOR_EACH_STRIP(&p, tile_strip, ROWS)
}
