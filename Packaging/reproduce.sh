#!/usr/bin/env bash
# Makes the packages again in a clone in another folder, and compares all files with those in dist.
set -euo pipefail
cd "$(dirname "$0")/.."

changes=$(git status --porcelain)
if [ -n "$changes" ]; then
    echo "The checkout has changes that are not committed, so a clone differs. Commit or remove them." >&2
    exit 1
fi
dist=$PWD/dist resolved=$PWD/Package.resolved
temporary=${TMPDIR:-/tmp}
temporary=${temporary%/}
# The compiler stores the lengths of the paths of some source files, but not the paths. So the clone has a path of the same length. It
# contains at least three random letters.
letters=$((${#PWD} - ${#temporary} - 1))
if [ "$letters" -lt 3 ]; then
    echo "$PWD: the path of the checkout is shorter than that of a folder in $temporary. Move it to a folder with a longer path." >&2
    exit 1
fi
work=$(mktemp -d)
clone=''
trap 'rm -rf "$work" "$clone"' EXIT
clone=$(mktemp -d "$temporary/$(printf '%*s' "$letters" '' | tr ' ' X)")
git clone --quiet . "$clone"
(cd "$clone" && Packaging/package.sh --resolved "$resolved" >&2)

# Lists the files of a folder with its subfolders.
files() {
    (cd "$1" && find . ! -type d -printf '%P\n' | sort)
}

# Unpacks the packages of a folder, and lists their files with their checksums: unpack FOLDER OUTPUT
unpack() {
    local file
    mkdir -p "$2"
    for file in "$1"/*; do
        case $file in
        *.deb) dpkg-deb --raw-extract "$file" "$2/deb" ;;
        *.tar.gz) tar -xf "$file" -C "$2" ;;
        esac
    done
    (cd "$2" && find . -type f -exec sha256sum {} + | sort -k 2) >"$2.list"
}

status=0
files "$dist" >"$work/expected"
files "$clone/dist" >"$work/found"
while IFS= read -r name; do
    if [ ! -e "$clone/dist/$name" ]; then
        result=MISSING
    elif [ ! -e "$dist/$name" ]; then
        result=ADDITIONAL
    elif ! cmp --silent "$dist/$name" "$clone/dist/$name"; then
        result=DIFFERENT
    else
        result=identical
    fi
    [ "$result" = identical ] || status=1
    echo "$result: $name"
done < <(sort -u "$work/expected" "$work/found")
if [ ! -s "$work/expected" ]; then
    echo "$dist has no files. Run ./run package." >&2
    status=1
fi
if [ "$status" -ne 0 ]; then
    # The files of the packages that differ.
    unpack "$dist" "$work/expected-files"
    unpack "$clone/dist" "$work/found-files"
    diff "$work/expected-files.list" "$work/found-files.list" || true
fi
exit "$status"
