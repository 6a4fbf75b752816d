"""steps.py FUSEC FUSERT FOLDER: models that go step by step. A Scan that stacks its outputs and a scatter go on from
each dump to the same bytes; a recurrence with a single element of state gives the same on the host and on the sims."""

import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

fusec, fusert, folder = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
info = lambda name, shape, kind=TensorProto.FLOAT: helper.make_tensor_value_info(name, kind, shape)
node = helper.make_node


def save(name, nodes, inputs, outputs, constants=()):
    path = os.path.join(folder, name + ".onnx")
    graph = helper.make_graph(nodes, name, inputs, outputs, list(constants))
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


def stacked():
    body = helper.make_graph(
        [node("Add", ["sum", "x"], ["next"]), node("Mul", ["next", "x"], ["y"])],
        "body", [info("sum", [4]), info("x", [4])], [info("next", [4]), info("y", [4])])
    return save("stacked", [node("Scan", ["start", "xs"], ["last", "ys"], body=body, num_scan_inputs=1)],
                [info("start", [4]), info("xs", [6, 4])], [info("last", [4]), info("ys", [6, 4])])


def scattered():
    return save("scattered", [node("ScatterElements", ["x", "i", "u"], ["y"], axis=0, reduction="add")],
                [info("x", [5, 4]), info("i", [3, 4], TensorProto.INT64), info("u", [3, 4])], [info("y", [5, 4])])


for path in (stacked(), scattered()):
    dumps, direct, again = (os.path.join(folder, name) for name in ("dumps", "direct", "again"))
    subprocess.run([fusec, path, "-o", direct, "--dump-dir", dumps], check=True)
    for stage in ("graph", "expr", "plan", "schedule", "gir"):
        subprocess.run([fusec, os.path.join(dumps, stage + ".txt"), "-o", again], check=True)
        with open(direct, "rb") as one, open(again, "rb") as other:
            assert one.read() == other.read(), f"{path}: going on from {stage} gives another bundle"
    print(f"{os.path.basename(path)}: the same bundle from every dump")

weights = [numpy_helper.from_array(np.full((1, rows, 1), value, np.float32), name)
           for name, rows, value in (("w", 1, 0.7), ("r", 1, 0.8))]
path = save("single", [node("RNN", ["x", "w", "r", "", "n", "h"], ["y", "last"], hidden_size=1)],
            [info("x", [5, 1, 1]), info("n", [1], TensorProto.INT32), info("h", [1, 1, 1])],
            [info("y", [5, 1, 1, 1]), info("last", [1, 1, 1])], weights)
values = {"x": np.linspace(-1, 1, 5, dtype=np.float32).reshape(5, 1, 1), "n": np.array([4], np.int32),
          "h": np.full((1, 1, 1), 0.5, np.float32)}
given = []
for name, value in values.items():
    np.save(os.path.join(folder, name + ".npy"), value)
    given += ["--input", f"{name}={folder}/{name}.npy"]
state, expected = 0.5, []
for step, x in enumerate(values["x"].ravel()):
    state = np.tanh(0.7 * x + 0.8 * state) if step < 4 else state
    expected.append(state if step < 4 else 0)
for target in ("host", "sim:sm_90", "sim:gfx90a"):
    subprocess.run([fusec, path, "-o", os.path.join(folder, "b"), "--target", target], check=True)
    chosen = ["--target", target] if target != "host" else []
    subprocess.run([fusert, "run", os.path.join(folder, "b"), "--output-dir", folder, *given, *chosen], check=True,
                   stdout=subprocess.DEVNULL)
    np.testing.assert_allclose(np.load(os.path.join(folder, "y.npy")).ravel(), expected, rtol=1e-5)
    print(f"one element of state on {target}: right")
