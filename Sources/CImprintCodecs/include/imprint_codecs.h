#ifndef IMPRINT_CODECS_H
#define IMPRINT_CODECS_H

#include <stddef.h>
#include <stdint.h>

/// The sizes of an image and of its reduced version, which must not be larger along either axis.
typedef struct {
    uint32_t width, height;
    /// 3 (red, green, blue), or 4 with alpha.
    uint32_t channels;
    uint32_t reduced_width, reduced_height;
} imprint_reduction;

/// The result of decoding.
typedef enum {
    IMPRINT_DECODED = 0,
    IMPRINT_DAMAGED = 1,
    IMPRINT_OUT_OF_MEMORY = 2,
} imprint_decoding_status;

/// Decodes a PNG of any depth and colour type to 8-bit samples of the reduced size, row by row.
///
/// - message: receives the decoder's null-terminated error message if the file is damaged.
imprint_decoding_status imprint_decode_png_reduced(
    const uint8_t *bytes, size_t count, const imprint_reduction *reduction, uint8_t *samples, char message[128]);

/// Reduces an image in memory whose rows are `stride` bytes apart.
///
/// - is_weighted: whether to weight colours by alpha; 0 for premultiplied alpha.
imprint_decoding_status imprint_reduce(
    const uint8_t *rows, size_t stride, const imprint_reduction *reduction, int is_weighted, uint8_t *samples);

/// The bytes of memory that a reduction needs besides its result: for one row of the result, or for all rows if image rows arrive in any
/// order.
size_t imprint_reduction_scratch(const imprint_reduction *reduction, int is_in_any_order);

/// A drawing as an image: 8-bit samples of red, green, blue and alpha, row by row.
typedef struct {
    uint32_t width, height;
    /// Memory that the caller frees.
    uint8_t *samples;
} imprint_svg_image;

/// The result of rendering a drawing.
typedef enum {
    IMPRINT_SVG_RENDERED = 0,
    IMPRINT_SVG_DAMAGED = 1,
    IMPRINT_SVG_OUT_OF_MEMORY = 2,
    /// librsvg 2.52 or newer is not installed, or the build leaves out the trait SVG.
    IMPRINT_SVG_MISSING_LIBRARY = 3,
} imprint_svg_status;

/// Returns whether drawings can be rendered; loads librsvg.
int imprint_can_render_svg(void);

/// Renders an SVG drawing whose longer side has the given length in pixels. An empty drawing becomes one transparent pixel.
///
/// - message: receives the null-terminated error message of librsvg.
imprint_svg_status imprint_render_svg(
    const uint8_t *bytes, size_t count, uint32_t longer_side, imprint_svg_image *image, char message[256]);

#endif
