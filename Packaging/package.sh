#!/usr/bin/env bash
# Builds a Debian package, an archive with all its libraries, and a software bill of materials of each, in the folder dist.
# usage: package.sh [--resolved FILE] [--test | --reproduce]
set -euo pipefail
cd "$(dirname "$0")/.."
umask 022
export LC_ALL=C TZ=UTC

maintainer="Imprint contributors <imprint@localhost.invalid>"
scratch=.build-package

# shellcheck source=Packaging/dependencies.sh
source Packaging/dependencies.sh

# Prints a message and ends the script.
fail() {
    echo "$1" >&2
    exit 1
}

# The version of the packages: that of the program, and, unless the commit has its tag, the time and hash of the commit.
# The "~" sorts such a version before the release.
package_version() {
    local released changes tags hash
    released=$("$program" --version) && changes=$(git status --porcelain) && tags=$(git tag --points-at HEAD) &&
        hash=$(git rev-parse --short=12 HEAD) || return
    if [ -n "$changes" ]; then
        echo "$released~dev.$commit_time.$hash.changed"
    elif grep -qFx "$released" <<<"$tags"; then
        echo "$released"
    else
        echo "$released~dev.$commit_time.$hash"
    fi
}

# The Debian packages of the libraries that the program loads at run time, from the names in the sources.
optional_packages() {
    local names name owners
    names=$(grep -rhoE '"lib[a-z0-9-]+\.so\.[0-9]+"' Sources/C* | tr -d '"' | sort -u) || return
    for name in $names; do
        if ! owners=$(dpkg-query --search "*/$name"); then
            echo "$name: no installed Debian package has this library, which Imprint loads at run time. Install it." >&2
            return 1
        fi
        echo "${owners%%:*}"
    done | sort -u
}

