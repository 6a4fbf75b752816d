"""budget.py FUSEC MODELS FOLDER: decisions under the default budgets of the search, under larger ones, and under the
least."""

import glob
import os
import re
import subprocess
import sys

fusec, models, folder = sys.argv[1:]
TARGETS = "x86-64-v3,sm_80,gfx90a"
RANGES = {"bert-sym": ["--dim", "batch=1..8:2", "--dim", "seq=1..64:32"]}


def plan(path, evaluations=None):
    """The plan's text, all targets."""
    name = os.path.basename(path)[:-5]
    sizes = ("evaluations", "quick-evaluations", "thorough")
    budget = [f"--fusion-{size}={evaluations}" for size in sizes] if evaluations else []
    return subprocess.run([fusec, path, f"--target={TARGETS}", "--dump-ir=plan", "--stop-after=plan", *budget,
                           *RANGES.get(name, [])], check=True, capture_output=True, text=True).stdout


paths = sorted(glob.glob(f"{models}/*.onnx"))
alike = sum(plan(path) == plan(path, 10000) for path in paths)
print(f"{alike} of {len(paths)} networks are decided alike")
launches = re.findall(r"launch \{([^}]*)\}", plan(f"{models}/mobilenet_v3.onnx", 1))
assert launches and all(len(phase.split()) == 1 for launch in launches for phase in launch.split("|")), launches
print("least: no kernel of several equations")
