#if !__has_include(<webp/decode.h>)
#error "webp/decode.h is missing. Install it with: apt-get install libwebp-dev (Debian, Ubuntu)"
#endif
#include <webp/decode.h>
