#include "imprint_codecs.h"

#ifdef IMPRINT_SVG

#if !__has_include(<librsvg/rsvg.h>)
#error "librsvg/rsvg.h is missing. Install it with: apt-get install librsvg2-dev (Debian, Ubuntu) or brew install librsvg (macOS), or build without the trait SVG"
#endif
#include <librsvg/rsvg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/// Copies a message of librsvg or of cairo, and returns 0.
static int fail(char message[128], const char *reason) {
    strncpy(message, reason ? reason : "", 127);
    message[127] = 0;
    return 0;
}

/// Finds the size of a drawing in units of its own: its width and height in pixels, or else those of its view box.
static int find_size(RsvgHandle *handle, double *width, double *height) {
    if (rsvg_handle_get_intrinsic_size_in_pixels(handle, width, height) && *width > 0 && *height > 0) return 1;
    gboolean has_width, has_height, has_view_box;
    RsvgLength w, h;
    RsvgRectangle box;
    rsvg_handle_get_intrinsic_dimensions(handle, &has_width, &w, &has_height, &h, &has_view_box, &box);
    *width = box.width;
    *height = box.height;
    if (has_view_box && box.width > 0 && box.height > 0) return 1;
    // A drawing without any size reaches as far as what it draws. Browsers use a viewport of this size.
    RsvgRectangle viewport = {0, 0, 300, 150}, ink;
    if (!rsvg_handle_get_geometry_for_layer(handle, NULL, &viewport, &ink, NULL, NULL)) return 0;
    *width = ink.x + ink.width;
    *height = ink.y + ink.height;
    return 1;
}

int imprint_render_svg(
    const uint8_t *bytes, size_t count, uint32_t longer_side, imprint_svg_image *image, char message[128]) {
    message[0] = 0;
    image->samples = NULL;
    GError *error = NULL;
    // Without a base URI, librsvg loads no other files.
    RsvgHandle *handle = rsvg_handle_new_from_data(bytes, count, &error);
    if (!handle) {
        fail(message, error ? error->message : NULL);
        g_clear_error(&error);
        return 0;
    }
    double width, height;
    if (!find_size(handle, &width, &height) || !isfinite(width) || !isfinite(height) || width <= 0 || height <= 0) {
        g_object_unref(handle);
        return fail(message, "it has no size");
    }
    double scale = longer_side / fmax(width, height);
    image->width = (uint32_t)fmax(round(width * scale), 1);
    image->height = (uint32_t)fmax(round(height * scale), 1);
    cairo_surface_t *surface = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, image->width, image->height);
    cairo_t *context = cairo_create(surface);
    // A drawing without a view box is not scaled to its viewport, so the viewport has the drawing's own size.
    RsvgRectangle viewport = {0, 0, width, height};
    cairo_scale(context, image->width / width, image->height / height);
    int succeeds = cairo_status(context) == CAIRO_STATUS_SUCCESS
        && rsvg_handle_render_document(handle, context, &viewport, &error);
    if (!succeeds) fail(message, error ? error->message : cairo_status_to_string(cairo_status(context)));
    g_clear_error(&error);
    cairo_destroy(context);
    cairo_surface_flush(surface);
    if (succeeds) image->samples = malloc((size_t)image->width * image->height * 4);
    if (image->samples) {
        const uint8_t *source = cairo_image_surface_get_data(surface);
        int stride = cairo_image_surface_get_stride(surface);
        for (uint32_t y = 0; y < image->height; y++)
            for (uint32_t x = 0; x < image->width; x++) {
                uint32_t pixel;
                memcpy(&pixel, source + (size_t)y * stride + 4 * x, 4);
                uint8_t *sample = image->samples + 4 * ((size_t)y * image->width + x);
                uint32_t alpha = pixel >> 24;
                // The colours of cairo are multiplied by alpha.
                for (int channel = 0; channel < 3; channel++) {
                    uint32_t value = (pixel >> (16 - 8 * channel)) & 255;
                    sample[channel] = alpha ? (uint8_t)((value * 255 + alpha / 2) / alpha) : 0;
                }
                sample[3] = (uint8_t)alpha;
            }
    } else if (succeeds) {
        fail(message, "there is not enough memory");
    }
    cairo_surface_destroy(surface);
    g_object_unref(handle);
    return image->samples != NULL;
}

#endif
