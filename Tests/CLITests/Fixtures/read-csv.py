"""Reads CSV from a file with the module csv and prints its rows as JSON."""

import csv
import json
import sys

with open(sys.argv[1], newline="", encoding="utf-8") as file:
    print(json.dumps(list(csv.reader(file, strict=True))))
