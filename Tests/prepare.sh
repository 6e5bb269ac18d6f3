# shellcheck shell=bash
# Functions of ./run that install what the tests need besides the libraries, and run them.
# shellcheck disable=SC2034,SC2154 # ./run uses and sets mpi_traits and optimized

# The temporary folder of a run, which has the messages of functions in the background, and the home folder of base models.
temporary=$(mktemp -d)
# The names and process IDs of functions that run in the background.
background=()

# Ends what runs in the background, and removes the temporary folder.
clean_up() {
    local job
    for job in ${background[@]+"${background[@]}"}; do kill -- "-${job#* }" 2>/dev/null || true; done
    rm -rf "$temporary"
}
trap clean_up EXIT

# Installs pip and the module venv, which functions in the background need: apt cannot run twice at the same time.
prepare_pip() {
    install_pip && { python3 -c 'import ensurepip' 2>/dev/null || apt_install python3-venv; }
}

# Runs a function in the background with the lowest priority. Its messages go to a file, so that they do not mix with others.
in_background() {
    # With job control, the function and its children are a process group, which clean_up ends.
    set -m
    "$1" >"$temporary/$1.log" 2>&1 </dev/null &
    background+=("$1 $!")
    set +m
    renice -n 19 -g "$!" >/dev/null
}

# Waits for the functions in the background and prints their messages. Returns 1 if one of them failed.
finish_background() {
    local job status=0
    for job in ${background[@]+"${background[@]}"}; do
        wait "${job#* }" || status=1
        cat "$temporary/${job% *}.log" >&2
    done
    background=()
    return "$status"
}

# The Python packages of tests that compare with other programs: the modules that they import, and the names for pip.
python_packages=(
    'numpy, safetensors, PIL, pillow_heif, sklearn, websocket: numpy safetensors pillow pillow-heif scikit-learn websocket-client'
    # These read exported models: 250 MB.
    'onnx, onnxruntime, coremltools, ai_edge_litert: onnx onnxruntime coremltools ai-edge-litert'
    # The client of Triton, which calls the model server: 60 MB.
    'tritonclient.http: tritonclient[http]'
)

# Whether Python can import the modules of an element of python_packages.
has_packages() {
    PYTHONPATH=.build-python python3 -c "import ${1%:*}" 2>/dev/null
}

# Installs python_packages in the checkout: at once, because pip would download common dependencies for each group, or each group that it can.
install_python_packages() {
    local group missing=() names status=0
    for group in "${python_packages[@]}"; do has_packages "$group" || missing+=("$group"); done
    [ ${#missing[@]} -ne 0 ] || return 0
    read -ra names <<<"${missing[*]##*: }"
    ! pip_install .build-python "${names[@]}" || return 0
    for group in "${missing[@]}"; do
        read -ra names <<<"${group##*: }"
        if ! pip_install .build-python "${names[@]}"; then
            echo "pip cannot install ${names[*]}; the tests that need them are skipped." >&2
            status=1
        fi
    done
    return "$status"
}

# Reports that tests are skipped, and fails with CI=true: skip_tests REASON
skip_tests() {
    echo "$1; the tests that need this are skipped." >&2
    [ "${CI:-}" != true ]
}

# Lets the tests use the Python packages.
use_python_packages() {
    local group
    # Base models that the user has installed would change the results.
    export IMPRINT_HOME=$temporary/home
    for group in "${python_packages[@]}"; do
        has_packages "$group" || skip_tests "Python cannot import ${group%:*}" || return
    done
    if has_packages "${python_packages[0]}"; then
        IMPRINT_PYTHON=$(command -v python3)
        export IMPRINT_PYTHON PYTHONPATH="$PWD/.build-python${PYTHONPATH:+:$PYTHONPATH}"
    fi
}

# The modules that tests import in environments of their own.
flower_modules=flwr
signing_modules='model_signing, cyclonedx.validation.json, jsonschema'

# Whether the Python environment in a folder can import modules. Without -E, it would also search PYTHONPATH.
has_modules() {
    "$1/bin/python" -E -c "import $2" 2>/dev/null
}

# Installs packages in a Python environment in a folder, unless it can import modules: install_environment FOLDER MODULES PACKAGE …
install_environment() {
    ! has_modules "$1" "$2" || return 0
    if ! { make_environment "$1" && "$1/bin/python" -E -m pip install --quiet "${@:3}" >&2; }; then
        echo "pip cannot install ${*:3}; the tests that need them are skipped." >&2
        return 1
    fi
}

# Installs Flower for the tests of fleets; IMPRINT_FLOWER names the Python of another environment.
install_flower() {
    [ -n "${IMPRINT_FLOWER:-}" ] || install_environment .build-flower "$flower_modules" 'flwr>=1.42'
}

# Installs the reference implementation of model signatures, which needs pyopenssl but does not declare it, and the validator of model cards;
# IMPRINT_SIGNING names the Python of another environment.
install_signing() {
    [ -n "${IMPRINT_SIGNING:-}" ] ||
        install_environment .build-signing "$signing_modules" 'model-signing>=1.1' pyopenssl 'cyclonedx-python-lib[validation]>=9'
}

# Lets the tests use these environments.
use_environments() {
    if [ -z "${IMPRINT_FLOWER:-}" ]; then
        if has_modules .build-flower "$flower_modules"; then
            export IMPRINT_FLOWER=$PWD/.build-flower/bin/python
        else
            skip_tests "Python cannot import $flower_modules" || return
        fi
    fi
    if [ -z "${IMPRINT_SIGNING:-}" ]; then
        if has_modules .build-signing "$signing_modules"; then
            export IMPRINT_SIGNING=$PWD/.build-signing/bin/python
        else
            skip_tests "Python cannot import $signing_modules" || return
        fi
    fi
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
        # Chromium without windows starts in half the time; older releases of Debian do not have it.
        apt_install chromium-headless-shell || apt_install chromium || true
    fi
    if ! find_browser; then
        echo "There is no Chromium; the tests of web pages are skipped." >&2
        [ "${CI:-}" = true ] && return 1 || return 0
    fi
}

find_browser() {
    IMPRINT_CHROMIUM=$(command -v chromium-headless-shell || command -v chromium || command -v chromium-browser ||
        command -v google-chrome) || return 1
    export IMPRINT_CHROMIUM
}

# With more tests in parallel than cores, waiting tests would exceed their time limits.
cores=$(getconf _NPROCESSORS_ONLN)

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
        # Other tests run at the same time.
        IMPRINT_KERNELS=${kernels%:*} OPENBLAS_CORETYPE=${kernels#*:} run_tests "$cores" --ignore-lock \
            --filter 'ImprintNetworkTests|ImprintImagesTests'
    done
}

# Runs the chosen tests, a number of them in parallel, and, if any fails, repeats the messages of the failures at the end:
# run_tests WIDTH OPTION …
run_tests() {
    local log status=0
    log=$(mktemp)
    swift test --skip-build "${optimized[@]}" --disable-xctest \
        --experimental-maximum-parallelization-width "$@" 2>&1 | tee "$log" || status=$?
    if [ "$status" -ne 0 ]; then
        printf '\nFailed tests:\n' >&2
        grep -aE '^✘ |Fatal error|crashed:|error:' "$log" >&2 || echo "The output above names no failed test." >&2
    fi
    rm "$log"
    return "$status"
}
