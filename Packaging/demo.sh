#!/bin/bash
# Draws a data set in the current folder, trains a classifier on it, evaluates it and classifies two images: demo.sh PROGRAM
# This is "./run demo" with fewer images and epochs.
set -euo pipefail
program=$1
"$program" draw two-circles --output train --count 2000 --seed 1
"$program" draw two-circles --output fresh --count 200 --seed 2
"$program" train train --output logo.imprint --input-size 64 --epochs 10 --augment flip,rotate,blur --seed 1 --report report.html
evaluation=$("$program" evaluate logo.imprint fresh)
echo "$evaluation"
grep -qE '^accuracy ([89][0-9]|100)' <<<"$evaluation"
"$program" classify logo.imprint fresh/TwoCircles/00001.jpg fresh/Other/00001.jpg
test -s report.html
