#if !__has_include(<cblas.h>)
#error "cblas.h is missing. Install it with: apt-get install libopenblas-dev (Debian, Ubuntu)"
#endif
#include <cblas.h>
