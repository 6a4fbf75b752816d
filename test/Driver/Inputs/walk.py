"""walk.py PAGE FOLDER: makes the model of tools/fusec/DEBUGGING.md and its input in FOLDER, and writes the page's
commands into FOLDER/commands.sh."""

import pathlib
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

page, folder = map(pathlib.Path, sys.argv[1:])
random = numpy.random.default_rng(1)
# Rows of the result are long enough that targets add them up in other orders.
shapes = {"v": [67, 67], "w": [67, 1031]}
weights = [
    numpy_helper.from_array(random.standard_normal(shape).astype(numpy.float32), name)
    for name, shape in shapes.items()
]
nodes = [
    helper.make_node("MatMul", ["x", "v"], ["product"], name="first"),
    helper.make_node("Tanh", ["product"], ["hidden"], name="squash"),
    helper.make_node("MatMul", ["hidden", "w"], ["scores"], name="second"),
    helper.make_node("Softmax", ["scores"], ["y"], name="soft"),
]
values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, n]) for name, n in (("x", 67), ("y", 1031))]
graph = helper.make_graph(nodes, "walk", values[:1], values[1:], weights)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.save(model, folder / "model.onnx")
numpy.save(folder / "x.npy", random.standard_normal([4, 67]).astype(numpy.float32))
lines = [line[4:] for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("    ")]
assert len(lines) > 20
(folder / "commands.sh").write_text("set -e\n" + "\n".join(lines) + "\n", encoding="utf-8")
