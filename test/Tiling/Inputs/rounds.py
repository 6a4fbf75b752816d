"""rounds.py FUSEC FUSERT FOLDER: an LSTM layer whose steps several blocks share, compiled for x86-64-v3 and for a GPU
without a grid barrier. Its values are those of the recurrence in float64, and its bits those of one thread for any
number of threads."""

import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

STEPS, INPUTS, HIDDEN = 9, 8, 256

fusec, fusert, folder = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
random = np.random.default_rng(5)
x = random.standard_normal((STEPS, 1, INPUTS)).astype(np.float32)
w = (random.standard_normal((1, 4 * HIDDEN, INPUTS)) / 4).astype(np.float32)
r = (random.standard_normal((1, 4 * HIDDEN, HIDDEN)) / 16).astype(np.float32)
info = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
graph = helper.make_graph(
    [helper.make_node("LSTM", ["x", "w", "r"], ["y", "h", "c"], hidden_size=HIDDEN)], "layer",
    [info("x", x.shape)], [info("y", [STEPS, 1, 1, HIDDEN]), info("h", [1, 1, HIDDEN]), info("c", [1, 1, HIDDEN])],
    [numpy_helper.from_array(w, "w"), numpy_helper.from_array(r, "r")])
model = os.path.join(folder, "layer.onnx")
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), model)
np.save(os.path.join(folder, "x.npy"), x)


def recurrence():
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    h = c = np.zeros(HIDDEN)
    steps = []
    for row in x[:, 0].astype(np.float64):
        i, o, f, g = np.split(w[0].astype(np.float64) @ row + r[0].astype(np.float64) @ h, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        steps.append(h)
    return {"y": np.array(steps), "h": h, "c": c}


def run(bundle, target, *more):
    into = os.path.join(folder, "out")
    subprocess.run([fusert, "run", bundle, "--target", target, "--input", f"x={folder}/x.npy", "--output-dir", into,
                    *more], check=True, stdout=subprocess.DEVNULL)
    return {name: np.load(os.path.join(into, name + ".npy")) for name in ("y", "h", "c")}


expected = recurrence()
for target, runs in (("x86-64-v3", [["--threads", str(n)] for n in (1, 2, 3)]), ("sim:gfx90a", [[]])):
    bundle, dumps = os.path.join(folder, "bundle"), os.path.join(folder, target.replace(":", "-"))
    subprocess.run([fusec, model, "-o", bundle, "--target", target, "--dump-dir", dumps], check=True)
    results = [run(bundle, target, *options) for options in runs]
    for name, values in expected.items():
        np.testing.assert_allclose(results[0][name].ravel(), values.ravel(), rtol=1e-4, atol=1e-6)
        for other in results[1:]:
            assert np.array_equal(results[0][name], other[name]), f"{name} depends on the number of threads"
    print(f"{target}: {len(results)} runs, right")
