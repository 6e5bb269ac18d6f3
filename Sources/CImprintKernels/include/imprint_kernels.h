// SIMD kernels. Activations are NHWC float32, so the innermost loops run over channels and vectorize. Kernels do not allocate memory,
// start threads or choose algorithms. `rows` is a number of pixels (batch * height * width), `count` a number of elements. Output buffers
// must not alias input buffers unless the comment of the function allows it.

#ifndef IMPRINT_KERNELS_H
#define IMPRINT_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "imprint_elementwise.h"
#include "imprint_int8.h"

// Processor --------------------------------------------------------------------------------------------------------

// Whether the kernels use AVX-512 (F, VL, BW, DQ and CD, available in servers since 2017).
int imprint_kernels_use_avx512(void);
// The instruction set of the kernels: "AVX-512", "AVX2", "SSE2", "NEON" or "none".
const char *imprint_kernels_vector_instructions(void);
// Pauses for some tens of cycles in a spin-wait loop, which frees execution resources for the other hardware thread of the core.
static inline void imprint_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

// Softmax ----------------------------------------------------------------------------------------------------------

// y[i] = exp(x[i] - max x) / sum over j of exp(x[j] - max x), for count >= 1; if an element is NaN, all results are NaN. y may be x.
void imprint_softmax_forward(const float *x, float *y, size_t count);
// dx[i] = y[i] * (dy[i] - sum over j of dy[j] * y[j]). dx may be dy.
void imprint_softmax_backward(const float *y, const float *dy, float *dx, size_t count);

// The options of the cross-entropy loss.
typedef struct {
    size_t classes;         // >= 1
    float label_smoothing;  // s, 0 <= s < 1
    const float *weights;   // w >= 0 of each class, or null for weights of 1
    float factor;           // scales the gradient
} imprint_cross_entropy_options;

// Returns the loss of one image, sum over k of q[k] * w[k] * -log softmax(x)[k] with q[k] = (1 - s) * [k = label] + s / classes; a weight
// of 0 times infinity counts as 0. dx = factor * the gradient of the loss; it may be x or null. correct = whether the label is the first
// index of the maximum of x.
double imprint_softmax_cross_entropy(const imprint_cross_entropy_options *options, const float *x, size_t label,
                                     float *dx, int *correct);

// Channels ---------------------------------------------------------------------------------------------------------

// y[r][c] = row[c] for every row.
void imprint_broadcast_row(const float *row, float *y, size_t rows, size_t channels);
// sums[c] = sum over r of x[r][c]. Rows are `stride` floats apart.
void imprint_channel_sums(const float *x, size_t stride, double *sums, size_t rows, size_t channels);

// y[r][c] = scale[c] * x[r][c] + shift[c]; scale or shift may be null, which means 1 or 0. y may be x.
void imprint_affine(const float *x, const float *scale, const float *shift, float *y, size_t rows, size_t channels);
// y[r][c] = x[r][c] if x[r][c] > 0, else slope[c] * x[r][c].
void imprint_prelu_forward(const float *x, const float *slope, float *y, size_t rows, size_t channels);
// dx[r][c] = dy[r][c] if x[r][c] > 0, else slope[c] * dy[r][c]. dx may be x.
void imprint_prelu_backward(const float *x, const float *dy, const float *slope, float *dx, size_t rows,
                            size_t channels);
// sums[c] = sum over the rows r with x[r][c] <= 0 of x[r][c] * dy[r][c]. Rows of x and dy are `stride` floats apart.
void imprint_prelu_slope_sums(const float *x, const float *dy, size_t stride, double *sums, size_t rows, size_t channels);

// y = (x - mean) / sqrt(variance + epsilon) * scale + shift, with mean and variance of each row. y may be x.
void imprint_layer_norm_forward(const float *x, const float *scale, const float *shift, float *y, size_t rows,
                                size_t channels, float epsilon);
