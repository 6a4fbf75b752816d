"""edits.py FUSEC FUSERT FOLDER: compiles a product with a bias from edited schedule dumps and compares counters, and on
the host the instructions in the machine code."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

fusec, fusert, folder = sys.argv[1:]
M, N, K = 64, 64, 512
random = np.random.default_rng(0)
weights = [numpy_helper.from_array(random.standard_normal(s).astype(np.float32), n)
           for n, s in (("w", (K, N)), ("b", (N,)))]
nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Add", ["p", "b"], ["q"]),
         helper.make_node("Relu", ["q"], ["y"])]
info = lambda n, *s: helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
graph = helper.make_graph(nodes, "g", [info("x", M, K)], [info("y", M, N)], weights)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), folder + "/m.onnx")


def dump(target):
    subprocess.run([fusec, folder + "/m.onnx", "--target", target, "--stop-after=schedule", "--dump-dir", folder],
                   check=True)
    return open(folder + "/schedule.txt").read()


def run(text, target):
    """Counters (sims) and output of the bundle that the schedule text makes."""
    open(folder + "/edited.txt", "w").write(text)
    subprocess.run([fusec, folder + "/edited.txt", "-o", folder + "/b"], check=True)
    arguments = ["--counters"] if target.startswith("sim:") else []
    result = subprocess.run([fusert, "run", folder + "/b", "--target", target, "--random", "1", "--output-dir", folder]
                            + arguments, check=True, capture_output=True, text=True)
    counters = re.search(r"^\{.*\}$", result.stdout, re.M)
    return json.loads(counters.group(0))["kernels"] if counters else None, np.load(folder + "/y.npy")


def edited(text, old, new):
    """The text with one pattern replaced, which must be there."""
    changed, count = re.subn(old, new, text)
    assert count and changed != text, (old, text)
    return changed


text = dump("sim:sm_90")
tile = int(re.search(r"seq k0:(\d+) \{\s+stage", text).group(1))
if tile != 16:
    text = edited(text, r"seq k0:%d \{(\s+stage)" % tile, r"seq k0:16 {\1")
base, expected = run(text, "sim:sm_90")
assert len(base) == 1, "the bias and the rectifier finish the product in one kernel"

halved, y = run(edited(text, r"seq k0:16 \{(\s+stage)", r"seq k0:8 {\1"), "sim:sm_90")
assert np.array_equal(y, expected), "outputs changed"
# Every step of k costs the same number of barriers, and there are none outside.
assert halved[0]["barriers"] == 2 * base[0]["barriers"], (base[0]["barriers"], halved[0]["barriers"])
assert halved[0]["write_bytes"] == base[0]["write_bytes"]
print("depth 16 -> 8: barriers doubled")

edge = re.search(r"edge (\S+) register", text).group(1)
shared, y = run(edited(text, f"edge {edge} register", f"edge {edge} shared"), "sim:sm_90")
assert np.array_equal(y, expected), "outputs changed"
# Each sum is written and read by one thread.
assert shared[0]["shared_bytes"] == base[0]["shared_bytes"] + 2 * 4 * M * N, (shared, base)
assert shared[0]["read_bytes"] == base[0]["read_bytes"]
print("edge register -> shared: written and read there")
raised = edited(text, f"edge {edge} register", f"edge {edge} shared\n  keep e1.r0 register from store")
kept, y = run(raised, "sim:sm_90")
assert np.array_equal(y, expected), "outputs changed"
assert kept == base, (kept, base)
print("and kept: back in registers")

deep, y = run(edited(text, r"seq k0:16 \{(\s+stage)", r"seq k0:512 {\1"), "sim:sm_90")
assert np.array_equal(y, expected), "outputs changed"
assert deep[0]["barriers"] < halved[0]["barriers"] / 32, (deep, halved)
assert json.loads(subprocess.run([fusert, "info", folder + "/b", "--json"], check=True, capture_output=True,
                                 text=True).stdout)["programs"][0]["dynamic_shared_bytes"] > 100000
print("depth 512: in shared memory that launches give")

deep = edited(dump("sim:gfx90a"), r"seq k0:\d+ \{(\s+stage)", r"seq k0:512 {\1")
open(folder + "/edited.txt", "w").write(deep)
refused = subprocess.run([fusec, folder + "/edited.txt", "-o", folder + "/none"], capture_output=True, text=True)
assert refused.returncode == 5 and not os.path.exists(folder + "/none"), refused
print(refused.stderr.strip())



def instructions(text):
    """Multiply-adds of whole vectors and broadcasts of single elements in the machine code that the schedule makes."""
    with open(folder + "/edited.txt", "w") as file:
        file.write(text)
    subprocess.run([fusec, folder + "/edited.txt", "--stop-after=object", "--dump-dir", folder + "/code"], check=True)
    code = subprocess.run(["llvm-objdump", "-d", folder + "/code/object.x86-64-v3.elf"], check=True,
                          capture_output=True, text=True).stdout
    return tuple(len(re.findall(rf"\s{kind}\s.*%ymm", code)) for kind in (r"vfmadd\w+ps", r"vbroadcastss"))


text = dump("x86-64-v3")
_, expected = run(text, "x86-64-v3")
# A tile of rows x columns of sums in registers: a step of k broadcasts one element a row and multiplies it with each
# vector of 8 columns. Half the rows: half of both.
rows = int(re.search(r"seq m:(\d+) \{", text).group(1))
vectors = int(re.search(r"block n:(\d+) \{", text).group(1)) // 8
assert rows % 2 == 0 and vectors >= 1, text
assert instructions(text) == (rows * vectors, rows), (instructions(text), rows, vectors)
halved = edited(text, rf"seq m:{rows} \{{", f"seq m:{rows // 2} {{")
assert instructions(halved) == (rows // 2 * vectors, rows // 2), (instructions(halved), rows, vectors)
_, y = run(halved, "x86-64-v3")
assert np.array_equal(y, expected), "outputs changed"
print(f"host rows {rows} -> {rows // 2}: half the multiply-adds and broadcasts a step")
