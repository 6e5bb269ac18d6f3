#ifndef HEAP_METER_H
#define HEAP_METER_H

#include <stdint.h>

/// Starts to count the allocations of this thread.
void heap_meter_start(void);

/// Stops counting.
/// - Returns: The peak number of bytes allocated since `heap_meter_start`, or -1 if the C library is not glibc or a sanitizer
///   manages the heap.
int64_t heap_meter_stop(void);

#endif
