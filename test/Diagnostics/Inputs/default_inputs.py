"""Writes models whose initialisers are inputs too: default_inputs.py FOLDER"""

import pathlib
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
info, node = helper.make_tensor_value_info, helper.make_node
folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)


def write(
    name, nodes, defaults, inputs=(), declared=(), constants=(), sparse=(), functions=(), out=None, version=9
):  # fmt: skip
    """`defaults` are values by name; `declared` has other types for them. `constants` and `sparse` are initialisers
    that are no inputs. The shape of the output is `out`."""
    declared = dict(declared)
    infos = [info("x", FLOAT, (2, 3)), *inputs]
    for key, value in defaults.items():
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        infos.append(info(key, *declared.get(key, (kind, value.shape))))
    data = [numpy_helper.from_array(value, key) for key, value in defaults.items()]
    outputs = [info("y", FLOAT, out)]
    graph = helper.make_graph(nodes, "g", infos, outputs, [*data, *constants], sparse_initializer=sparse)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=version, functions=functions)
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
for name, version in (("weights", 9), ("old", 3)):
    write(name, [node("Sum", ["x", *"abcd"], ["y"])], {n: floats(2, 3) for n in "abcd"}, version=version)
# Each shape is asked for when the one before it is known.
write(
    "chain",
    [
        *(node("Reshape", [f"r{i - 1}" if i else "x", f"s{i}"], [f"r{i}"], name=f"n{i}") for i in range(20)),
        node("Mul", ["r19", "w"], ["y"]),
    ],
    {"w": floats(1), **{f"s{i}": longs(3, 2) for i in range(20)}},
)

# What is refused beside a default value is told as without one, wherever it stands.
add = node("Add", ["x", "w"], ["y"])
weight = {"w": floats(2, 3)}
no_bool = helper.make_tensor("no", BOOL, [3], bytes([0, 2, 1]), raw=True)
values = helper.make_tensor("far", FLOAT, [2], [1.0, 2.0])
far = helper.make_sparse_tensor(values, helper.make_tensor("at", INT64, [2], [1, 99]), [2, 3])
write("bool", [add], weight, constants=[no_bool])
write("sparse", [add], weight, sparse=[far])
write("node", [node("Constant", [], ["c"], name="c", value=no_bool), add], weight)
write("sparse_node", [node("Constant", [], ["c"], name="c", sparse_value=far), add], weight)
call = helper.make_function(
    "own", "F", ["a"], ["b"], [node("Constant", [], ["c"], name="c", value=no_bool), node("Neg", ["a"], ["b"])],
    [helper.make_opsetid("", 18)],
)  # fmt: skip
calls = [node("F", ["x"], ["x1"], name="f1", domain="own"), node("F", ["x1"], ["x2"], name="f2", domain="own")]
write("calls", [*calls, node("Add", ["x2", "w"], ["y"])], weight, functions=[call])
write("refused", [node("Nowhere", ["x"], ["z"], name="n"), add], weight)

# The sizes come from a table that is too large to be followed to.
rows = numpy_helper.from_array(longs(5, 9), "rows")
nodes = [node("Gather", ["table", "rows"], ["to"]), node("Reshape", ["x", "to"], ["r"]), node("Add", ["r", "w"], ["y"])]
table = np.tile(longs(1, 2, 3, 4, 5, 3, 0, 0, 0, 2), 7000)
write("table", nodes, {"table": table, "w": floats(1)}, constants=[rows])

# Where to crop decides about sizes; where nothing is cropped it is of no use.
for name, mode in (("crop", "tf_crop_and_resize"), ("plain", "half_pixel")):
    resize = node(
        "Resize", ["x", "roi", "scales"], ["y"], name="resize", mode="linear", coordinate_transformation_mode=mode
    )
    scales = numpy_helper.from_array(np.array([2, 2], np.float32), "scales")
    roi = {"roi": np.array([0, 0, 1, 1], np.float32)}
    write(name, [resize], roi, constants=[scales])
    if name == "crop":
        write("framed", [resize], roi, constants=[scales], out=(4, 6))

# Where the output's shape is known scales and a region may differ from run to run, unless the operator cannot do that.
crop = {"name": "resize", "mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"}
to = numpy_helper.from_array(longs(5, 4), "sizes")
write("sized", [node("Resize", ["x", "roi", "", "sizes"], ["y"], **crop)], roi, constants=[to])
by = {"scales": np.array([2, 2], np.float32)}
scaled = node("Resize", ["x", "", "scales"], ["y"], name="resize", mode="linear")
write("scaled", [scaled], by, out=(4, 6))
write("undeclared", [scaled], by)
write("misdeclared", [scaled], by, out=(4, 7))
smooth = node("Resize", ["x", "whole", "scales"], ["y"], antialias=1, **crop)
whole = numpy_helper.from_array(np.array([0, 0, 1, 1], np.float32), "whole")
write("smooth", [smooth], by, constants=[whole], out=(4, 6))

# A loop is served whatever it carries where it never runs.
names = [info("i", INT64, ()), info("go", BOOL, ()), info("v", FLOAT, (2, 3))]
grow = [node("Concat", ["v", "x"], ["v2"], axis=0), node("Identity", ["go"], ["go2"])]
body = helper.make_graph(grow, "body", names, [info("go2", BOOL, ()), info("v2", FLOAT, None)])
loop = node("Loop", ["", "start", "x"], ["l"], name="loop", body=body)
write("loop", [loop, node("Mul", ["l", "w"], ["y"])], {"start": np.array(False), "w": floats(1)})
