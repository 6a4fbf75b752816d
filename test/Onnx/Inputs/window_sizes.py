"""Convolutions and pools whose pads hang on sizes that are not fixed, compiled with no flag and run at several sizes,
against ONNX Runtime. Prints a line a model."""

import copy

import compiled_run
import numpy as np
from onnx import TensorProto, helper, numpy_helper

SIZES = [{"b": b, "h": h, "w": w} for b, h, w in ((1, 1, 1), (2, 2, 7), (1, 9, 4), (1, 16, 13), (3, 5, 5), (0, 5, 6))]
LARGE = [s for s in SIZES if s["h"] > 1]
RNG = np.random.default_rng(2)


def node(op, outputs=("y",), kind=np.float32, opset=19, weights=(), domain="", **attributes):
    """Over x[b,2,h,w]; the other operands are constants."""
    names = ["x"] + [f"c{i}" for i in range(len(weights))]
    types = [helper.np_dtype_to_tensor_dtype(np.dtype(kind))]
    graph = helper.make_graph(
        [helper.make_node(op, [n if i == 0 or weights[i - 1] is not None else "" for i, n in enumerate(names)],
                          list(outputs), name="n", domain=domain, **attributes)],
        "g", [helper.make_tensor_value_info("x", types[0], ["b", 2, "h", "w"])],
        [helper.make_empty_tensor_value_info(o) for o in outputs],
        [numpy_helper.from_array(np.asarray(w), f"c{i}") for i, w in enumerate(weights) if w is not None])
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, 1)] * bool(domain)
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def integers(*shape):
    return RNG.integers(0, 255, shape).astype(np.uint8)


SAME = {"auto_pad": "SAME_UPPER", "kernel_shape": [3, 2], "strides": [2, 3]}
LOWER = {**SAME, "auto_pad": "SAME_LOWER"}
WIDE = {"kernel_shape": [3, 3], "strides": [2, 2], "dilations": [2, 1], "pads": [1, 1, 2, 1]}
UP = {"ceil_mode": 1, "count_include_pad": 1}
WIDE_KINDS = (np.int32, np.int64, np.uint16)
SCALE, ZERO = np.float32(0.125), np.uint8(128)
ZOOM = floats(2, 3, 3, 4)

CASES = [
    *((f"{op}, {word}", node(op, opset=22 if op == "LpPool" else 19, **{**form, **more}))
      for op, more in (("MaxPool", {}), ("AveragePool", {}), ("LpPool", {"p": 3}))
      for word, form in (("upper", SAME), ("lower", LOWER), ("dilated, rounded up", {**WIDE, "ceil_mode": 1}))),
    ("AveragePool, upper, with pads", node("AveragePool", count_include_pad=1, **SAME)),
    ("AveragePool, dilated, with pads, rounded up", node("AveragePool", count_include_pad=1, ceil_mode=1, **WIDE)),
    ("MaxPool of bytes, lower", node("MaxPool", kind=np.int8, **LOWER)),
    *((f"MaxPool with places, {word}", node("MaxPool", ("y", "i"), **form))
      for word, form in (("lower, by columns", {**LOWER, "storage_order": 1}),
                         ("one axis", {"auto_pad": "SAME_UPPER", "kernel_shape": [2, 3], "strides": [1, 2]}))),
    *((f"MaxPool with places of zeros, {word}", node("MaxPool", ("y", "i"), kind=np.uint8, **form))
      for word, form in (("upper", SAME), ("no pads", {"kernel_shape": [1, 1], "strides": [2, 2]}))),
    ("Conv, lower", node("Conv", weights=[floats(4, 2, 3, 2)], **LOWER)),
    *((f"ConvInteger, {word}", node("ConvInteger", kind=np.uint8, weights=[integers(4, 2, 3, 2), *zero], **form))
      for word, form, zero in (("upper", SAME, [ZERO]), ("lower", LOWER, []))),
    ("QLinearConv, upper", node("QLinearConv", kind=np.uint8, weights=[
        SCALE, ZERO, integers(4, 2, 3, 2), SCALE, ZERO, np.float32(2), ZERO], **SAME)),
    ("QLinearAveragePool, upper", node("QLinearAveragePool", kind=np.uint8, domain="com.microsoft",
                                       weights=[SCALE, ZERO, SCALE, ZERO], **SAME)),
    *((f"QLinearAveragePool with pads, rounded up, {word}",
       node("QLinearAveragePool", kind=np.uint8, domain="com.microsoft", weights=[SCALE, ZERO, SCALE, ZERO], **UP,
            **form))
      for word, form in (("plain", {"kernel_shape": [2, 3], "strides": [2, 2], "pads": [1, 1, 0, 2]}),
                         ("far", {"kernel_shape": [2, 1], "strides": [3, 4]}),
                         ("lower", LOWER))),
    *((f"ConvTranspose, {word}", node("ConvTranspose", weights=[ZOOM, floats(3)], strides=[2, 3], **form))
      for word, form in (("to 9x8", {"output_shape": [9, 8]}), ("to 3x4", {"output_shape": [3, 4]}),
                         ("to 9x8, upper", {"output_shape": [9, 8], "auto_pad": "SAME_UPPER"}))),
]


def in_doubles(proto):
    """The same where ONNX Runtime has none for these integers, which are small or powers of 2."""
    twin = copy.deepcopy(proto)
    pool, to = twin.graph.node[0], twin.graph.input[0].type.tensor_type.elem_type
    pool.input[0], pool.output[0] = "xd", "yd"
    twin.graph.node.insert(0, helper.make_node("Cast", ["x"], ["xd"], to=TensorProto.DOUBLE))
    twin.graph.node.append(helper.make_node("Cast", ["yd"], ["y"], to=to))
    return twin


def inputs_of(name, proto, sizes):
    kind = helper.tensor_dtype_to_np_dtype(proto.graph.input[0].type.tensor_type.elem_type)
    shape = [sizes["b"], 2, sizes["h"], sizes["w"]]
    random = np.random.default_rng(1)
    if "zeros" in name:  # the least of all bytes, as pads are
        return {"x": np.zeros(shape, kind)}
    if kind in WIDE_KINDS:  # half of them the least one, as pads are
        low = np.iinfo(kind).min
        numbers = random.integers(max(low, -100), 100, shape)
        return {"x": np.where(random.random(shape) < 0.5, low, numbers).astype(kind)}
    return {"x": random.integers(-100, 100, shape).astype(kind) if kind != np.float32
            else random.standard_normal(shape).astype(kind)}


if __name__ == "__main__":
    OPTIONS = compiled_run.read_options()
    for NAME, PROTO in CASES:
        sizes = LARGE if "dilated" in NAME else SIZES  # that the window fits
        compiled_run.served(OPTIONS, NAME, PROTO, [(str(s), inputs_of(NAME, PROTO, s)) for s in sizes])
    for KIND in WIDE_KINDS:
        NAME, PROTO = f"MaxPool of {np.dtype(KIND).name}, lower", node("MaxPool", kind=KIND, **LOWER)
        compiled_run.agrees(OPTIONS, NAME, PROTO, [(str(s), inputs_of(NAME, PROTO, s)) for s in SIZES],
                            expected=in_doubles(PROTO))
