#!/usr/bin/env bash
# Type-checks the code for Apple platforms on Linux, against the stub modules in Stubs and the C headers in Headers.
# docs/explanation/platforms.md describes what this check can find.
set -euo pipefail
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The C modules that Swift imports; SwiftPM generates such module maps.
for module in CImprintKernels CImprintCodecs; do
    printf 'module %s {\n    umbrella "%s"\n    export *\n}\n' "$module" "$PWD/Sources/$module/include"
done >"$work/module.modulemap"

frontend() {
    swiftc -frontend -swift-version 6 -parse-as-library -package-name imprint -suppress-warnings \
        -enable-upcoming-feature InternalImportsByDefault -module-cache-path "$work/cache" -I "$work" "$@"
}

for module in Darwin os zlib Accelerate CoreGraphics ImageIO; do
    frontend -emit-module -module-name "$module" -o "$work/$module.swiftmodule" "Tests/AppleTypes/Stubs/$module.swift"
done

# Copies the sources of a module, and replaces the conditions that depend on the compiler's target: copy_sources PLATFORM MODULE
copy_sources() {
    local file
    mkdir -p "$work/$1/$2"
    while IFS= read -r file; do
        sed -E "/^ *#(if|elseif) /{
            s/canImport\\((Glibc|Musl)\\)/IS_LINUX/g
            s/os\\((Linux|macOS|iOS)\\)/IS_\\1/g
        }" "$file" >"$work/$1/$2/$(basename "$file")"
    done < <(find "Sources/$2" -name '*.swift')
}

# Type-checks the files of a module that differ between platforms, and those that call them: check_swift PLATFORM MODULE [OPTION …]
# Each file sees Darwin, which Foundation exports on Apple platforms.
check_swift() {
    local platform=$1 module=$2 file files=()
    shift 2
    copy_sources "$platform" "$module"
    for file in "$work/$platform/$module"/*.swift; do
        if [[ " $* " == *" -typecheck "* ]] &&
            grep -qE 'canImport\(|IS_|\b(BLAS|JPEG|PNG|WebP|HEIC|ColorProfile|Orientation)\b|compressed\(' "$file"; then
            files+=(-primary-file)
        fi
        files+=("$file")
    done
    frontend -D "IS_$platform" -module-name "$module" -import-module Darwin -I "$work/$platform" "$@" "${files[@]}"
}

# Type-checks the HTTP client of ImprintStore with the files that it uses. They use only ImprintCore and the error type of Imprint.
# URLSession is in FoundationNetworking on Linux, and in Foundation on Apple platforms.
check_http() {
    local folder=$work/macOS files=(DownloadLimits Fetch HTTPExchange HTTPMessage HTTPTransfer SessionTransfer SignatureError StoreError)
    files=("${files[@]/#/$folder/ImprintStore/}")
    frontend -emit-module -module-name Imprint -I "$folder" -o "$folder/Imprint.swiftmodule" Sources/Imprint/{ImprintError,SettingChange}.swift
    copy_sources macOS ImprintStore
    frontend -D IS_macOS -module-name ImprintStore -import-module Darwin -import-module FoundationNetworking -I "$folder" -typecheck \
        "${files[@]/%/.swift}"
}

# Checks the C sources for an architecture, with the traits that are on by default, so without MPI: check_c ARCHITECTURE
check_c() {
    local includes=() folder
    for folder in Sources/C*/include; do includes+=(-I "$folder"); done
    # The stubs are not the whole C library, so the compiler may not expect one.
    "$(dirname "$(readlink -f "$(command -v swiftc)")")/clang" -target "$1-apple-macos15" -std=gnu11 -fsyntax-only -ffreestanding -nostdlibinc -w \
        -Werror=implicit-function-declaration -isystem Tests/AppleTypes/Headers "${includes[@]}" \
        -DIMPRINT_SVG -DIMPRINT_SHARE \
        Sources/C{DynamicLibrary,ImprintBase,ImprintCodecs,ImprintKernels,ImprintMPI,ImprintShare,Startup}/*.c
}

check_c arm64
check_c x86_64
# The other modules have no code that differs between macOS and iOS.
check_swift iOS ImprintCore -typecheck
check_swift macOS ImprintCore -emit-module -o "$work/macOS/ImprintCore.swiftmodule"
check_swift macOS ImprintNetwork -typecheck
check_swift macOS ImprintImages -typecheck
check_http
echo "The code for Apple platforms passes the type check."
