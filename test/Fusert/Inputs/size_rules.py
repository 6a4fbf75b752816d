"""Models whose sizes are all symbolic, and whose nodes need sizes to agree, compiled once and run at several sizes,
against ONNX Runtime: what it refuses is refused, with the node's name. Prints lines of a model."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).parents[2] / "Onnx" / "Inputs"))

import compiled_run

node = helper.make_node
rng = np.random.default_rng(1)


def floats(*shape):
    return rng.standard_normal(shape, dtype=np.float32)


def model(nodes, inputs, constants=(), outputs=("y",), opset=18):
    """Outputs are names, or names and what is declared of their sizes."""
    infos = [helper.make_tensor_value_info(k, TensorProto.FLOAT, v) for k, v in inputs.items()]
    declared = outputs if isinstance(outputs, dict) else dict.fromkeys(outputs)
    made = [helper.make_tensor_value_info(k, TensorProto.FLOAT, v) for k, v in declared.items()]
    data = [numpy_helper.from_array(np.array(v), k) for k, v in dict(constants).items()]
    graph = helper.make_graph(nodes, "g", infos, made, data)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)


def branch(op, data, places, name):
    made = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
    return helper.make_graph([node(op, [data, places], [name], name=f"{name} part")], name, [], [made])


def choice(then, otherwise, result="y"):
    """An If over `condition`, of the operator and operands of each branch."""
    made = [helper.make_graph([node(op, operands, [name], name=f"{name} part")], name, [],
                              [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)])
            for name, (op, *operands) in (("then", then), ("else", otherwise))]
    return node("If", ["condition"], [result], name="choice", then_branch=made[0], else_branch=made[1])


def trips(nodes, result):
    """A loop of three trips that carries `v`."""
    infos = [helper.make_tensor_value_info("trip", TensorProto.INT64, ()),
             helper.make_tensor_value_info("goes_on", TensorProto.BOOL, ()),
             helper.make_tensor_value_info("v", TensorProto.FLOAT, None)]
    made = [helper.make_tensor_value_info("goes_on", TensorProto.BOOL, ()),
            helper.make_tensor_value_info(result, TensorProto.FLOAT, None)]
    return node("Loop", ["three", "", "x"], ["y"], name="loop", body=helper.make_graph(nodes, "body", infos, made))


def agree(a, b):
    return len(a) == len(b) and all(x.shape == y.shape and np.allclose(x, y, 1e-4, 1e-4) for x, y in zip(a, b))


def show(options, folder, what, made, sizes, target):
    """One line for each run: which sizes, and whether it agrees, or what is said."""
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 4
    session = onnxruntime.InferenceSession(made.SerializeToString(), quiet)
    for values in sizes:
        given = {i.name: floats(*(values[d] if isinstance(d, str) else d for d in i.shape))
                 for i in session.get_inputs()}
        try:
            right = session.run(None, given)
        except Exception:
            right = None
        verdict = compiled_run.ran(options, given, target, folder)
        mine = [] if verdict else [np.load(folder / f"{o.name}.npy") for o in made.graph.output]
        if verdict:
            verdict += "" if right is None else " (ONNX Runtime takes it)"
        elif right and agree(mine, right):
            verdict = "right"
        else:
            other = ReferenceEvaluator(made).run(None, given)
            verdict = "right by ONNX's definition" if agree(mine, other) else "wrong"
        run = " ".join(f"{k}={v}" for k, v in values.items())
        print(f"{what}, {run}: {verdict}")


def check(options, what, made, sizes):
    """What is said of the sizes, then the runs."""
    if options.only not in what:
        return
    targets = ("x86-64-v3", "sim:sm_90")
    folder = compiled_run.folder_of(options, what, "both")
    if problem := compiled_run.compiled(options, made, ",".join(targets), folder):
        print(f"{what}: {problem}")
        return
    told = subprocess.run([options.fusert, "info", folder / "b", "--json"], capture_output=True, text=True, check=True)
    facts = json.loads(told.stdout)
    for size in facts["inferred"]:
        print(f"{what}: {size['name']} is {size['value']}")
    for rule in facts["size_rules"]:
        print(f"{what}: {rule['rule']} {'is tested' if rule['tested'] else 'follows'}: {rule['node']}")
    show(options, folder, what, made, sizes, targets[0])
    show(options, folder, f"{what} on sim", made, sizes[:1], targets[1])


CASES = {
    "product": (
        model([node("MatMul", ["A", "B"], ["y"], name="mm")], {"A": ("a", "b"), "B": ("c", "d")}),
        [dict(a=3, b=5, c=5, d=2), dict(a=3, b=6, c=5, d=2), dict(a=1, b=1, c=1, d=1)]),
    "channels": (
        model([node("Conv", ["x", "w"], ["y"], name="conv")], {"x": ("n", "c", "h", 5)}, {"w": floats(2, 3, 3, 3)}),
        [dict(n=2, c=3, h=4), dict(n=2, c=4, h=4)]),
    "broadcast to 4": (
        model([node("Add", ["x", "w"], ["y"], name="add")], {"x": (2, "s", 3)}, {"w": floats(4, 3)}),
        [dict(s=4), dict(s=1), dict(s=3)]),
    "broadcast": (
        model([node("Mul", ["x", "z"], ["y"], name="mul")], {"x": ("n", 3), "z": ("m", 3)}),
        [dict(n=4, m=1), dict(n=4, m=4), dict(n=1, m=5), dict(n=1, m=1), dict(n=0, m=0), dict(n=4, m=3)]),
    "broadcast in a row": (
        model([node("Add", ["x", "z"], ["a"], name="add"), node("Mul", ["a", "x"], ["b"]),
               node("MatMul", ["b", "w"], ["c"], name="product"),
               node("Where", ["mask", "c", "zero"], ["d"], name="where"),
               node("ReduceSum", ["d", "one"], ["y"], keepdims=0)],
              {"x": ("n", 2, 3), "z": ("m", 1, 3), "w": ("k", 3, "c")},
              {"mask": np.array([[[True, False, True]]]), "zero": np.float32(0), "one": [1]}),
        [dict(n=1, m=3, k=1, c=3), dict(n=4, m=1, k=4, c=3), dict(n=1, m=1, k=2, c=1), dict(n=2, m=2, k=1, c=3),
         dict(n=4, m=4, k=2, c=3), dict(n=4, m=1, k=1, c=2)]),
    "one that has to be equal elsewhere": (
        model([node("Add", ["x", "z"], ["a"], name="add"), node("MatMul", ["a", "w"], ["y"], name="product")],
              {"x": (2, "n"), "z": (1, "m"), "w": ("n", 3)}),
        [dict(n=4, m=4), dict(n=4, m=1)]),
    "one is 1 for another node": (
        model([node("Mul", ["x", "z"], ["p"], name="mul"), node("Squeeze", ["z", "zero"], ["q"], name="squeeze"),
               node("Add", ["p", "q"], ["y"])], {"x": ("n", 3), "z": ("m", 3)}, {"zero": [0]}),
        [dict(n=4, m=1), dict(n=4, m=4)]),
    "cache": (
        model([node("Concat", ["past", "x"], ["all"], axis=1), node("Mul", ["all", "mask"], ["y"], name="masked")],
              {"past": ("batch", "past_length", 2), "x": ("rows", "length", 2), "mask": ("masks", "total", 1)}),
        [dict(batch=2, past_length=3, rows=2, length=1, masks=2, total=4),
         dict(batch=2, past_length=0, rows=2, length=3, masks=2, total=3),
         dict(batch=2, past_length=3, rows=2, length=1, masks=1, total=1),
         dict(batch=2, past_length=3, rows=2, length=1, masks=2, total=5),
         dict(batch=2, past_length=3, rows=1, length=1, masks=2, total=4)]),
    "reshape": (
        model([node("Reshape", ["x", "to"], ["r"], name="reshape"), node("Exp", ["r"], ["y"])],
              {"x": ("n", "k")}, {"to": [-1, 12]}),
        [dict(n=4, k=6), dict(n=3, k=5), dict(n=1, k=12)]),
    "factor": (
        model([node("Shape", ["x"], ["s"]), node("ReduceProd", ["s"], ["all"], keepdims=1),
               node("Expand", ["z", "all"], ["y"], name="expand")], {"x": ("s10", "s21"), "z": ("s21",)}),
        [dict(s10=1, s21=7), dict(s10=2, s21=7)]),
    "thirds": (
        model([node("Shape", ["x"], ["s"], end=1), node("Div", ["s", "three"], ["third"]),
               node("Concat", ["third", "three", "rest"], ["to"], axis=0),
               node("Reshape", ["x", "to"], ["r"], name="reshape"), node("Exp", ["r"], ["y"])],
              {"x": ("h", "w")}, {"three": [3], "rest": [-1]}),
        [dict(h=6, w=5), dict(h=3, w=1), dict(h=7, w=5)]),
    "halves": (
        model([node("MaxPool", ["x"], ["p"], name="pool", kernel_shape=[2, 2], strides=[2, 2]),
               node("MaxPool", ["p"], ["q"], name="again", kernel_shape=[2, 2], strides=[2, 2]),
               node("Resize", ["q", "", "twice"], ["r"], mode="nearest", coordinate_transformation_mode="asymmetric",
                    nearest_mode="floor"),
               node("Concat", ["p", "r"], ["y"], axis=1, name="join")],
              {"x": (1, 2, "h", "w")}, {"twice": np.array([1, 1, 2, 2], np.float32)}),
        [dict(h=8, w=12), dict(h=4, w=5), dict(h=6, w=4)]),
    "windows": (
        model([node("Conv", ["x", "w"], ["c"], name="first", strides=[2, 2]),
               node("Conv", ["c", "w"], ["y"], name="second", strides=[2, 2])],
              {"x": (1, 2, "h", 9)}, {"w": floats(2, 2, 3, 3)}),
        [dict(h=9), dict(h=7), dict(h=6)]),
    "padded windows": (
        model([node("Conv", ["x", "w"], ["c"], auto_pad="SAME_UPPER", strides=[2, 3]),
               node("MaxPool", ["c"], ["m"], auto_pad="SAME_LOWER", kernel_shape=[3, 2], strides=[2, 2]),
               node("AveragePool", ["c"], ["a"], auto_pad="SAME_LOWER", kernel_shape=[3, 2], strides=[2, 2]),
               node("Add", ["m", "a"], ["y"], name="add")],
              {"x": (1, 2, "h", "w")}, {"w": floats(2, 2, 3, 5)}),
        [dict(h=9, w=7), dict(h=8, w=12), dict(h=1, w=1), dict(h=11, w=3)]),
    "linear resize": (
        model([node("Resize", ["x", "", "by"], ["y"], mode="linear")],
              {"x": (1, 1, "h", "w")}, {"by": np.array([1, 1, 1.5, 0.6], np.float32)}),
        [dict(h=4, w=5), dict(h=1, w=9)]),
    "resize to a size": (
        model([node("Resize", ["x", "", "", "to"], ["y"], mode="cubic",
                    coordinate_transformation_mode="align_corners")],
              {"x": (1, 1, "h", "w")}, {"to": [1, 1, 6, 4]}),
        [dict(h=4, w=5), dict(h=9, w=2)]),
    "backwards": (
        model([node("Slice", ["x", "from", "to", "axes", "steps"], ["y"], name="slice")], {"x": ("n", "m")},
              {"from": [-1, 3], "to": [-(1 << 40), -(1 << 40)], "axes": [0, 1], "steps": [-1, -2]}),
        [dict(n=4, m=6), dict(n=1, m=2), dict(n=3, m=1)]),
    "from either end": (
        model([node("Shape", ["x"], ["s"], end=1), node("Sub", ["s", "five"], ["from"]),
               node("Slice", ["x", "from", "most", "zero"], ["y"])], {"x": ("n", 3)},
              {"five": [5], "most": [1 << 40], "zero": [0]}),
        [dict(n=7), dict(n=5), dict(n=4), dict(n=2)]),
    "positions": (
        model([node("Shape", ["past"], ["p"], start=1, end=2), node("Shape", ["x"], ["l"], start=1, end=2),
               node("Add", ["p", "l"], ["all"]), node("Squeeze", ["p"], ["first"]), node("Squeeze", ["all"], ["end"]),
               node("Range", ["first", "end", "one"], ["range"]), node("Add", ["range", "two"], ["places"]),
               node("Unsqueeze", ["places", "zero"], ["row"]),
               node("Gather", ["table", "row"], ["rows"], name="positions"),
               node("Concat", ["past", "x"], ["joined"], axis=1), node("ReduceSum", ["joined", "axis"], ["sum"]),
               node("Add", ["rows", "sum"], ["y"], name="add")],
              {"past": (1, "past_length", 2), "x": (1, "length", 2)},
              {"table": floats(12, 2), "one": 1, "two": 2, "zero": [0], "axis": [1]}),
        [dict(past_length=4, length=3), dict(past_length=0, length=10), dict(past_length=9, length=1),
         dict(past_length=0, length=11), dict(past_length=9, length=2)]),
    "repeated positions": (
        model([node("Shape", ["x"], ["b"], end=1), node("Shape", ["x"], ["l"], start=1),
               node("Squeeze", ["l"], ["end"]),
               node("Range", ["none", "end", "one"], ["range"]), node("Unsqueeze", ["range", "zero"], ["row"]),
               node("Concat", ["b", "once"], ["times"], axis=0), node("Tile", ["row", "times"], ["places"]),
               node("Unsqueeze", ["places", "last"], ["tuples"]),
               node("GatherND", ["table", "tuples"], ["rows"], name="positions"),
               node("Unsqueeze", ["x", "last"], ["column"]), node("Add", ["rows", "column"], ["y"], name="add")],
              {"x": ("b", "l")},
              {"table": floats(12, 2), "none": 0, "one": 1, "once": [1], "zero": [0], "last": [-1]}),
        [dict(b=2, l=12), dict(b=3, l=1), dict(b=2, l=13)]),
    "constant indices": (
        model([node("Gather", ["x", "places"], ["y"], name="pick")], {"x": ("n", 3)}, {"places": [3, -5]}),
        [dict(n=5), dict(n=4), dict(n=0)]),
    "indices of a branch": (
        model([node("Shape", ["x"], ["n"], end=1), node("Greater", ["n", "three"], ["large"]),
               node("Squeeze", ["large"], ["condition"]),
               node("If", ["condition"], ["y"], then_branch=branch("Gather", "x", "three", "then"),
                    else_branch=branch("Gather", "x", "none", "else"))],
              {"x": ("n", 3)}, {"three": [3], "none": [0]}),
        [dict(n=5), dict(n=2)]),
    "what is left of nothing": (
        model([node("Shape", ["x"], ["s"]), node("Slice", ["s", "zero", "two", "zero"], ["lead"]),
               node("ReduceProd", ["lead"], ["rows"]), node("Concat", ["rows", "rest"], ["to"], axis=0),
               node("Reshape", ["x", "to"], ["r"], name="reshape"), node("Exp", ["r"], ["y"])],
              {"x": ("b", "l", 4)}, {"zero": [0], "two": [2], "rest": [-1]}),
        [dict(b=2, l=3), dict(b=0, l=3)]),
    "nothing": (
        model([node("Shape", ["x"], ["s"]), node("Slice", ["s", "zero", "one", "zero"], ["b"]),
               node("Slice", ["s", "one", "two", "zero"], ["l"]), node("Mul", ["l", "four"], ["row"]),
               node("Concat", ["row", "b"], ["to"], axis=0), node("Reshape", ["x", "to"], ["r"], name="reshape"),
               node("Exp", ["r"], ["y"])],
              {"x": ("b", "l", 4)}, {"zero": [0], "one": [1], "two": [2], "four": [4]}),
        [dict(b=2, l=3), dict(b=2, l=0), dict(b=0, l=3)]),
    "beyond the table": (
        model([node("Shape", ["q"], ["s"], start=1, end=2), node("Slice", ["table", "zero", "s", "zero"], ["rows"]),
               node("Concat", ["one", "s", "one", "four"], ["to"], axis=0),
               node("Reshape", ["rows", "to"], ["r"], name="reshape"), node("Mul", ["q", "r"], ["y"])],
              {"q": (1, "n", 1, 4)}, {"table": floats(512, 4), "zero": [0], "one": [1], "four": [4]}),
        [dict(n=7), dict(n=512), dict(n=600)]),
    "less than nothing": (
        model([node("Shape", ["x"], ["s"]), node("Sub", ["most", "s"], ["rest"]),
               node("Tile", ["c", "rest"], ["pad"], name="pad"), node("Concat", ["pad", "x"], ["y"], axis=0)],
              {"x": ("n",)}, {"most": [64], "c": floats(1)}),
        [dict(n=40), dict(n=64), dict(n=70)]),
    "parts of less than nothing": (
        model([node("Shape", ["x"], ["s"]), node("Sub", ["s", "five"], ["rest"]),
               node("Concat", ["five", "rest"], ["parts"], axis=0),
               node("Split", ["x", "parts"], ["a", "y"], name="split")], {"x": ("n",)}, {"five": [5]}),
        [dict(n=7), dict(n=4)]),
    "resize to what is left": (
        model([node("Shape", ["x"], ["s"], start=2, end=3), node("Sub", ["most", "s"], ["rest"]),
               node("Concat", ["one", "one", "rest", "four"], ["to"], axis=0),
               node("Resize", ["x", "", "", "to"], ["y"], name="resize")],
              {"x": (1, 1, "h", 4)}, {"most": [64], "one": [1], "four": [4]}),
        [dict(h=40), dict(h=70)]),
    "a branch squeezes": (
        model([node("Shape", ["x"], ["s"], start=1), node("Equal", ["s", "one"], ["is"]),
               node("Squeeze", ["is"], ["condition"]),
               node("If", ["condition"], ["y"], then_branch=branch("Squeeze", "x", "one", "then"),
                    else_branch=branch("Reshape", "x", "row", "else"))],
              {"x": (3, "n")}, {"one": [1], "row": [-1]}),
        [dict(n=1), dict(n=2)]),
    "squeezed where it is 1": (
        model([node("Shape", ["x"], ["s"]), node("Gather", ["s", "second"], ["m"]),
               node("Equal", ["m", "second"], ["condition"]),
               choice(("Squeeze", "x", "axis"), ("Identity", "x"), "chosen"),
               node("Gemm", ["chosen", "w"], ["y"], name="gemm")],
              {"x": ("n", "m", 4)}, {"second": 1, "axis": [1], "w": floats(4, 3)}),
        [dict(n=3, m=1), dict(n=3, m=2)]),
    "one state, squeezed": (
        model([node("GRU", ["x", "w", "r", "", "", "h"], ["", "state"], name="layer", hidden_size=2),
               node("Squeeze", ["state"], ["y"])],
              {"x": (4, "n", 3)}, {"w": floats(1, 6, 3), "r": floats(1, 6, 2), "h": floats(1, 1, 2)}),
        [dict(n=1), dict(n=3)]),
    "blocks": (
        model([node("Reshape", ["x", "to"], ["r"]), node("DepthToSpace", ["r"], ["y"], name="blocks", blocksize=2)],
              {"x": ("h", "w")}, {"to": [1, -1, 1, 1]}),
        [dict(h=4, w=3), dict(h=2, w=2), dict(h=3, w=3)]),
    "a comparison with nothing": (
        model([node("Shape", ["x"], ["s"]), node("Equal", ["s", "none"], ["is"], name="compare"),
               node("Where", ["is", "seven", "s"], ["to"]), node("ConstantOfShape", ["to"], ["y"])],
              {"x": ("n",)}, {"none": [0], "seven": [7]}),
        [dict(n=3), dict(n=0)]),
    "squeezed to a declared rank": (
        model([node("Squeeze", ["x"], ["y"], name="squeeze")], {"x": ("n", 1, 3, "m")}, outputs={"y": ("n", 3)}),
        [dict(n=4, m=1), dict(n=4, m=2), dict(n=1, m=1)]),
    "squeezed to one number": (
        model([node("Squeeze", ["x"], ["s"], name="squeeze"), node("Sigmoid", ["s"], ["t"]),
               node("Constant", [], ["four"], value_float=4.0), node("Mul", ["t", "four"], ["y"])],
              {"x": ("batch", 1)}, outputs={"y": ()}),
        [dict(batch=1), dict(batch=3)]),
    "declared": (
        model([node("Relu", ["x"], ["y"], name="first"), node("Neg", ["z"], ["w"], name="second")],
              {"x": ("b", "n"), "z": ("c", "m")}, outputs={"y": ("b", "m"), "w": (3, "m")}),
        [dict(b=2, n=4, c=3, m=4), dict(b=2, n=4, c=3, m=5), dict(b=2, n=4, c=2, m=4)]),
    "declared, of a product": (
        model([node("Reshape", ["x", "to"], ["r"], name="reshape"), node("Exp", ["r"], ["y"], name="exp")],
              {"x": ("n", "k")}, {"to": [-1]}, outputs={"y": (12,)}),
        [dict(n=4, k=3), dict(n=2, k=3)]),
    "halves of a product": (
        model([node("Reshape", ["x", "to"], ["r"]), node("Split", ["r"], ["y", "z"], name="split", num_outputs=2)],
              {"x": ("n", "k")}, {"to": [-1]}, outputs=("y", "z")),
        [dict(n=4, k=3), dict(n=3, k=3), dict(n=1, k=1)]),
    "equal halves of a product": (
        model([node("Reshape", ["x", "to"], ["r"]), node("Split", ["r"], ["a", "b"], name="split", num_outputs=2),
               node("Sub", ["a", "b"], ["y"], name="difference")], {"x": ("n", "k")}, {"to": [-1]}),
        [dict(n=4, k=3), dict(n=3, k=3)]),
    "halves, before they might be uneven": (
        model([node("Split", ["x"], ["y", "z"], name="split", axis=1)], {"x": (2, "n")}, outputs=("y", "z"), opset=13),
        [dict(n=6), dict(n=5)]),
    "thirds by their sizes": (
        model([node("Reshape", ["x", "to"], ["r"]), node("Shape", ["r"], ["s"]), node("Div", ["s", "three"], ["third"]),
               node("Concat", ["third", "third", "third"], ["parts"], axis=0),
               node("Split", ["r", "parts"], ["a", "b", "y"], name="split")],
              {"x": ("n", "k")}, {"to": [-1], "three": [3]}),
        [dict(n=4, k=3), dict(n=2, k=2)]),
    "a grid of what is left": (
        model([node("Shape", ["x"], ["s"], start=1), node("Sub", ["most", "s"], ["rest"]),
               node("Concat", ["batch", "rest"], ["size"], axis=0),
               node("AffineGrid", ["theta", "size"], ["y"], name="grid", align_corners=1)],
              {"x": (1, "h", "w"), "theta": (2, 2, 3)}, {"most": [8, 8], "batch": [2, 1]}, opset=20),
        [dict(h=3, w=5), dict(h=7, w=5), dict(h=9, w=3)]),
    "compress": (
        model([node("Compress", ["x", "kept"], ["y"], name="compress", axis=0)],
              {"x": ("n", 3)}, {"kept": [True, False, True, True]}),
        [dict(n=4), dict(n=6), dict(n=3)]),
    "compress by data": (
        model([node("Greater", ["z", "zero"], ["kept"]), node("Compress", ["x", "kept"], ["y"], name="compress")],
              {"x": ("n", 3), "z": ("m",)}, {"zero": np.float32(0)}),
        [dict(n=4, m=12), dict(n=4, m=7), dict(n=2, m=8)]),
    "mirrored": (
        model([node("Pad", ["x", "pads"], ["y"], name="pad", mode="reflect")], {"x": ("n", 3)}, {"pads": [2, 0, 1, 2]}),
        [dict(n=3), dict(n=5), dict(n=2)]),
    "mirrored by a size": (
        model([node("Shape", ["z"], ["s"]), node("Concat", ["s", "pads"], ["all"], axis=0),
               node("Pad", ["x", "all"], ["y"], name="pad", mode="reflect")],
              {"x": ("n", 3), "z": ("m",)}, {"pads": [0, 1, 0]}),
        [dict(n=4, m=3), dict(n=4, m=4)]),
    "cut": (
        model([node("Pad", ["x", "pads"], ["y"], name="pad")], {"x": ("n", 3)}, {"pads": [-2, 0, -1, 1]}),
        [dict(n=5), dict(n=3), dict(n=2)]),
    "repeated edge": (
        model([node("Pad", ["x", "pads"], ["y"], name="pad", mode="edge")], {"x": ("n", 3)}, {"pads": [2, 0, 1, 1]}),
        [dict(n=1), dict(n=0)]),
    "keys of a mask": (
        model([node("Attention", ["q", "k", "v", "mask"], ["y"], name="attention")],
              {"q": (1, 2, "s", 4), "k": (1, 2, "t", 4), "v": (1, 2, "t", 4), "mask": ("s", "m")}, opset=23),
        [dict(s=3, t=5, m=5), dict(s=3, t=5, m=4)]),
    "keys of a short mask": (
        model([node("Attention", ["q", "k", "v", "mask"], ["y"], name="attention")],
              {"q": (1, 2, "s", 4), "k": (1, 2, "t", 4), "v": (1, 2, "t", 4), "mask": ("s", "m")}, opset=24),
        [dict(s=3, t=5, m=5), dict(s=3, t=5, m=3), dict(s=3, t=5, m=6)]),
    "branches by data": (
        model([node("ReduceSum", ["z"], ["sum"], keepdims=0), node("Greater", ["sum", "zero"], ["condition"]),
               choice(("Relu", "x"), ("Neg", "z"))], {"x": ("n", "k"), "z": ("n", 4)}, {"zero": np.float32(0)}),
        [dict(n=3, k=4), dict(n=3, k=5)]),
    "branches by a size": (
        model([node("Shape", ["x"], ["s"], end=1), node("Greater", ["s", "five"], ["large"]),
               node("Squeeze", ["large"], ["condition"]),
               choice(("Slice", "x", "zero", "three", "zero"), ("Relu", "x"))],
              {"x": ("n", 3)}, {"zero": [0], "three": [3], "five": [5]}),
        [dict(n=7), dict(n=5), dict(n=2), dict(n=6)]),
    "a test of one branch": (
        model([node("Shape", ["x"], ["s"], end=1), node("Greater", ["s", "three"], ["large"]),
               node("Squeeze", ["large"], ["condition"]), node("Shape", ["x"], ["of x"]),
               choice(("Add", "x", "c"), ("Expand", "one", "of x"))],
              {"x": ("n", "k")}, {"three": [3], "c": floats(1, 4), "one": np.float32(1)}),
        [dict(n=5, k=4), dict(n=2, k=7), dict(n=5, k=7)]),
    "carried": (
        model([trips([node("Reshape", ["v", "rows"], ["r"], name="rows"), node("Tanh", ["r"], ["t"]),
                      node("Reshape", ["t", "all"], ["next"])], "next")],
              {"x": ("n",)}, {"three": 3, "rows": [-1, 4], "all": [-1]}),
        [dict(n=8), dict(n=6)]),
    "carried, of a product": (
        model([node("Reshape", ["x2", "all"], ["x"]),
               trips([node("Reshape", ["v", "rows"], ["r"], name="rows"), node("Tanh", ["r"], ["t"]),
                      node("Reshape", ["t", "all"], ["next"])], "next")],
              {"x2": ("n", "k")}, {"three": 3, "rows": [-1, 4], "all": [-1]}),
        [dict(n=8, k=3), dict(n=6, k=3)]),
    "resize to less than nothing": (
        model([node("Resize", ["x", "", "", "to"], ["y"], name="resize")],
              {"x": (1, 1, "h", 4)}, {"to": [1, 1, -6, 4]}),
        []),
}


if __name__ == "__main__":
    OPTIONS = compiled_run.read_options()
    for NAME, (MODEL, SIZES) in CASES.items():
        check(OPTIONS, NAME, MODEL, SIZES)
