// The hot loops of Imprint. Activations are NHWC float32, so every loop runs over channels and vectorises; no loop
// allocates, threads or decides anything. `rows` counts pixels (batch * height * width), `count` single numbers.
// Output buffers may alias input buffers only where a function says so.

#ifndef IMPRINT_KERNELS_H
#define IMPRINT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "imprint_elementwise.h"

// Processor --------------------------------------------------------------------------------------------------------

// Whether the loops below run in their AVX-512 form (F, VL, BW, DQ and CD, as servers have had since 2017).
int imprint_kernels_use_avx512(void);
// What the loops below run with: "AVX-512", "AVX2", "SSE2", "NEON" or "none".
const char *imprint_kernels_vector_instructions(void);
// Tells the processor that the thread only waits, for some tens of cycles, so that others get what it would use.
static inline void imprint_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

// Softmax ----------------------------------------------------------------------------------------------------------

// y[i] = exp(x[i] - largest) / sum over j of exp(x[j] - largest), for at least one number; all NaN where one is. y may
// be x.
void imprint_softmax_forward(const float *x, float *y, size_t count);
// dx[i] = y[i] * (dy[i] - sum over j of dy[j] * y[j]). dx may be dy.
void imprint_softmax_backward(const float *y, const float *dy, float *dx, size_t count);

typedef struct {
    size_t classes;         // at least one
    float label_smoothing;  // s, 0 <= s < 1
    const float *weights;   // w, a number at least 0 for each class, or null: all 1
    float factor;           // of the gradient
} imprint_cross_entropy;

// The loss of one image, sum over k of q[k] * w[k] * -log softmax(x)[k] with q[k] = (1 - s) * [k = label] + s / classes,
// where a weight of 0 times infinity counts as 0.
// dx = factor * the loss's gradient; it may be x, or null. correct = whether the label is the first place of the largest
// number of x.
double imprint_softmax_cross_entropy(const imprint_cross_entropy *t, const float *x, size_t label, float *dx,
                                     int *correct);

// Channels ---------------------------------------------------------------------------------------------------------

// y[r][c] = row[c] for every row.
void imprint_broadcast_row(const float *row, float *y, size_t rows, size_t channels);
// sums[c] = sum over r of x[r][c].
void imprint_channel_sums(const float *x, double *sums, size_t rows, size_t channels);

// y[r][c] = scale[c] * x[r][c] + shift[c]; one of the two may be null: then without it. y may be x.
void imprint_affine(const float *x, const float *scale, const float *shift, float *y, size_t rows, size_t channels);
// y[r][c] = x[r][c] where that is larger than 0, else slope[c] * x[r][c].
void imprint_prelu_forward(const float *x, const float *slope, float *y, size_t rows, size_t channels);
// dx[r][c] = dy[r][c] where x[r][c] > 0, else slope[c] * dy[r][c]. dx may be x.
void imprint_prelu_backward(const float *x, const float *dy, const float *slope, float *dx, size_t rows,
                            size_t channels);
// sums[c] = sum over r of x[r][c] * dy[r][c] where x[r][c] <= 0.
void imprint_prelu_slope_sums(const float *x, const float *dy, double *sums, size_t rows, size_t channels);

// y = (x - mean) / sqrt(variance + epsilon) * scale + shift, with mean and variance of each row. y may be x.
void imprint_layer_norm_forward(const float *x, const float *scale, const float *shift, float *y, size_t rows,
                                size_t channels, float epsilon);
// sums = over all rows the sums of dy * (x - mean) / sqrt(variance + epsilon), then those of dy: twice `channels`.
void imprint_layer_norm_sums(const float *x, const float *dy, double *sums, size_t rows, size_t channels,
                             float epsilon);
// dx of imprint_layer_norm_forward. dx may be x or dy.
void imprint_layer_norm_backward(const float *x, const float *dy, const float *scale, float *dx, size_t rows,
                                 size_t channels, float epsilon);
// y[r * y_stride + c] = x[r * x_stride + c].
void imprint_copy_columns(const float *x, size_t x_stride, float *y, size_t y_stride, size_t rows, size_t columns);
// y[r * y_stride + c] += x[r * x_stride + c].
void imprint_add_columns(const float *x, size_t x_stride, float *y, size_t y_stride, size_t rows, size_t columns);

