#include "imprint_kernels.h"

#include "dispatch.h"

enum { pixels_at_once = 16 };

KERNEL(void, imprint_normalize_samples,
       (const uint8_t *samples, float *values, size_t pixels, size_t channels, const float *mean, const float *scale),
       (samples, values, pixels, channels, mean, scale)) {
    // The same numbers for every pixel of a stretch, so that a vector may begin with any channel.
    float means[3 * pixels_at_once], scales[3 * pixels_at_once];
    for (size_t i = 0; i < pixels_at_once * channels; i++) {
        means[i] = mean[i % channels];
        scales[i] = scale[i % channels];
    }
    size_t count = pixels * channels, stretch = pixels_at_once * channels, first = 0;
    for (; first + stretch <= count; first += stretch)
        for (size_t i = 0; i < stretch; i++) values[first + i] = (samples[first + i] - means[i]) * scales[i];
    for (size_t i = 0; first + i < count; i++) values[first + i] = (samples[first + i] - means[i]) * scales[i];
}
