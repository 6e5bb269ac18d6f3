#include "heap_meter.h"

#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif

#if defined(__GLIBC__) && !defined(HAS_SANITIZER)

// A program's own malloc takes the place of the library's, for the program and every library it loads.

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static __thread bool counts;
static __thread int64_t now, most;

static void *took(void *block) {
    if (counts && block) {
        now += (int64_t)malloc_usable_size(block);
        if (now > most) most = now;
    }
    return block;
}

static void gives(void *block) {
    if (counts && block) now -= (int64_t)malloc_usable_size(block);
}

void *malloc(size_t size) { return took(__libc_malloc(size)); }
void *calloc(size_t number, size_t size) { return took(__libc_calloc(number, size)); }
void *memalign(size_t alignment, size_t size) { return took(__libc_memalign(alignment, size)); }
void *aligned_alloc(size_t alignment, size_t size) { return took(__libc_memalign(alignment, size)); }

int posix_memalign(void **block, size_t alignment, size_t size) {
    *block = took(__libc_memalign(alignment, size));
    return *block ? 0 : ENOMEM;
}

void *realloc(void *block, size_t size) {
    int64_t before = counts && block ? (int64_t)malloc_usable_size(block) : 0;
    void *moved = __libc_realloc(block, size);
    if (moved || size == 0) now -= before;
    return took(moved);
}

void free(void *block) {
    gives(block);
    __libc_free(block);
}

void heap_meter_start(void) {
    now = most = 0;
    counts = true;
}

int64_t heap_meter_stop(void) {
    counts = false;
    return most;
}

#else

void heap_meter_start(void) {}
int64_t heap_meter_stop(void) { return -1; }

#endif