// sums[c] = sum over the rows of dy * (x - mean) / sqrt(variance + epsilon), sums[channels + c] = sum over the rows of dy.
void imprint_layer_norm_sums(const float *x, const float *dy, double *sums, size_t rows, size_t channels,
                             float epsilon);
// The input gradient of imprint_layer_norm_forward. dx may be x or dy.
void imprint_layer_norm_backward(const float *x, const float *dy, const float *scale, float *dx, size_t rows,
                                 size_t channels, float epsilon);
// y[r * y_stride + c] = x[r * x_stride + c].
void imprint_copy_columns(const float *x, size_t x_stride, float *y, size_t y_stride, size_t rows, size_t columns);
// y[r * y_stride + c] += x[r * x_stride + c].
void imprint_add_columns(const float *x, size_t x_stride, float *y, size_t y_stride, size_t rows, size_t columns);

// Broadcasting -----------------------------------------------------------------------------------------------------

// The strides of an operand between neighbouring pixels and channels; 0 along an axis that is broadcast.
typedef struct {
    size_t pixel, channel;  // channel is 0 or 1
} imprint_strides;

// y[p][c] = a + b, or a * b, at pixel p and channel c; y is contiguous. y may be a or b if that is contiguous too.
void imprint_broadcast_add(const float *a, imprint_strides a_strides, const float *b, imprint_strides b_strides,
                           float *y, size_t pixels, size_t channels);
void imprint_broadcast_multiply(const float *a, imprint_strides a_strides, const float *b, imprint_strides b_strides,
                                float *y, size_t pixels, size_t channels);
// Adds a[p][c] * b, or a[p][c] if b is null, to the element of sums for pixel p and channel c.
void imprint_product_sums(const float *a, const float *b, imprint_strides b_strides, double *sums,
                          imprint_strides sums_strides, size_t pixels, size_t channels);

// Normalization ----------------------------------------------------------------------------------------------------

// mean[c] = mean over r of x[r][c], m2[c] = sum over r of (x[r][c] - mean[c])^2, for rows >= 1. Makes two passes, so the rows should fit
// into the cache.
void imprint_moments(const float *x, size_t rows, size_t channels, float *mean, float *m2);
// Merges the moments of blocks of rows into the mean and biased variance of all rows. rows[block] is the number of rows of a block;
// means[block * stride + c] and m2s[block * stride + c] are the results of imprint_moments. Computes in doubles, block by block (Chan,
// Golub and LeVeque, "Algorithms for computing the sample variance", 1983).
void imprint_merge_moments(const uint32_t *rows, const float *means, const float *m2s, size_t blocks, size_t stride,
                           size_t channels, float *mean, float *variance);

// Normalization fused with a shortcut and an activation: z = min(max(factor * x + offset + shortcut, floor), ceiling); NaN stays NaN.
// Backward, dshortcut = g and dx = a * g + b * x + k with g = dz if floor < z < ceiling, else 0.
typedef struct {
    const float *mean, *factor, *offset;   // one value per channel
    const float *a, *b, *k;                // one value per channel; read only by functions that write dx
    float floor, ceiling;
    size_t channels;
} imprint_normalization;

// x, shortcut and z are [rows, channels]; shortcut may be null. z may be x or shortcut.
void imprint_normalization_forward(const imprint_normalization *t, const float *x, const float *shortcut, float *z,
                                   size_t rows);
// sums[c] += sum of g, sums[channels + c] += sum of g * (x - mean). z is null if there was no shortcut; the kernel then recomputes it
// from x.
void imprint_normalization_sums(const imprint_normalization *t, const float *x, const float *z, const float *dz,
                                double *sums, size_t rows);
// Computes dx and dshortcut, which may each be null; z as above. dx may be x, dshortcut may be dz.
void imprint_normalization_backward(const imprint_normalization *t, const float *x, const float *z, const float *dz,
                                    float *dx, float *dshortcut, size_t rows);

