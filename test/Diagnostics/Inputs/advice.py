"""What the compiler says of models that need another option, and whether what it says helps: advice.py FUSEC FOLDER
Each case is compiled as it is, and once more with the options that the message names, sizes put in. Some need none:
what their nodes ask of sizes is solved or tested."""

import pathlib
import re
import subprocess
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, UINT8 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.UINT8
TYPES = {"p": INT64, "b": UINT8, "mask": TensorProto.INT32}  # of inputs of these names; others are floats
MICROSOFT = "com.microsoft"
info = helper.make_tensor_value_info


def ints(name, values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def bytes_(name, shape):
    return numpy_helper.from_array(np.ones(shape, np.uint8), name)


def floats(name, shape):
    return numpy_helper.from_array(np.ones(shape, np.float32), name)


def one(op, inputs, out=None, data=(), order=None, made=FLOAT, opset=18, **attributes):
    """A node "n" of these inputs, by name, and constants: in this order, or as they are given."""
    infos = [info(k, TYPES.get(k, FLOAT), v) for k, v in inputs.items()]
    names = order.split(" ") if order else [*inputs, *(t.name for t in data)]
    node = helper.make_node(op, names, ["y"], name="n", **attributes)
    graph = helper.make_graph([node], "g", infos, [info("y", made, out)], list(data))
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def recurrent(op, gates, state):
    data = [floats("w", (1, gates * 2, 3)), floats("r", (1, gates * 2, 2))]
    infos = [info("x", FLOAT, (4, "n", 3)), info("h", FLOAT, state)]
    node = helper.make_node(op, ["x", "w", "r", "", "", "h"], ["y"], name="n", hidden_size=2)
    graph = helper.make_graph([node], "g", infos, [info("y", FLOAT, None)], data)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=9)


