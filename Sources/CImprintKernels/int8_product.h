// Code shared by the int8 products of all instruction sets: the operands, the loop over windows, and the output of sums.

#ifndef IMPRINT_INT8_PRODUCT_H
#define IMPRINT_INT8_PRODUCT_H

#include "int8.h"

typedef struct {
    const imprint_int8_windows *windows;
    // The panel, its number of columns (a multiple of 16), the column in the panel, and the same column in the output.
    const int8_t *panel;
    size_t width, column, channel;
    size_t channels;
    const imprint_int8_output *to;
} product;

// The rows of a tile.
enum { most_rows = ON_ARM64(4, 6) };

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

// Calls tile(p, rows, pixel, number of rows, argument) for all windows, up to most_rows at a time.
#define FOR_EACH_TILE(p, first, count, tile, argument)                                             \
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
            case 1: tile(p, rows, pixel, 1, argument); break;                                      \
            case 2: tile(p, rows, pixel, 2, argument); break;                                      \
            case 3: tile(p, rows, pixel, 3, argument); break;                                      \
            case 4: tile(p, rows, pixel, 4, argument); break;                                      \
            case 5: if (most_rows > 4) tile(p, rows, pixel, 5, argument); break;                   \
            default: if (most_rows > 4) tile(p, rows, pixel, 6, argument);                         \
            }                                                                                      \
            pixel += found;                                                                        \
        }                                                                                          \
    }

#if defined(__aarch64__)
// The product with the instructions of NEON, and with SDOT if the CPU has it.
void imprint_int8_product_neon(product *p, size_t first, size_t count) __attribute__((visibility("hidden")));
#endif

#endif
