#ifndef IMPRINT_REDUCE_H
#define IMPRINT_REDUCE_H

#include "imprint_codecs.h"

/// The sums of the boxes of a reduction.
///
/// The box of column i has the columns x with x * reduced_width / width = i, and rows alike, so that the boxes cover each pixel once.
typedef struct {
    imprint_reduction size;
    int is_weighted;
    int is_in_any_order;
    /// For each column of the picture, the index of its box times the number of channels.
    uint32_t *columns;
    /// The sums of one row of boxes, or of all of them if rows come in any order.
    uint64_t *sums;
    uint8_t *samples;
} imprint_box_sums;

/// Returns 0 if there is no memory.
int imprint_box_sums_begin(
    imprint_box_sums *boxes, const imprint_reduction *size, int is_weighted, int is_in_any_order, uint8_t *samples);

/// Adds `count` pixels of row y, which are those of the columns first, first + step and so on.
void imprint_box_sums_add(
    imprint_box_sums *boxes, const uint8_t *pixels, uint32_t y, uint32_t first, uint32_t step, uint32_t count);

/// Writes the means of rows that came in any order.
void imprint_box_sums_finish(imprint_box_sums *boxes);

/// Gives the memory back; also after a failed begin.
void imprint_box_sums_end(imprint_box_sums *boxes);

#endif
