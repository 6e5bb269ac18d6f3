// Int8 operations: activations are uint8 with a scale and a zero point per channel, weights int8 with a scale per output channel. All CPUs
// compute the same bits.

#ifndef IMPRINT_INT8_OPERATIONS_H
#define IMPRINT_INT8_OPERATIONS_H

#include <stddef.h>
#include <stdint.h>

// Whether products of int8 numbers use the instructions of AVX512-VNNI.
int imprint_kernels_use_vnni(void);
// Whether products of int8 numbers are not slower than those of floats: with AVX2 or AVX-512, and with SDOT of arm64.
int imprint_kernels_int8_are_fast(void);

// The output of an int8 operation, [pixel][channel]: min(max(sum * factor + bias + shortcut * shortcut_factor, floor), ceiling), as float32 or
// rounded to uint8. The arrays have a value per channel, and room for a multiple of 64 channels.
typedef struct {
    const float *factors, *bias, *floor, *ceiling;
    // A tensor of the output's shape, or null.
    const uint8_t *shortcut;
    const float *shortcut_factors;
    // One of them is null.
    uint8_t *bytes;
    float *floats;
} imprint_int8_output;

// The windows of a convolution in an image that includes its padding: window p begins at x + p / width * row_step + p % width * column_step. At
// each of the offsets `taps`, tap_bytes (a multiple of 4) of it follow.
typedef struct {
    const uint8_t *x;
    size_t width;
    ptrdiff_t row_step, column_step;
    const int32_t *taps;
    size_t tap_count, tap_bytes;
} imprint_int8_windows;

// Computes the output of the windows first ..< first + count for up to 64 output channels: those of a panel that begins at first_channel.
void imprint_int8_product(const imprint_int8_windows *windows, size_t first, size_t count, const int8_t *panel,
                          size_t first_channel, size_t channels, const imprint_int8_output *output);
// Quantizes w[tap][input][output] * input_factors[input] / scales[output] to -127...127 and packs the output channels first ..< first + count
// into a panel, [(tap * padded_inputs + input) / 4][output][4]; the number of outputs is rounded up to a multiple of 16. corrections[output] =
// the sum of the weights, times the zero points of their inputs.
void imprint_pack_int8(const float *w, size_t taps, size_t inputs, size_t padded_inputs, size_t outputs,
                       const float *input_factors, const uint8_t *zero_points, const float *scales, size_t first,
                       size_t count, int8_t *panel, int32_t *corrections);

// A depthwise convolution over an image that includes its padding. Steps are in bytes: from window to window, and from tap to tap.
typedef struct {
    const uint8_t *x;
    const int8_t *weights;
    size_t channels;
    int32_t output_width;
    int32_t kernel_height, kernel_width, stride_height, stride_width, dilation_height, dilation_width;
    ptrdiff_t row_step, column_step, tap_row_step, tap_column_step;
    // Whether the output is uint8.
    int32_t is_uint8;
} imprint_int8_depthwise;

// Computes rows of the output. There is no shortcut; imprint_int8_depthwise_arrange must have arranged the arrays of the output.
void imprint_int8_depthwise_forward(const imprint_int8_depthwise *depthwise, size_t first_row, size_t rows,
                                    const imprint_int8_output *output);
// The size of the packed weights.
size_t imprint_int8_depthwise_bytes(const imprint_int8_depthwise *depthwise);
// imprint_pack_int8 for w[ky][kx][channel].
void imprint_int8_depthwise_pack(const imprint_int8_depthwise *depthwise, const float *w, const float *input_factors,
                                 const uint8_t *zero_points, const float *scales, int8_t *packed,
                                 int32_t *corrections);
// Arranges an array with a value per channel as the kernel reads it.
void imprint_int8_depthwise_arrange(const imprint_int8_depthwise *depthwise, float *values);

// y = x * factor + zero_point per channel, rounded to the nearest of 0...255, ties to even; 0 for NaN.
void imprint_quantize(const float *x, const float *factors, const float *zero_points, size_t pixels, size_t channels,
                      uint8_t *y);
// y = (x - zero_point) * scale per channel.
void imprint_dequantize(const uint8_t *x, const float *scales, const float *zero_points, size_t pixels, size_t channels,
                        float *y);
// imprint_quantize and imprint_dequantize in one; inside = 1 where x is in the range of 0...255, otherwise 0. y may be x.
void imprint_round_activation(const float *x, const float *factors, const float *scales, const float *zero_points,
                              size_t pixels, size_t channels, float *y, uint8_t *inside);

// minima[channel] and maxima[channel] = the smallest and largest of their values and those of x; NaN is ignored.
void imprint_channel_ranges(const float *x, size_t pixels, size_t channels, float *minima, float *maxima);

// The padding of an image, and the number of its channels after padding them with zeros. zero_points has padded_channels values.
typedef struct {
    size_t height, width, channels, padded_channels, top, left, right;
    const uint8_t *zero_points;
} imprint_uint8_padding;
// Copies rows of an image with its padding to y.
void imprint_pad_uint8(const uint8_t *x, const imprint_uint8_padding *padding, size_t first_row, size_t rows, uint8_t *y);

// y[channel] = the mean of all pixels, as float32.
void imprint_average_uint8(const uint8_t *x, const float *scales, const float *zero_points, size_t pixels, size_t channels,
                           float *y);

#endif