// The same fused with 2x2 max pooling, for two rows of an image of `width` pixels: x and dx are [2, width, channels]; z, dz and choice, the
// index 0 ..< 4 of the maximum in its window, are [width / 2, channels]. The last column of an odd width is not pooled.
void imprint_normalization_forward_pooled(const imprint_normalization *t, const float *x, size_t width, float *z,
                                          uint8_t *choice);
void imprint_normalization_sums_pooled(const imprint_normalization *t, const float *x, size_t width,
                                       const uint8_t *choice, const float *dz, double *sums);
// dx may be x.
void imprint_normalization_backward_pooled(const imprint_normalization *t, const float *x, size_t width,
                                           const uint8_t *choice, const float *dz, float *dx);
// dx = b * x + k, for pixels outside all pooling windows. dx may be x.
void imprint_normalization_backward_unpooled(const imprint_normalization *t, const float *x, float *dx, size_t rows);

// Local response normalization: y[c] = x[c] * divisor[c]^-beta with divisor[c] = bias + factor * sum of x[i]^2 over the existing channels
// i = c - before ... c + after.
typedef struct {
    size_t channels, before, after;  // before and after are less than channels
    float factor, beta, bias;        // factor >= 0, bias > 0
} imprint_response;

// x and y are [rows, channels]; scratch has 2 * channels elements.
void imprint_response_forward(const imprint_response *t, const float *x, float *y, size_t rows, float *scratch);
// dx[c] = dy[c] * divisor[c]^-beta - 2 * factor * beta * x[c] * sum of dy[i] * x[i] * divisor[i]^(-beta - 1) over the channels i whose
// sums include c. dx may be x; scratch has 3 * channels elements.
void imprint_response_backward(const imprint_response *t, const float *x, const float *dy, float *dx, size_t rows,
                               float *scratch);

// y[r][c] = x[r][c] * factor[c], or x[r][c] if factor is null. The rows of x are `stride` elements apart; y is contiguous.
void imprint_scale_columns(const float *x, size_t stride, const float *factor, float *y, size_t rows, size_t columns);
// y[c][r] = x[r][c]. The rows of x are `stride` elements apart; y is contiguous.
void imprint_transpose(const float *x, size_t stride, float *y, size_t rows, size_t columns);
// y[r][c] = min(max(y[r][c] + bias[c] + shortcut[r][c], floor), ceiling); NaN stays NaN. bias and shortcut may be null.
void imprint_epilogue(float *y, const float *bias, const float *shortcut, float floor, float ceiling, size_t rows,
                      size_t channels);

// Windows ----------------------------------------------------------------------------------------------------------

// The sliding window of a convolution or pooling over one image, in pixels. The output size determines the number of windows; the bottom
// and right padding only affect average pooling that counts the padding.
typedef struct {
    int32_t height, width, channels;       // of the input
    int32_t output_height, output_width;   // of the output
    int32_t kernel_height, kernel_width;
    int32_t stride_height, stride_width;
    int32_t dilation_height, dilation_width;
    int32_t padding_top, padding_left;
    int32_t padding_bottom, padding_right;
} imprint_window;

// The operation applied to each result before it is stored: min(max(y + bias[c], floor), ceiling); NaN stays NaN. bias may be null.
typedef struct {
    const float *bias;
    float floor, ceiling;
} imprint_bias_clamp;

// y[oy][ox][c] = bias_clamp(sum over the window of x[iy][ix][c] * weight[ky][kx][c]), for `rows` rows of y from first_row, which must be
// even.
void imprint_depthwise_forward(const imprint_window *window, const float *x, const float *weight, float *y,
                               int32_t first_row, int32_t rows, const imprint_bias_clamp *bias_clamp);
// dx[iy][ix][c] = sum over the windows that contain (iy, ix) of dy[oy][ox][c] * weight[ky][kx][c].
void imprint_depthwise_backward_input(const imprint_window *window, const float *dy, const float *weight, float *dx);
// dweight[ky][kx][c] += sum over (oy, ox) of x[iy][ix][c] * dy[oy][ox][c].
void imprint_depthwise_backward_weight(const imprint_window *window, const float *x, const float *dy, float *dweight);

