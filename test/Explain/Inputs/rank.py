"""rank.py FUSEC TINY UNWEIGHTED.py [NETWORK.onnx...]: the two fidelities of the cost model order kernels alike. Prints
Kendall's tau over all pairs of a target's kernels, of the plans of the full search and of those without fusion, for all
networks in the folder TINY together, and for each other network, whose weights UNWEIGHTED.py draws, by itself; and how
much dearer than the accurate fidelity the quick one, which leaves things out, makes a kernel at most. On GPUs most
kernels of tiny networks take a launch and little else, and differ by waits that it leaves out. Kernels of several
phases are left out of the other networks: the accurate one alone puts them together."""

import glob
import json
import os
import subprocess
import sys
import tempfile

fusec, tiny, unweighted, *large = sys.argv[1:]
FLOORS = {"x86-64-v3": 0.82, "sm_80": 0.5, "gfx90a": 0.36}
LARGE_FLOORS = {"x86-64-v3": 0.65, "sm_80": 0.8, "gfx90a": 0.62}  # waits for reads, which the quick one leaves out
DEARER = 3
RANGES = {"bert-sym": ["--dim", "batch=1..8:2", "--dim", "seq=1..64:32"]}


def fidelities(path, phases):
    """target -> kernel -> (quick, accurate seconds)"""
    found = {}
    for mode in ("full", "none"):
        command = [fusec, "explain", path, "--target", "x86-64-v3,sm_80,gfx90a", f"--search-mode={mode}", "--json"]
        text = subprocess.run(command + RANGES.get(os.path.basename(path)[:-5], []), check=True, capture_output=True,
                              text=True).stdout
        for line in text.splitlines():
            target = json.loads(line)
            for kernel in target["kernels"]:
                if phases or not kernel["phase_starts"]:
                    found.setdefault(target["target"], {})[kernel["name"]] = (kernel["quick_s"], kernel["predicted_s"])
    return found


def kendall(pairs):
    """From -1 to 1; a tie on either side is neither for nor against."""
    agree = all_pairs = 0
    for i, (x, y) in enumerate(pairs):
        for other_x, other_y in pairs[:i]:
            product = (x - other_x) * (y - other_y)
            agree += (product > 0) - (product < 0)
            all_pairs += 1
    return agree / all_pairs


def check(name, found, floors):
    for target, kernels in sorted(found.items()):
        tau = kendall(list(kernels.values()))
        ratio, dearest = max((quick / accurate, name) for name, (quick, accurate) in kernels.items())
        print(f"{name} {target}: {len(kernels)} kernels, tau {tau:.2f}, at most {ratio:.1f} times dearer ({dearest})")
        assert tau >= floors[target], (name, target, tau)
        assert ratio <= DEARER, (name, target, dearest, ratio)


together = {}
for path in sorted(glob.glob(os.path.join(tiny, "*.onnx"))):
    for target, kernels in fidelities(path, True).items():
        together.setdefault(target, {}).update(kernels)
check("tiny", together, FLOORS)
for path in large:
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, unweighted, "fill", folder, path], check=True)
        filled = os.path.join(folder, os.path.basename(path))
        check(os.path.basename(path)[:-5], fidelities(filled, False), LARGE_FLOORS)
