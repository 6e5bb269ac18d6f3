// Runtime dispatch: on x86-64, each kernel is compiled for three instruction sets, and a call runs the best one that the CPU supports. On
// arm64, each kernel is compiled for NEON, which all CPUs have; a few kernels also have versions for optional instructions.

#ifndef IMPRINT_DISPATCH_H
#define IMPRINT_DISPATCH_H

#pragma clang fp contract(fast)

// A function that a kernel calls; see KERNEL.
#define INLINE static inline __attribute__((always_inline))

// The instruction sets of x86-64, from the oldest to the newest: SSE2; AVX2 with fused multiply-add; AVX-512. arm64 has only the baseline.
enum { imprint_baseline, imprint_v3, imprint_v4 };

// The instruction set that all kernels use. It is set once, before main.
extern int imprint_instruction_set __attribute__((visibility("hidden")));

// Chooses a constant, such as the shape of a tile, by the architecture.
#if defined(__aarch64__)
#define ON_ARM64(arm64, other) (arm64)
#else
#define ON_ARM64(arm64, other) (other)
#endif

#if defined(__aarch64__)
// The optional instructions of this CPU that kernels use. They are set once, before main.
typedef struct {
    int dot_product;   // SDOT: adds four products of int8 numbers
    int bfloat16;      // BFDOT and BFCVT: adds two products of bfloat16 numbers, and rounds to them
    int crc32;         // CRC-32C
} imprint_arm64_features;
extern imprint_arm64_features imprint_arm64 __attribute__((visibility("hidden")));

#define DOT_PRODUCT_TARGET __attribute__((target("dotprod")))
#define ARM64_BFLOAT16_TARGET __attribute__((target("bf16")))
#define CRC32_TARGET __attribute__((target("crc")))
#endif

#if defined(__x86_64__)
// The features of x86-64-v3 and v4. "arch=x86-64-v4" would also tune for the first CPUs with AVX-512, and use only 256-bit vectors.
#define IMPRINT_V3 "avx2,bmi,bmi2,f16c,fma,lzcnt,movbe,popcnt"
#define IMPRINT_V4 IMPRINT_V3 ",avx512f,avx512vl,avx512bw,avx512dq,avx512cd"

// Defines a kernel; its body follows. The parameters and the names of the arguments are in parentheses:
//     KERNEL(void, imprint_scale, (const float *x, float *y), (x, y)) { … }
// The body is inlined into one function per instruction set. Every function that the body calls must be
// INLINE too: otherwise it is compiled for the baseline only. Vectors are passed through pointers or macros, because the
// calling convention for vector values depends on the instruction set.
#define KERNEL(type, name, parameters, arguments)                                                   \
    static inline __attribute__((always_inline)) type name##_body parameters;                       \
    static type name##_baseline parameters { return name##_body arguments; }                        \
    static __attribute__((target(IMPRINT_V3))) type name##_v3 parameters {                          \
        return name##_body arguments;                                                               \
    }                                                                                               \
    static __attribute__((target(IMPRINT_V4))) type name##_v4 parameters {                          \
        return name##_body arguments;                                                               \
    }                                                                                               \
    type name parameters {                                                                          \
        switch (imprint_instruction_set) {                                                          \
        case imprint_v4: return name##_v4 arguments;                                                \
        case imprint_v3: return name##_v3 arguments;                                                \
        default: return name##_baseline arguments;                                                  \
        }                                                                                           \
    }                                                                                               \
    static inline __attribute__((always_inline)) type name##_body parameters
#else
#define KERNEL(type, name, parameters, arguments) type name parameters
#endif

// Precedes a loop whose iterations are independent even if the output overwrites the input element by element. Without it, the compiler
// tests whether the buffers overlap, and runs a scalar loop if they do.
#define IN_PLACE _Pragma("clang loop vectorize(assume_safety)")

#endif