// y[r][c] = bias_clamp(sum over i of x[r][i] * panel[i][c]), for columns >= 16; x_stride and y_stride are the distances between rows.
// Designed for the 32 registers of AVX-512 or NEON; slow with fewer registers.
void imprint_multiply_panel(const float *x, size_t x_stride, const float *panel, size_t inner, size_t columns, float *y,
                            size_t y_stride, size_t rows, const imprint_bias_clamp *bias_clamp);

// Whether products of bfloat16 numbers use the instructions of AVX512-BF16, or BFDOT of arm64.
int imprint_kernels_use_bfloat16(void);
// y[r][i] = the bfloat16 number nearest to x[r][i], and 0 from `inner` to y_stride. The instructions also flush subnormal numbers to 0.
void imprint_to_bfloat16(const float *x, size_t x_stride, size_t rows, size_t inner, uint16_t *y, size_t y_stride);
// Packs a matrix w[i][c] * factors[c] into pairs, panel[i / 2][c][i % 2], with a zero after an odd `inner`; factors may be null.
void imprint_pack_bfloat16(const float *w, size_t stride, const float *factors, size_t inner, size_t columns,
                           uint16_t *panel);
// The same for the transpose of w[c][i], without factors; stride is the distance between the rows of w.
void imprint_pack_transposed_bfloat16(const float *w, size_t stride, size_t inner, size_t columns, uint16_t *panel);
// imprint_multiply_panel for bfloat16 numbers: x has an even stride and zeros after `inner`, the panel has pairs. Sums are float.
void imprint_multiply_panel_bfloat16(const uint16_t *x, size_t x_stride, const uint16_t *panel, size_t inner,
                                     size_t columns, float *y, size_t y_stride, size_t rows,
                                     const imprint_bias_clamp *bias_clamp);

// Max pooling of uint8 activations, for rows of the output.
void imprint_max_pool_uint8(const imprint_window *window, const uint8_t *x, uint8_t *y, int32_t first_row, int32_t rows);

// im2col: copies the windows of the output pixels first_pixel ..< first_pixel + pixels of one image into the rows of a matrix,
// columns[p][ky][kx][c] = x[iy][ix][first_channel + c], or 0 outside the image, for `channels` channels.
void imprint_im2col(const imprint_window *window, const float *x, size_t first_channel, size_t channels,
                    size_t first_pixel, size_t pixels, float *columns);
// col2im, the adjoint: dx[iy][ix][first_channel + c] += dcolumns[p][ky][kx][c].
void imprint_col2im(const imprint_window *window, const float *dcolumns, size_t first_channel, size_t channels,
                    size_t first_pixel, size_t pixels, float *dx);

// y = maximum of the window; choice = index ky * kernel_width + kx of its first occurrence, for kernels of at most 256 elements. choice
// may be null.
void imprint_max_pool_forward(const imprint_window *window, const float *x, float *y, uint8_t *choice);
// Adds dy to dx at the index in `choice`; the other elements of dx are 0.
void imprint_max_pool_backward(const imprint_window *window, const float *dy, const uint8_t *choice, float *dx);
// y = mean of the window over the pixels inside the image, or inside image and padding if counts_padding is not 0.
void imprint_average_pool_forward(const imprint_window *window, const float *x, float *y, int counts_padding);
// Distributes dy evenly over the averaged pixels of dx.
void imprint_average_pool_backward(const imprint_window *window, const float *dy, float *dx, int counts_padding);

// Winograd ---------------------------------------------------------------------------------------------------------

// The tiles of a 3x3 convolution with stride 1: each 4x4 tile of the output reads a 6x6 window of the input, which is 0 outside the
// image.
typedef struct {
    int32_t height, width, channels;                        // of the input
    int32_t output_height, output_width, output_channels;   // of the output
    int32_t padding_top, padding_left;                      // the window of tile (0, 0) begins at (-top, -left)
    int32_t tile_rows, tile_columns;                        // ceil(output_height / 4), ceil(output_width / 4)
} imprint_tiles;

