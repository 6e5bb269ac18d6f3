#!/usr/bin/env bash
# Installs the packages in dist on a new Debian without Swift, runs them and removes them. Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
if [ "$(id -u)" -ne 0 ]; then
    echo "The test of the packages makes a Debian in a folder, so run it as root: sudo ./run package --test" >&2
    exit 1
fi
deb=$(ls dist/*.deb) archive=$(ls dist/*.tar.gz)
work=$(mktemp -d)
# Mounts in the folder belong to processes that have ended; if one remained, rm must not delete what is in it.
trap 'rm -rf --one-file-system "$work"' EXIT
log=$work/log passed=0 failed=0
. /etc/os-release
# shellcheck source=Packaging/dependencies.sh
source Packaging/dependencies.sh

# Runs a command and counts its result: check DESCRIPTION COMMAND ARGUMENT …
check() {
    if "${@:2}" >"$log" 2>&1; then
        passed=$((passed + 1))
        echo "passed: $1"
    else
        failed=$((failed + 1))
        echo "FAILED: $1"
        sed 's/^/    /' "$log"
    fi
}

# Runs a command in another root folder. The mounted folders disappear with the process.
in_root() {
    # shellcheck disable=SC2016 # sh expands the arguments
    unshare --mount --pid --fork --kill-child -- sh -c '
        mount -t proc proc "$0/proc" && mount --bind /dev "$0/dev" &&
            exec chroot "$0" env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
    ' "$@"
}

# Makes a Debian with the smallest set of packages, from the package sources of this machine.
make_base() {
    local sources mirror options=(--variant=minbase)
    apt_install debootstrap && apt-get update -qq || return
    # shellcheck disable=SC2016 # apt-get expands the names
    sources=$(apt-get indextargets --format '$(REPO_URI) $(CODENAME) $(COMPONENT) $(ORIGIN)' 'Created-By: Packages' |
        awk -v origin="$ID" 'tolower($4) == origin { print "deb", $1, $2, $3 }' | sort -u) || return
    mirror=$(awk -v codename="$VERSION_CODENAME" '$3 == codename && $4 == "main" && !found++ { print $2 }' <<<"$sources")
    if [ -z "$mirror" ]; then
        echo "apt has no package source for $ID $VERSION_CODENAME. Add one, and run apt-get update."
        return 1
    fi
    case $mirror in https:*) options+=(--include=ca-certificates) ;; esac
    # debootstrap mounts /proc; the mount ends with the process, even if debootstrap fails.
    unshare --mount -- debootstrap "${options[@]}" "$VERSION_CODENAME" "$work/base" "$mirror" || return
    echo "$sources" >"$work/base/etc/apt/sources.list"
    apt-config dump | grep -iE '^Acquire::https?::Proxy' >"$work/base/etc/apt/apt.conf.d/90proxy" || true
    cp /etc/hosts "$work/base/etc/hosts" && in_root "$work/base" apt-get update -qq
}

has_no_swift() {
    test -z "$(find "$work/base" -xdev \( -name 'libswift*' -o -name 'swiftc' \) -print)"
}

files() {
    (cd "$1" && find . -xdev \( -path ./proc -o -path ./dev -o -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache \
        -o -path ./var/log \) -prune -o -print | sort)
}

# Fails if a root folder has other files than in a list, and prints them.
same_files() {
    files "$1" | diff "$2" -
}

demo() {
    install -m 755 Packaging/demo.sh "$1/srv/demo.sh"
    # shellcheck disable=SC2016 # sh expands the argument
    in_root "$1" sh -c 'mkdir -p /srv/demo && cd /srv/demo && bash /srv/demo.sh "$0"' "$2"
}

# Classifies a HEIC photo, for which libheif needs its decoder.
classify_heic() {
    PYTHONPATH=$python python3 -c '
import sys
import pillow_heif
from PIL import Image
pillow_heif.register_heif_opener()
Image.open(sys.argv[1]).resize((256, 256)).save(sys.argv[2])
' "$1/srv/demo/fresh/TwoCircles/00002.jpg" "$1/srv/demo/photo.heic" &&
        in_root "$1" "$2" classify /srv/demo/logo.imprint /srv/demo/photo.heic | grep 'TwoCircles'
}

forget_demo() {
    rm -rf "$1/srv/demo" "$1/srv/demo.sh"
}

recommended_exist() {
    local name
    for name in $(dpkg-deb --field "$deb" Recommends | tr -d ,) $(dpkg-deb --field "$deb" Suggests | tr -d ,); do
        in_root "$root" apt-cache show "$name" || return
    done
}

# Fails if a command prints anything.
silent() {
    local printed
    printed=$("$@") && echo "$printed" && [ -z "$printed" ]
}

has_files() {
    local file
    for file in "${@:2}"; do
        [ -s "$1/$file" ] || { echo "$1/$file is missing"; return 1; }
    done
}

# The libraries that do not come from the folder of the archive must be those that every Debian has.
only_base_libraries() {
    in_root "$root" ldd "$1/bin/imprint" >"$log.ldd" && cat "$log.ldd" && ! grep -q 'not found' "$log.ldd" &&
        grep -qF "=> $1/" "$log.ldd" &&
        ! grep -F '=> /' "$log.ldd" | grep -vF "=> $1/" |
            grep -vE '^\s(libc|libm|libdl|libpthread|librt|libresolv|libgcc_s|libstdc\+\+)\.so'
}

test_deb() {
    root=$work/deb
    cp -a "$work/base" "$root"
    files "$root" >"$work/before"
    cp "$deb" "$root/srv/imprint.deb"
    check "apt installs the Debian package with its dependencies" \
        in_root "$root" apt-get install -y -qq --no-install-recommends /srv/imprint.deb
    rm "$root/srv/imprint.deb"
    check "the installed program prints its version" in_root "$root" imprint --version
    check "the demo runs" demo "$root" imprint
    check "the program reads HEIC" classify_heic "$root" imprint
    check "man pages, completions, recipes, licences and the bill of materials are installed" has_files "$root/usr" \
        share/man/man1/imprint.1.gz share/man/man1/imprint.train.1.gz share/bash-completion/completions/imprint \
        share/zsh/vendor-completions/_imprint share/fish/vendor_completions.d/imprint.fish \
        share/imprint/datasets/two-circles.json share/doc/imprint/copyright share/doc/imprint/changelog.gz \
        share/doc/imprint/NOTICE share/doc/imprint/licences/swift-argument-parser/LICENSE.txt \
        share/doc/imprint/imprint.cdx.json
    check "the bill of materials describes the installed files" check_sbom "$deb.cdx.json" "$root"
    check "the installed files have the checksums of the package" silent in_root "$root" dpkg --verify imprint
    check "Debian has the recommended and suggested packages" recommended_exist
    forget_demo "$root"
    check "apt removes the package" in_root "$root" apt-get purge -y -qq imprint
    check "apt removes the dependencies" in_root "$root" apt-get autoremove --purge -y -qq
    check "no file of the package remains" same_files "$root" "$work/before"
    rm -rf "$root"
}

check_sbom() {
    PYTHONPATH=$python python3 Packaging/check_sbom.py "$1" "$2"
}

# Unpacks the archive into a folder of the root folder: unpack FOLDER
unpack() {
    mkdir -p "$root$1" && tar -x --no-same-owner --strip-components=1 -C "$root$1" -f "$archive"
}

test_archive() {
    root=$work/archive
    cp -a "$work/base" "$root"
    files "$root" >"$work/before"
    local folder
    for folder in /opt/imprint "/srv/a folder/of programs"; do
        check "the archive is unpacked to $folder" unpack "$folder"
        check "the program in $folder uses the libraries beside it" only_base_libraries "$folder"
        check "the demo runs in $folder" demo "$root" "$folder/bin/imprint"
        check "the program in $folder reads HEIC" classify_heic "$root" "$folder/bin/imprint"
        forget_demo "$root"
    done
    check "the bill of materials describes the unpacked files" check_sbom "$archive.cdx.json" "$root/opt/imprint"
    ln -s ../../../opt/imprint/bin/imprint "$root/usr/local/bin/imprint"
    check "a symbolic link runs the program, which finds its recipes" \
        in_root "$root" sh -c 'cd / && imprint draw shapes --output /srv/shapes --count 6 --seed 1'
    rm -rf "$root/srv/shapes" "$root/usr/local/bin/imprint" "$root/opt/imprint" "$root/srv/a folder"
    check "no file of the archive remains" same_files "$root" "$work/before"
    rm -rf "$root"
}

python=.build-package/python
if ! PYTHONPATH=$python python3 -c 'import cyclonedx.validation.json, jsonschema, pillow_heif' 2>/dev/null; then
    pip_install "$python" 'cyclonedx-python-lib[validation]>=8' pillow pillow-heif
fi
check "debootstrap makes a Debian" make_base
if [ "$failed" -ne 0 ]; then
    echo "The packages are not tested, because there is no new Debian to install them on." >&2
    exit 1
fi
check "it has no Swift" has_no_swift
test_deb
test_archive
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
