#include "imprint_codecs.h"

#ifdef IMPRINT_SVG

#include "dynamic_library.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

// librsvg and its dependencies are loaded when the first drawing is rendered: linked to every program, they would take several
// megabytes of memory in each process. The declarations below match the stable ABI of librsvg 2 (rsvg.h), cairo and GLib.

typedef struct rsvg_handle rsvg_handle;
typedef struct {
    double x, y, width, height;
} rsvg_rectangle;
typedef struct {
    double length;
    int unit;
} rsvg_length;
typedef struct {
    uint32_t domain;
    int code;
    char *message;
} g_error;
typedef struct cairo cairo;
typedef struct cairo_surface cairo_surface;

static struct {
    rsvg_handle *(*new_from_data)(const uint8_t *bytes, size_t count, g_error **error);
    void (*get_intrinsic_dimensions)(
        rsvg_handle *handle, int *has_width, rsvg_length *width, int *has_height, rsvg_length *height, int *has_view_box,
        rsvg_rectangle *view_box);
    int (*get_intrinsic_size_in_pixels)(rsvg_handle *handle, double *width, double *height);
    int (*get_geometry_for_layer)(
        rsvg_handle *handle, const char *id, const rsvg_rectangle *viewport, rsvg_rectangle *ink,
        rsvg_rectangle *logical, g_error **error);
    int (*render_document)(rsvg_handle *handle, cairo *context, const rsvg_rectangle *viewport, g_error **error);
    cairo_surface *(*surface_create)(int format, int width, int height);
    void (*surface_flush)(cairo_surface *surface);
    uint8_t *(*surface_get_data)(cairo_surface *surface);
    int (*surface_get_stride)(cairo_surface *surface);
    int (*surface_status)(cairo_surface *surface);
    void (*surface_destroy)(cairo_surface *surface);
    cairo *(*context_create)(cairo_surface *surface);
    void (*context_scale)(cairo *context, double x, double y);
    void (*context_translate)(cairo *context, double x, double y);
    int (*context_status)(cairo *context);
    void (*context_destroy)(cairo *context);
    const char *(*status_to_string)(int status);
    void (*object_unref)(void *object);
    void (*clear_error)(g_error **error);
} library;
static int is_loaded;
static pthread_once_t loading = PTHREAD_ONCE_INIT;

static void load(void) {
    static const char *const names[] = {
        "librsvg-2.so.2", "librsvg-2.2.dylib", "/opt/homebrew/lib/librsvg-2.2.dylib",
        "/usr/local/lib/librsvg-2.2.dylib", NULL};
    // Some functions are in cairo and GLib, which librsvg depends on.
    const imprint_symbol symbols[] = {
        {&library.new_from_data, "rsvg_handle_new_from_data"},
        {&library.get_intrinsic_dimensions, "rsvg_handle_get_intrinsic_dimensions"},
        {&library.get_intrinsic_size_in_pixels, "rsvg_handle_get_intrinsic_size_in_pixels"},
        {&library.get_geometry_for_layer, "rsvg_handle_get_geometry_for_layer"},
        {&library.render_document, "rsvg_handle_render_document"},
        {&library.surface_create, "cairo_image_surface_create"},
        {&library.surface_flush, "cairo_surface_flush"},
        {&library.surface_get_data, "cairo_image_surface_get_data"},
        {&library.surface_get_stride, "cairo_image_surface_get_stride"},
        {&library.surface_status, "cairo_surface_status"},
        {&library.surface_destroy, "cairo_surface_destroy"},
        {&library.context_create, "cairo_create"},
        {&library.context_scale, "cairo_scale"},
        {&library.context_translate, "cairo_translate"},
        {&library.context_status, "cairo_status"},
        {&library.context_destroy, "cairo_destroy"},
        {&library.status_to_string, "cairo_status_to_string"},
        {&library.object_unref, "g_object_unref"},
        {&library.clear_error, "g_clear_error"},
        {NULL, NULL},
    };
    is_loaded = imprint_load_library(names, symbols);
}

int imprint_can_render_svg(void) {
    pthread_once(&loading, load);
    return is_loaded;
}

/// The viewport of a drawing, and the part of it to render, in its own units.
typedef struct {
    rsvg_rectangle viewport, visible;
} extent;

static int is_side(double side) { return side > 1e-6 && side < 1e9; }

/// Returns the width and height of a drawing; if it has none, of its view box or, without one, of its content.
static extent find_extent(rsvg_handle *handle) {
    extent result = {{0, 0, 0, 0}, {0, 0, 0, 0}};
    rsvg_rectangle *viewport = &result.viewport;
    if (!library.get_intrinsic_size_in_pixels(handle, &viewport->width, &viewport->height)
        || !is_side(viewport->width) || !is_side(viewport->height)) {
        int has_width, has_height, has_view_box;
        rsvg_length width, height;
        library.get_intrinsic_dimensions(
            handle, &has_width, &width, &has_height, &height, &has_view_box, viewport);
        if (!has_view_box) {
            // The viewport that browsers use for a drawing without a size.
            *viewport = (rsvg_rectangle){0, 0, 300, 150};
            library.get_geometry_for_layer(handle, NULL, viewport, &result.visible, NULL, NULL);
            return result;
        }
        // The viewport starts at 0, wherever the view box starts.
        viewport->x = viewport->y = 0;
    }
    result.visible = *viewport;
    return result;
}

