#include "reduce.h"

#include <stdlib.h>
#include <string.h>

size_t imprint_reduction_scratch(const imprint_reduction *reduction, int is_in_any_order) {
    size_t rows = is_in_any_order ? reduction->reduced_height : 1;
    return rows * reduction->reduced_width * reduction->channels * sizeof(uint64_t)
        + reduction->width * sizeof(uint32_t);
}

int imprint_box_sums_begin(
    imprint_box_sums *boxes, const imprint_reduction *size, int is_weighted, int is_in_any_order, uint8_t *samples) {
    size_t rows = is_in_any_order ? size->reduced_height : 1;
    boxes->size = *size;
    boxes->is_weighted = is_weighted;
    boxes->is_in_any_order = is_in_any_order;
    boxes->samples = samples;
    boxes->columns = malloc(size->width * sizeof(uint32_t));
    boxes->sums = calloc(rows * size->reduced_width * size->channels, sizeof(uint64_t));
    if (!boxes->columns || !boxes->sums) return 0;
    for (uint32_t x = 0; x < size->width; x++)
        boxes->columns[x] = (uint32_t)((uint64_t)x * size->reduced_width / size->width) * size->channels;
    return 1;
}

/// Returns the first pixel of the box at `index`.
static uint64_t box_start(uint64_t index, uint64_t length, uint64_t reduced) {
    return (index * length + reduced - 1) / reduced;
}

/// Writes the means of the row of boxes at `row`.
static void write_means(imprint_box_sums *boxes, const uint64_t *sums, uint32_t row) {
    const imprint_reduction *size = &boxes->size;
    uint32_t channels = size->channels;
    uint64_t height =
        box_start(row + 1, size->height, size->reduced_height) - box_start(row, size->height, size->reduced_height);
    uint8_t *target = boxes->samples + (size_t)row * size->reduced_width * channels;
    for (uint32_t column = 0; column < size->reduced_width; column++, sums += channels, target += channels) {
        uint64_t width = box_start(column + 1, size->width, size->reduced_width)
            - box_start(column, size->width, size->reduced_width);
        uint64_t count = width * height;
        uint32_t plain = boxes->is_weighted ? 0 : channels;
        for (uint32_t channel = 0; channel < plain; channel++)
            target[channel] = (uint8_t)((sums[channel] + count / 2) / count);
        if (!boxes->is_weighted) continue;
        uint64_t alpha = sums[3];
        for (uint32_t channel = 0; channel < 3; channel++)
            target[channel] = alpha ? (uint8_t)((sums[channel] + alpha / 2) / alpha) : 0;
        target[3] = (uint8_t)((alpha + count / 2) / count);
    }
}

void imprint_box_sums_add(
    imprint_box_sums *boxes, const uint8_t *pixels, uint32_t y, uint32_t first, uint32_t step, uint32_t count) {
    const imprint_reduction *size = &boxes->size;
    uint32_t row = (uint32_t)((uint64_t)y * size->reduced_height / size->height);
    size_t row_length = (size_t)size->reduced_width * size->channels;
    uint64_t *sums = boxes->sums + (boxes->is_in_any_order ? row * row_length : 0);
    const uint32_t *columns = boxes->columns + first;
    if (size->channels == 3) {
        for (uint32_t i = 0; i < count; i++, pixels += 3, columns += step) {
            uint64_t *sum = sums + *columns;
            sum[0] += pixels[0];
            sum[1] += pixels[1];
            sum[2] += pixels[2];
        }
    } else {
        for (uint32_t i = 0; i < count; i++, pixels += 4, columns += step) {
            uint64_t *sum = sums + *columns;
            uint32_t weight = boxes->is_weighted ? pixels[3] : 1;
            sum[0] += pixels[0] * weight;
            sum[1] += pixels[1] * weight;
            sum[2] += pixels[2] * weight;
            sum[3] += pixels[3];
        }
    }
    if (boxes->is_in_any_order) return;
    if (y + 1 == box_start(row + 1, size->height, size->reduced_height)) {
        write_means(boxes, sums, row);
        memset(sums, 0, row_length * sizeof(uint64_t));
    }
}

void imprint_box_sums_finish(imprint_box_sums *boxes) {
    size_t row_length = (size_t)boxes->size.reduced_width * boxes->size.channels;
    for (uint32_t row = 0; row < boxes->size.reduced_height; row++)
        write_means(boxes, boxes->sums + row * row_length, row);
}

void imprint_box_sums_end(imprint_box_sums *boxes) {
    free(boxes->columns);
    free(boxes->sums);
}

imprint_decoding_status imprint_reduce(
    const uint8_t *rows, size_t stride, const imprint_reduction *reduction, int is_weighted, uint8_t *samples) {
    imprint_box_sums boxes;
    int has_memory = imprint_box_sums_begin(&boxes, reduction, is_weighted, 0, samples);
    if (has_memory)
        for (uint32_t y = 0; y < reduction->height; y++)
            imprint_box_sums_add(&boxes, rows + y * stride, y, 0, 1, reduction->width);
    imprint_box_sums_end(&boxes);
    return has_memory ? IMPRINT_DECODED : IMPRINT_OUT_OF_MEMORY;
}
