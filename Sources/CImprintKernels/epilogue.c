#include "imprint_kernels.h"

#include "dispatch.h"

// One loop per combination of operands, so the inner loops have no branches.
#define EPILOGUE(sum)                                                        \
    for (size_t r = 0; r < rows; r++, y += channels, shortcut += step)       \
        for (size_t c = 0; c < channels; c++) {                              \
            float v = (sum);                                                 \
            v = v < floor ? floor : v;                                       \
            y[c] = v > ceiling ? ceiling : v;                                \
        }

KERNEL(void, imprint_epilogue,
       (float *y, const float *bias, const float *shortcut, float floor, float ceiling, size_t rows, size_t channels),
       (y, bias, shortcut, floor, ceiling, rows, channels)) {
    size_t step = shortcut ? channels : 0;
    if (bias && shortcut) EPILOGUE(y[c] + bias[c] + shortcut[c])
    else if (bias) EPILOGUE(y[c] + bias[c])
    else if (shortcut) EPILOGUE(y[c] + shortcut[c])
    else EPILOGUE(y[c])
}
