// Counts calls of malloc and its kin in the whole process, where the C library is glibc.

#ifndef ALLOCATION_COUNTER_H
#define ALLOCATION_COUNTER_H

#include <stdint.h>

// How many blocks were asked for since the process began; -1 where calls cannot be counted.
int64_t allocation_count(void);

#endif
