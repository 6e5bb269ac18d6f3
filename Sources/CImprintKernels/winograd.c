#include "imprint_kernels.h"
#include <string.h>
#include "clones.h"
typedef float vec __attribute__((vector_size(64), aligned(4)));
#define INLINE static inline __attribute__((always_inline))
INLINE void ld_(vec *o, const float *p, size_t n) { if (n >= 16) *o = *(const vec *)p; else { *o = (vec){0}; memcpy(o, p, n * 4); } }
#define ld(p, n) ({ vec v_; ld_(&v_, p, n); v_; })
INLINE void st_(float *p, const vec *v, size_t n) { if (n >= 16) *(vec *)p = *v; else memcpy(p, v, n * 4); }
#define st(p, v, n) st_(p, &(v), n)
#define BT(o, s, i) do { vec a0=i[0],a1=i[s],a2=i[2*s],a3=i[3*s],a4=i[4*s],a5=i[5*s]; \
 vec p=a4-4*a2, q=a3-4*a1, r=a4-a2, t=2*(a3-a1); \
 o[0]=4*a0-5*a2+a4; o[s]=p+q; o[2*s]=p-q; o[3*s]=r+t; o[4*s]=r-t; o[5*s]=4*a1-5*a3+a5; } while (0)
#define AT(o, so, i, s) do { vec a0=i[0],a1=i[s],a2=i[2*s],a3=i[3*s],a4=i[4*s],a5=i[5*s]; \
 vec p=a1+a2,q=a1-a2,r=a3+a4,t=a3-a4; o[0]=a0+p+r; o[so]=q+2*t; o[2*so]=p+4*r; o[3*so]=q+8*t+a5; } while (0)
#define A(o, so, i, s) do { vec b0=i[0],b1=i[s],b2=i[2*s],b3=i[3*s]; vec p=b0+b2,q=b1+b3,r=b0+4*b2,t=2*b1+8*b3; \
 o[0]=b0;o[so]=p+q;o[2*so]=p-q;o[3*so]=r+t;o[4*so]=r-t;o[5*so]=b3; } while (0)
CLONES void imprint_winograd_input(const imprint_tiles *t, const float *x, size_t first_row, size_t rows, float *v, size_t stride) {
    size_t C = t->channels;
    for (size_t r = 0; r < rows; r++) for (int32_t col = 0; col < t->tile_columns; col++) {
        size_t row = first_row + r, image = row / t->tile_rows, tr = row % t->tile_rows;
        int32_t y0 = (int32_t)tr * 4 - t->padding_top, x0 = col * 4 - t->padding_left;
        const float *im = x + image * t->height * t->width * C;
        float *out = v + (r * t->tile_columns + col) * C;
        int inside = y0 >= 0 && x0 >= 0 && y0 + 6 <= t->height && x0 + 6 <= t->width;
        for (size_t c = 0; c < C; c += 16) {
            size_t n = C - c < 16 ? C - c : 16;
            vec d[36], e[36];
            if (inside) { for (int i = 0; i < 6; i++) for (int j = 0; j < 6; j++) d[i*6+j] = ld(im + ((size_t)(y0+i)*t->width + x0+j)*C + c, n); }
            else for (int i = 0; i < 6; i++) for (int j = 0; j < 6; j++) {
                int32_t yy = y0+i, xx = x0+j;
                d[i*6+j] = (yy < 0 || xx < 0 || yy >= t->height || xx >= t->width) ? (vec){0} : ld(im + ((size_t)yy*t->width + xx)*C + c, n); }
            for (int j = 0; j < 6; j++) { vec *o = e + j, *i = d + j; BT(o, 6, i); }
            for (int j = 0; j < 6; j++) { vec *o = d + 6*j, *i = e + 6*j; BT(o, 1, i); }
            for (int k = 0; k < 36; k++) st(out + k * stride + c, d[k], n);
        }
    }
}
CLONES void imprint_winograd_output(const imprint_tiles *t, const float *m, size_t stride, size_t first_channel, size_t panel, size_t first_row, size_t rows, float *y) {
    size_t C = t->output_channels;
    for (size_t r = 0; r < rows; r++) for (int32_t col = 0; col < t->tile_columns; col++) {
        size_t row = first_row + r, image = row / t->tile_rows, tr = row % t->tile_rows;
        int32_t y0 = (int32_t)tr * 4, x0 = col * 4;
        float *im = y + image * t->output_height * t->output_width * C + first_channel;
        const float *in = m + (r * t->tile_columns + col) * panel;
        for (size_t c = 0; c < panel; c += 16) {
            size_t n = panel - c < 16 ? panel - c : 16;
            vec d[36], e[24], f[16];
            for (int k = 0; k < 36; k++) d[k] = ld(in + k * stride + c, n);
            for (int j = 0; j < 6; j++) { vec *o = e + j, *i = d + j; AT(o, 6, i, 6); }
            for (int j = 0; j < 4; j++) { vec *o = f + 4*j, *i = e + 6*j; AT(o, 1, i, 1); }
            for (int i = 0; i < 4 && y0 + i < t->output_height; i++) for (int j = 0; j < 4 && x0 + j < t->output_width; j++)
                st(im + ((size_t)(y0+i)*t->output_width + x0+j)*C + c, f[i*4+j], n);
        }
    }
}
CLONES void imprint_winograd_output_gradient(const imprint_tiles *t, const float *dy, size_t first_row, size_t rows, float *dm, size_t stride) {
    size_t C = t->output_channels;
    for (size_t r = 0; r < rows; r++) for (int32_t col = 0; col < t->tile_columns; col++) {
        size_t row = first_row + r, image = row / t->tile_rows, tr = row % t->tile_rows;
        int32_t y0 = (int32_t)tr * 4, x0 = col * 4;
        const float *im = dy + image * t->output_height * t->output_width * C;
        float *out = dm + (r * t->tile_columns + col) * C;
        for (size_t c = 0; c < C; c += 16) {
            size_t n = C - c < 16 ? C - c : 16;
            vec g[16], e[24], d[36];
            for (int i = 0; i < 4; i++) for (int j = 0; j < 4; j++)
                g[i*4+j] = (y0+i >= t->output_height || x0+j >= t->output_width) ? (vec){0} : ld(im + ((size_t)(y0+i)*t->output_width + x0+j)*C + c, n);
            for (int j = 0; j < 4; j++) { vec *o = e + j, *i = g + j; A(o, 4, i, 4); }
            for (int j = 0; j < 6; j++) { vec *o = d + 6*j, *i = e + 4*j; A(o, 1, i, 1); }
            for (int k = 0; k < 36; k++) st(out + k * stride + c, d[k], n);
        }
    }
}
#define G(o, so, i, s) do { vec g0=i[0],g1=i[s],g2=i[2*s]; vec p=(g0+g2)*(-1.f/6), q=g1*(1.f/6), r=g0*(1.f/24)+g2*(1.f/6), t=g1*(1.f/12); \
 o[0]=g0*0.25f;o[so]=p-q;o[2*so]=p+q;o[3*so]=r+t;o[4*so]=r-t;o[5*so]=g2; } while (0)
