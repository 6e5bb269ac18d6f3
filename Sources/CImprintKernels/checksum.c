#include "imprint_kernels.h"

#include "dispatch.h"

#include <string.h>

#if defined(__x86_64__) && defined(__linux__)
#include <nmmintrin.h>
#include <wmmintrin.h>
#elif defined(__aarch64__)
#include <arm_acle.h>
#endif

// The remainders of 4-bit values for the bit-reversed polynomial 0x1EDC6F41.
static const uint32_t remainders[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

static uint32_t by_table(uint32_t state, const uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) {
        state ^= bytes[i];
        state = (state >> 4) ^ remainders[state & 15];
        state = (state >> 4) ^ remainders[state & 15];
    }
    return state;
}

uint32_t imprint_crc32c_by_table(uint32_t checksum, const void *bytes, size_t count) {
    return ~by_table(~checksum, bytes, count);
}

#if defined(__x86_64__) && defined(__linux__)
// The length of a lane in bytes. The CRC instruction has a latency of three cycles and a throughput of one per cycle, so three lanes run
// interleaved.
enum { lane = 2048 };
// Bit-reversed x^(8 lane - 33) and x^(16 lane - 33), which advance a remainder by one lane and by two lanes (Gopal et al., "Fast CRC
// computation for iSCSI polynomial using CRC32 instruction", 2011).
static const uint64_t one_lane = 0xa51b6135, two_lanes = 0x82f89c77;

__attribute__((target("sse4.2,pclmul"))) static inline uint64_t advanced(uint64_t state, uint64_t distance) {
    __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)state), _mm_cvtsi64_si128((long long)distance), 0);
    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

static inline uint64_t word_at(const uint8_t *bytes) {
    uint64_t word;
    memcpy(&word, bytes, 8);
    return word;
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t by_instruction(uint32_t state, const uint8_t *bytes, size_t count) {
    uint64_t wide = state;
    for (; count >= 3 * lane; bytes += 3 * lane, count -= 3 * lane) {
        uint64_t second = 0, third = 0;
        for (size_t i = 0; i < lane; i += 8) {
            wide = _mm_crc32_u64(wide, word_at(bytes + i));
            second = _mm_crc32_u64(second, word_at(bytes + lane + i));
            third = _mm_crc32_u64(third, word_at(bytes + 2 * lane + i));
        }
        wide = advanced(wide, two_lanes) ^ advanced(second, one_lane) ^ third;
    }
    for (; count >= 8; bytes += 8, count -= 8) wide = _mm_crc32_u64(wide, word_at(bytes));
    state = (uint32_t)wide;
    for (; count > 0; bytes++, count--) state = _mm_crc32_u8(state, *bytes);
    return state;
}
#elif defined(__aarch64__)
static CRC32_TARGET uint32_t by_instruction(uint32_t state, const uint8_t *bytes, size_t count) {
    for (; count >= 8; bytes += 8, count -= 8) {
        uint64_t word;
        memcpy(&word, bytes, 8);
        state = __crc32cd(state, word);
    }
    for (; count > 0; bytes++, count--) state = __crc32cb(state, *bytes);
    return state;
}
#endif

uint32_t imprint_crc32c(uint32_t checksum, const void *bytes, size_t count) {
#if defined(__x86_64__) && defined(__linux__)
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul")) return ~by_instruction(~checksum, bytes, count);
#elif defined(__aarch64__)
    if (imprint_arm64.crc32) return ~by_instruction(~checksum, bytes, count);
#endif
    return imprint_crc32c_by_table(checksum, bytes, count);
}

KERNEL(int, imprint_all_finite, (const float *x, size_t count), (x, count)) {
    uint32_t found = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], 4);
        // The exponent bits of infinity and NaN are all set.
        found |= (bits & 0x7f800000) == 0x7f800000;
    }
    return !found;
}
