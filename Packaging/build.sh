#!/usr/bin/env bash
# Builds the program of the packages in SCRATCH_PATH, inside the checkout, and prints its path: build.sh SCRATCH_PATH
# The Swift runtime is linked statically. The program depends on the length of the path of the checkout, and not on the path.
# With PINNED=1, SwiftPM must use the versions of Package.resolved.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=Packaging/dependencies.sh
source Packaging/dependencies.sh
scratch=$PWD/${1:?usage: build.sh SCRATCH_PATH}
flags=(
    -c release --static-swift-stdlib --scratch-path "$scratch"
    # Debug information contains paths, and the packages do not have it.
    -debug-info-format none
    # Paths of the checkout become relative: in Swift, in #file of packages in Swift 5 mode, and in __FILE__ of C.
    -Xswiftc -file-prefix-map -Xswiftc "$PWD=."
    -Xcc "-ffile-prefix-map=$PWD=." -Xcxx "-ffile-prefix-map=$PWD=."
    # Otherwise, it is derived from sections that are removed.
    -Xlinker --build-id=none
)
[ "${PINNED:-}" != 1 ] || flags+=(--force-resolved-versions)
swift_build "${flags[@]}" --product generate-manual >&2
swift_build "${flags[@]}" --product imprint >&2
echo "$scratch/release/imprint"