def bounds():
    """A slice from n - 5, which may lie in front of the first element or behind it."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], end=1),
        helper.make_node("Sub", ["s", "five"], ["from"]),
        helper.make_node("Slice", ["x", "from", "most", "zero"], ["y"], name="n"),
    ]
    data = [ints("five", [5]), ints("most", [1 << 62]), ints("zero", [0])]
    graph = helper.make_graph(nodes, "g", [info("x", FLOAT, ("n", 3))], [info("y", FLOAT, None)], data)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def stepped():
    """A slice in steps of n - 5, which may be 0."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], end=1),
        helper.make_node("Sub", ["s", "five"], ["step"]),
        helper.make_node("Slice", ["x", "from", "to", "zero", "step"], ["y"], name="n"),
    ]
    data = [ints("five", [5]), ints("from", [3]), ints("to", [0]), ints("zero", [0])]
    graph = helper.make_graph(nodes, "g", [info("x", FLOAT, ("n", 3))], [info("y", FLOAT, None)], data)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def halved():
    """Removes an axis of as many elements as a pool with stride 2 leaves of a size."""
    nodes = [
        helper.make_node("MaxPool", ["x"], ["p"], kernel_shape=[1], strides=[2]),
        helper.make_node("Squeeze", ["p", "two"], ["y"], name="n"),
    ]
    x, y = info("x", FLOAT, (1, 3, "two")), info("y", FLOAT, None)
    graph = helper.make_graph(nodes, "g", [x], [y], [ints("two", [2])])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def chosen():
    """An If whose condition has n elements."""
    ways = [helper.make_graph([helper.make_node(op, ["x"], [op])], op, [], [info(op, FLOAT, None)])
            for op in ("Relu", "Neg")]
    node = helper.make_node("If", ["b"], ["y"], name="n", then_branch=ways[0], else_branch=ways[1])
    inputs = [info("x", FLOAT, (2,)), info("b", TensorProto.BOOL, ("one",))]
    graph = helper.make_graph([node], "g", inputs, [info("y", FLOAT, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def quantised(inputs, scale):
    data = [bytes_("w", (1, 3, 8)), bytes_("r", (1, 2, 8)), bytes_("z", (1,)), *scale]
    return one("DynamicQuantizeLSTM", inputs, data=data, order="x w r      s z t z", domain=MICROSOFT, hidden_size=2)


def counted(start=""):
    """A Loop that runs p times, if `start` says so, and collects what it makes."""
    nodes = [helper.make_node("Identity", ["go"], ["goes"]), helper.make_node("Relu", ["x"], ["v"])]
    inputs = [info("i", INT64, ()), info("go", TensorProto.BOOL, ())]
    body = helper.make_graph(nodes, "body", inputs, [info("goes", TensorProto.BOOL, ()), info("v", FLOAT, (2,))])
    node = helper.make_node("Loop", ["p", start], ["y"], name="n", body=body)
    inputs = [info("x", FLOAT, (2,)), info("p", INT64, ()), *([info(start, TensorProto.BOOL, ())] if start else [])]
    graph = helper.make_graph([node], "g", inputs, [info("y", FLOAT, None)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def nested(reader, rounds, start="from", of_data=False):
    """A target shape [s, -1] in which s = 2 * (s / 3) + 1, again and again, of the size n, or of how many of the data
    are not zero; or a Range up to s, which is "to", from `start`, an input "p" or a value of the model."""
    last = f"s{3 * rounds}"
    nodes = [helper.make_node("NonZero", ["x"], ["found"])] if of_data else []
    nodes += [helper.make_node("Shape", ["found"], ["s0"], start=1) if of_data else
              helper.make_node("Shape", ["x"], ["s0"], end=1)]
    for i in range(0, 3 * rounds, 3):
        nodes += [helper.make_node("Div", [f"s{i}", "three"], [f"s{i + 1}"]),
                  helper.make_node("Mul", [f"s{i + 1}", "two"], [f"s{i + 2}"]),
                  helper.make_node("Add", [f"s{i + 2}", "unit"], [f"s{i + 3}"])]
    if reader == "Reshape":
        nodes += [helper.make_node("Concat", [last, "rest"], ["to"], axis=0),
                  helper.make_node("Reshape", ["x", "to"], ["y"], name="n")]
    else:
        nodes += [helper.make_node("Squeeze", [last], ["to"]),
                  helper.make_node("Range", [start, "to", "step"], ["y"], name="n")]
    data = [ints(k, [v]) for k, v in {"three": 3, "two": 2, "unit": 1, "rest": -1}.items()]
    data += [ints("from", 0), ints("step", 1)]
    made = FLOAT if reader == "Reshape" else INT64
    inputs = [info("x", FLOAT, ("n", 3)), *([info("p", INT64, ())] if start == "p" else [])]
    graph = helper.make_graph(nodes, "g", inputs, [info("y", made, None)], data)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def attention(batch, mask):
    """QAttention of these shapes."""
    data = [bytes_("w", (4, 12)), floats("bias", (12,)), floats("s", ()), bytes_("z", ())]
    inputs = {"b": (batch, 3, 4), "mask": mask}
    return one("QAttention", inputs, data=data, order="b w bias s s mask z z", domain=MICROSOFT, num_heads=2)


def masked():
    """QAttention whose mask_index has starts and ends of a batch of n."""
    nodes = [
        helper.make_node("Concat", ["ends", "starts"], ["mask"], axis=0),
        helper.make_node("QAttention", ["b", "w", "bias", "s", "t", "mask", "z", "v"], ["y"], name="n",
                         domain=MICROSOFT, num_heads=2),
    ]
    inputs = [info("b", UINT8, ("n", 3, 4)), *(info(k, TensorProto.INT32, ("n",)) for k in ("ends", "starts"))]
    data = [bytes_("w", (4, 12)), floats("bias", (12,)), floats("s", ()), floats("t", ())]
    data += [bytes_("z", ()), bytes_("v", ())]
    graph = helper.make_graph(nodes, "g", inputs, [info("y", FLOAT, None)], data)
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


BACKWARDS = [ints("s", [-1]), ints("e", [-(1 << 62)]), ints("a", [0]), ints("t", [-1])]
SCALES = numpy_helper.from_array(np.array([1, 1, 1.5, 1], np.float32), "scales")
CASES = {
    "Squeeze without axes": one("Squeeze", {"x": ("n", 1, 3)}),
    "Squeeze of unnamed sizes": one("Squeeze", {"x": (None, 1, -1)}),
    "GRU": recurrent("GRU", 3, (1, "m", 2)),
    "LSTM": recurrent("LSTM", 4, (1, "m", 2)),
    "RNN": recurrent("RNN", 1, (1, "m", 2)),
    "Pad": one("Pad", {"x": ("n", 4), "p": (4,)}, out=(6, 6)),
    "Slice backwards": one("Slice", {"x": ("n", 4)}, data=BACKWARDS),
    "Slice from either end": bounds(),
    "Resize": one("Resize", {"x": (1, 1, "h", 4)}, data=[floats("roi", (0,)), SCALES], opset=11, mode="linear"),
    "Resize with antialias": one("Resize", {"x": (1, 1, "h", 4)}, data=[floats("roi", (0,)), SCALES], mode="linear",
                                 antialias=1),
    "Resize of integers": one("Resize", {"b": (1, 1, "h", 4)}, data=[floats("roi", (0,)), SCALES], made=UINT8,
                              mode="linear"),
    "MaxPool": one("MaxPool", {"x": (1, 1, "h", 5)}, auto_pad="SAME_UPPER", kernel_shape=[3, 3], strides=[2, 2]),
    "Add": one("Add", {"x": ("n", 3), "z": ("m", 3)}),
    "Add of 4": one("Add", {"x": ("n", 3)}, data=[floats("four", (4, 3))]),
    "Reshape": one("Reshape", {"x": ("n", "k")}, data=[ints("to", [-1, 12])]),
    "Squeeze of n": one("Squeeze", {"x": (2, "one")}, data=[ints("last", [1])]),
    "Squeeze of a pool": halved(),
    "Conv": one("Conv", {"x": (1, "c", 5, 5)}, data=[floats("w", (2, 3, 3, 3))]),
    "ConvTranspose": one("ConvTranspose", {"x": (1, "c", 5, 5)}, data=[floats("w", (3, 2, 3, 3))]),
    "BatchNormalization": one("BatchNormalization", {"x": (1, "c", 5)}, data=[floats(w, (3,)) for w in "sbmv"]),
    "GroupNormalization": one("GroupNormalization", {"x": (1, "c", 5)}, data=[floats(w, (3,)) for w in "sb"],
                              opset=21, num_groups=3),
    "PRelu": one("PRelu", {"x": ("c", 1)}, data=[floats("slope", (3, 1))]),
    "Split": one("Split", {"x": ("c", 2)}, data=[ints("sizes", [3])]),
    "ScatterND": one("ScatterND", {"x": (4, 3), "p": (2, "one"), "u": (2, 3)}),
    "GatherND": one("GatherND", {"x": (4, 3), "p": (2, "one")}),
    "GatherND of a declared rank": one("GatherND", {"x": (4, 3), "p": (2, "one")}, out=(2, 3)),
    "updates of ScatterND": one("ScatterND", {"x": (4, 3), "p": (2, 1), "u": (2, "c")}),
    "If": chosen(),
    "axes of Squeeze": one("Squeeze", {"x": (1, 4), "p": (1,)}),
    "pads": one("Pad", {"x": (4, 4), "p": (4,)}),
    "start of Slice": one("Slice", {"x": (4, 4), "p": (1,)}, data=[ints("e", [4])]),
    "step of Slice": stepped(),
    "DFT of n": one("DFT", {"x": (1, "n", 1)}, opset=20),
    "length of DFT": one("DFT", {"x": (1, 8, 1), "p": ()}, opset=20),
    "step of STFT": one("STFT", {"x": (1, 16, 1), "p": ()}, data=[floats("window", (8,))], opset=17),
    "shape of Reshape": one("Reshape", {"x": (4, 4), "p": (2,)}),
    "scales of Resize": one("Resize", {"x": (1, 1, 4, 4), "scales": (4,)}, opset=10),
    "antialias": one("Resize", {"x": (1, 1, 4, 4), "scales": (4,)}, (1, 1, 2, 2), order="x r scales",
                     mode="linear", antialias=1,
                     coordinate_transformation_mode="tf_crop_and_resize",
                     data=[numpy_helper.from_array(np.repeat(np.float32([0, 1]), 4), "r")]),
    "integers of Resize": one("Resize", {"b": (1, 1, 4, 4), "scales": (4,)}, (1, 1, 8, 8), order="b  scales",
                              made=UINT8, mode="linear"),
    "region of Resize": one("Resize", {"x": (4, 4), "roi": (2,), "scales": (1,)}, axes=[1], mode="linear",
                            coordinate_transformation_mode="tf_crop_and_resize"),
    "region and sizes of Resize": one("Resize", {"x": (4, 4), "roi": (2,), "p": (1,)}, order="x roi  p", axes=[1],
                                      mode="linear", coordinate_transformation_mode="tf_crop_and_resize"),
    "region and sizes of n": one("Resize", {"x": (4, "n"), "roi": (2,)}, data=[ints("s", [5])], order="x roi  s",
                                 axes=[1], mode="linear", coordinate_transformation_mode="tf_crop_and_resize"),
    "Resize at run time": one("Resize", {"x": (1, 1, "h", 4), "roi": (0,), "scales": (4,)}, (1, 1, 8, 8)),
    "AffineGrid": one("AffineGrid", {"x": (1, 2, 3), "p": (4,)}, opset=20),
    "length of the size of AffineGrid": one("AffineGrid", {"x": (1, 2, 3), "p": ("k",)}, (1, 3, 4, 2), opset=20),
    "Range": one("Range", {"p": ()}, data=[ints("e", 5), ints("d", 1)], made=INT64),
    "Range of floats": one("Range", {"from": (), "to": ()}, data=[floats("d", ())]),
    "Loop": counted(),
    "Loop that may not start": counted("c"),
    "mask_index": masked(),
    "length of mask_index": attention("n", ("m",)),
    "length of mask_index of 2": attention(2, ("m",)),
    "keys of mask_index": attention("n", ("n", "k")),
    "rows of mask_index": attention("n", (4, 3, 3)),
    "QLinearAveragePool": one("QLinearAveragePool", {"b": (1, 1, "h", "c")}, made=UINT8, domain=MICROSOFT,
                              data=[floats("s", ()), bytes_("z", ()), floats("t", ()), bytes_("v", ())],
                              kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1, count_include_pad=1),
    "GatherElements": one("GatherElements", {"x": (4, "n"), "p": (2, "k")}),
    "bias of DynamicQuantizeMatMul": one("DynamicQuantizeMatMul", {"x": (2, 4), "bias": ("c",)}, domain=MICROSOFT,
                                         data=[bytes_("w", (4, 3)), floats("s", ())], order="x w s  bias"),
    "bias of MatMulIntegerToFloat": one("MatMulIntegerToFloat", {"b": (2, 4), "bias": ("c",)}, domain=MICROSOFT,
                                        data=[bytes_("w", (4, 3)), floats("s", ())], order="b w s s   bias"),
    "DynamicQuantizeLSTM": quantised({"x": (4, 2, 3), "s": ("one",)}, [floats("t", (1, 8))]),
    "scales of DynamicQuantizeLSTM": quantised({"x": (4, 2, 3), "t": (1, "gates")}, [floats("s", (1,))]),
    "state of DynamicQuantizeLSTM": one("DynamicQuantizeLSTM", {"x": (4, 2, 3), "b": (1, "k", 8)}, domain=MICROSOFT,
                                        data=[bytes_("w", (1, 3, 8)), floats("s", (1,)), bytes_("z", (1,))],
                                        order="x w b      s z s z", hidden_size=2),
    "CausalConvWithState": one("CausalConvWithState", {"x": (1, 3, 5), "bias": ("c",)}, data=[floats("w", (3, 1, 2))],
                               order="x w bias", opset=27),
    "window of STFT": one("STFT", {"x": (1, 16, 1), "w": ("k",)}, data=[ints("step", 4), ints("length", 3)],
                          order="x step w length", opset=17),
    "Trilu": one("Trilu", {"x": (3, 4), "p": ("one",)}),
    "values of OneHot": one("OneHot", {"p": (3,), "v": ("two",)}, data=[ints("depth", 4)], order="p depth v"),
    "program beyond the limit of expressions": nested("Reshape", 50),
    "Range up to such a size": nested("Range", 50),
    "expression of data beyond the limit": nested("Reshape", 50, of_data=True),
    "expression beyond the limit": nested("Reshape", 120),
    "Range far beyond the limit": nested("Range", 120),
    "Range that is beyond the limit at both ends": nested("Range", 120, "to"),
    "Range from a run-time value": nested("Range", 120, "p"),
}
VALUES = {
    "axes of Squeeze": "[0]",
    "pads": "[1,0,1,0]",
    "start of Slice": "[1]",
    "length of DFT": "8",
    "step of STFT": "4",
    "shape of Reshape": "[2,8]",
    "scales of Resize": "[1,1,2,2]",
    "antialias": "[1,1,0.5,0.5]",
    "integers of Resize": "[1,1,2,2]",
    "region of Resize": {"roi": "[0,1]", "scales": "[2]"},
    "region and sizes of Resize": {"roi": "[0,1]", "p": "[5]"},
    "AffineGrid": "[1,3,4,4]",
    "Range": "1",
    "Range of floats": "3",
    "Loop": "3",
    "Loop that may not start": {"p": "3", "c": "true"},
    "Range from a run-time value": "0",
}
SIZES = {"n": 4, "m": 4, "h": 6, "x_d0": 4, "x_d2": 5, "k": 3, "found_d1": 4, "c": 3, "one": 1, "two": 2, "gates": 8}


def shapeless():
    made = one("Relu", {"x": (2, 3)})
    made.graph.input[0].type.tensor_type.ClearField("shape")
    return made


CASES["no shape"] = shapeless()


def said(fusec, path, *options):
    command = [fusec, path.name, "--stop-after=schedule", *options]
    result = subprocess.run(command, cwd=path.parent, capture_output=True, text=True)
    lines = result.stderr.splitlines()
    return "\n".join(line for line in lines if not line.startswith("note: kernels are tuned for")).strip()


def main():
    fusec, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in CASES.items():
        path = folder / "m.onnx"
        path.write_bytes(model.SerializeToString())
        text = said(fusec, path)
        print(f"{name}: {text or 'done'}")
        if not text:
            continue
        for bound in re.findall(r"--dim (\w+)=0\.\.N", text):
            print(f"--dim {bound}=0..8: {said(fusec, path, '--dim', f'{bound}=0..8') or 'done'}")
        options = re.findall(r"--dim (\w+)=(SIZE|\d+)(?!\.\.)\b", text)
        options = [part for o, size in options for part in ("--dim", f"{o}={SIZES[o] if size == 'SIZE' else size}")]
        if shape := re.search(r"--shape (\w+):AxBxC", text):
            options += ["--shape", f"{shape[1]}:2x3x4"]
        for given in re.findall(r"--set-input (\w+)=VALUE", text):
            value = VALUES[name]
            options += ["--set-input", f"{given}={value if isinstance(value, str) else value[given]}"]
        text = said(fusec, path, *options)
        print(f"{' '.join(options)}: {text or 'done'}")


if __name__ == "__main__":
    main()
