#!/bin/bash -eu
# Builds the fuzz targets into $OUT, with their seed corpora, dictionaries and shared libraries.
set -o pipefail

# shellcheck disable=SC1091 # a program of the base image
. precompile_swift

# The package has the tools version 6.2, for which precompile_swift sets SWIFT6_2FLAGS. The programs load libraries from $OUT/lib.
# Without new dynamic tags, this path also applies to libraries that these libraries load.
# A debug build checks overflow and preconditions like an optimized one.
cd "$SRC/imprint"
# shellcheck disable=SC2086 # a list of options
swift build --package-path Fuzzing --scratch-path "$WORK/build" -c debug $SWIFT6_2FLAGS \
    -Xlinker --disable-new-dtags -Xlinker -rpath -Xlinker "\$ORIGIN/lib"
program=$WORK/build/debug/fuzz

python3 Fuzzing/make_corpora.py "$OUT"
# One program contains all targets; its name selects one.
for corpus in "$OUT"/fuzz_*_seed_corpus.zip; do
    name=$(basename "$corpus" _seed_corpus.zip)
    cp "$program" "$OUT/$name"
    # Foundation leaks 4 KiB when it reads an empty file with Data(contentsOf:), which is not an error of a target.
    printf '[libfuzzer]\nmax_len = 131072\n[asan]\ndetect_leaks = 0\n' >"$OUT/$name.options"
done

# The machines that run the targets have only the libraries of the base system.
mkdir -p "$OUT/lib"
ldd "$program" | awk '/=> \// { print $3 }' | grep -Ev '/lib(c|m|dl|rt|pthread|resolv|util)\.so' | while read -r library; do
    cp -L "$library" "$OUT/lib/"
done
