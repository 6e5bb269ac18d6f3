#!/usr/bin/env bash
# Tests the C kernels on this machine with each of its instruction sets, and for arm64 under QEMU, on CPUs with and without the optional
# instructions. The outputs that must be exact are the same bits everywhere.
set -euo pipefail
cd "$(dirname "$0")/../.."

# shellcheck source=Packaging/dependencies.sh
source Packaging/dependencies.sh
packages=(qemu-user gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0
digest=

# The compiler of the Swift toolchain, which also builds the package.
compiler() {
    local swift
    swift=$(command -v swift || true)
    if [ -n "$swift" ] && [ -x "$(dirname "$(readlink -f "$swift")")/clang" ]; then
        echo "$(dirname "$(readlink -f "$swift")")/clang"
    else
        command -v clang
    fi
}

has_arm64_tools() { command -v qemu-aarch64 >/dev/null && command -v aarch64-linux-gnu-gcc >/dev/null && [ -d /usr/aarch64-linux-gnu/include ]; }

# Installs the emulator and the C library for arm64.
install_arm64_tools() {
    has_arm64_tools && return
    command -v apt-get >/dev/null && apt_install "${packages[@]}" && has_arm64_tools
}

# Compiles the C files of a folder in parallel: compile FOLDER OUTPUT OPTION …
compile() {
    local file
    for file in "$1"/*.c; do printf '%s\0' "$2-$(basename "$file" .c).o" "$file"; done |
        xargs -0 -n 2 -P "$(getconf _NPROCESSORS_ONLN)" "$clang" "${@:3}" -ISources/CImprintKernels/include -c -o
}

# Compiles kernels and tests: build FOLDER OPTION …
build() {
    local folder=$work/$1
    mkdir -p "$folder"
    compile Sources/CImprintKernels "$folder/kernel" -O2 "${@:2}"
    compile Tests/ArmKernels "$folder/test" -O1 -ffp-contract=off -Wall -Wextra -Werror "${@:2}"
}

# Runs the tests and adds their results; the digest must be that of the first run: run NAME COMMAND …
run() {
    local output status=0
    output=$("${@:2}" </dev/null 2>&1) || status=$?
    local totals=${output##*$'\n'}
    # The status is 1 if a test fails. Another one is that of a crash, which may come after the totals.
    if [[ ! $totals =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed\;\ digest\ ([0-9a-f]+)$ ]] ||
        [ "$status" -ne "$((BASH_REMATCH[2] != 0))" ]; then
        printf '%s\nThe tests on %s ended with status %d.\n' "$output" "$1" "$status"
        failed=$((failed + 1))
        return
    fi
    passed=$((passed + BASH_REMATCH[1]))
    failed=$((failed + BASH_REMATCH[2]))
    [ "${BASH_REMATCH[2]}" = 0 ] || printf '%s\n' "$output"
    echo "$1: $totals"
    if [ -z "$digest" ]; then
        digest=${BASH_REMATCH[3]}
    elif [ "$digest" = "${BASH_REMATCH[3]}" ]; then
        passed=$((passed + 1))
    else
        echo "The exact outputs on $1 differ from those of the first run."
        failed=$((failed + 1))
    fi
}

clang=$(compiler) || {
    echo "Tests/ArmKernels: there is no clang, which comes with the Swift toolchain; the tests of the C kernels are skipped." >&2
    [ "${CI:-}" = true ] && exit 1
    exit 0
}
build native
"$clang" "$work"/native/*.o -lm -o "$work/native/tests"
machine=$(uname -m)
run "$machine" "$work/native/tests"
run "$machine, baseline" env IMPRINT_KERNELS=baseline "$work/native/tests"
if [ "$machine" = x86_64 ] && grep -qw avx2 /proc/cpuinfo 2>/dev/null; then
    run "$machine, AVX2" env IMPRINT_KERNELS=v3 "$work/native/tests"
fi

if [ "$(uname -sm)" = "Linux x86_64" ]; then
    if install_arm64_tools; then
        build arm64 --target=aarch64-linux-gnu --sysroot=/usr/aarch64-linux-gnu -I/usr/aarch64-linux-gnu/include
        aarch64-linux-gnu-gcc -static "$work"/arm64/*.o -lm -o "$work/arm64/tests"
        # Without optional instructions except CRC-32C; with SDOT; with SDOT and BFDOT; and without any.
        for cpu in cortex-a53 neoverse-n1 max; do run "arm64, $cpu" qemu-aarch64 -cpu "$cpu" "$work/arm64/tests"; done
        run "arm64, baseline" qemu-aarch64 -cpu max -E IMPRINT_KERNELS=baseline "$work/arm64/tests"
    else
        echo "Tests/ArmKernels: ${packages[*]} cannot be installed; the tests of the C kernels on arm64 are skipped." >&2
        [ "${CI:-}" != true ] || failed=$((failed + 1))
    fi
else
    echo "Tests/ArmKernels: arm64 is emulated only on x86-64 Linux; these tests are skipped." >&2
fi
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
