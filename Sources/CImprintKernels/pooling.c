#include "window.h"

CLONES void imprint_max_pool_forward(const imprint_window *w, const float *x, float *y, uint8_t *choice) {
    size_t channels = w->channels;
    FOR_EACH_OUTPUT(w)
    float *out = y + OUTPUT_OFFSET(w);
    uint8_t *chosen = choice ? choice + OUTPUT_OFFSET(w) : 0;
    int first = 1;
    FOR_EACH_TAP {
        const float *in = x + INPUT_OFFSET(w);
        uint8_t tap = (uint8_t)TAP(w);
        if (first) {
            memcpy(out, in, channels * sizeof(float));
            if (chosen) memset(chosen, tap, channels);
        } else if (chosen) {
            for (size_t c = 0; c < channels; c++) {
                int larger = in[c] > out[c];
                out[c] = larger ? in[c] : out[c];
                chosen[c] = larger ? tap : chosen[c];
            }
        } else {
            for (size_t c = 0; c < channels; c++) out[c] = in[c] > out[c] ? in[c] : out[c];
        }
        first = 0;
    }
    END_FOR_EACH_OUTPUT
}

CLONES void imprint_max_pool_backward(const imprint_window *w, const float *dy, const uint8_t *choice, float *dx) {
    size_t channels = w->channels;
    memset(dx, 0, input_count(w) * sizeof(float));
    FOR_EACH_OUTPUT(w)
    const float *out = dy + OUTPUT_OFFSET(w);
    const uint8_t *chosen = choice + OUTPUT_OFFSET(w);
    FOR_EACH_TAP {
        float *in = dx + INPUT_OFFSET(w);
        uint8_t tap = (uint8_t)TAP(w);
        for (size_t c = 0; c < channels; c++) in[c] += chosen[c] == tap ? out[c] : 0;
    }
    END_FOR_EACH_OUTPUT
}

// One over the number of pixels that an average was taken over.
static inline float share(const imprint_window *w, int32_t rows, int32_t columns, int counts_padding) {
    return 1.0f / (counts_padding ? w->kernel_height * w->kernel_width : rows * columns);
}

CLONES void imprint_average_pool_forward(const imprint_window *w, const float *x, float *y, int counts_padding) {
    size_t channels = w->channels;
    FOR_EACH_OUTPUT(w)
    float *out = y + OUTPUT_OFFSET(w);
    float factor = share(w, ky1 - ky0, kx1 - kx0, counts_padding);
    memset(out, 0, channels * sizeof(float));
    FOR_EACH_TAP {
        const float *in = x + INPUT_OFFSET(w);
        for (size_t c = 0; c < channels; c++) out[c] += in[c];
    }
    for (size_t c = 0; c < channels; c++) out[c] *= factor;
    END_FOR_EACH_OUTPUT
}

CLONES void imprint_average_pool_backward(const imprint_window *w, const float *dy, float *dx, int counts_padding) {
    size_t channels = w->channels;
    memset(dx, 0, input_count(w) * sizeof(float));
    FOR_EACH_OUTPUT(w)
    const float *out = dy + OUTPUT_OFFSET(w);
    float factor = share(w, ky1 - ky0, kx1 - kx0, counts_padding);
    FOR_EACH_TAP {
        float *in = dx + INPUT_OFFSET(w);
        for (size_t c = 0; c < channels; c++) in[c] += factor * out[c];
    }
    END_FOR_EACH_OUTPUT
}
