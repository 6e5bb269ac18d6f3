#!/bin/bash
# Classifies or searches photos with GNU parallel, with an `imprint` process for each core.
#
#     parallel.sh PATHS COMMAND… > results.jsonl
#     parallel.sh paths.txt imprint classify logo.imprint > results.jsonl
#
# PATHS has the path of a photo in each line. COMMAND is an `imprint classify` or `imprint detect` without photos. The results have one JSON line for
# each photo, in the order of PATHS. A process gets 1,000 paths, or as many as the variable PATHS_PER_PROCESS says. Options of GNU parallel in the
# variable PARALLEL, such as --sshloginfile and --workdir, distribute the processes to other machines.
set -euo pipefail
paths=$1
shift
parallel --pipe --keep-order --max-replace-args "${PATHS_PER_PROCESS:-1000}" --quote "$@" --files-from - --threads 1 --json <"$paths"
