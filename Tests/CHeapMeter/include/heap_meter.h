#ifndef HEAP_METER_H
#define HEAP_METER_H

#include <stdint.h>

/// Begins to count what this thread asks for and gives back.
void heap_meter_start(void);

/// Ends counting.
/// - Returns: the most bytes that were in use at once since `heap_meter_start`, beyond those at that time; -1 where nothing counts, because
///   the C library is another one or a sanitizer has the heap.
int64_t heap_meter_stop(void);

#endif