// Broadcasting -----------------------------------------------------------------------------------------------------

// How far apart an operand's numbers lie for neighbouring pixels and channels: 0 where one number stands for all.
typedef struct {
    size_t pixel, channel;  // the latter is 0 or 1
} imprint_steps;

// y[p][c] = a + b, or a * b, at pixel p and channel c; y has no steps of 0. y may be a or b where that has none either.
void imprint_broadcast_add(const float *a, imprint_steps a_steps, const float *b, imprint_steps b_steps, float *y,
                           size_t pixels, size_t channels);
void imprint_broadcast_multiply(const float *a, imprint_steps a_steps, const float *b, imprint_steps b_steps, float *y,
                                size_t pixels, size_t channels);
// Adds a[p][c] * b, or a[p][c] where b is null, to the sum that pixel p and channel c have.
void imprint_product_sums(const float *a, const float *b, imprint_steps b_steps, double *sums,
                          imprint_steps sums_steps, size_t pixels, size_t channels);

// Normalisation ----------------------------------------------------------------------------------------------------

// mean[c] = the mean of x[r][c] over r, m2[c] = sum over r of (x[r][c] - mean[c])^2, of at least one row; two passes, so
// the rows should fit into the cache.
void imprint_moments(const float *x, size_t rows, size_t channels, float *mean, float *m2);
// Mean and biased variance of all blocks of rows together, from the number of rows of each, and means[block * stride + c]
// and m2s[block * stride + c] as imprint_moments gives them. In doubles, block by block (Chan, Golub and LeVeque, 1983).
void imprint_merge_moments(const uint32_t *rows, const float *means, const float *m2s, size_t blocks, size_t stride,
                           size_t channels, float *mean, float *variance);

// z = clamp(factor * x + offset + shortcut), between floor and ceiling (-infinity and infinity: not at all), NaN where
// that is NaN, and the gradients for g = dz where floor < z < ceiling, else 0: dshortcut = g, dx = a * g + b * x + k.
typedef struct {
    const float *mean, *factor, *offset;   // a number for each channel
    const float *a, *b, *k;                // likewise; read by the functions that write dx
    float floor, ceiling;
    size_t channels;
} imprint_normalization;

// z of [rows, channels]; shortcut may be null. z may be x or shortcut.
void imprint_normalization_forward(const imprint_normalization *t, const float *x, const float *shortcut, float *z,
                                   size_t rows);
// sums[c] += the sum of g, sums[channels + c] += the sum of g * (x - mean). z is null where there was no shortcut:
// then it is computed again from x.
void imprint_normalization_sums(const imprint_normalization *t, const float *x, const float *z, const float *dz,
                                double *sums, size_t rows);
// dx and dshortcut, each may be null; z as above. dx may be x, dshortcut may be dz.
void imprint_normalization_backward(const imprint_normalization *t, const float *x, const float *z, const float *dz,
                                    float *dx, float *dshortcut, size_t rows);

// The same with the maximum of 2x2 pixels taken of z at once, for two rows of an image of `width` pixels each: x and dx
// are [2, width, channels]; z, dz and choice, the winner's place 0 ..< 4, are [width / 2, channels]. Of an odd width the
// last column is left out.
void imprint_normalization_forward_pooled(const imprint_normalization *t, const float *x, size_t width, float *z,
                                          uint8_t *choice);
void imprint_normalization_sums_pooled(const imprint_normalization *t, const float *x, size_t width,
                                       const uint8_t *choice, const float *dz, double *sums);
// dx may be x.
void imprint_normalization_backward_pooled(const imprint_normalization *t, const float *x, size_t width,
                                           const uint8_t *choice, const float *dz, float *dx);
// dx of pixels that no window holds: b * x + k. dx may be x.
void imprint_normalization_backward_unpooled(const imprint_normalization *t, const float *x, float *dx, size_t rows);

// y[c] = x[c] * divisor[c]^-beta with divisor[c] = bias + factor * the sum of x[i]^2 over i = c - before ... c + after, as
// far as there are such channels.
typedef struct {
    size_t channels, before, after;  // before and after are less than channels
    float factor, beta, bias;        // factor >= 0, bias > 0
} imprint_response;

