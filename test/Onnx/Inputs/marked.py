"""Marks inner tensors of a model as outputs and compares them with numpy: marked.py FUSEC FUSERT FOLDER"""

import pathlib
import subprocess
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

fusec, fusert, folder = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3])
folder.mkdir(parents=True, exist_ok=True)
info = helper.make_tensor_value_info
node = helper.make_node


def scalar(name, value):
    return numpy_helper.from_array(np.array(value), name)


always = {
    f"{side}_branch": helper.make_graph(
        [node("Exp" if side == "then" else "Neg", ["x"], ["branch" if side == "then" else "other"])]
        + [node("Neg", ["branch" if side == "then" else "other"], [f"{side}_out"])],
        side,
        [],
        [info(f"{side}_out", TensorProto.FLOAT, (3,))],
    )
    for side in ("then", "else")
}
nodes = [
    node("Add", ["c", "c"], ["folded"]),
    node("Identity", ["x"], ["copy"]),
    node("Dropout", ["copy"], ["dropped"]),
    node("Gelu", ["dropped"], ["gelu"]),
    node("Half", ["gelu"], ["h"], domain="own", name="f"),
    node("If", ["true"], ["i"], name="i", **always),
    node("Mul", ["x", "x"], ["unused"]),
    node("Add", ["h", "i"], ["s"]),
    node("Add", ["s", "folded"], ["y"]),
]
half = helper.make_function(
    "own",
    "Half",
    ["a"],
    ["half"],
    [
        node("Constant", [], ["one"], value_float=0.5),
        node("Mul", ["a", "one"], ["half"]),
    ],
    [helper.make_opsetid("", 20)],
)
data = [scalar("c", np.float32(1.5)), scalar("true", True)]
infos = [info("x", TensorProto.FLOAT, (3,))], [info("y", TensorProto.FLOAT, (3,))]
graph = helper.make_graph(nodes, "g", *infos, data)
imports = [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)]
model = helper.make_model(graph, opset_imports=imports, functions=[half], ir_version=10)
path = folder / "m.onnx"
path.write_bytes(model.SerializeToString())


def compiled(*marked):
    options = [part for name in marked for part in ("--mark-output", name)]
    return subprocess.run([fusec, path, "-o", folder / "b", *options], capture_output=True, text=True).stderr.strip()


x = np.array([-1, 0.25, 2], np.float32)
erf = np.array([-0.6826894921, 0.1974126513, 0.9544997361])  # of x / sqrt(2)
gelu = x * (1 + erf) / 2
want = {"folded": 3, "copy": x, "dropped": x, "gelu": gelu, "f/half": gelu / 2, "f/one": 0.5, "branch": np.exp(x)}
want |= {"unused": x * x}
want = {"y": want["f/half"] - want["branch"] + 3} | want
marked = [name for name in want if name != "y"]
text = compiled(*marked)
np.save(folder / "x.npy", x)
expect = []
for i, (name, value) in enumerate(want.items()):
    np.save(folder / f"{i}.npy", np.asarray(value, np.float32))
    expect += ["--expect", f"{name}={folder}/{i}.npy"]
command = [fusert, "check", folder / "b", "--input", f"x={folder}/x.npy", *expect]
result = subprocess.run(command, capture_output=True, text=True)
print(f"{', '.join(want)}: {text or ('right' if result.returncode == 0 else result.stdout + result.stderr)}")
for name in ("x", "c", "nowhere"):
    print(f"{name}: {compiled(name)}")
