#include "imprint_base.h"

// Embeds the model in the program, like marks.c.
#pragma clang diagnostic ignored "-Wc23-extensions"
static const unsigned char model[] = {
#embed "logos.imprint"
};

const unsigned char *imprint_logo_features(size_t *count) {
    *count = sizeof model;
    return model;
}
