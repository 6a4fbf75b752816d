"""Small models whose operators need more than their shapes to be understood, for compare.py."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name, shape, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def ints(name, values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def floats(shape):
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def model(nodes, inputs, outputs, data=()):
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info(o) for o in outputs], list(data))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def loop(condition, trips=4):
    """A loop of `trips` rounds that collects a value of each; `condition` are the nodes that make "go2" from "go"."""
    body = helper.make_graph(
        [
            *condition,
            helper.make_node("Add", ["v", "x"], ["v2"]),
            helper.make_node("Cast", ["it"], ["round"], to=FLOAT),
            helper.make_node("Mul", ["v2", "round"], ["s"]),
        ],
        "body",
        [info("it", (), INT64), info("go", (), BOOL), info("v", (3,))],
        [info("go2", (), BOOL), info("v2", (3,)), info("s", (3,))],
    )
    data = [ints("trips", trips), numpy_helper.from_array(np.array(True), "true")]
    node = helper.make_node("Loop", ["trips", "true", "x"], ["y", "z"], name="l", body=body)
    return model([node], [info("x", (3,))], ["y", "z"], data)


def never(trips, condition):
    """A loop that does not run: what it carries would grow, and it collects parts of that."""
    body = helper.make_graph(
        [
            helper.make_node("Concat", ["v", "x"], ["v2"], axis=0),
            helper.make_node("Cast", ["v"], ["s"], to=INT64),
            helper.make_node("Identity", ["go"], ["go2"]),
        ],
        "body",
        [info("it", (), INT64), info("go", (), BOOL), info("v", (3,))],
        [info("go2", (), BOOL), info("v2", None), info("s", None, INT64)],
    )
    data = [] if trips is None else [ints("trips", trips)]
    data += [] if condition is None else [numpy_helper.from_array(np.array(condition), "start")]
    operands = ["" if trips is None else "trips", "" if condition is None else "start", "x"]
    node = helper.make_node("Loop", operands, ["y", "z"], name="l", body=body)
    return model([node], [info("x", (3,))], ["y", "z"], data)


def until():
    """Ends by itself: only the carried value is an output."""
    body = helper.make_graph(
        [
            helper.make_node("Add", ["v", "v"], ["v2"]),
            helper.make_node("ReduceMax", ["v2"], ["top"], keepdims=0),
            helper.make_node("Less", ["top", "limit"], ["small"]),
            helper.make_node("Identity", ["small"], ["go2"]),
        ],
        "body",
        [info("it", (), INT64), info("go", (), BOOL), info("v", (3,))],
        [info("go2", (), BOOL), info("v2", (3,))],
    )
    data = [ints("trips", 50), numpy_helper.from_array(np.array(True), "true")]
    data.append(numpy_helper.from_array(np.float32(100), "limit"))
    node = helper.make_node("Loop", ["trips", "true", "x"], ["y"], name="l", body=body)
    return model([node], [info("x", (3,))], ["y"], data)


def identity(a, b):
    return helper.make_node("Identity", [a], [b])


def branch_names():
    """Both branches make a y and a t of their own before the model does."""

    def branch(op):
        nodes = [helper.make_node(op, ["x"], ["y"]), helper.make_node("Neg", ["y"], ["t"])]
        return helper.make_graph(nodes, op, [], [info("t", (3,))])

    nodes = [
        helper.make_node("Cast", ["c"], ["one"], to=BOOL),
        helper.make_node("If", ["one"], ["h"], name="i", then_branch=branch("Abs"), else_branch=branch("Exp")),
        helper.make_node("Relu", ["h"], ["t"]),
        helper.make_node("Sub", ["t", "x"], ["y"]),
    ]
    return model(nodes, [info("x", (3,)), info("c", (1,), INT64)], ["y", "t"])


def one(op, *operands, shape=("n", 6), outputs=("y",), **attributes):
    node = helper.make_node(op, ["x", *(t.name for t in operands)], list(outputs), name="n", **attributes)
    return model([node], [info("x", shape)], list(outputs), operands)


def reverse():
    lengths = numpy_helper.from_array(np.array([2, 5, 0], np.int64), "lengths")
    return one("ReverseSequence", lengths, shape=(5, 3, 2), batch_axis=1, time_axis=0)


def reduced_at_run_time(op):
    """The declared output leaves three choices of axes; the input says which."""
    node = helper.make_node(op, ["x", "a"], ["y"], name="n", keepdims=0)
    graph = helper.make_graph([node], "g", [info("x", (3, 3, 3, 2)), info("a", (2,), INT64)], [info("y", (3, 2))])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def summed_at_run_time():
    node = helper.make_node("CumSum", ["x", "a"], ["y"], name="n", reverse=1)
    return model([node], [info("x", (2, 3, 4)), info("a", (1,), INT64)], ["y"])


def padded(mode):
    """Only the input says how the declared size is shared between both ends."""
    node = helper.make_node("Pad", ["x", "p"], ["y"], name="n", mode=mode)
    graph = helper.make_graph([node], "g", [info("x", (3, 4)), info("p", (4,), INT64)], [info("y", (5, 5))])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def unpooled():
    """The maxima of 2x2 windows back where they were."""
    pool = helper.make_node("MaxPool", ["x"], ["m", "i"], kernel_shape=[2, 2], strides=[2, 2])
    unpool = helper.make_node("MaxUnpool", ["m", "i"], ["y"], kernel_shape=[2, 2], strides=[2, 2])
    return model([pool, unpool], [info("x", (1, 2, 4, 6))], ["y"])


def lengths_at_run_time():
    node = helper.make_node("ReverseSequence", ["x", "l"], ["y"], name="n", batch_axis=1, time_axis=0)
    return model([node], [info("x", (5, 3, 2)), info("l", (3,), INT64)], ["y"])


def several(nodes, inputs, data=()):
    """Operators side by side, each with the output y of its number."""
    made = [helper.make_node(op, names, [f"y{i}"], name=f"n{i}", **kept) for i, (op, names, kept) in enumerate(nodes)]
    return model(made, inputs, [f"y{i}" for i in range(len(made))], data)


def large_unsigned():
    """Floats of all widths beyond the signed integers, given at run time and known to the compiler."""
    kinds = {"h": TensorProto.FLOAT16, "f": FLOAT, "d": TensorProto.DOUBLE}
    numbers = np.array([2.0**63, 1.5 * 2**63, 2.0**64 - 2**40, 2.0**62, 65504.0, 3.75, 0.0])
    dtypes = {"h": np.float16, "f": np.float32, "d": np.float64}
    given = {k: (numbers[4:] if k == "h" else numbers).astype(t) for k, t in dtypes.items()}
    data = [numpy_helper.from_array(v, k + "c") for k, v in given.items()]
    data.append(numpy_helper.from_array(np.zeros(1, np.uint64), "like"))
    nodes = [("Cast", [k + c], {"to": TensorProto.UINT64}) for k in kinds for c in ("", "c")]
    nodes += [("CastLike", [k, "like"], {}) for k in kinds]
    return several(nodes, [info(k, v.shape, kinds[k]) for k, v in given.items()], data), given


def resized_to_one():
    """Length 1 is read at position 0, between whichever lengths."""
    forms = [
        {"mode": "nearest", "nearest_mode": "ceil"},
        {"mode": "linear"},
        {"mode": "cubic"},
        {"mode": "cubic", "exclude_outside": 1, "cubic_coeff_a": -0.5},
        {"mode": "linear", "antialias": 1},
        {"mode": "cubic", "antialias": 1},
    ]
    sizes = {"high": [1, 1, 1, 5], "wide": [1, 1, 3, 1], "both": [1, 1, 1, 1]}
    scales = numpy_helper.from_array(np.array([1, 1, 0.3, 0.25], np.float32), "scales")
    common = {"coordinate_transformation_mode": "pytorch_half_pixel"}
    nodes = [("Resize", ["x", "", "", to], common | form) for form in forms for to in sizes]
    nodes += [("Resize", ["x", "", "scales"], common | form) for form in forms[:4]]
    return several(nodes, [info("x", (1, 1, 4, 4))], [scales, *(ints(k, v) for k, v in sizes.items())])


def resized_by_whole_factors():
    """Nearest neighbours that are each element several times over, of sizes that nobody has fixed."""
    forms = [
        {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
        {"coordinate_transformation_mode": "half_pixel"},
        {"coordinate_transformation_mode": "pytorch_half_pixel", "nearest_mode": "round_prefer_ceil"},
    ]
    nodes = [("Resize", ["x", "", "scales"], form) for form in forms] + [("Resize", ["x", "", "", "sizes"], forms[1])]
    scales = numpy_helper.from_array(np.array([1, 1, 3, 2], np.float32), "scales")
    proto = several(nodes, [info("x", ("b", 2, "h", "w"))], [scales, ints("by", [1, 1, 2, 3])])
    nodes = [helper.make_node("Shape", ["x"], ["s"]), helper.make_node("Mul", ["s", "by"], ["sizes"])]
    nodes += proto.graph.node
    del proto.graph.node[:]
    proto.graph.node.extend(nodes)
    return proto


def broadcast_products():
    """Operands of Einsum with one row where others have several: along an ellipsis and along letters."""
    shapes = {
        "a": (2, 1, 3, 4),
        "b": (1, 5, 4, 2),
        "c": (4, 2),
        "d": (3, 1),
        "e": (1,),
        "f": (5,),
        "g": (1, 1),
        "h": ("n", 4, 4),
        "r": (1, 4),
        "s": (2, 1),
        "t": (1, 1, 4),
    }
    equations = [
        ("...ij,...jk->...ik", "ab"),
        ("...ij,...jk", "ab"),
        ("ij,jk->ik", "dc"),
        ("i,i->i", "ef"),
        ("i,i", "fe"),
        ("...ij,...jk,...->...k", "abs"),
        ("ii,i->i", "gf"),
        ("...ij,...ij->...i", "ht"),
        ("nii,ij->nj", "hc"),
        ("nij,ni->n", "hr"),
    ]
    nodes = [("Einsum", list(operands), {"equation": equation}) for equation, operands in equations]
    given = {k: tuple(3 if d == "n" else d for d in v) for k, v in shapes.items()}
    return several(nodes, [info(k, v) for k, v in shapes.items()]), given


def one_state(op, gates, direction="forward", lengths=False, rows=1):
    """A recurrent layer over a batch of n, whose initial state (and length) has `rows` for all of them."""
    both = 2 if direction == "bidirectional" else 1
    weights = {"w": (both, gates * 2, 3), "r": (both, gates * 2, 2), "h": (both, 1, 2), "c": (both, 1, 2)}
    data = [numpy_helper.from_array(floats(s).repeat(rows if k in "hc" else 1, 1), k) for k, s in weights.items()]
    data.append(numpy_helper.from_array(np.array([3] * rows, np.int32), "l"))
    operands = ["x", "w", "r", "", "l" if lengths else "", "h", *(["c"] if op == "LSTM" else [])]
    outputs = ["y", "z"]
    node = helper.make_node(op, operands, outputs, name="n", hidden_size=2, direction=direction)
    return model([node], [info("x", (4, "n", 3))], outputs, data)


def sparse_constants():
    """A constant and an initialiser that list what is not zero, by rows and columns and by position."""

    def sparse(name, indices):
        values = numpy_helper.from_array(np.array([5, -7], np.float32), name)
        return helper.make_sparse_tensor(values, ints("", indices), [2, 3])

    nodes = [
        helper.make_node("Constant", [], ["c"], sparse_value=sparse("", [[0, 1], [1, 2]])),
        helper.make_node("Add", ["x", "c"], ["y"]),
        helper.make_node("Mul", ["x", "s"], ["z"]),
    ]
    proto = model(nodes, [info("x", (2, 3))], ["y", "z"])
    proto.graph.sparse_initializer.append(sparse("s", [2, 4]))
    return proto


def unknown_sizes():
    """Sizes that exporters write where they know none: no two are one. The default domain is named twice."""
    proto = several([("Relu", ["a"], {}), ("Neg", ["b"], {})], [info("a", ("?", 3)), info("b", ("?", -1))])
    proto.opset_import.extend([helper.make_opsetid("", 19), helper.make_opsetid("ai.onnx", 19)])
    return proto


def shapes_of_parameters():
    """Scale and zero point of one number each, one a vector of it."""
    one = numpy_helper.from_array(np.array([0.25], np.float32), "one")
    none = numpy_helper.from_array(np.float32(0.5), "none")
    zeros = [numpy_helper.from_array(np.array(v, t), k) for k, v, t in (("z", 3, np.uint8), ("zs", [3], np.uint8))]
    nodes = [
        ("QuantizeLinear", ["x", "one", "z"], {}),
        ("QuantizeLinear", ["x", "none", "zs"], {}),
        ("DequantizeLinear", ["q", "one", "z"], {}),
        ("DequantizeLinear", ["q", "none", "zs"], {}),
    ]
    return several(nodes, [info("x", (2, 3)), info("q", (2, 3), TensorProto.UINT8)], [one, none, *zeros])


FAR = np.array([3e38, -3e38, 1e30, -1e19, 9.3e18, 2e9, -3e9], np.float32)


def far_samples(rank):
    """Grids whose positions, and their products with a length, no integer and no float holds."""
    modes = ("linear", "nearest", "cubic") if rank == 2 else ("linear", "nearest")
    nodes = [
        ("GridSample", ["x", "g"], {"mode": mode, "padding_mode": padding, "align_corners": corners})
        for mode in modes
        for padding in ("zeros", "border", "reflection")
        for corners in (0, 1)
    ]
    shape = (1, 2) + (3, 5, 4)[:rank]
    proto = several(nodes, [info("x", shape), info("g", (1, len(FAR)) + (1,) * (rank - 1) + (rank,))])
    proto.opset_import[0].version = 20
    grid = np.zeros((1, len(FAR)) + (1,) * (rank - 1) + (rank,), np.float32)
    for d in range(rank):
        grid[..., d].flat = np.roll(FAR, d)
    return proto, {"x": shape, "g": grid}
