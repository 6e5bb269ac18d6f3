// On Apple platforms, ImageIO reads PNG (ImprintImages).
#if !defined(__APPLE__)

#include "reduce.h"

#include <png.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

/// The state of a PNG decoder.
typedef struct {
    const uint8_t *bytes;
    size_t count, position;
    char *message;
    int is_out_of_memory;
    png_structp decoder;
    png_infop info;
    uint8_t *row;
    imprint_box_sums boxes;
} png_reading;

static void fail(png_structp decoder, png_const_charp message) {
    png_reading *reading = png_get_error_ptr(decoder);
    strncpy(reading->message, message, 127);
    reading->message[127] = 0;
    longjmp(png_jmpbuf(decoder), 1);
}

static void ignore(png_structp decoder, png_const_charp message) {}

static png_voidp allocate(png_structp decoder, png_alloc_size_t size) {
    png_reading *reading = png_get_mem_ptr(decoder);
    void *memory = malloc(size);
    if (!memory) reading->is_out_of_memory = 1;
    return memory;
}

static void release(png_structp decoder, png_voidp memory) { free(memory); }

static void read_bytes(png_structp decoder, png_bytep target, size_t count) {
    png_reading *reading = png_get_io_ptr(decoder);
    if (count > reading->count - reading->position) png_error(decoder, "the file is truncated");
    memcpy(target, reading->bytes + reading->position, count);
    reading->position += count;
}

/// Requests 8-bit RGB samples, with or without alpha depending on `channels`.
static void set_format(png_structp decoder, png_infop info, uint32_t channels) {
    png_byte type = png_get_color_type(decoder, info);
    int has_alpha = (type & PNG_COLOR_MASK_ALPHA) || png_get_valid(decoder, info, PNG_INFO_tRNS);
    png_set_expand(decoder);
    if (png_get_bit_depth(decoder, info) == 16) png_set_scale_16(decoder);
    if (!(type & PNG_COLOR_MASK_COLOR)) png_set_gray_to_rgb(decoder);
    if (channels == 4 && !has_alpha) png_set_add_alpha(decoder, 0xFF, PNG_FILLER_AFTER);
    if (channels == 3 && has_alpha) png_set_strip_alpha(decoder);
    png_read_update_info(decoder, info);
}

/// Reads all rows; leaves by longjmp if the file is damaged.
static void read_rows(png_reading *reading, const imprint_reduction *reduction, uint8_t *samples) {
    png_structp decoder = reading->decoder;
    png_read_info(decoder, reading->info);
    if (png_get_image_width(decoder, reading->info) != reduction->width
        || png_get_image_height(decoder, reading->info) != reduction->height)
        png_error(decoder, "the image size does not match the header");
    // Without png_set_interlace_handling, each pass of an interlaced image yields only its own pixels.
    int is_interlaced = png_get_interlace_type(decoder, reading->info) == PNG_INTERLACE_ADAM7;
    set_format(decoder, reading->info, reduction->channels);
    if (png_get_rowbytes(decoder, reading->info) != (size_t)reduction->width * reduction->channels)
        png_error(decoder, "the row length does not match the header");
    reading->row = malloc((size_t)reduction->width * reduction->channels);
    if (!reading->row
        || !imprint_box_sums_begin(&reading->boxes, reduction, reduction->channels == 4, is_interlaced, samples)) {
        reading->is_out_of_memory = 1;
        png_error(decoder, "out of memory");
    }
    if (!is_interlaced) {
        for (uint32_t y = 0; y < reduction->height; y++) {
            png_read_row(decoder, reading->row, NULL);
            imprint_box_sums_add(&reading->boxes, reading->row, y, 0, 1, reduction->width);
        }
        return;
    }
    for (int pass = 0; pass < 7; pass++) {
        uint32_t columns = PNG_PASS_COLS(reduction->width, pass), rows = PNG_PASS_ROWS(reduction->height, pass);
        if (columns == 0) continue;
        for (uint32_t row = 0; row < rows; row++) {
            png_read_row(decoder, reading->row, NULL);
            imprint_box_sums_add(
                &reading->boxes, reading->row, PNG_ROW_FROM_PASS_ROW(row, pass), PNG_PASS_START_COL(pass),
                PNG_PASS_COL_OFFSET(pass), columns);
        }
    }
    imprint_box_sums_finish(&reading->boxes);
}

imprint_decoding_status imprint_decode_png_reduced(
    const uint8_t *bytes, size_t count, const imprint_reduction *reduction, uint8_t *samples, char message[128]) {
    // Allocated on the heap, because longjmp could restore outdated values of fields that are in registers.
    png_reading *reading = calloc(1, sizeof(png_reading));
    if (!reading) return IMPRINT_OUT_OF_MEMORY;
    reading->bytes = bytes;
    reading->count = count;
    reading->message = message;
    reading->decoder =
        png_create_read_struct_2(PNG_LIBPNG_VER_STRING, reading, fail, ignore, reading, allocate, release);
    reading->info = reading->decoder ? png_create_info_struct(reading->decoder) : NULL;
    volatile imprint_decoding_status status = IMPRINT_DAMAGED;
    if (!reading->info) {
        reading->is_out_of_memory = 1;
    } else if (setjmp(png_jmpbuf(reading->decoder)) == 0) {
        png_set_read_fn(reading->decoder, reading, read_bytes);
        read_rows(reading, reduction, samples);
        status = IMPRINT_DECODED;
    }
    if (reading->is_out_of_memory) status = IMPRINT_OUT_OF_MEMORY;
    png_destroy_read_struct(&reading->decoder, &reading->info, NULL);
    imprint_box_sums_end(&reading->boxes);
    free(reading->row);
    free(reading);
    return status;
}

#endif
