#!/usr/bin/env bash
# Runs each fuzz target for a number of seconds, by default 60: Fuzzing/run.sh [SECONDS]. Its corpus grows with each run.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-60}
folder=.build-oss-fuzz
status=0
Fuzzing/oss-fuzz/emulate.sh "$folder"
mkdir -p "$folder/findings"
for archive in "$folder"/out/*_seed_corpus.zip; do
    name=$(basename "$archive" _seed_corpus.zip)
    mkdir -p "$folder/corpora/$name"
    python3 -m zipfile -e "$archive" "$folder/corpora/$name"
    echo "Running $name for $seconds seconds …" >&2
    ASAN_OPTIONS=detect_leaks=0 "$folder/out/$name" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=2560 -dict="$folder/out/$name.dict" \
        -artifact_prefix="$folder/findings/$name-" -verbosity=0 -print_final_stats=1 "$folder/corpora/$name" || status=1
done
exit "$status"
