// Helpers of the tests: reproducible random numbers, comparisons, and a digest of exact outputs.

#ifndef CHECK_H
#define CHECK_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "imprint_kernels.h"

// Channel counts and lengths around the widths of vectors.
static const size_t counts[] = {1, 3, 4, 7, 8, 12, 16, 17, 20, 31, 33, 64, 72};
enum { count_of_counts = sizeof counts / sizeof *counts };
#define FOR_EACH_COUNT(n) for (size_t n##_ = 0, n; n##_ < count_of_counts && (n = counts[n##_], 1); n##_++)

// Begins a test, which ends at the next one. The random numbers of a test depend only on its name.
void test(const char *name);
// Ends the last test, prints the totals and the digest, and returns the exit code.
int finish(void);
// Records a failure with a message unless the condition holds.
void expect(int condition, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Expects |y[i] − expected[i]| <= tolerance * (1 + |expected[i]|).
void expect_close(const char *what, const float *y, const double *expected, size_t count, double tolerance);
void expect_bytes(const char *what, const void *y, const void *expected, size_t count);
// Adds the bytes of an output that must be the same on every CPU.
void add_to_digest(const void *bytes, size_t count);

uint32_t random_bits(void);
// An integer of first ... last.
int32_t random_integer(int32_t first, int32_t last);
// A multiple of 1 / 1024 between −size and size.
float random_float(float size);
// Memory with random floats, or with random bytes; it lives until the end of the test.
float *random_floats(size_t count, float size);
uint8_t *random_bytes(size_t count);
// Memory with the bytes 0xff, which are NaN as floats, so that elements that are not written are found. The end of the test checks that no
// kernel wrote beyond the end.
void *fresh(size_t bytes);
#define FLOATS(n) ((float *)fresh((n) * sizeof(float)))
#define DOUBLES(n) ((double *)memset(fresh((n) * sizeof(double)), 0, (n) * sizeof(double)))

void test_elementwise(void);
void test_rows(void);
void test_normalization(void);
void test_windows(void);
void test_pooling(void);
void test_products(void);
void test_winograd(void);
void test_numbers(void);
void test_images(void);
void test_int8(void);

#endif
