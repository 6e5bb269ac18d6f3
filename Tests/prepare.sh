# Functions of ./run that install what the tests need besides the libraries, and run them.

# Installs Python packages for the tests that compare with other programs, inside the checkout.
prepare_python() {
    local folder=.build-python packages=(numpy safetensors pillow pillow-heif scikit-learn websocket-client)
    if ! PYTHONPATH="$folder" python3 -c 'import numpy, safetensors, PIL, pillow_heif, sklearn, websocket' 2>/dev/null; then
        if ! python3 -m pip install --quiet --target "$folder" "${packages[@]}" >&2; then
            echo "pip cannot install ${packages[*]}; the tests that need them are skipped." >&2
            [ "${CI:-}" = true ] && return 1 || return 0
        fi
    fi
    # Packages that read exported models: 250 MB.
    packages=(onnx onnxruntime coremltools ai-edge-litert)
    if ! PYTHONPATH="$folder" python3 -c 'import onnx, onnxruntime, coremltools, ai_edge_litert' 2>/dev/null; then
        if ! python3 -m pip install --quiet --target "$folder" "${packages[@]}" >&2; then
            echo "pip cannot install ${packages[*]}; the tests that need them are skipped." >&2
            [ "${CI:-}" = true ] && return 1
        fi
    fi
    # The client of Triton, which calls the model server: 60 MB.
    packages=('tritonclient[http]')
    if ! PYTHONPATH="$folder" python3 -c 'import tritonclient.http' 2>/dev/null; then
        if ! python3 -m pip install --quiet --target "$folder" "${packages[@]}" >&2; then
            echo "pip cannot install ${packages[*]}; the tests that need it are skipped." >&2
            [ "${CI:-}" = true ] && return 1
        fi
    fi
    IMPRINT_PYTHON=$(command -v python3)
    export IMPRINT_PYTHON PYTHONPATH="$PWD/$folder${PYTHONPATH:+:$PYTHONPATH}"
    # Base models that the user has installed would change the results.
    IMPRINT_HOME=$(mktemp -d)
    export IMPRINT_HOME
}

# Makes a Python environment in a folder. Debian has the module venv in a package of its own.
make_environment() {
    python3 -m venv "$1" >/dev/null 2>&1 && return
    if command -v apt-get >/dev/null; then
        apt_install python3-venv
    fi
    python3 -m venv --clear "$1" >&2
}

# Installs packages in a Python environment. Without -E, pip would not install what it finds in PYTHONPATH.
install_packages() {
    local folder=$1
    shift
    "$folder/bin/python" -E -m pip install --quiet "$@" >&2
}

# Installs Flower for the tests of fleets in an environment of its own; IMPRINT_FLOWER names the Python of another one.
prepare_flower() {
    if [ -z "${IMPRINT_FLOWER:-}" ]; then
        local folder=.build-flower
        if ! "$folder/bin/python" -E -c 'import flwr' 2>/dev/null; then
            if ! { make_environment "$folder" && install_packages "$folder" 'flwr>=1.42'; }; then
                echo "pip cannot install flwr; the tests of fleets with a real SuperLink are skipped." >&2
                [ "${CI:-}" = true ] && return 1 || return 0
            fi
        fi
        IMPRINT_FLOWER=$PWD/$folder/bin/python
    fi
    export IMPRINT_FLOWER
}

# Installs the reference implementation of model signatures, which needs pyopenssl but does not declare it, and the validator of model cards
# in an environment of their own; IMPRINT_SIGNING names the Python of another one.
prepare_signing() {
    if [ -z "${IMPRINT_SIGNING:-}" ]; then
        local folder=.build-signing packages=('model-signing>=1.1' pyopenssl 'cyclonedx-python-lib[validation]>=9')
        if ! "$folder/bin/python" -E -c 'import model_signing, cyclonedx.validation.json, jsonschema' 2>/dev/null; then
            if ! { make_environment "$folder" && install_packages "$folder" "${packages[@]}"; }; then
                echo "pip cannot install ${packages[*]}; the tests that need them are skipped." >&2
                [ "${CI:-}" = true ] && return 1 || return 0
            fi
        fi
        IMPRINT_SIGNING=$PWD/$folder/bin/python
    fi
    export IMPRINT_SIGNING
}

# Installs Open MPI for the tests of several processes; without it, these tests are skipped.
prepare_mpi() {
    if ! install_mpi; then
        echo "Open MPI cannot be installed; the tests of several processes with mpirun are skipped." >&2
        [ "${CI:-}" = true ] && return 1
        mpi_traits=()
        return 0
    fi
    IMPRINT_MPIRUN=$(command -v mpirun)
    export IMPRINT_MPIRUN
}

# Installs Chromium for the tests of web pages; IMPRINT_CHROMIUM names another Chromium-based browser.
prepare_browser() {
    [ -z "${IMPRINT_CHROMIUM:-}" ] || return 0
    if ! find_browser && command -v apt-get >/dev/null; then
        echo "Installing chromium …" >&2
        apt_install chromium || true
    fi
    if ! find_browser; then
        echo "There is no Chromium; the tests of web pages are skipped." >&2
        [ "${CI:-}" = true ] && return 1 || return 0
    fi
}

find_browser() {
    IMPRINT_CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || return 1
    export IMPRINT_CHROMIUM
}

# Runs the tests of layers and images with the kernels of Imprint and OpenBLAS for older processors.
test_older_processors() {
    if [ "$(uname -sm)" != "Linux x86_64" ]; then
        echo "The kernels for older processors are tested only on x86-64 Linux." >&2
        return
    fi
    local kernels
    for kernels in baseline:Nehalem v3:Haswell; do
        if [ "$kernels" = v3:Haswell ] && ! grep -qw avx2 /proc/cpuinfo; then
            echo "This processor does not support the kernels for Haswell; they are not tested." >&2
            continue
        fi
        echo "Testing the kernels for ${kernels#*:} …" >&2
        IMPRINT_KERNELS=${kernels%:*} OPENBLAS_CORETYPE=${kernels#*:} run_tests \
            --filter 'ImprintNetworkTests|ImprintImagesTests'
    done
}

# Runs the chosen tests and, if any fails, repeats the messages of the failures at the end.
run_tests() {
    local log status=0
    log=$(mktemp)
    swift test --skip-build "${optimized[@]}" --disable-xctest "$@" 2>&1 | tee "$log" || status=$?
    if [ "$status" -ne 0 ]; then
        printf '\nFailed tests:\n' >&2
        grep -aE '^✘ |Fatal error|crashed:|error:' "$log" >&2 || echo "The output above names no failed test." >&2
    fi
    rm "$log"
    return "$status"
}
