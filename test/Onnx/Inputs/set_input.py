"""set_input.py make FOLDER: models whose inputs --set-input makes constants, and files of values.
set_input.py check FOLDER: the outputs that the test made of them."""

import pathlib
import sys

import ml_dtypes
import numpy
import onnx
from onnx import TensorProto, helper

TYPES = {  # name: ONNX's, NumPy's, values that the test gives
    "bool": (TensorProto.BOOL, bool, [True, False]),
    "i8": (TensorProto.INT8, numpy.int8, [-128, 127]),
    "i16": (TensorProto.INT16, numpy.int16, [-32768, 32767]),
    "i32": (TensorProto.INT32, numpy.int32, [-(2**31), 2**31 - 1]),
    "i64": (TensorProto.INT64, numpy.int64, [-(2**63), 2**63 - 1]),
    "u8": (TensorProto.UINT8, numpy.uint8, [0, 255]),
    "u16": (TensorProto.UINT16, numpy.uint16, [0, 65535]),
    "u32": (TensorProto.UINT32, numpy.uint32, [0, 2**32 - 1]),
    "u64": (TensorProto.UINT64, numpy.uint64, [0, 2**64 - 1]),
    "f16": (TensorProto.FLOAT16, numpy.float16, [1.5, 65504]),
    "bf16": (TensorProto.BFLOAT16, ml_dtypes.bfloat16, [1.5, -0.0]),
    "f32": (TensorProto.FLOAT, numpy.float32, [0.1, numpy.inf]),
    "f64": (TensorProto.DOUBLE, numpy.float64, [0.1, -1e300]),
}
folder = pathlib.Path(sys.argv[2])


def info(name, kind, shape):
    return helper.make_tensor_value_info(name, kind, shape)


def save(name, nodes, inputs, outputs):
    graph = helper.make_graph(nodes, name, [info(*i) for i in inputs], [info(*o) for o in outputs])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / f"{name}.onnx")


def branch(factor, pad):
    """Of another rank of work each: which one runs can only be decided at compile time."""
    name = f"b{factor}"
    nodes = [
        helper.make_node("Constant", [], [name + "f"], value_float=float(factor)),
        helper.make_node("Constant", [], [name + "p"], value_ints=[0, 0, 0, pad]),
        helper.make_node("Mul", ["x", name + "f"], [name + "m"]),
        helper.make_node("Pad", [name + "m", name + "p"], [name]),
    ]
    return helper.make_graph(nodes, name, [], [info(name, TensorProto.FLOAT, None)])


def make():
    nodes = [
        helper.make_node("Constant", [], ["wide"], value_int=16000),
        helper.make_node("Equal", ["sr", "wide"], ["isWide"]),
        helper.make_node("If", ["isWide"], ["y"], then_branch=branch(2, 1), else_branch=branch(3, 2)),
    ]
    inputs = [("x", TensorProto.FLOAT, ["n", 4]), ("sr", TensorProto.INT64, [])]
    save("rate", nodes, inputs, [("y", TensorProto.FLOAT, None)])
    nodes = [helper.make_node("Add", ["a", "b"], ["s"]), helper.make_node("Mul", ["s", "k"], ["t"])]
    inputs = [("a", TensorProto.FLOAT, ["n", 2]), ("b", TensorProto.FLOAT, ["n", 2]), ("k", TensorProto.FLOAT, [1, 1])]
    save("named", nodes, inputs, [("t", TensorProto.FLOAT, ["n", 2])])
    inputs = [(name, kind, [2]) for name, (kind, _, _) in TYPES.items()]
    nodes = [helper.make_node("Identity", [name], [name + "out"]) for name in TYPES]
    save("types", nodes, inputs, [(name + "out", kind, [2]) for name, (kind, _, _) in TYPES.items()])
    numpy.save(folder / "x.npy", numpy.arange(8, dtype=numpy.float32).reshape(2, 4))
    numpy.save(folder / "b.npy", numpy.array([[1, 2], [3, 4], [5, 6]], numpy.float32))
    numpy.save(folder / "a.npy", numpy.ones([3, 2], numpy.float32))
    numpy.save(folder / "ints.npy", numpy.zeros([3, 2], numpy.int32))
    for name, (_, numpys, values) in TYPES.items():
        numpy.save(folder / f"{name}.npy", numpy.array(values, numpys))


def check():
    x = numpy.load(folder / "x.npy")
    assert (numpy.load(folder / "wide/y.npy") == numpy.pad(2 * x, [[0, 0], [0, 1]])).all()
    assert (numpy.load(folder / "narrow/y.npy") == numpy.pad(3 * x, [[0, 0], [0, 2]])).all()
    assert (numpy.load(folder / "named/t.npy") == [[4, 6], [8, 10], [12, 14]]).all()
    for made in ("texts", "files"):
        for name, (_, numpys, values) in TYPES.items():
            got = numpy.load(folder / made / f"{name}out.npy")
            assert got.tobytes() == numpy.array(values, numpys).tobytes(), (made, name, got)


make() if sys.argv[1] == "make" else check()