// y of [rows, channels]; scratch holds 2 * channels numbers.
void imprint_response_forward(const imprint_response *t, const float *x, float *y, size_t rows, float *scratch);
// dx[c] = dy[c] * divisor[c]^-beta - 2 * factor * beta * x[c] * the sum of dy[i] * x[i] * divisor[i]^(-beta - 1) over
// the channels i whose windows hold c. dx may be x; scratch holds 3 * channels numbers.
void imprint_response_backward(const imprint_response *t, const float *x, const float *dy, float *dx, size_t rows,
                               float *scratch);

// y[r][c] = x[r][c], times factor[c] unless factor is null, with the rows of x `stride` numbers apart and those of y
// without a gap.
void imprint_scale_columns(const float *x, size_t stride, const float *factor, float *y, size_t rows, size_t columns);
// y[c][r] = x[r][c], with the rows of x `stride` numbers apart and those of y without a gap.
void imprint_transpose(const float *x, size_t stride, float *y, size_t rows, size_t columns);
// y[r][c] = min(max(y[r][c] + bias[c] + shortcut[r][c], floor), ceiling), NaN where it is NaN; bias and shortcut may be
// null.
void imprint_epilogue(float *y, const float *bias, const float *shortcut, float floor, float ceiling, size_t rows,
                      size_t channels);

// Windows ----------------------------------------------------------------------------------------------------------

// A kernel window that slides over one image, in pixels. Which windows there are follows from the output size; the
// padding on the far sides says how much of the border counts in a mean.
typedef struct {
    int32_t height, width, channels;       // of the input
    int32_t output_height, output_width;   // of the output
    int32_t kernel_height, kernel_width;
    int32_t stride_height, stride_width;
    int32_t dilation_height, dilation_width;
    int32_t padding_top, padding_left;
    int32_t padding_bottom, padding_right;
} imprint_window;

// What is done to numbers before they are stored: min(max(y + bias[c], floor), ceiling), NaN where y is NaN; bias may be
// null.
typedef struct {
    const float *bias;
    float floor, ceiling;
} imprint_finish;

// y[oy][ox][c] = the sum over the window of x[iy][ix][c] * weight[ky][kx][c], finished, for `rows` rows of y from
// first_row on, which is even.
void imprint_depthwise_forward(const imprint_window *window, const float *x, const float *weight, float *y,
                               int32_t first_row, int32_t rows, const imprint_finish *finish);
// dx[iy][ix][c] = sum over the windows that hold (iy, ix) of dy[oy][ox][c] * weight[ky][kx][c].
void imprint_depthwise_backward_input(const imprint_window *window, const float *dy, const float *weight, float *dx);
// dweight[ky][kx][c] += sum over (oy, ox) of x[iy][ix][c] * dy[oy][ox][c].
void imprint_depthwise_backward_weight(const imprint_window *window, const float *x, const float *dy, float *dweight);

// y[r][c] = the sum over i of x[r][i] * panel[i][c], finished, for 16 columns or more; rows of x and of y lie so far apart.
// Made for AVX-512: other processors have too few registers to be fast.
void imprint_multiply_panel(const float *x, size_t x_stride, const float *panel, size_t inner, size_t columns, float *y,
                            size_t y_stride, size_t rows, const imprint_finish *finish);

// Copies the windows of the output pixels first_pixel ..< first_pixel + pixels of one image into the rows of a matrix:
// columns[p][ky][kx][c] = x[iy][ix][first_channel + c], 0 outside the image, for `channels` channels.
void imprint_im2col(const imprint_window *window, const float *x, size_t first_channel, size_t channels,
                    size_t first_pixel, size_t pixels, float *columns);
// The adjoint: dx[iy][ix][first_channel + c] += dcolumns[p][ky][kx][c].
void imprint_col2im(const imprint_window *window, const float *dcolumns, size_t first_channel, size_t channels,
                    size_t first_pixel, size_t pixels, float *dx);

// y = the window's largest value; choice = its place ky * kernel_width + kx in the window (so at most 256 places), the
// first one where several are equal. choice may be null.
void imprint_max_pool_forward(const imprint_window *window, const float *x, float *y, uint8_t *choice);
// dx = dy added at the place that `choice` names, 0 elsewhere.
void imprint_max_pool_backward(const imprint_window *window, const float *dy, const uint8_t *choice, float *dx);
// y = the window's mean over the pixels inside the image, or over all inside the border where counts_padding is not 0.
void imprint_average_pool_forward(const imprint_window *window, const float *x, float *y, int counts_padding);
// dx = dy spread evenly over the pixels that were averaged.
void imprint_average_pool_backward(const imprint_window *window, const float *dy, float *dx, int counts_padding);

