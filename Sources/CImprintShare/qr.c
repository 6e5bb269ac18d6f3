#include "imprint_share.h"

#ifdef IMPRINT_SHARE

#include "dynamic_library.h"

#include <pthread.h>

// libqrencode is loaded when a code is drawn. The declarations below are those of the stable ABI of libqrencode 4 (qrencode.h).

typedef struct {
    int version, width;
    unsigned char *modules;
} qr_code;

static struct {
    qr_code *(*encode)(const char *text, int version, int level);
    void (*free)(qr_code *code);
} library;
static int is_loaded;
static pthread_once_t loading = PTHREAD_ONCE_INIT;

static void load(void) {
    static const char *const names[] = {
        "libqrencode.so.4", "libqrencode.4.dylib", "/opt/homebrew/lib/libqrencode.4.dylib",
        "/usr/local/lib/libqrencode.4.dylib", NULL};
    const imprint_symbol symbols[] = {
        {&library.encode, "QRcode_encodeString8bit"}, {&library.free, "QRcode_free"}, {NULL, NULL}};
    is_loaded = imprint_load_library(names, symbols);
}

int imprint_encode_qr(const char *text, uint8_t *modules) {
    pthread_once(&loading, load);
    if (!is_loaded) return 0;
    int smallest_version = 0, lowest_level = 0;
    qr_code *code = library.encode(text, smallest_version, lowest_level);
    if (!code) return 0;
    int side = code->width <= IMPRINT_QR_MAXIMUM_SIDE ? code->width : 0;
    // The other bits of a module describe its function.
    for (int i = 0; i < side * side; i++) modules[i] = code->modules[i] & 1;
    library.free(code);
    return side;
}

#else

int imprint_encode_qr(const char *text, uint8_t *modules) { return 0; }

#endif
