#include "heap_meter.h"

#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif

#if defined(__GLIBC__) && !defined(HAS_SANITIZER)

// These definitions replace the malloc functions of glibc for the program and every library that it loads.

#include <errno.h>
#include <malloc.h>
#include <stdbool.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

static __thread bool is_metering;
static __thread int64_t current, peak;

static void *count_allocation(void *block) {
    if (is_metering && block) {
        current += (int64_t)malloc_usable_size(block);
        if (current > peak) peak = current;
    }
    return block;
}

static void count_free(void *block) {
    if (is_metering && block) current -= (int64_t)malloc_usable_size(block);
}

void *malloc(size_t size) { return count_allocation(__libc_malloc(size)); }
void *calloc(size_t number, size_t size) { return count_allocation(__libc_calloc(number, size)); }
void *memalign(size_t alignment, size_t size) { return count_allocation(__libc_memalign(alignment, size)); }
void *aligned_alloc(size_t alignment, size_t size) { return count_allocation(__libc_memalign(alignment, size)); }

int posix_memalign(void **block, size_t alignment, size_t size) {
    *block = count_allocation(__libc_memalign(alignment, size));
    return *block ? 0 : ENOMEM;
}

void *realloc(void *block, size_t size) {
    int64_t before = is_metering && block ? (int64_t)malloc_usable_size(block) : 0;
    void *moved = __libc_realloc(block, size);
    if (moved || size == 0) current -= before;
    return count_allocation(moved);
}

void free(void *block) {
    count_free(block);
    __libc_free(block);
}

void heap_meter_start(void) {
    current = peak = 0;
    is_metering = true;
}

int64_t heap_meter_stop(void) {
    is_metering = false;
    return peak;
}

#else

void heap_meter_start(void) {}
int64_t heap_meter_stop(void) { return -1; }

#endif
