"""Writes models whose initialisers are inputs too: default_inputs.py FOLDER"""

import pathlib
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
info, node = helper.make_tensor_value_info, helper.make_node
folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)


def write(name, nodes, defaults, inputs=(), declared=()):
    """`defaults` are values by name; `declared` has other types for them."""
    declared = dict(declared)
    infos = [info("x", FLOAT, (2, 3)), *inputs]
    for key, value in defaults.items():
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        infos.append(info(key, *declared.get(key, (kind, value.shape))))
    data = [numpy_helper.from_array(value, key) for key, value in defaults.items()]
    graph = helper.make_graph(nodes, "g", infos, [info("y", FLOAT, None)], data)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (folder / f"{name}.onnx").write_bytes(model.SerializeToString())


def longs(*values):
    return np.array(values, np.int64)


def floats(*shape):
    return np.ones(shape, np.float32)


# The target shape hangs on one input by itself and on another by way of nodes; the factor is free.
write(
    "shape",
    [
        node("Mul", ["half", "two"], ["cols"]),
        node("Concat", ["rows", "cols"], ["to"], axis=0),
        node("Reshape", ["x", "to"], ["r"], name="fold"),
        node("Mul", ["r", "factor"], ["y"]),
    ],
    {"rows": longs(3), "half": longs(1), "two": longs(2), "factor": floats(1)},
)
write(
    "many",
    [node("Reshape", ["x", f"s{i}"], [f"r{i}"], name=f"n{i}") for i in range(12)]
    + [node("Sum", [f"r{i}" for i in range(12)], ["y"])],
    {f"s{i}": longs(3, 2) for i in range(12)},
)


def branch(name, *nodes):
    return helper.make_graph(list(nodes), name, [], [info(name, FLOAT, None)])


# Branches of one shape may both be taken, those of two not: that condition is fixed.
for name, other in (("either", "Neg"), ("one", "Transpose")):
    write(
        name,
        [
            node(
                "If",
                ["c"],
                ["y"],
                name="choose",
                then_branch=branch("a", node("Abs", ["x"], ["a"])),
                else_branch=branch("b", node(other, ["x"], ["b"])),
            )
        ],
        {"c": np.array(True)},
    )
write("declared", [node("Add", ["x", "w"], ["y"])], {"w": floats(2, 3)}, declared={"w": (TensorProto.DOUBLE, (3, 3))})
write("weights", [node("Sum", ["x", *"abcd"], ["y"])], {n: floats(2, 3) for n in "abcd"})
