#include "dynamic_library.h"

#include <dlfcn.h>
#include <string.h>

int imprint_load_library(const char *const *names, const imprint_symbol *symbols) {
    void *file = NULL;
    for (; *names && !file; names++) file = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
    if (!file) return 0;
    for (; symbols->name; symbols++) {
        void *address = dlsym(file, symbols->name);
        if (!address) return 0;
        // C does not allow the conversion of a data pointer to a function pointer.
        memcpy(symbols->pointer, &address, sizeof address);
    }
    return 1;
}
