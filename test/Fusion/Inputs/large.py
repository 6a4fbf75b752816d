"""large.py FUSEC SCRIPTS FOLDER: what planning networks of 10,000 operations takes, by the models of real schedules."""

import json
import os
import resource
import subprocess
import sys

fusec, scripts, folder = sys.argv[1:]
sys.path.insert(0, os.path.join(scripts, "models"))
sys.dont_write_bytecode = True

from large import LARGE, OPERATIONS

SECONDS = 15  # of processor time; 5 is the limit of scripts/bench-compile, where nothing runs beside it

for name in ("large-apart", "large-softmax"):
    path = os.path.join(folder, f"{name}.onnx")
    LARGE[name]().save(path)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = [fusec, path, "--target=sm_90", "--stop-after=plan", "--threads=1", "--log-format=json",
               f"--dump-dir={folder}/{name}"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    target, = report["targets"]
    print(f"{name}: {target}")