// Winograd ---------------------------------------------------------------------------------------------------------

// The tiles of a 3x3 convolution with stride 1: each 4x4 tile of the output reads a 6x6 window of the input, which may
// reach beyond the image on all sides, where it reads zeros.
typedef struct {
    int32_t height, width, channels;                        // of the image that the windows read
    int32_t output_height, output_width, output_channels;   // of the image that the tiles make up
    int32_t padding_top, padding_left;                      // the window of tile (0, 0) begins at (-top, -left)
    int32_t tile_rows, tile_columns;                        // ceil(output_height / 4), ceil(output_width / 4)
} imprint_tiles;

// F(4x4,3x3) makes a convolution 36 products of matrices, M_k = V_k U_k, with a row for each tile. Matrix k begins at
// k * stride. Rows of tiles are counted through all images of the batch: row r lies in image r / tile_rows, and its
// tile t is (r - first_row) * tile_columns + column. A panel is a run of channels that has matrices of its own.

// V = B^T d B: v[k*stride + t*channels + c] for the tiles of `rows` rows of tiles from first_row on.
void imprint_winograd_input(const imprint_tiles *tiles, const float *x, size_t first_row, size_t rows, float *v,
                            size_t stride);
// y = A^T M A for a panel: reads m[k*stride + t*panel + c] and writes the output's channels first_channel + c.
void imprint_winograd_output(const imprint_tiles *tiles, const float *m, size_t stride, size_t first_channel,
                             size_t panel, size_t first_row, size_t rows, float *y);
// dM = A dy A^T for all output channels: dm[k*stride + t*output_channels + c].
void imprint_winograd_output_gradient(const imprint_tiles *tiles, const float *dy, size_t first_row, size_t rows,
                                      float *dm, size_t stride);
// U = G g G^T for a panel: u[k*stride + i*panel + o] of w[3][3][inputs][outputs] at output channel first_output + o,
// times factor[first_output + o] unless factor is null.
void imprint_winograd_weights(const float *w, const float *factor, size_t inputs, size_t outputs, size_t first_output, size_t panel,
                              float *u, size_t stride);
// The same of the kernel turned by 180 degrees with inputs and outputs exchanged, which makes a convolution its own data
// gradient: u[k*stride + o*panel + i] of input channel first_input + i, for all output channels o.
void imprint_winograd_turned_weights(const float *w, size_t inputs, size_t outputs, size_t first_input, size_t panel,
                                     float *u, size_t stride);
// dg = G^T dU G for a panel: dw[p][q][i][first_output + o] from du[k*stride + i*panel + o].
void imprint_winograd_weights_gradient(const float *du, size_t stride, size_t inputs, size_t outputs,
                                       size_t first_output, size_t panel, float *dw);

// Float16 ----------------------------------------------------------------------------------------------------------

// The same numbers in 32 bits.
void imprint_float16_to_float32(const uint16_t *x, float *y, size_t count);
// The nearest float16, of two as near the even one, beyond 65504 infinity; NaN stays NaN. Returns how many of the finite
// numbers became infinite.
size_t imprint_float32_to_float16(const float *x, uint16_t *y, size_t count);

// Whether none of the numbers is infinite or NaN.
int imprint_all_finite(const float *x, size_t count);

// The CRC-32C (Castagnoli; RFC 3720, appendix B.4) of some bytes after others whose checksum is given, 0 for none.
uint32_t imprint_crc32c(uint32_t checksum, const void *bytes, size_t count);
// The same without the processor's instruction for it.
uint32_t imprint_crc32c_by_table(uint32_t checksum, const void *bytes, size_t count);

// Optimiser --------------------------------------------------------------------------------------------------------

// One pass of stochastic gradient descent with momentum:
// g = gradient_scale * gradient + weight_decay * p;  v = momentum * v + g;  p -= rate * (nesterov ? g + momentum * v : v).
void imprint_sgd(float *parameters, const float *gradients, float *velocities, size_t count, float rate,
                 float momentum, float weight_decay, float gradient_scale, int nesterov);
