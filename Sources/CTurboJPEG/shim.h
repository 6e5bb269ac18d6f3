#if !__has_include(<turbojpeg.h>)
#error "turbojpeg.h is missing. Install it with: apt-get install libturbojpeg0-dev (Debian, Ubuntu)"
#endif
#include <turbojpeg.h>
