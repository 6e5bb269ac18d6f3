#if !__has_include(<lcms2.h>)
#error "lcms2.h is missing. Install it with: apt-get install liblcms2-dev (Debian, Ubuntu)"
#endif
#include <lcms2.h>