// F(4x4, 3x3) turns a convolution into 36 matrix products, M_k = V_k U_k, with one row per tile. Matrix k begins at k * stride. Rows of
// tiles are numbered over all images of the batch: row r belongs to image r / tile_rows, and its tiles have the indices
// t = (r - first_row) * tile_columns + column. A panel is a range of channels with separate matrices.

// V = B^T d B: v[k*stride + t*channels + c] for `rows` rows of tiles from first_row.
void imprint_winograd_input(const imprint_tiles *tiles, const float *x, size_t first_row, size_t rows, float *v,
                            size_t stride);
// y = A^T M A for a panel: reads m[k*stride + t*panel + c] and writes the output's channels first_channel + c.
void imprint_winograd_output(const imprint_tiles *tiles, const float *m, size_t stride, size_t first_channel,
                             size_t panel, size_t first_row, size_t rows, float *y);
// dM = A dy A^T for all output channels: dm[k*stride + t*output_channels + c].
void imprint_winograd_output_gradient(const imprint_tiles *tiles, const float *dy, size_t first_row, size_t rows,
                                      float *dm, size_t stride);
// U = G g G^T for a panel: u[k*stride + i*panel + o] from w[3][3][inputs][outputs] at output channel first_output + o, times
// factor[first_output + o] unless factor is null.
void imprint_winograd_weights(const float *w, const float *factor, size_t inputs, size_t outputs, size_t first_output,
                              size_t panel, float *u, size_t stride);
// The same for the kernel rotated by 180 degrees with inputs and outputs exchanged, whose convolution is the input gradient:
// u[k*stride + o*panel + i] for input channel first_input + i and all output channels o.
void imprint_winograd_rotated_weights(const float *w, size_t inputs, size_t outputs, size_t first_input, size_t panel,
                                      float *u, size_t stride);
// dg = G^T dU G for a panel: dw[p][q][i][first_output + o] from du[k*stride + i*panel + o].
void imprint_winograd_weights_gradient(const float *du, size_t stride, size_t inputs, size_t outputs,
                                       size_t first_output, size_t panel, float *dw);

// Float16 ----------------------------------------------------------------------------------------------------------

// Converts float16 to float32 exactly.
void imprint_float16_to_float32(const uint16_t *x, float *y, size_t count);
// Rounds float32 to the nearest float16, ties to even; overflow gives infinity, NaN stays NaN. Returns the number of finite elements that
// became infinite.
size_t imprint_float32_to_float16(const float *x, uint16_t *y, size_t count);

// Whether all elements are finite.
int imprint_all_finite(const float *x, size_t count);

// The CRC-32C (Castagnoli; RFC 3720, appendix B.4) of bytes that follow others with the given checksum; 0 starts a new checksum.
uint32_t imprint_crc32c(uint32_t checksum, const void *bytes, size_t count);
// The same by table lookup, without CRC instructions.
uint32_t imprint_crc32c_by_table(uint32_t checksum, const void *bytes, size_t count);

// Optimizer --------------------------------------------------------------------------------------------------------

// One step of stochastic gradient descent with momentum:
// g = gradient_scale * gradient + weight_decay * p;  v = momentum * v + g;  p -= rate * (nesterov ? g + momentum * v : v).
void imprint_sgd(float *parameters, const float *gradients, float *velocities, size_t count, float rate,
                 float momentum, float weight_decay, float gradient_scale, int nesterov);
// One step of AdamW: g = gradient_scale * gradient;  m += (1 - beta1) * (g - m);  v += (1 - beta2) * (g * g - v);
// p -= rate * (weight_decay * p + (m / mean_correction) / (sqrt(v / square_correction) + epsilon)).
typedef struct {
    float rate, beta1, beta2, mean_correction, square_correction, epsilon, weight_decay, gradient_scale;
} imprint_adamw_step;
void imprint_adamw(float *parameters, const float *gradients, float *means, float *squares, size_t count,
                   const imprint_adamw_step *step);