#define GT(o, so, i, s) do { vec u0=i[0],u1=i[s],u2=i[2*s],u3=i[3*s],u4=i[4*s],u5=i[5*s]; \
 o[0]=u0*0.25f-(u1+u2)*(1.f/6)+(u3+u4)*(1.f/24); o[so]=(u2-u1)*(1.f/6)+(u3-u4)*(1.f/12); o[2*so]=(u3+u4-u1-u2)*(1.f/6)+u5; } while (0)
CLONES void imprint_winograd_weights(const float *w, size_t inputs, size_t outputs, size_t first_output, size_t panel, float *u, size_t stride) {
    for (size_t i0 = 0; i0 < inputs; i0++) for (size_t c = 0; c < panel; c += 16) {
        size_t n = panel - c < 16 ? panel - c : 16;
        vec g[9], e[18], d[36];
        for (int p = 0; p < 9; p++) g[p] = ld(w + (p * inputs + i0) * outputs + first_output + c, n);
        for (int j = 0; j < 3; j++) { vec *o = e + j, *i = g + j; G(o, 3, i, 3); }
        for (int j = 0; j < 6; j++) { vec *o = d + 6*j, *i = e + 3*j; G(o, 1, i, 1); }
        for (int k = 0; k < 36; k++) st(u + k * stride + i0 * panel + c, d[k], n);
    }
}
CLONES void imprint_winograd_turned_weights(const float *w, size_t inputs, size_t outputs, size_t first_input, size_t panel, float *u, size_t stride) {
    for (size_t o0 = 0; o0 < outputs; o0++) for (size_t c = 0; c < panel; c += 16) {
        size_t n = panel - c < 16 ? panel - c : 16;
        vec g[9], e[18], d[36];
        for (int p = 0; p < 9; p++) { vec v = {0}; for (size_t l = 0; l < n; l++) v[l] = w[((8-p) * inputs + first_input + c + l) * outputs + o0]; g[p] = v; }
        for (int j = 0; j < 3; j++) { vec *o = e + j, *i = g + j; G(o, 3, i, 3); }
        for (int j = 0; j < 6; j++) { vec *o = d + 6*j, *i = e + 3*j; G(o, 1, i, 1); }
        for (int k = 0; k < 36; k++) st(u + k * stride + o0 * panel + c, d[k], n);
    }
}
CLONES void imprint_winograd_weights_gradient(const float *du, size_t stride, size_t inputs, size_t outputs, size_t first_output, size_t panel, float *dw) {
    for (size_t i0 = 0; i0 < inputs; i0++) for (size_t c = 0; c < panel; c += 16) {
        size_t n = panel - c < 16 ? panel - c : 16;
        vec d[36], e[18], g[9];
        for (int k = 0; k < 36; k++) d[k] = ld(du + k * stride + i0 * panel + c, n);
        for (int j = 0; j < 6; j++) { vec *o = e + j, *i = d + j; GT(o, 6, i, 6); }
        for (int j = 0; j < 3; j++) { vec *o = g + 3*j, *i = e + 6*j; GT(o, 1, i, 1); }
        for (int p = 0; p < 9; p++) st(dw + (p * inputs + i0) * outputs + first_output + c, g[p], n);
    }
}
