#ifndef IMPRINT_BASE_H
#define IMPRINT_BASE_H

#include <stddef.h>

/// Returns the bytes of marks.imprint, and stores their number in `count`.
const unsigned char *imprint_base_model(size_t *count);

/// Returns the bytes of logos.imprint, and stores their number in `count`.
const unsigned char *imprint_logo_features(size_t *count);

#endif
