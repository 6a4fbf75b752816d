"""names.py make FOLDER: models whose tensors have names that no file can have, and one of bfloat16, with their inputs.
names.py check FOLDER LOG: the files of their outputs, by the lines in which a tool told where each of them went."""

import pathlib
import re
import sys

import ml_dtypes
import numpy
import onnx
from onnx import TensorProto, helper

LONG = "n" * 299
NAMES = ["Y", "y", "a/b", "a_b", "a:b", "a_b.2", "\u65e5\u672c", "\u4e2d\u6587", LONG + "1", LONG + "2", "p=q"]
folder = pathlib.Path(sys.argv[2])


def save(name, nodes, inputs, outputs):
    described = [[helper.make_tensor_value_info(*value) for value in values] for values in (inputs, outputs)]
    graph = helper.make_graph(nodes, name, *described)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / f"{name}.onnx")


def make():
    values = {"x": [1, 2, 3], "x=y": [10, 20, 30], "x=y=z": [100, 200, 300]}
    total = helper.make_node("Sum", list(values), ["total"])
    factors = [helper.make_node("Constant", [], [f"f{i}"], value_float=float(i + 1)) for i in range(len(NAMES))]
    nodes = [helper.make_node("Mul", ["total", f"f{i}"], [name]) for i, name in enumerate(NAMES)]
    floats = [(name, TensorProto.FLOAT, [3]) for name in values]
    save("names", [total, *factors, *nodes], floats, [(name, TensorProto.FLOAT, [3]) for name in NAMES])
    place = folder / "part=1"
    place.mkdir()
    for name, numbers in values.items():
        numpy.save(place / f"{name}.npy", numpy.array(numbers, numpy.float32))

    sides = ([(name, TensorProto.BFLOAT16, [3])] for name in "xy")
    save("bf16", [helper.make_node("Neg", ["x"], ["y"])], *sides)
    x = numpy.array([1.5, -2, 0.25], ml_dtypes.bfloat16)
    numpy.save(folder / "bf16.npy", x)
    numpy.save(folder / "bits.npy", x.view(numpy.uint16))
    numpy.save(folder / "minus.npy", -x)
    for number, name in enumerate(["wide", "narrow"]):
        numpy.save(folder / f"{name}.npy", x.astype([numpy.float32, numpy.int16][number]))


def check(log):
    text = pathlib.Path(log).read_text(encoding="utf-8")
    told = dict(re.findall(r"^output '(.*)' goes to (.*)$", text, re.MULTILINE))
    files = [told.get(name, name + ".npy") for name in NAMES]
    assert files[:6] == ["Y.npy", "y.npy", "a_b.npy", "a_b.2.npy", "a_b.3.npy", "a_b.2.2.npy"], files
    assert files[6:8] == ["__.npy", "__.2.npy"] and files[10] == "p_q.npy", files
    assert files[8] == "n" * 251 + ".npy" and files[9] == "n" * 249 + ".2.npy", files
    for i, file in enumerate(files):
        assert (numpy.load(folder / file) == (i + 1) * numpy.array([111, 222, 333])).all(), file
    assert len(list(folder.iterdir())) == len(files)


make() if sys.argv[1] == "make" else check(sys.argv[3])
