// The loops of a product of a matrix and a packed panel, for any kind of numbers. Include it after vectors.h.

// Calls strip(p, column, vectors, rows) for all columns; the last vector overlaps the previous one, and recomputes some columns.
#define FOR_EACH_STRIP(p, strip, rows)                                                                \
    {                                                                                                 \
        size_t column = 0;                                                                            \
        for (; column + 4 * lanes <= (p)->columns; column += 4 * lanes) strip(p, column, 4, rows(4)); \
        switch (((p)->columns - column) / lanes) {                                                    \
        case 3: strip(p, column, 3, rows(3)); break;                                                  \
        case 2: strip(p, column, 2, rows(2)); break;                                                  \
        case 1: strip(p, column, 1, rows(1)); break;                                                  \
        }                                                                                             \
        if ((p)->columns % lanes) strip(p, (p)->columns - lanes, 1, rows(1));                         \
    }

#define REST(tile, n)                                        \
    case n:                                                  \
        if (n < most) tile(p, row, column, n, vectors);      \
        break;

// Defines tile_strip, which computes all rows of `vectors` vectors, `most` rows at a time, with tile(p, row, column, rows, vectors).
#define STRIP(type, tile, target)                                                                       \
    static inline __attribute__((always_inline)) target void tile##_strip(                              \
        const type *p, size_t column, const int vectors, const int most) {                              \
        size_t row = 0;                                                                                 \
        for (; row + (size_t)most <= p->rows; row += (size_t)most) tile(p, row, column, most, vectors); \
        switch (p->rows - row) {                                                                        \
            REST(tile, 1)                                                                               \
            REST(tile, 2)                                                                               \
            REST(tile, 3)                                                                               \
            REST(tile, 4)                                                                               \
            REST(tile, 5)                                                                               \
            REST(tile, 6)                                                                               \
            REST(tile, 7)                                                                               \
        }                                                                                               \
    }

// Adds the bias to the sums of a tile, clamps them, and stores them.
#define STORE_SUMS                                                                       \
    {                                                                                    \
        const imprint_bias_clamp *f = p->bias_clamp;                                     \
        UNROLL for (int v = 0; v < vectors; v++) {                                       \
            vec bias = f->bias ? VEC(f->bias + column + v * lanes) : (vec)0;             \
            UNROLL for (int r = 0; r < rows; r++) {                                      \
                vec sum = CLAMPED_TO(f->floor, f->ceiling, (vec)sums[r][v] + bias);      \
                STORE(p->y + (row + (size_t)r) * p->y_stride + column + v * lanes, sum); \
            }                                                                            \
        }                                                                                \
    }
