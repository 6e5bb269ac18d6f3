#include "check.h"

#include <stdarg.h>

static const char *current;
static int passed, failed, failures_of_test;
static uint64_t state, digest = 0xcbf29ce484222325;

// The blocks of memory, each with 64 bytes after it.
enum { most_blocks = 1 << 18, slack = 64, canary = 0xa5 };
static struct { uint8_t *bytes; size_t count; } blocks[most_blocks];
static size_t block_count;

static void check_blocks(void) {
    for (size_t b = 0; b < block_count; b++) {
        for (int i = 0; i < slack; i++)
            if (blocks[b].bytes[blocks[b].count + i] != canary) {
                expect(0, "a kernel wrote %d bytes after the end of %zu", i, blocks[b].count);
                break;
            }
        free(blocks[b].bytes);
    }
    block_count = 0;
}

static void end(void) {
    if (!current) return;
    check_blocks();
    if (failures_of_test) failed++;
    else passed++;
}

void test(const char *name) {
    end();
    current = name;
    failures_of_test = 0;
    state = 88172645463325252;
    for (const char *c = name; *c; c++) state = state * 31 + (uint8_t)*c;
}

int finish(void) {
    end();
    printf("%d passed, %d failed; digest %016llx\n", passed, failed, (unsigned long long)digest);
    return failed > 0;
}

void expect(int condition, const char *format, ...) {
    // A broken kernel would print thousands of lines.
    if (condition || failures_of_test++ >= 5) return;
    va_list arguments;
    va_start(arguments, format);
    printf("failed: %s: ", current);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

void expect_close(const char *what, const float *y, const double *expected, size_t count, double tolerance) {
    for (size_t i = 0; i < count; i++) {
        if (isnan(expected[i]) && isnan(y[i])) continue;
        if (isinf(expected[i]) && y[i] == expected[i]) continue;
        // Written so that NaN fails.
        int is_close = fabs(y[i] - expected[i]) <= tolerance * (1 + fabs(expected[i]));
        expect(is_close, "%s, element %zu of %zu: %.9g, expected %.9g", what, i, count, y[i], expected[i]);
        if (!is_close) return;
    }
}

void expect_bytes(const char *what, const void *y, const void *expected, size_t count) {
    const uint8_t *a = y, *b = expected;
    for (size_t i = 0; i < count; i++)
        if (a[i] != b[i]) {
            expect(0, "%s, byte %zu of %zu: %d, expected %d", what, i, count, a[i], b[i]);
            return;
        }
}

void add_to_digest(const void *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) digest = (digest ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3;
}

uint32_t random_bits(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 16);
}

int32_t random_integer(int32_t first, int32_t last) {
    return first + (int32_t)(random_bits() % (uint32_t)(last - first + 1));
}

float random_float(float size) { return (float)random_integer(-1024, 1024) / 1024 * size; }

void *fresh(size_t bytes) {
    uint8_t *block = malloc(bytes + slack);
    if (!block || block_count == most_blocks) abort();
    memset(block, 0xff, bytes);
    memset(block + bytes, canary, slack);
    blocks[block_count].bytes = block;
    blocks[block_count++].count = bytes;
    return block;
}

float *random_floats(size_t count, float size) {
    float *values = FLOATS(count);
    for (size_t i = 0; i < count; i++) values[i] = random_float(size);
    return values;
}

uint8_t *random_bytes(size_t count) {
    uint8_t *values = fresh(count);
    for (size_t i = 0; i < count; i++) values[i] = (uint8_t)random_bits();
    return values;
}

int main(void) {
    test_elementwise();
    test_rows();
    test_normalization();
    test_windows();
    test_pooling();
    test_products();
    test_winograd();
    test_numbers();
    test_images();
    test_int8();
    return finish();
}
