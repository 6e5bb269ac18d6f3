#!/bin/bash
#SBATCH --job-name=imprint
#SBATCH --array=1-16
#SBATCH --cpus-per-task=4
# Classifies or searches photos with an array of SLURM jobs, each of which processes one shard of a list of paths.
#
#     sbatch slurm.sh PATHS OUTPUT COMMAND…
#     sbatch --array=1-100 slurm.sh paths.txt results imprint classify logo.imprint
#
# PATHS has the path of a photo in each line. COMMAND is an `imprint classify` or `imprint detect` without photos. Job I of N writes a JSON line for
# each of the photos I, I + N, I + 2N, … to OUTPUT/I-of-N.jsonl. The numbers of the array must be 1 to N. If some jobs fail, submit the same command
# again: complete files are kept.
set -euo pipefail
paths=$1 output=$2
shift 2
shard=$SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT
file=$output/$SLURM_ARRAY_TASK_ID-of-$SLURM_ARRAY_TASK_COUNT.jsonl
if [ -e "$file" ]; then
    echo "$file is complete." >&2
    exit
fi
mkdir -p "$output"
"$@" --files-from "$paths" --shard "$shard" --threads "${SLURM_CPUS_PER_TASK:-1}" --json >"$file.partial"
mv "$file.partial" "$file"
