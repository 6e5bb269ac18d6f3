#include "imprint_share.h"

#ifdef IMPRINT_SHARE

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

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
        "/usr/local/lib/libqrencode.4.dylib"};
    void *file = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !file; i++) file = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!file) return;
    void *encode = dlsym(file, "QRcode_encodeString8bit"), *release = dlsym(file, "QRcode_free");
    if (!encode || !release) return;
    memcpy(&library.encode, &encode, sizeof encode);
    memcpy(&library.free, &release, sizeof release);
    is_loaded = 1;
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
