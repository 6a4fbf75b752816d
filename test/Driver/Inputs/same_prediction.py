"""same_prediction.py REPORT EXPLAINED: a compilation reports the total of seconds that `fusec explain --json` gives."""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    lines = [json.loads(line) for line in file if line.strip()]
with open(sys.argv[2], encoding="utf-8") as file:
    explained = json.loads(file.read())["totals"]["predicted_s"]
reported = next(line for line in lines if "targets" in line)["targets"][0]["predicted_s"]
if abs(reported - explained) > 1e-3 * explained:  # of which four digits are printed
    sys.exit(f"reported {reported} s, explained {explained} s")
