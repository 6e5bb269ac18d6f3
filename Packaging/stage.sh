#!/usr/bin/env bash
# Installs the program with its recipes, man pages and shell completions: stage.sh PROGRAM GENERATE_MANUAL PREFIX [DATE]
# The man pages have this date, or else the current one.
set -euo pipefail
program=$1 generate_manual=$2 prefix=$3 date=${4:-$(date +%F)}
datasets=$(dirname "$0")/../datasets

# Writes the completion script of a shell to a file.
write_completions() {
    mkdir -p "$(dirname "$2")"
    "$program" --generate-completion-script "$1" >"$2"
    chmod 644 "$2"
}

manual=$(mktemp -d)
trap 'rm -rf "$manual"' EXIT
"$generate_manual" "$program" --multi-page --date "$date" --output-directory "$manual"
rm -rf "${prefix:?}/share/imprint"
install -D -m 755 "$program" "$prefix/bin/imprint"
install -D -m 644 -t "$prefix/share/imprint/datasets" "$datasets"/*.json
install -D -m 644 -t "$prefix/share/man/man1" "$manual"/imprint*.1
write_completions bash "$prefix/share/bash-completion/completions/imprint"
write_completions zsh "$prefix/share/zsh/site-functions/_imprint"
write_completions fish "$prefix/share/fish/vendor_completions.d/imprint.fish"
