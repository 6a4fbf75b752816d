"""Runs a program with its cascades repaired on a CPU and on simulated GPUs:
  cascades.py FUSEC FUSEC_OPT FUSERT PROGRAM.expr FOLDER TARGET...
Compiled code must have the bits of the interpreter of its kernels, and the numbers of two passes in double."""

import os
import subprocess
import sys

import numpy as np
from onnx import numpy_helper

fusec, opt, fusert, program, folder, *targets = sys.argv[1:]
ROWS, LENGTH = 5, 203

random = np.random.default_rng(7)
x = random.standard_normal((ROWS, LENGTH)).astype(np.float32)
x[1] = x[1] * 100 + 1e4  # e^x would overflow
x[2, :50] = -np.inf  # masked at its beginning
x[3, ::2] = -np.inf
u = (random.standard_normal((ROWS, LENGTH)) + 1e3).astype(np.float32)
v = random.standard_normal(LENGTH).astype(np.float32)
inputs = {"x": x, "u": u, "v": v}
for name, value in inputs.items():
    with open(f"{folder}/{name}.pb", "wb") as file:
        file.write(numpy_helper.from_array(value, name).SerializeToString())
given = [part for name in inputs for part in ("--input", f"{name}={folder}/{name}.pb")]

x, u, v = (value.astype(np.float64) for value in (x, u, v))
largest = x.max(axis=1)
weights = np.exp(x - largest[:, None])
expected = {
    "lse": (np.log(weights.sum(axis=1)) + largest, 1e-6),
    "mix": ((weights * v).sum(axis=1) / weights.sum(axis=1), 1e-5),
    "var": (u.var(axis=1), 1e-3),
}


def call(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


repaired = call(opt, program, "--passes=repair-cascades")
print("cascades:", repaired.count(" cascade f32"), "sums:", repaired.count(" sum f32"))
with open(f"{folder}/repaired.txt", "w", encoding="utf-8") as file:
    file.write("# fusec dump expr x86-64-v3\n=== expr\n" + repaired)
for target in targets:
    here = f"{folder}/{target.replace(':', '_')}"
    os.makedirs(f"{here}/gir")
    call(fusec, f"{folder}/repaired.txt", "--target", target, "-o", f"{here}/b")
    call(fusert, "run", f"{here}/b", "--target", target, *given, "--output-dir", f"{here}/run")
    call(fusec, f"{folder}/repaired.txt", "--target", target, "--stop-after=gir", "--dump-dir", here)
    call(opt, f"{here}/gir.txt", "--interpret", *given, "--output-dir", f"{here}/gir")
    for name, (value, tolerance) in expected.items():
        run, gir = (np.load(f"{here}/{by}/{name}.npy") for by in ("run", "gir"))
        if run.tobytes() != gir.tobytes():
            sys.exit(f"{target}, {name}: {run}, interpreted {gir}")
        if not np.allclose(run, value, rtol=tolerance, atol=tolerance):
            sys.exit(f"{target}, {name}: {run}, not {value}")
    print(target, "agrees")
