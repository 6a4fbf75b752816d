"""Compiles, replays and runs RMSNorm in front of a matrix product, given as equations over %x, %w and perhaps a gain
%g:
  normalised_product.py FUSEC FUSERT PROGRAM FOLDER TARGET
Prints how many kernels the plan has, and what generated their schedules. The results must be those of double
arithmetic, as far as sums in any order are in the declared type; decisions read back must give the same bundle."""

import re
import subprocess
import sys

import numpy as np

fusec, fusert, program, folder, target = sys.argv[1:]
with open(program, encoding="utf-8") as file:
    shapes = re.findall(r"tensor %(\w): f32\[(.*)\] input", file.read())
random = np.random.default_rng(3)
inputs = {}
for name, shape in shapes:
    inputs[name] = random.standard_normal([int(n) for n in shape.split(",")]).astype(np.float32)
for name, value in inputs.items():
    np.save(f"{folder}/{name}.npy", value)

common = [fusec, program, "--target", target]
subprocess.run([*common, "-o", f"{folder}/b", f"--emit-decisions={folder}/decisions"], check=True)
subprocess.run([*common, "-o", f"{folder}/again", f"--decisions={folder}/decisions"], check=True)
with open(f"{folder}/b", "rb") as one, open(f"{folder}/again", "rb") as other:
    if one.read() != other.read():
        sys.exit(f"{target}: decisions read back give another bundle")
given = [part for name in inputs for part in ("--input", f"{name}={folder}/{name}.npy")]
subprocess.run([fusert, "run", f"{folder}/b", "--target", target, *given, "--output-dir", folder],
               check=True, stdout=subprocess.DEVNULL)

x, w = (inputs[name].astype(np.float64) for name in "xw")
normal = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-5) * inputs.get("g", np.float64(1))
# A sum of n products is off by n roundings of the sum of their magnitudes at most; the factor adds half of its own
# sum's, a root, a quotient and two products.
roundings = 1.5 * x.shape[1] + 9
bound = roundings * 2.0**-24 * (np.abs(normal) @ np.abs(w))
off = np.abs(np.load(f"{folder}/y.npy") - normal @ w)
if not (off <= bound).all():
    sys.exit(f"{target}: off by up to {(off / bound).max()} of the bound")
with open(f"{folder}/decisions", encoding="utf-8") as file:
    decisions = file.read()
generators = re.findall(r'schedule "?\w+\.([\w-]+)"? units', decisions)
print(f"kernels: {decisions.count('launch {')}, by {' '.join(generators)}")
