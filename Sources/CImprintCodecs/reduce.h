#ifndef IMPRINT_REDUCE_H
#define IMPRINT_REDUCE_H

#include "imprint_codecs.h"

/// The sums of a box filter that reduces an image.
///
/// Box column i contains the image columns x with x * reduced_width / width = i (integer division), and rows likewise, so the boxes
/// cover each pixel once.
typedef struct {
    imprint_reduction size;
    int is_weighted;
    int is_in_any_order;
    /// The offset in `sums` of each image column: the index of its box times the number of channels.
    uint32_t *columns;
    /// The sums of one row of boxes, or of all rows of boxes if image rows arrive in any order.
    uint64_t *sums;
    uint8_t *samples;
} imprint_box_sums;

/// Starts a reduction; returns 0 if out of memory.
int imprint_box_sums_begin(
    imprint_box_sums *boxes, const imprint_reduction *size, int is_weighted, int is_in_any_order, uint8_t *samples);

/// Adds `count` pixels of row y, in columns first, first + step and so on.
void imprint_box_sums_add(
    imprint_box_sums *boxes, const uint8_t *pixels, uint32_t y, uint32_t first, uint32_t step, uint32_t count);

/// Writes the means if rows arrived in any order.
void imprint_box_sums_finish(imprint_box_sums *boxes);

/// Frees the memory, also after `imprint_box_sums_begin` failed.
void imprint_box_sums_end(imprint_box_sums *boxes);

#endif
