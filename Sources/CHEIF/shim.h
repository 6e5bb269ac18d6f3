#if !__has_include(<libheif/heif.h>)
#error "libheif/heif.h is missing. Install it with: apt-get install libheif-dev (Debian, Ubuntu), or build without HEIC: swift build --traits SVG"
#endif
#include <libheif/heif.h>
