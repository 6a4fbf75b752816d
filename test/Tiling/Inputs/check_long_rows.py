"""check_long_rows.py FUSEC FUSERT FOLDER: the models of long_rows.py.
Predicted: bytes that the kernels read of rows that no cache holds. Then shorter rows as they run, some with infinities
in front, some far from zero, against numbers in double. Prints a line for each."""

import json
import os
import subprocess
import sys

import numpy as np
from onnx import numpy_helper

fusec, fusert, folder = sys.argv[1:]
here = os.path.dirname(__file__)
FLOAT = 4
PARTS = ("repair-cascades", "two-phase")
# Exponentials that are kept would run over other rows than the parts do.
PARTS_TWICE = ("repair-cascades", "recompute", "two-phase")


def call(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def model(kind, rows, length):
    path = f"{folder}/{kind}-{rows}-{length}.onnx"
    call(sys.executable, f"{here}/long_rows.py", kind, str(rows), str(length), path)
    return path


def kernels(path, target):
    return json.loads(call(fusec, "explain", path, "--target", target, "--json"))["kernels"]


def takes(kernel, alternatives):
    """The schedule takes them in this order, each on what the one before made."""
    lines = [line for schedule in kernel["schedules"] for line in schedule if line.startswith("  via ")]
    return tuple(line.split('"')[1] for line in lines) == alternatives


# Threads ask for each element so many times; in a softmax's second pass for its row's maximum and sum, too.
for kind, rows, length, alternatives, reads, asked in (("moments", 8, 1_000_000, PARTS, "once", 1),
                                                       ("softmax", 32, 200_000, PARTS_TWICE, "twice", 2 + 2)):
    found = kernels(model(kind, rows, length), "sm_80")
    read = sum(kernel["moved"]["read_bytes"] for kernel in found)
    assert len(found) == 1 and takes(found[0], alternatives), found
    assert asked * FLOAT * rows * length <= read <= 1.001 * asked * FLOAT * rows * length, read
    print(f"{kind} of {length} numbers: read {reads} on sm_80")

rows, length = 2, 100_003
random = np.random.default_rng(3)
x = random.standard_normal((rows, length)).astype(np.float32)
x[0] += 100
masked = x.copy()
masked[1, : length // 2] = -np.inf


def logSumExp(values):
    largest = values.max(axis=1)
    return np.log(np.exp(values - largest[:, None]).sum(axis=1)) + largest




def softmax(values):
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


# Targets on which the rows are read in parts, and how.
EXPECTED = {
    "moments": (x, {"mean": lambda v: v.mean(axis=1, keepdims=True),
                    "variance": lambda v: v.var(axis=1, keepdims=True)}, PARTS, ("sim:sm_90", "sim:gfx90a")),
    "log-sum-exp": (masked, {"y": logSumExp}, PARTS, ("sim:sm_90",)),
    "softmax": (masked, {"y": softmax}, PARTS_TWICE, ("sim:sm_90",)),
}
for kind, (value, outputs, alternatives, inParts) in EXPECTED.items():
    path = model(kind, rows, length)
    with open(f"{folder}/x.pb", "wb") as file:
        file.write(numpy_helper.from_array(value, "x").SerializeToString())
    for target in "x86-64-v3", "sim:sm_90", "sim:gfx90a":
        call(fusec, path, "--target", target, "-o", f"{folder}/b")
        call(fusert, "run", f"{folder}/b", "--target", target, "--input", f"x={folder}/x.pb", "--output-dir", folder)
        for name, compute in outputs.items():
            got, expected = np.load(f"{folder}/{name}.npy"), compute(value.astype(np.float64))
            assert np.allclose(got, expected, rtol=1e-4, atol=1e-4), (kind, target, name, got, expected)
        found = kernels(path, target)
        assert any(takes(kernel, alternatives) for kernel in found) == (target in inParts), (kind, target)
    print(f"{kind}: right on three targets, in parts and one pass on {len(inParts)}")
