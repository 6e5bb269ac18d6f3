#include "imprint_kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dispatch.h"

#if defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
// Headers of older kernels lack newer bits.
#ifndef HWCAP_ASIMDDP
#define HWCAP_ASIMDDP (1 << 20)
#endif
#ifndef HWCAP2_BF16
#define HWCAP2_BF16 (1 << 14)
#endif
#endif

int imprint_instruction_set = imprint_baseline;
// Whether products of bfloat16 numbers use AVX512-BF16 or BFDOT; set once, before main.
static int uses_bfloat16;
// Whether products of int8 numbers use AVX512-VNNI; set once, before main.
static int uses_vnni;

#if defined(__x86_64__)
static int best_instruction_set(void) {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("x86-64-v4")) return imprint_v4;
    return __builtin_cpu_supports("x86-64-v3") ? imprint_v3 : imprint_baseline;
}

// Runs before main, so kernels need not check for initialization. IMPRINT_KERNELS selects an older instruction set for tests.
__attribute__((constructor)) static void choose_instruction_set(void) {
    int best = best_instruction_set();
    const char *name = getenv("IMPRINT_KERNELS");
    imprint_instruction_set = best;
    if (!name) {
        uses_bfloat16 = best == imprint_v4 && __builtin_cpu_supports("avx512bf16");
        uses_vnni = best == imprint_v4 && __builtin_cpu_supports("avx512vnni");
        return;
    }
    int chosen = strcmp(name, "baseline") == 0 ? imprint_baseline
               : strcmp(name, "v3") == 0       ? imprint_v3
               : strcmp(name, "v4") == 0       ? imprint_v4
                                               : -1;
    if (chosen >= 0 && chosen <= best) imprint_instruction_set = chosen;
    else fprintf(stderr, "IMPRINT_KERNELS: this CPU does not support \"%s\". Expected \"baseline\", \"v3\" or \"v4\".\n", name);
}
#elif defined(__aarch64__)
imprint_arm64_features imprint_arm64;

// The instructions that every CPU of the target has, and those that Linux reports.
static imprint_arm64_features available_features(void) {
    imprint_arm64_features found = {0};
#if defined(__linux__)
    unsigned long basic = getauxval(AT_HWCAP), newer = getauxval(AT_HWCAP2);
    found.dot_product = (basic & HWCAP_ASIMDDP) != 0;
    found.bfloat16 = (newer & HWCAP2_BF16) != 0;
    found.crc32 = (basic & HWCAP_CRC32) != 0;
#endif
#if defined(__ARM_FEATURE_DOTPROD)
    found.dot_product = 1;
#endif
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
    found.bfloat16 = 1;
#endif
#if defined(__ARM_FEATURE_CRC32)
    found.crc32 = 1;
#endif
    return found;
}

// Runs before main, so kernels need not check for initialization. IMPRINT_KERNELS=baseline selects the kernels for all CPUs for tests.
__attribute__((constructor)) static void choose_instructions(void) {
    const char *name = getenv("IMPRINT_KERNELS");
    if (!name || strcmp(name, "baseline") != 0) imprint_arm64 = available_features();
    if (name && strcmp(name, "baseline") != 0)
        fprintf(stderr, "IMPRINT_KERNELS: \"%s\" is unknown on arm64. Expected \"baseline\".\n", name);
    uses_bfloat16 = imprint_arm64.bfloat16;
}
#endif

int imprint_kernels_use_bfloat16(void) { return uses_bfloat16; }

int imprint_kernels_use_vnni(void) { return uses_vnni; }

int imprint_kernels_int8_are_fast(void) {
#if defined(__aarch64__)
    return imprint_arm64.dot_product;
#else
    return imprint_instruction_set >= imprint_v3;
#endif
}

int imprint_kernels_use_avx512(void) { return imprint_instruction_set == imprint_v4; }

const char *imprint_kernels_vector_instructions(void) {
#if defined(__x86_64__)
    switch (imprint_instruction_set) {
    case imprint_v4: return "AVX-512";
    case imprint_v3: return "AVX2";
    default: return "SSE2";
    }
#elif defined(__aarch64__)
    return "NEON";
#else
    return "none";
#endif
}
