#include "imprint_base.h"

// The file becomes part of the program: there is no folder of resources that could be left behind. #embed is of C23, and clang has it
// for older C too.
#pragma clang diagnostic ignored "-Wc23-extensions"
static const unsigned char marks[] = {
#embed "marks.imprint"
};

const unsigned char *imprint_base_marks(size_t *count) {
    *count = sizeof marks;
    return marks;
}
