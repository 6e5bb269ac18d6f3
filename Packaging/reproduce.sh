#!/usr/bin/env bash
# Makes the packages again in a clone in another folder, and compares all files with those in dist.
set -euo pipefail
cd "$(dirname "$0")/.."
if [ -n "$(git status --porcelain)" ]; then
    echo "The checkout has changes that are not committed, so a clone differs. Commit or remove them." >&2
    exit 1
fi
dist=$PWD/dist resolved=$PWD/Package.resolved
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Another folder, with a path of another length, and another depth.
clone=$work/another/folder-of-a-clone
git clone --quiet . "$clone"
(cd "$clone" && Packaging/package.sh --resolved "$resolved" >&2)

status=0
for file in "$dist"/*; do
    if cmp --silent "$file" "$clone/dist/$(basename "$file")"; then
        echo "identical: $(basename "$file")"
    else
        echo "DIFFERENT: $(basename "$file")"
        status=1
    fi
done
if [ "$status" -ne 0 ]; then
    # The names of the files that differ, and how many bytes of them.
    for folder in "$dist" "$clone/dist"; do
        unpacked=$work/unpacked-$(cksum <<<"$folder" | cut -d' ' -f1)
        mkdir -p "$unpacked/deb"
        dpkg-deb --raw-extract "$folder"/*.deb "$unpacked/deb"
        tar -xf "$folder"/*.tar.gz -C "$unpacked"
        (cd "$unpacked" && find . -type f -exec sha256sum {} + | sort -k 2) >"$unpacked.list"
    done
    diff "$work"/unpacked-*.list || true
fi
exit "$status"
