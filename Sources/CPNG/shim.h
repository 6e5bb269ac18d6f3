#if !__has_include(<png.h>)
#error "png.h is missing. Install it with: apt-get install libpng-dev (Debian, Ubuntu) or brew install libpng (macOS)"
#endif
#include <png.h>
// libpng stands on zlib, whose headers come with its own; colour profiles in a PNG are compressed.
#include <zlib.h>
