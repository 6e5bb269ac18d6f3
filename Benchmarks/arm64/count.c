// A plugin of QEMU (version 6 to 8) that counts instructions, and those that move vector registers to or from the stack. It declares the few
// functions of QEMU that it calls, because packages of QEMU have no header.

#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct tb;
struct insn;
typedef void (*translated)(uint64_t id, struct tb *tb);
typedef void (*ended)(uint64_t id, void *context);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, translated callback);
void qemu_plugin_register_atexit_cb(uint64_t id, ended callback, void *context);
size_t qemu_plugin_tb_n_insns(const struct tb *tb);
struct insn *qemu_plugin_tb_get_insn(const struct tb *tb, size_t index);
const void *qemu_plugin_insn_data(const struct insn *insn);
// Operation 0 adds `amount` to the counter.
void qemu_plugin_register_vcpu_insn_exec_inline(struct insn *insn, int operation, void *counter, uint64_t amount);
void qemu_plugin_outs(const char *text);

__attribute__((visibility("default"))) int qemu_plugin_version = 1;
static uint64_t all, on_stack;

// Whether an instruction is LDR, STR, LDUR, STUR, LDP or STP of registers of 128 bits relative to the stack pointer.
static int is_on_stack(uint32_t code) {
    int is_access = (code & 0xff800000) == 0x3d800000 || (code & 0xffa00000) == 0x3c800000 || (code & 0xfe000000) == 0xac000000;
    return is_access && (code >> 5 & 31) == 31;
}

static void count(uint64_t id, struct tb *tb) {
    (void)id;
    for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++) {
        struct insn *insn = qemu_plugin_tb_get_insn(tb, i);
        uint32_t code;
        memcpy(&code, qemu_plugin_insn_data(insn), 4);
        qemu_plugin_register_vcpu_insn_exec_inline(insn, 0, &all, 1);
        if (is_on_stack(code)) qemu_plugin_register_vcpu_insn_exec_inline(insn, 0, &on_stack, 1);
    }
}

static void print(uint64_t id, void *context) {
    (void)id, (void)context;
    char line[64];
    snprintf(line, sizeof line, "counted %llu %llu\n", (unsigned long long)all, (unsigned long long)on_stack);
    qemu_plugin_outs(line);
}

__attribute__((visibility("default"))) int qemu_plugin_install(uint64_t id, const void *info, int count_of_arguments, char **arguments) {
    (void)info, (void)count_of_arguments, (void)arguments;
    qemu_plugin_register_vcpu_tb_trans_cb(id, count);
    qemu_plugin_register_atexit_cb(id, print, 0);
    return 0;
}
