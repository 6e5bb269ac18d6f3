#if !__has_include(<curl/curl.h>)
#error "curl/curl.h is missing. Install it with: apt-get install libcurl4-openssl-dev (Debian, Ubuntu)"
#endif
#include <curl/curl.h>
