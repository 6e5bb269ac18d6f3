#include "imprint_kernels.h"

#include "dispatch.h"

enum { pixels_at_once = 16 };

KERNEL(void, imprint_normalize_samples,
       (const uint8_t *samples, float *values, size_t pixels, size_t channels, const float *mean, const float *scale),
       (samples, values, pixels, channels, mean, scale)) {
    // Mean and scale repeated for each pixel of a block, so vectors may begin at any channel.
    float means[3 * pixels_at_once], scales[3 * pixels_at_once];
    for (size_t i = 0; i < pixels_at_once * channels; i++) {
        means[i] = mean[i % channels];
        scales[i] = scale[i % channels];
    }
    size_t count = pixels * channels, block = pixels_at_once * channels, first = 0;
    for (; first + block <= count; first += block)
        for (size_t i = 0; i < block; i++) values[first + i] = (samples[first + i] - means[i]) * scales[i];
    for (size_t i = 0; first + i < count; i++) values[first + i] = (samples[first + i] - means[i]) * scales[i];
}
