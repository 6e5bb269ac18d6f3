#ifndef IMPRINT_BASE_H
#define IMPRINT_BASE_H

#include <stddef.h>

/// The bytes of marks.imprint, as they are in the file, and how many there are.
const unsigned char *imprint_base_marks(size_t *count);

#endif
