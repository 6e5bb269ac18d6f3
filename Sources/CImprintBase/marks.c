#include "imprint_base.h"

// Embeds the model in the program, so there is no resource folder to deploy. #embed is a C23 feature that clang also supports in older C.
#pragma clang diagnostic ignored "-Wc23-extensions"
static const unsigned char model[] = {
#embed "marks.imprint"
};

const unsigned char *imprint_base_model(size_t *count) {
    *count = sizeof model;
    return model;
}
