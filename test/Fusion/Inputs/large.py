"""large.py FUSEC SCRIPTS FOLDER: what planning networks of 10,000 operations takes, by the models of real schedules."""

import json
import os
import re
import resource
import subprocess
import sys

fusec, scripts, folder = sys.argv[1:]
sys.path.insert(0, os.path.join(scripts, "models"))
sys.dont_write_bytecode = True

from large import LARGE, OPERATIONS

SECONDS = 15  # of processor time; 5 is the limit of scripts/bench-compile, where nothing runs beside it
THOROUGH, KERNEL = 5800, 64  # equations: of kernels that are weighed in full, and of the largest one
KERNELS = {"large-apart": 4700, "large-softmax": 210}  # looked at less closely: half more than are now

for name, most in KERNELS.items():
    path = os.path.join(folder, f"{name}.onnx")
    LARGE[name]().save(path)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    command = [fusec, path, "--target=sm_90", "--stop-after=plan", "--threads=1", "--log-format=json"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    note, = report["notes"]
    cursory, equations = map(int, re.search(r"closely at (\d+) kernels, .* have (\d+) equations", note).groups())
    assert OPERATIONS / 100 < cursory < most, note
    assert THOROUGH <= equations < THOROUGH + KERNEL, note
    assert seconds < SECONDS, f"{name}: {seconds} s"
    print(f"{name}: planned")
