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
# The compiler stores the lengths of the paths of some source files, but not the paths. So the clone has a path of the same length.
if [ ${#PWD} -lt 9 ]; then
    echo "The path of the checkout is shorter than that of a temporary folder. Move it to a folder with a longer path." >&2
    exit 1
fi
clone=$(mktemp -d "/tmp/$(printf '%*s' $((${#PWD} - 5)) '' | tr ' ' X)")
trap 'rm -rf "$work" "$clone"' EXIT
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
