// Counts calls of malloc and similar functions in the whole process, if the C library is glibc.

#ifndef ALLOCATION_COUNTER_H
#define ALLOCATION_COUNTER_H

#include <stdint.h>

// Returns the number of allocations since the process began; -1 if calls cannot be counted.
int64_t allocation_count(void);

#endif
