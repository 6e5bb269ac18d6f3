#include "imprint_kernels.h"

#include "dispatch.h"

KERNEL(void, imprint_add_noise,
       (uint8_t *samples, size_t count, uint64_t key, int32_t strength),
       (samples, count, key, strength)) {
    uint32_t low = (uint32_t)key, high = (uint32_t)(key >> 32);
    for (size_t i = 0; i < count; i++) {
        // Multiply-and-shift rounds hash the index and the key. The sum of the four bytes is approximately normal, with mean 510 and
        // standard deviation sqrt(4 (256^2 - 1) / 12) = 147.8.
        uint32_t hash = ((uint32_t)i + low) * 0x9e3779b1 ^ high;
        hash = (hash ^ hash >> 16) * 0x7feb352d;
        hash = (hash ^ hash >> 15) * 0x846ca68b;
        hash ^= hash >> 16;
        uint32_t pairs = (hash & 0x00ff00ff) + (hash >> 8 & 0x00ff00ff);
        int32_t noise = (int32_t)((pairs >> 16) + (pairs & 0xffff)) - 510;
        int32_t value = samples[i] + ((noise * strength + (1 << 15)) >> 16);
        value = value < 0 ? 0 : value;
        samples[i] = value > 255 ? 255 : value;
    }
}
