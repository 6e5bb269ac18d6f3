// Conversions to float16, checksums and steps of optimizers.

#include "check.h"

// The value of a float16, by arithmetic.
static double float16_value(uint16_t half) {
    int exponent = half >> 10 & 31, fraction = half & 1023;
    double value = exponent == 31 ? (fraction ? NAN : INFINITY)
                 : exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
    return half & 0x8000 ? -value : value;
}

static void test_float16(void) {
    test("float16 to float32, all values");
    uint16_t *halves = fresh(65536 * 2), *back = fresh(65536 * 2);
    float *floats = FLOATS(65536);
    double *expected = DOUBLES(65536);
    for (int i = 0; i < 65536; i++) halves[i] = (uint16_t)i, expected[i] = float16_value((uint16_t)i);
    imprint_float16_to_float32(halves, floats, 65536);
    expect_close("value", floats, expected, 65536, 0);
    expect(imprint_float32_to_float16(floats, back, 65536) == 0, "infinite values are not overflows");
    for (int i = 0; i < 65536; i++) expect(halves[i] == back[i] || isnan(floats[i]), "%04x became %04x", i, back[i]);

    test("float32 to float16");
    FOR_EACH_COUNT(n) {
        float *x = FLOATS(n);
        uint16_t *y = fresh(n * 2);
        size_t overflows = 0;
        for (size_t i = 0; i < n; i++) {
            x[i] = ldexpf(random_float(1), random_integer(-30, 17));
            overflows += fabsf(x[i]) >= 65520;
        }
        size_t found = imprint_float32_to_float16(x, y, n);
        expect(found == overflows, "%zu overflows, expected %zu", found, overflows);
        for (size_t i = 0; i < n; i++) {
            double value = float16_value(y[i]), distance = fabs(value - x[i]);
            if (fabsf(x[i]) >= 65520) expect(isinf(value), "%g became %g", x[i], value);
            // No neighbour is nearer.
            else expect(distance <= fabs(float16_value(y[i] + 1) - x[i]) && (!(y[i] & 0x7fff) || distance <= fabs(float16_value(y[i] - 1) - x[i])),
                        "%g became %g", x[i], value);
        }
    }
}

static void test_checksums(void) {
    test("CRC-32C");
    expect(imprint_crc32c(0, "123456789", 9) == 0xe3069283, "the check value of RFC 3720");
    for (size_t n = 0; n < 70; n++) {
        uint8_t *bytes = random_bytes(n);
        uint32_t state = 0xffffffff;
        for (size_t i = 0; i < n; i++) {
            state ^= bytes[i];
            for (int bit = 0; bit < 8; bit++) state = state >> 1 ^ (state & 1 ? 0x82f63b78 : 0);
        }
        uint32_t found = imprint_crc32c(0, bytes, n), by_table = imprint_crc32c_by_table(0, bytes, n);
        expect(found == ~state && by_table == ~state, "%zu bytes: %08x, by table %08x, expected %08x", n, found, by_table, ~state);
        uint32_t first = imprint_crc32c(0, bytes, n / 3);
        expect(imprint_crc32c(first, bytes + n / 3, n - n / 3) == found, "%zu bytes in two parts", n);
    }
    uint8_t *many = random_bytes(100000);
    expect(imprint_crc32c(1, many, 100000) == imprint_crc32c_by_table(1, many, 100000), "100,000 bytes");

    test("finite elements");
    FOR_EACH_COUNT(n) {
        float *x = random_floats(n, 1e30f);
        expect(imprint_all_finite(x, n), "%zu finite elements", n);
        for (size_t i = 0; i < n; i++) {
            float value = x[i];
            x[i] = i % 2 ? NAN : -INFINITY;
            expect(!imprint_all_finite(x, n), "element %zu of %zu", i, n);
            x[i] = value;
        }
    }
}

static void test_optimizers(void) {
    test("optimizers");
    FOR_EACH_COUNT(n) {
        float *gradients = random_floats(n, 1);
        double *p = DOUBLES(n), *v = DOUBLES(n), *m = DOUBLES(n), sum = 0;
        for (int nesterov = 0; nesterov < 2; nesterov++) {
            float *parameters = random_floats(n, 1), *velocities = random_floats(n, 1);
            for (size_t i = 0; i < n; i++) {
                double g = 0.5 * gradients[i] + 0.01 * parameters[i];
                v[i] = 0.9 * velocities[i] + g;
                p[i] = parameters[i] - 0.1 * (nesterov ? g + 0.9 * v[i] : v[i]);
            }
            imprint_sgd(parameters, gradients, velocities, n, 0.1f, 0.9f, 0.01f, 0.5f, nesterov);
            expect_close("parameters", parameters, p, n, 1e-6);
            expect_close("velocities", velocities, v, n, 1e-6);
        }
        float *parameters = random_floats(n, 1), *means = random_floats(n, 1), *squares = random_floats(n, 1);
        const imprint_adamw_step step = {0.1f, 0.9f, 0.99f, 0.19f, 0.02f, 0.001f, 0.01f, 0.5f};
        for (size_t i = 0; i < n; i++) {
            squares[i] = fabsf(squares[i]) + 0.01f;
            double g = 0.5 * gradients[i];
            m[i] = means[i] + (1 - (double)step.beta1) * (g - means[i]);
            v[i] = squares[i] + (1 - (double)step.beta2) * (g * g - squares[i]);
            p[i] = parameters[i] - step.rate * (step.weight_decay * (double)parameters[i]
                                                + m[i] / step.mean_correction / (sqrt(v[i] / step.square_correction) + step.epsilon));
            sum += (double)gradients[i] * gradients[i];
        }
        imprint_adamw(parameters, gradients, means, squares, n, &step);
        expect_close("AdamW", parameters, p, n, 2e-6);
        expect_close("means", means, m, n, 1e-6);
        expect_close("squares", squares, v, n, 1e-6);
        double found = imprint_sum_of_squares(gradients, n);
        expect(fabs(found - sum) < 1e-5 * (1 + sum), "sum of squares %g, expected %g", found, sum);
        for (size_t i = 0; i < n; i++) p[i] = parameters[i] + 0.3 * ((double)gradients[i] - parameters[i]);
        imprint_move_towards(parameters, gradients, n, 0.3f);
        expect_close("moved", parameters, p, n, 1e-6);
    }
}

void test_numbers(void) {
    test_float16();
    test_checksums();
    test_optimizers();
}