// One pass of AdamW: g = gradient_scale * gradient;  m += (1 - beta1) * (g - m);  v += (1 - beta2) * (g * g - v);
// p -= rate * (weight_decay * p + (m / mean_correction) / (sqrt(v / square_correction) + epsilon)).
typedef struct {
    float rate, beta1, beta2, mean_correction, square_correction, epsilon, weight_decay, gradient_scale;
} imprint_adamw_step;
void imprint_adamw(float *parameters, const float *gradients, float *means, float *squares, size_t count,
                   const imprint_adamw_step *step);
// The sum of the squares.
double imprint_sum_of_squares(const float *x, size_t count);
// value += rate * (target - value).
void imprint_move_towards(float *values, const float *targets, size_t count, float rate);

// Images -----------------------------------------------------------------------------------------------------------

// A square patch of an image of 3 channels: its pixel (column, row) is the image at x = m0*column + m1*row + m2,
// y = m3*column + m4*row + m5, in pixels from the centre of the first one; bilinear, borders continued.
void imprint_sample_patch(const uint8_t *image, int32_t width, int32_t height, const float map[6], uint8_t *patch,
                          int32_t side);
// An image of 3 channels at half its size, each pixel the mean of four, rounded; an odd last row or column is left out.
void imprint_halve(const uint8_t *image, int32_t width, int32_t height, uint8_t *half);
// Each pixel's channel c becomes tables[256 * c + the channel order[c]], and that by the share grey its luma.
void imprint_recolor_patch(uint8_t *patch, size_t pixels, const uint8_t *tables, const int32_t order[3], float grey);

// Images are [height, width, channels] of bytes, with 1, 3 or 4 channels.

// Which source samples make each target sample along an axis: the target's i-th is the sum over tap < taps[i] of
// weights[i * stride + tap] * the source's (first[i] + tap)-th. Weights are at least 0 and add up to 1.
typedef struct {
    size_t count, stride;
    const int32_t *first, *taps;
    const float *weights;
} imprint_axis;

// The numbers of scratch memory that resampling needs.
size_t imprint_resample_scratch(size_t width, const imprint_axis *columns, size_t channels);
// target[rows->count][columns->count][channels] of an image whose rows are `width` pixels. The target may not be the
// source.
void imprint_resample(const imprint_axis *rows, const imprint_axis *columns, const uint8_t *source, size_t width,
                      size_t channels, uint8_t *target, float *scratch);

typedef struct {
    int32_t width, height, channels;
    // The pixel at (x, y) is that of the source at ((m0 x + m1 y + m2) / s, (m3 x + m4 y + m5) / s), bilinear between its
    // neighbours and with borders continued, for s = m6 x + m7 y + m8.
    float map[9];
    // Each of its samples c becomes the sum of color[k][c] * sample k, plus color[4][c].
    float color[5][4];
} imprint_warp;

// The bytes of scratch memory that a warp needs.
size_t imprint_warp_scratch(const imprint_warp *warp);
// Neither target nor scratch may be the source.
void imprint_warp_image(const imprint_warp *warp, const uint8_t *source, uint8_t *target, uint8_t *scratch);

// The numbers of scratch memory that a blur needs.
size_t imprint_blur_scratch(int32_t width, int32_t height, int32_t channels, int32_t radius);
// The weighted mean over 2 radius + 1 pixels along columns and then rows, borders continued: weights[0] is that of the
// middle and weights[i] those of both pixels i away, in shares of 65536. The target may not be the source.
void imprint_blur(const uint8_t *source, uint8_t *target, int32_t width, int32_t height, int32_t channels,
                  const uint16_t *weights, int32_t radius, uint16_t *scratch);
// Adds a random number to every sample, nearly normal with mean 0 and deviation 147.8 * strength / 65536; the same for
// the same key. Samples stay within 0 ... 255.
void imprint_add_noise(uint8_t *samples, size_t count, uint64_t key, int32_t strength);
// values[p][c] = (samples[p][c] - mean[c]) * scale[c], of 1 or 3 channels.
void imprint_normalize_samples(const uint8_t *samples, float *values, size_t pixels, size_t channels,
                               const float *mean, const float *scale);

#endif
