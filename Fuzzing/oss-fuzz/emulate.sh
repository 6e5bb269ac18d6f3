#!/usr/bin/env bash
# Builds the fuzz targets as OSS-Fuzz does, without Docker, and checks them like its command check_build.
#
#     Fuzzing/oss-fuzz/emulate.sh [FOLDER]
#
# FOLDER, by default .build-oss-fuzz, gets the folders src, work and out. The result is in out; check.py prints a line for each target.
set -euo pipefail
repository=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(realpath -m "${1:-$repository/.build-oss-fuzz}")
cd "$repository/Fuzzing/oss-fuzz"

# The environment of the base image: its folders, and its flags for a build with AddressSanitizer and libFuzzer.
# uname uses the names of OSS-Fuzz for architectures: x86_64 and aarch64.
ARCHITECTURE=$(uname -m)
export SRC=$folder/src WORK=$folder/work OUT=$folder/out
export SANITIZER=address FUZZING_ENGINE=libfuzzer ARCHITECTURE FUZZING_LANGUAGE=swift
export CC=clang CXX=clang++ LIB_FUZZING_ENGINE=-fsanitize=fuzzer
export CFLAGS="-O1 -fno-omit-frame-pointer -gline-tables-only -DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION \
-fsanitize=address -fsanitize-address-use-after-scope -fsanitize=fuzzer-no-link"
export CXXFLAGS="$CFLAGS -stdlib=libc++"

rm -rf "$SRC" "$OUT"
mkdir -p "$SRC" "$WORK" "$OUT"
ln -s "$repository" "$SRC/imprint"
cp projects/imprint/build.sh "$SRC/"
(cd "$SRC/imprint" && PATH="$repository/Fuzzing/oss-fuzz/emulation:$PATH" bash -eu "$SRC/build.sh")

# Targets must not depend on the folder in which they were built.
rm -rf "$folder/elsewhere"
mv "$OUT" "$folder/elsewhere"
status=0
python3 check.py "$folder/elsewhere" || status=$?
mv "$folder/elsewhere" "$OUT"
exit "$status"
