"""Compiles small models, runs them for given sizes and compares every output with ONNX Runtime."""

import argparse
import pathlib
import re
import shutil
import subprocess

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
TARGETS = ("x86-64-v3", "sim:sm_90")


def info(name, shape, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def ints(name, values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


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


def is_sane(node, x, y):
    """Zeros outside, values of the data (which cubic weights may leave by a half) at and between its borders."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if attributes["padding_mode"] == b"zeros":
        return not y.any()
    room = 0.5 * np.ptp(x) if attributes["mode"] == b"cubic" else 1e-5
    return bool(((y >= x.min() - room) & (y <= x.max() + room)).all())


# What ONNX calls invalid data: nothing outside the operand is read. A simulated GPU reports what is.
TOLERATED = [
    ("sequence lengths beyond the sequence", lengths_at_run_time(), {"x": (5, 3, 2), "l": [9, -3, 1 << 62]}),
    ("reflecting pad of one row", one("Pad", ints("p", [1, 0, 1, 0]), mode="reflect"), {"x": (1, 6)}),
]
# Name, model, shape of x or all inputs: shapes of floats, lists of integers, or arrays.
CASES = [
    ("loop, condition passed on", loop([identity("go", "go2")]), (3,)),
    ("loop, condition passed on twice", loop([identity("go", "t"), identity("t", "go2")]), (3,)),
    ("loop, condition true again", loop([identity("true", "go2")]), (3,)),
    ("loop, carried condition", until(), (3,)),
    *((f"reshape of even rows, n={n}", one("Reshape", ints("to", [-1, 12])), (n, 6)) for n in (4, 6, 5)),
    *(
        (f"largest of n, n={n}", one("TopK", ints("k", [3]), outputs=("y", "z"), axis=0), (n, 6))
        for n in (3, 9, 2)
    ),
    (
        "slice backwards",
        one("Slice", ints("s", [-1]), ints("e", [-(1 << 63)]), ints("a", [1]), ints("p", [-2]), shape=(2, 6)),
        (2, 6),
    ),
    *(
        (
            f"slice {start}:{end}:{step} of 5",
            one("Slice", ints("s", [start]), ints("e", [end]), ints("a", [0]), ints("p", [step]), shape=(5, 4)),
            (5, 4),
        )
        for start, end, step in (
            (-9, -99, -1),
            (-6, -(1 << 63), -2),
            (-(1 << 63), -(1 << 63), -1),
            (-9, 0, -1),
            (9, -6, -3),
            (7, -9, 1),
        )
    ),
    ("branches that use names of outputs", branch_names(), {"x": (3,), "c": [2]}),
    *(
        (f"{mode} pad that cuts", one("Pad", ints("p", [0, 2, 0, -2]), mode=mode, shape=(2, 6)), (2, 6))
        for mode in ("reflect", "edge", "wrap")
    ),
    *((f"reflecting pad, n={n}", one("Pad", ints("p", [1, 0, 1, 0]), mode="reflect"), (n, 6)) for n in (3, 2)),
    ("reversed sequences", reverse(), (5, 3, 2)),
    *(
        (f"{op} over axes {axes}", reduced_at_run_time(op), {"x": (3, 3, 3, 2), "a": axes})
        for op, axes in (("ReduceSum", [0, 1]), ("ReduceMax", [2, 0]), ("ReduceL2", [-3, -2]))
    ),
    *((f"running sum along {a}", summed_at_run_time(), {"x": (2, 3, 4), "a": [a]}) for a in (0, 1, 2, -2)),
    *(
        (f"pads {pads}, {mode}", padded(mode), {"x": (3, 4), "p": pads})
        for mode in ("constant", "edge", "reflect", "wrap")
        for pads in ([1, 2, 1, -1], [0, 0, 2, 1])
    ),
    ("unpooled", unpooled(), (1, 2, 4, 6)),
    ("floats to u64", *large_unsigned()),
    ("resized to length 1", resized_to_one(), (1, 1, 4, 4)),
    ("products that broadcast", *broadcast_products()),
]


def ours(options, name, proto, inputs, target):
    """Outputs of the compiled model by name, or what it said."""
    folder = options.work / target.replace(":", "_") / re.sub("[ =,]+", "-", name)
    folder.mkdir(parents=True)
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    subprocess.run([options.fusec, folder / "m.onnx", "-o", folder / "b", "--target", target], check=True)
    command = [options.fusert, "run", folder / "b", "--target", target, "--output-dir", folder]
    for key, data in inputs.items():
        np.save(folder / f"{key}.npy", data)
        command += ["--input", f"{key}={folder}/{key}.npy"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        return result.stderr.strip()
    return {output.name: np.load(folder / f"{output.name}.npy") for output in proto.graph.output}


def floats(shape):
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def arrays(given):
    made = {list: lambda v: np.array(v, np.int64), tuple: floats, np.ndarray: lambda v: v}
    return {k: made[type(v)](v) for k, v in given.items()}


def run(options, name, proto, given, target):
    inputs = arrays(given if isinstance(given, dict) else {"x": given})
    found = ours(options, name, proto, inputs, target)
    if isinstance(found, str):
        return found
    expected = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    for output, value in zip(proto.graph.output, expected):
        mine = found[output.name]
        if mine.shape != value.shape or mine.dtype != value.dtype or not np.allclose(mine, value, 1e-5, 1e-6):
            return f"{output.name} differs: {mine} {value}"
    return "same"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fusec", required=True)
    parser.add_argument("--fusert", required=True)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    for name, proto, given in CASES:
        answers = [run(options, name, proto, given, target) for target in TARGETS]
        print(f"{name}: {answers[0] if answers[0] == answers[1] else answers}")
    for name, proto, given in TOLERATED:
        inputs = arrays(given)
        found = [ours(options, name, proto, inputs, target) for target in TARGETS]
        same = all(isinstance(f, dict) for f in found) and np.array_equal(found[0]["y"], found[1]["y"])
        inside = same and np.isin(found[0]["y"], inputs["x"]).all()
        print(f"{name}: {'inside the operand' if inside else found}")
    for rank in (2, 3):
        proto, given = far_samples(rank)
        inputs = arrays(given)
        for target in TARGETS:
            found = ours(options, f"far samples {rank}", proto, inputs, target)
            wrong = found if isinstance(found, str) else [
                n for n in proto.graph.node if not is_sane(n, inputs["x"], found[n.output[0]])
            ]
            print(f"far samples of {rank} axes, {target}: {wrong or 'sane'}")


if __name__ == "__main__":
    main()