// Returns the sum of the squares.
double imprint_sum_of_squares(const float *x, size_t count);
// values += rate * (targets - values), as for an exponential moving average.
void imprint_move_towards(float *values, const float *targets, size_t count, float rate);

// Images -----------------------------------------------------------------------------------------------------------

// Samples a square patch of an image of 3 channels through an affine map: pixel (column, row) of the patch is the image at
// x = m0*column + m1*row + m2, y = m3*column + m4*row + m5, in pixels from the centre of the first pixel. Bilinear; coordinates are clamped
// to the image.
void imprint_sample_patch(const uint8_t *image, int32_t width, int32_t height, const float map[6], uint8_t *patch,
                          int32_t side);
// Halves an image of 3 channels: each pixel is the rounded mean of 2x2 pixels. An odd last row or column is dropped.
void imprint_halve(const uint8_t *image, int32_t width, int32_t height, uint8_t *half);
// Recolours a patch of 3 channels: channel c becomes tables[256 * c + channel order[c]], blended with the luma by `grey` (0 to 1).
void imprint_recolor_patch(uint8_t *patch, size_t pixels, const uint8_t *tables, const int32_t order[3], float grey);

// The images of the following functions are [height, width, channels] of bytes, with 1, 3 or 4 channels.

// The resampling filter along one axis: target sample i is the sum over tap < taps[i] of weights[i * stride + tap] * source sample
// first[i] + tap. Weights are >= 0 and add up to 1.
typedef struct {
    size_t count, stride;
    const int32_t *first, *taps;
    const float *weights;
} imprint_axis;

// The number of floats of scratch memory that resampling needs.
size_t imprint_resample_scratch(size_t width, const imprint_axis *columns, size_t channels);
// Resamples an image with rows of `width` pixels to target[rows->count][columns->count][channels]. The target must not alias the source.
void imprint_resample(const imprint_axis *rows, const imprint_axis *columns, const uint8_t *source, size_t width,
                      size_t channels, uint8_t *target, float *scratch);

typedef struct {
    int32_t width, height, channels;
    // Pixel (x, y) of the target is the source at ((m0 x + m1 y + m2) / s, (m3 x + m4 y + m5) / s) with s = m6 x + m7 y + m8, bilinear, with
    // coordinates clamped to the image.
    float map[9];
    // Then sample c = sum over k of color[k][c] * sample k, plus color[4][c].
    float color[5][4];
} imprint_warp;

// The number of bytes of scratch memory that a warp needs.
size_t imprint_warp_scratch(const imprint_warp *warp);
// Warps and recolours an image. Neither target nor scratch may alias the source.
void imprint_warp_image(const imprint_warp *warp, const uint8_t *source, uint8_t *target, uint8_t *scratch);

// The number of elements of scratch memory that a blur needs.
size_t imprint_blur_scratch(int32_t width, int32_t height, int32_t channels, int32_t radius);
// Separable blur: the weighted mean over 2 * radius + 1 pixels along rows and then columns, with coordinates clamped to the image.
// weights[0] is the weight of the centre, and weights[i] is the weight of both pixels at distance i, in units of 1 / 65536. The target must not alias
// the source.
void imprint_blur(const uint8_t *source, uint8_t *target, int32_t width, int32_t height, int32_t channels,
                  const uint16_t *weights, int32_t radius, uint16_t *scratch);
// Adds approximately normal noise with mean 0 and standard deviation 147.8 * strength / 65536 to every sample, clamped to 0 ... 255. The key
// determines the noise.
void imprint_add_noise(uint8_t *samples, size_t count, uint64_t key, int32_t strength);
// values[p][c] = (samples[p][c] - mean[c]) * scale[c], for 1 or 3 channels.
void imprint_normalize_samples(const uint8_t *samples, float *values, size_t pixels, size_t channels,
                               const float *mean, const float *scale);

#endif