/// Copies the pixels of a surface, whose colours are multiplied by alpha.
static void copy_pixels(cairo_surface *surface, imprint_svg_image *image) {
    const uint8_t *source = library.surface_get_data(surface);
    int stride = library.surface_get_stride(surface);
    for (uint32_t y = 0; y < image->height; y++)
        for (uint32_t x = 0; x < image->width; x++) {
            uint32_t pixel;
            memcpy(&pixel, source + (size_t)y * (size_t)stride + 4 * (size_t)x, 4);
            uint8_t *sample = image->samples + 4 * ((size_t)y * image->width + x);
            uint32_t alpha = pixel >> 24;
            for (int channel = 0; channel < 3; channel++) {
                uint32_t value = (pixel >> (16 - 8 * channel)) & 255;
                uint32_t color = alpha ? (value * 255 + alpha / 2) / alpha : 0;
                sample[channel] = (uint8_t)(color < 255 ? color : 255);
            }
            sample[3] = (uint8_t)alpha;
        }
}

/// Copies a message of librsvg or cairo.
static void copy_message(char message[256], const char *reason) {
    strncpy(message, reason ? reason : "", 255);
    message[255] = 0;
}

/// Renders the visible part of a drawing to a surface of the size of the image.
static imprint_svg_status render(
    rsvg_handle *handle, const extent *extent, cairo_surface *surface, imprint_svg_image *image, char message[256]) {
    cairo *context = library.context_create(surface);
    // A drawing without a view box is not scaled to its viewport, so the surface is scaled.
    library.context_scale(context, image->width / extent->visible.width, image->height / extent->visible.height);
    library.context_translate(context, -extent->visible.x, -extent->visible.y);
    g_error *error = NULL;
    int is_rendered = library.render_document(handle, context, &extent->viewport, &error);
    int status = library.context_status(context);
    if (status == 0) status = library.surface_status(surface);
    if (!is_rendered || status != 0) copy_message(message, error ? error->message : library.status_to_string(status));
    library.clear_error(&error);
    library.context_destroy(context);
    int is_out_of_memory = status == 1;
    if (is_out_of_memory) return IMPRINT_SVG_OUT_OF_MEMORY;
    if (!is_rendered || status != 0) return IMPRINT_SVG_DAMAGED;
    library.surface_flush(surface);
    copy_pixels(surface, image);
    return IMPRINT_SVG_RENDERED;
}

imprint_svg_status imprint_render_svg(
    const uint8_t *bytes, size_t count, uint32_t longer_side, imprint_svg_image *image, char message[256]) {
    message[0] = 0;
    *image = (imprint_svg_image){1, 1, NULL};
    if (!imprint_can_render_svg()) return IMPRINT_SVG_MISSING_LIBRARY;
    g_error *error = NULL;
    // Without a base URI, librsvg loads no other files.
    rsvg_handle *handle = library.new_from_data(bytes, count, &error);
    if (!handle) {
        copy_message(message, error ? error->message : NULL);
        library.clear_error(&error);
        return IMPRINT_SVG_DAMAGED;
    }
    extent extent = find_extent(handle);
    int is_empty = !is_side(extent.visible.width) || !is_side(extent.visible.height);
    if (!is_empty) {
        double scale = longer_side / fmax(extent.visible.width, extent.visible.height);
        image->width = (uint32_t)fmax(round(extent.visible.width * scale), 1);
        image->height = (uint32_t)fmax(round(extent.visible.height * scale), 1);
    }
    imprint_svg_status status = IMPRINT_SVG_RENDERED;
    image->samples = calloc((size_t)image->width * image->height, 4);
    if (!image->samples) {
        status = IMPRINT_SVG_OUT_OF_MEMORY;
    } else if (!is_empty) {
        int argb32 = 0;
        cairo_surface *surface = library.surface_create(argb32, (int)image->width, (int)image->height);
        status = render(handle, &extent, surface, image, message);
        library.surface_destroy(surface);
    }
    library.object_unref(handle);
    if (status != IMPRINT_SVG_RENDERED) {
        free(image->samples);
        image->samples = NULL;
    }
    return status;
}

#else

int imprint_can_render_svg(void) { return 0; }

imprint_svg_status imprint_render_svg(
    const uint8_t *bytes, size_t count, uint32_t longer_side, imprint_svg_image *image, char message[256]) {
    return IMPRINT_SVG_MISSING_LIBRARY;
}

#endif
