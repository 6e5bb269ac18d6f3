#if !__has_include(<lcms2.h>)
#error "lcms2.h is missing. Install it with: apt-get install liblcms2-dev (Debian, Ubuntu) or brew install little-cms2 (macOS)"
#endif
#include <lcms2.h>
