"""large.py FUSEC SCRIPTS FOLDER: how much is weighed to plan networks of 10,000 operations by the models of real
schedules. What that takes in seconds is told by scripts/bench-compile."""

import json
import os
import re
import subprocess
import sys

fusec, scripts, folder = sys.argv[1:]
sys.path.insert(0, os.path.join(scripts, "models"))
sys.dont_write_bytecode = True

from large import LARGE, OPERATIONS

THOROUGH, KERNEL = 5800, 64  # equations: of kernels that are weighed in full, and of the largest one
KERNELS = {"large-apart": 4700, "large-softmax": 210}  # looked at less closely: half more than are now

for name, most in KERNELS.items():
    path = os.path.join(folder, f"{name}.onnx")
    LARGE[name]().save(path)
    command = [fusec, path, "--target=sm_90", "--stop-after=plan", "--threads=1", "--log-format=json"]
    report = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    note, = report["notes"]
    cursory, equations = map(int, re.search(r"closely at (\d+) kernels, .* have (\d+) equations", note).groups())
    assert OPERATIONS / 100 < cursory < most, note
    assert THOROUGH <= equations < THOROUGH + KERNEL, note
    print(f"{name}: planned")
