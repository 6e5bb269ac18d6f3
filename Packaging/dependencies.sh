# shellcheck shell=bash
# Functions of several scripts that install Debian packages and Python packages, and build Swift packages.

# Installs those Debian packages that are missing, without the packages that they only recommend: apt_install PACKAGE …
apt_install() {
    local missing=() sudo=() package
    for package in "$@"; do
        [[ $(dpkg-query -W -f='${Status}' "$package" 2>/dev/null) == *"ok installed" ]] || missing+=("$package")
    done
    [ ${#missing[@]} -ne 0 ] || return 0
    echo "Installing ${missing[*]} …" >&2
    [ "$(id -u)" -eq 0 ] || sudo=(sudo)
    ${sudo[@]+"${sudo[@]}"} apt-get update -qq &&
        ${sudo[@]+"${sudo[@]}"} env DEBIAN_FRONTEND=noninteractive \
            apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

# Installs pip, which Debian has in a package of its own.
install_pip() {
    python3 -m pip --version >/dev/null 2>&1 && return
    if ! command -v apt-get >/dev/null; then
        echo "Python 3 with pip is missing. Install it." >&2
        return 1
    fi
    apt_install python3-pip
}

# Installs Python packages in a folder, in which Debian's pip may install; elsewhere it needs an environment: pip_install FOLDER PACKAGE …
pip_install() {
    install_pip && python3 -m pip install --quiet --target "$@" >&2
}

# Makes a Python environment in a folder. Debian has the module venv in a package of its own.
make_environment() {
    python3 -m venv "$1" >/dev/null 2>&1 && return
    if command -v apt-get >/dev/null; then
        apt_install python3-venv || return
    fi
    python3 -m venv --clear "$1" >&2
}

# Builds a Swift package: swift_build OPTION …
# SwiftPM passes the package traits to the compiler in the order of a set, which is random in each process, and would compile all modules
# again because of another order.
swift_build() {
    SWIFT_DETERMINISTIC_HASHING=1 swift build "$@"
}
