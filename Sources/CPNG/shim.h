#if !__has_include(<png.h>)
#error "png.h is missing. Install it with: apt-get install libpng-dev (Debian, Ubuntu)"
#endif
#include <png.h>
// libpng depends on zlib and installs its headers; color profiles in a PNG are compressed.
#include <zlib.h>