# Copies the licences of everything that is linked statically, and the versions of the Swift packages: copy_licences FOLDER
copy_licences() {
    local folder=$1 checkout file name
    install -D -m 644 -t "$folder" LICENSE NOTICE
    install -D -m 644 Package.resolved "$folder/Package.resolved"
    for checkout in "$scratch"/checkouts/*/; do
        name=$(basename "$checkout")
        for file in "$checkout"LICENSE* "$checkout"NOTICE*; do
            [ ! -e "$file" ] || install -D -m 644 "$file" "$folder/licences/$name/$(basename "$file")"
        done
        compgen -G "$folder/licences/$name/LICENSE*" >/dev/null || fail "$checkout: the Swift package has no file LICENSE*."
    done
    install -D -m 644 "$(dirname "$(readlink -f "$(command -v swift)")")/../share/swift/LICENSE.txt" "$folder/licences/swift-runtime/LICENSE.txt"
    install -D -m 644 Packaging/ICU-LICENSE "$folder/licences/swift-runtime/ICU-LICENSE"
}

# Writes a software bill of materials: write_sbom ROOT LIBRARIES FILE
write_sbom() {
    python3 Packaging/sbom.py --root "$1" --libraries "$2" --packages "$work/packages.json" --resolved Package.resolved \
        --version "$version" --commit "$(git rev-parse HEAD)" --swift "$swift_version" --architecture "$architecture" \
        --system "$(. /etc/os-release && echo "$ID-$VERSION_ID")" --optional "${optional[@]}" >"$3"
}

# Sets the modes and times of the files of a package.
normalize() {
    find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +
}

make_deb() {
    local root=$work/deb documents=$work/deb/usr/share/doc/imprint package
    Packaging/stage.sh "$work/imprint" "$scratch/release/generate-manual" "$root/usr" "$date"
    # Debian has the completions of packages in this folder.
    mv "$root/usr/share/zsh/site-functions" "$root/usr/share/zsh/vendor-completions"
    gzip -9n "$root"/usr/share/man/man1/*.1
    copy_licences "$documents"
    rm "$documents/LICENSE"
    sed "s/@DATE@/${date%%-*}/" Packaging/copyright >"$documents/copyright"
    {
        printf 'imprint (%s) unstable; urgency=medium\n\n' "$version"
        printf '  * CHANGELOG.md.gz lists the changes.\n\n'
        printf -- ' -- %s  %s\n' "$maintainer" "$(date --rfc-email --date="@$SOURCE_DATE_EPOCH")"
    } | gzip -9n >"$documents/changelog.gz"
    gzip -9n <CHANGELOG.md >"$documents/CHANGELOG.md.gz"
    python3 Packaging/libraries.py "$work/imprint" >"$work/deb.json"
    write_sbom "$root" "$work/deb.json" "$documents/imprint.cdx.json"

    mkdir -p "$work/shlibdeps/debian" "$root/DEBIAN"
    printf 'Source: imprint\n\nPackage: imprint\nArchitecture: any\n' >"$work/shlibdeps/debian/control"
    (cd "$work/shlibdeps" && dpkg-shlibdeps -O "$root/usr/bin/imprint") | sed 's/^shlibs:Depends=//' >"$work/depends"
    [ -s "$work/depends" ] || fail "dpkg-shlibdeps found no dependencies of the program."
    (cd "$root" && find usr -type f -print0 | sort -z | xargs -0 md5sum) >"$root/DEBIAN/md5sums"
    cat >"$root/DEBIAN/control" <<END
Package: imprint
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $(find "$root/usr" -type f -printf '%s\n' | awk '{ sum += int(($1 + 1023) / 1024) } END { print sum }')
Depends: $(cat "$work/depends")
Recommends: $(recommended)
Suggests: python3-pip
Section: science
Priority: optional
Description: train and run image classifiers and logo detectors
 Imprint trains image classifiers and logo detectors on this machine,
 personalizes them with a user's own photos, and runs them. Training needs
 neither a GPU nor Python. Photos stay on the machine.
 .
 The recommended packages read artwork in SVG and share the studio with a phone.
 python3-pip downloads pretrained networks.
END
    chmod 644 "$root"/DEBIAN/*
    normalize "$root"
    deb=dist/imprint_${version}_$architecture.deb
    # More threads than one would need more memory, and xz might then choose another block size.
    dpkg-deb --root-owner-group --threads-max=1 -Zxz --build "$root" "$deb" >&2
    cp "$documents/imprint.cdx.json" "$deb.cdx.json"
}

# The optional libraries, and the certificates of certificate authorities if the program needs libcurl.
recommended() {
    local names=("${optional[@]}")
    ! grep -q '"libcurl\.so' "$work/deb.json" || names=(ca-certificates "${names[@]}")
    printf '%s, ' "${names[@]}" | sed 's/, $//'
}

make_archive() {
    local name root library packages
    name=imprint-$version-linux-$(uname -m)
    root=$work/archive/$name
    Packaging/stage.sh "$work/imprint" "$scratch/release/generate-manual" "$root" "$date"
    gzip -9n "$root"/share/man/man1/*.1
    copy_licences "$root/share/doc/imprint"
    install -D -m 644 CHANGELOG.md "$root/share/doc/imprint/CHANGELOG.md"
    python3 Packaging/libraries.py "$work/imprint" --copy "$root/lib" >"$work/archive.json"
    # An RPATH, unlike a RUNPATH, also applies to the libraries of the libraries, so these remain unchanged.
    # shellcheck disable=SC2016 # the dynamic linker expands $ORIGIN
    patchelf --force-rpath --set-rpath '$ORIGIN/../lib' "$root/bin/imprint"
    packages=$(python3 -c '
import json, sys
print(*sorted({library["package"] for library in json.load(open(sys.argv[1])) if library["origin"] == "copied"}))
' "$work/archive.json")
    for library in $packages; do
        [ -s "/usr/share/doc/$library/copyright" ] ||
            fail "/usr/share/doc/$library/copyright: the licence of a library of the archive is missing. Install $library again."
        install -D -m 644 "/usr/share/doc/$library/copyright" "$root/share/doc/imprint/licences/$library/copyright"
    done
    # The copyright files of Debian packages refer to these.
    install -D -m 644 -t "$root/share/doc/imprint/licences/common-licenses" /usr/share/common-licenses/*
    write_sbom "$root" "$work/archive.json" "$root/share/doc/imprint/imprint.cdx.json"
    normalize "$root"
    archive=dist/$name.tar.gz
    tar --create --format=gnu --sort=name --owner=0 --group=0 --numeric-owner --directory="$work/archive" "$name" |
        gzip -9n >"$archive"
    cp "$root/share/doc/imprint/imprint.cdx.json" "$archive.cdx.json"
}

usage() {
    echo "usage: ./run package [--resolved FILE] [--test | --reproduce]" >&2
    exit 64
}

job='' resolved=''
while [ $# -gt 0 ]; do
    case $1 in
    --test | --reproduce)
        # A run does only one of them.
        [ -z "$job" ] || usage
        job=${1#--}
        ;;
    --resolved)
        resolved=${2:?--resolved needs the path of a Package.resolved}
        shift
        ;;
    *) usage ;;
    esac
    shift
done
if ! command -v dpkg-query >/dev/null; then
    fail "Packages are made on Debian or Ubuntu."
fi
apt_install dpkg-dev binutils patchelf libcurl4-openssl-dev
if [ -n "$resolved" ]; then
    [ "$resolved" -ef Package.resolved ] || cp "$resolved" Package.resolved
    export PINNED=1
fi
program=$(Packaging/build.sh "$scratch")

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
date=$(date --date="@$SOURCE_DATE_EPOCH" +%F)
commit_time=$(date --date="@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M%S)
architecture=$(dpkg --print-architecture)
swift_version=$(swift --version 2>/dev/null | sed -nE 's/.*Swift version ([0-9.]+).*/\1/p')
version=$(package_version) || fail "The version of the packages is unknown: the program or git failed."
found=$(optional_packages) || fail "The Debian packages of the libraries that are loaded at run time are unknown."
mapfile -t optional <<<"$found"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
swift package --scratch-path "$scratch" show-dependencies --format json >"$work/packages.json"
# The hashes of modules depend on the folder of the checkout, and nothing reads them at run time.
strip --strip-all --remove-section=.comment --remove-section=.note --remove-section=.swift_modhash -o "$work/imprint" "$program"
# SwiftPM sets the folder of the program as a path of libraries; there are none.
patchelf --remove-rpath "$work/imprint"
rm -rf dist
mkdir dist
make_deb
make_archive
(cd dist && sha256sum -- *.deb *.tar.gz *.json >SHA256SUMS)
ls -l dist
case $job in
test) Packaging/test.sh ;;
reproduce) Packaging/reproduce.sh ;;
esac
