// Stops OpenBLAS from starting threads when the command-line tool starts.
//
// The constructor of OpenBLAS starts a thread per CPU and maps a buffer for each. If the address space is limited (`ulimit -v`) and mapping
// fails, it retries forever, before main. Imprint runs OpenBLAS single-threaded on its own workers and never uses those threads.
//
// OpenBLAS counts CPUs only if these variables are 0. Setting OPENBLAS_NUM_THREADS here has no effect, because libc resets the
// environment before OpenBLAS reads it. An executable's .preinit_array runs before the constructors of its shared libraries; a shared
// library may not have one, so this file is part of the tool and not of the library.

#if defined(__linux__)

extern int blas_num_threads __attribute__((weak));
extern int blas_cpu_number __attribute__((weak));

static void use_one_thread(void) {
    // Other BLAS builds lack these variables.
    if (!&blas_num_threads || !&blas_cpu_number) return;
    blas_num_threads = 1;
    blas_cpu_number = 1;
}

__attribute__((section(".preinit_array"), used)) static void (*const preinit)(void) = use_one_thread;

#else

typedef int nothing_to_do;

#endif
