"""Models whose initialisers are inputs too, for mutate.py: values that a run may replace, and values that decide about
sizes, the form of an operator or a branch."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT
info, node = helper.make_tensor_value_info, helper.make_node


def model(nodes, defaults, rows=2):
    infos = [info("x", FLOAT, [rows, 3])]
    for key, value in defaults.items():
        infos.append(info(key, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape))
    data = [numpy_helper.from_array(value, key) for key, value in defaults.items()]
    graph = helper.make_graph(nodes, "g", infos, [info("y", FLOAT, None)], data)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def floats(*shape):
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


def longs(*values):
    return np.array(values, np.int64)


def branch(name, op):
    return helper.make_graph([node(op, ["x"], [name])], name, [], [info(name, FLOAT, None)])


def choice(other):
    return node("If", ["c"], ["y"], then_branch=branch("a", "Abs"), else_branch=branch("b", other))


def loop():
    body = helper.make_graph(
        [node("Mul", ["s", "w"], ["u"]), node("Identity", ["go"], ["gone"])],
        "body",
        [info("n", TensorProto.INT64, []), info("go", TensorProto.BOOL, []), info("s", FLOAT, [2, 3])],
        [info("gone", TensorProto.BOOL, []), info("u", FLOAT, None)],
    )
    return node("Loop", ["trips", "", "x"], ["y"], body=body)


def seeds():
    linear = [node("MatMul", ["x", "w"], ["p"]), node("Add", ["p", "b"], ["y"])]
    weights = {"w": floats(3, 4), "b": floats(4)}
    shaped = [
        node("Mul", ["half", "two"], ["columns"]),
        node("Concat", ["rows", "columns"], ["to"], axis=0),
        node("Reshape", ["x", "to"], ["r"]),
        node("Mul", ["r", "factor"], ["y"]),
    ]
    sizes = {"rows": longs(3), "half": longs(1), "two": longs(2), "factor": floats(1)}
    cut = {"from": longs(0), "to": longs(2), "axes": longs(1), "steps": longs(1)}
    resize = node("Resize", ["x", "roi", "scales"], ["y"], coordinate_transformation_mode="tf_crop_and_resize")
    region = {"roi": np.array([0, 0, 1, 1], np.float32), "scales": np.array([1, 2], np.float32)}
    ring = {"pads": longs(0, 1, 0, 1), "with": np.array(0.5, np.float32)}
    return [
        ("weights", model(linear, weights)),
        ("weights, symbolic rows", model(linear, weights, "n")),
        ("sizes", model(shaped, sizes)),
        ("slice", model([node("Slice", ["x", *cut], ["y"])], cut)),
        ("gather", model([node("Gather", ["x", "at"], ["y"], axis=1)], {"at": longs(2, 0)}, "n")),
        ("resize", model([resize], region)),
        ("pad", model([node("Pad", ["x", *ring], ["y"])], ring)),
        ("sum", model([node("ReduceSum", ["x", "axes"], ["y"])], {"axes": longs(1)})),
        ("branches", model([choice("Neg")], {"c": np.array(True)})),
        ("branches of two shapes", model([choice("Transpose")], {"c": np.array(True)})),
        ("loop", model([loop()], {"trips": np.array(2), "w": floats(1)})),
    ]
