"""edits.py FUSEC FUSERT FOLDER: compiles a product with a bias from edited schedule dumps and compares counters."""

import json
import re
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

fusec, fusert, folder = sys.argv[1:]
M, N, K = 64, 64, 64
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


text = dump("sim:sm_90")
tile = int(re.search(r"seq k:(\d+) \{\s+stage", text).group(1))
text = re.sub(r"seq k:%d \{(\s+stage)" % tile, r"seq k:16 {\1", text)
base, expected = run(text, "sim:sm_90")
assert len(base) == 1, "the bias and the rectifier finish the product in one kernel"

halved, y = run(re.sub(r"seq k:16 \{(\s+stage)", r"seq k:8 {\1", text), "sim:sm_90")
assert np.array_equal(y, expected), "outputs changed"
# Every step of k costs the same number of barriers, and there are none outside.
assert halved[0]["barriers"] == 2 * base[0]["barriers"], (base[0]["barriers"], halved[0]["barriers"])
assert halved[0]["write_bytes"] == base[0]["write_bytes"]
print("depth 16 -> 8: barriers doubled")

edge = re.search(r"edge (\S+) register", text).group(1)
shared, y = run(text.replace(f"edge {edge} register", f"edge {edge} shared"), "sim:sm_90")
assert np.array_equal(y, expected), "outputs changed"
extra = shared[0]["shared_bytes"] - base[0]["shared_bytes"]
assert extra == 2 * M * N * 4, extra  # each sum is written once and read once
assert shared[0]["barriers"] >= base[0]["barriers"]
print("edge register -> shared: shared bytes as predicted")

text = dump("x86-64-v3")
_, expected = run(text, "x86-64-v3")
rows = [int(r) for r in re.findall(r"seq m:(\d+)", text)]
assert rows, text
_, y = run(text.replace(f"seq m:{rows[0]} ", "seq m:1 "), "x86-64-v3")
assert np.array_equal(y, expected), "outputs changed"
print("host tile: outputs hold")
