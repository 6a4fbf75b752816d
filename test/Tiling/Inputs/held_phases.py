"""held_phases.py FUSEC FUSERT FOLDER: squeeze-and-excitation blocks whose x stays in registers from the phase of the
means to that of the product, on a simulated GPU with all blocks resident and, by other seeds, with fewer of them.
Prints what it found; where the instructions ask for other bytes than is predicted, or outputs differ, it fails."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

fusec, fusert, folder = sys.argv[1:]
FIELDS = ("read_bytes", "write_bytes", "read_sectors", "write_sectors", "shared_bytes")
OPTIONS = ["--target", "sim:sm_80"]
model, decisions, bundle = (os.path.join(folder, name) for name in ("se.onnx", "decisions.txt", "bundle"))
random = np.random.default_rng(3)


def make(channels, reduced, size):
    """The model's file, x and what y is."""
    shapes = ((reduced, channels), (channels, reduced))
    w, v = (random.standard_normal(shape).astype(np.float32) / 8 for shape in shapes)
    x = random.standard_normal((1, channels, size, size)).astype(np.float32)
    node, info = helper.make_node, lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, x.shape)
    nodes = [node("GlobalAveragePool", ["x"], ["m"]), node("Conv", ["m", "w"], ["h"]), node("Relu", ["h"], ["r"]),
             node("Conv", ["r", "v"], ["g"]), node("Sigmoid", ["g"], ["s"]), node("Mul", ["x", "s"], ["y"])]
    weights = [numpy_helper.from_array(array[:, :, None, None], name) for array, name in ((w, "w"), (v, "v"))]
    graph = helper.make_graph(nodes, "se", [info("x")], [info("y")], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), model)
    np.save(os.path.join(folder, "x.npy"), x)
    gate = 1 / (1 + np.exp(-(v @ np.maximum(w @ x.mean((2, 3))[0], 0))))
    return x, x * gate[None, :, None, None]


def explained(*options):
    command = [fusec, "explain", model, "--json", *OPTIONS, *options]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["kernels"]


def compile(*options):
    return subprocess.run([fusec, model, *OPTIONS, "-o", bundle, *options], capture_output=True, text=True)


def run(expected, *options):
    """The counters of the one kernel; its outputs are right."""
    out = subprocess.run([fusert, "run", bundle, *OPTIONS, "--input", f"x={folder}/x.npy", "--output-dir", folder,
                          "--counters", *options], check=True, capture_output=True, text=True).stdout
    np.testing.assert_allclose(np.load(os.path.join(folder, "y.npy")), expected, rtol=1e-5, atol=1e-6)
    kernel, = json.loads(out.splitlines()[-1])["kernels"]
    return kernel


# A row of x for each unit, and for each block; souffle's phases hold x whether that is faster or not.
for channels, reduced, size in ((384, 8, 8), (64, 16, 24)):
    x, y = make(channels, reduced, size)
    held, = explained("--search-mode=souffle", "--emit-decisions", decisions)
    text = open(decisions).read()
    without = re.sub("^  keep e6.r0 register from e0.r0\n", "", text, flags=re.M)
    assert without != text and held["held"] == [{"tensor": "x", "first": "m.acc", "again": "y"}], held["held"]
    if size == 24:
        shown = subprocess.run([fusec, "explain", model, *OPTIONS, "--search-mode=souffle"], check=True,
                               capture_output=True, text=True).stdout
        print("explained:", " ".join(re.search("^ +held .*$", shown, re.M)[0].split()))
    assert compile("--decisions", decisions).returncode == 0
    counted = run(y)
    for field in FIELDS:
        assert counted[field] == held["moved"][field], (field, counted[field], held["moved"][field])
    open(decisions, "w").write(without)
    plain, = explained("--decisions", decisions)
    assert not plain["held"] and plain["bytes_read"] - held["bytes_read"] == x.nbytes, (plain, held)
    assert plain["moved"]["read_bytes"] - counted["read_bytes"] == x.nbytes, (plain["moved"], counted)
    print(f"planes of {size * size} elements: x is read once, as counted")
    if size == 24:
        asked = {run(y, "--sim-seed", str(seed))["read_bytes"] for seed in range(1, 13)}
        assert asked == {counted["read_bytes"], plain["moved"]["read_bytes"]}, asked
        print(f"{len(asked)} ways to run: all blocks resident, or fewer")

# What does not hold: another tensor, another level, other loops, other elements.
for edits in ([("keep e6.r0 register from e0.r0", "keep e6.r1 register from e0.r0")],
              [("keep e6.r0 register", "keep e6.r0 shared")],
              [("seq x1p6:256 {\n        unit x1p6:32 {", "seq x1p6:512 {\n        unit x1p6:64 {")],
              [("x0p6 spatial (1) of", "x0p6 spatial (1, 2) of"), ("x1p6 spatial (2, 3) of", "x1p6 spatial (3) of")]):
    broken = text
    for old, new in edits:
        assert old in broken, old
        broken = broken.replace(old, new)
    open(decisions, "w").write(broken)
    print(compile("--decisions", decisions).stderr)
