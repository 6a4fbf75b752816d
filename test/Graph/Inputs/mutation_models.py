"""Small models that together use most operators and every kind of equation, for the mutation test."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

RNG = np.random.default_rng(3)
FLOAT, INT64, BOOL, UINT8 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL, TensorProto.UINT8


def info(name, shape, kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def weight(name, *shape):
    return numpy_helper.from_array(RNG.standard_normal(shape).astype(np.float32), name)


def array(name, values, kind=np.float32):
    return numpy_helper.from_array(np.array(values, kind), name)


def ints(name, values):
    return array(name, values, np.int64)


class Builder:
    def __init__(self, *inputs):
        self.inputs, self.nodes, self.data, self.outputs = list(inputs), [], [], []

    def __call__(self, op, *operands, outputs=1, out=False, **attributes):
        names = [f"{op.lower()}{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(operands), names, name=f"n{len(self.nodes)}", **attributes))
        if out:
            self.outputs += names
        return names[0] if outputs == 1 else names

    def add(self, tensor):
        self.data.append(tensor)
        return tensor.name

    def model(self):
        outputs = [helper.make_empty_tensor_value_info(n) for n in self.outputs]
        graph = helper.make_graph(self.nodes, "m", self.inputs, outputs, self.data)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def dense():
    """Contractions, element-wise work, reductions and normalisations over a symbolic batch."""
    b = Builder(info("x", ("n", 6)))
    h = b("Gemm", "x", b.add(weight("w", 6, 8)), b.add(weight("c", 8)), alpha=0.5)
    h = b("LayerNormalization", b("Relu", h), b.add(weight("g", 8)), axis=-1)
    b("Softmax", h, axis=1, out=True)
    m = b("MatMul", h, b.add(weight("v", 8, 4)))
    b("ReduceMean", m, b.add(ints("last", [1])), keepdims=0, out=True)
    b("ArgMax", m, axis=1, out=True)
    b("Einsum", m, m, equation="ij,kj->ik", out=True)
    r = b("Reshape", m, b.add(ints("to", [0, 2, 2])))
    t = b("Transpose", r, perm=[0, 2, 1])
    b("Concat", t, r, axis=2, out=True)
    b("Slice", t, b.add(ints("s", [1])), b.add(ints("e", [2])), b.add(ints("a", [1])), out=True)
    b("CumSum", m, b.add(ints("axis", 1)), out=True)
    return b.model()


def image():
    """Windows, normalisations and movement over images."""
    b = Builder(info("x", (1, 4, 8, 8)))
    h = b("Conv", "x", b.add(weight("w", 8, 2, 3, 3)), b.add(weight("c", 8)), group=2, pads=[1, 1, 1, 1])
    p = [b.add(weight(k, 8)) for k in ("scale", "bias", "mean")] + [b.add(array("var", [1] * 8))]
    h = b("BatchNormalization", h, *p)
    b("MaxPool", h, kernel_shape=[2, 2], strides=[2, 2], outputs=2, out=True)
    b("AveragePool", h, kernel_shape=[3, 3], pads=[1, 1, 1, 1], ceil_mode=1, out=True)
    b("ConvTranspose", h, b.add(weight("u", 8, 2, 2, 2)), strides=[2, 2], out=True)
    b("Resize", h, "", b.add(array("scales", [1, 1, 2, 1.5])), mode="linear", out=True)
    b("Pad", h, b.add(ints("pads", [0, 0, 1, 2, 0, 0, 1, -1])), mode="reflect", out=True)
    b("InstanceNormalization", h, p[0], p[1], out=True)
    b("DepthToSpace", h, blocksize=2, out=True)
    b("GlobalAveragePool", h, out=True)
    b("LRN", h, size=3, out=True)
    b("Trilu", h, upper=0, out=True)
    return b.model()


def indexed():
    """Gathers, scatters, ordering and quantisation."""
    b = Builder(info("x", (4, 6)), info("i", (2, 6), INT64), info("q", (4, 6), UINT8))
    b("Gather", "x", "i", axis=0, out=True)
    b("GatherElements", "x", "i", axis=0, out=True)
    b("ScatterElements", "x", "i", b.add(weight("u", 2, 6)), axis=0, reduction="add", out=True)
    b("GatherND", "x", b.add(ints("at", [[1, 2], [3, 4]])), out=True)
    b("ScatterND", "x", b.add(ints("row", [[1], [3]])), b.add(weight("rows", 2, 6)), out=True)
    b("TopK", "x", b.add(ints("k", [3])), axis=1, outputs=2, out=True)
    b("OneHot", "i", b.add(ints("depth", 5)), b.add(array("values", [0, 1])), out=True)
    scale, zero = b.add(array("scale", 0.1)), b.add(array("zero", 3, np.uint8))
    b("DequantizeLinear", "q", scale, zero, out=True)
    b("QuantizeLinear", "x", scale, zero, out=True)
    b("MatMulInteger", "q", b.add(array("qw", RNG.integers(0, 9, (6, 3)), np.uint8)), zero, out=True)
    b("Split", "x", b.add(ints("parts", [2, 4])), axis=1, outputs=2, out=True)
    b("Tile", "x", b.add(ints("times", [2, 1])), out=True)
    b("Expand", b("Unsqueeze", "x", b.add(ints("front", [0]))), b.add(ints("wide", [3, 4, 6])), out=True)
    return b.model()


def recurrent():
    """Scans of all three cells, on a simulated GPU."""
    b = Builder(info("x", (3, 2, 4)), info("lengths", (2,), TensorProto.INT32))

    def w(name, gates, dirs=1):
        return [b.add(weight(name + "w", dirs, gates * 3, 4)), b.add(weight(name + "r", dirs, gates * 3, 3))]

    b("LSTM", "x", *w("l", 4, 2), "", "lengths", hidden_size=3, direction="bidirectional", outputs=3, out=True)
    b("GRU", "x", *w("g", 3), hidden_size=3, linear_before_reset=1, outputs=2, out=True)
    b("RNN", "x", *w("n", 1), hidden_size=3, outputs=2, out=True)
    return b.model()


def control():
    """If, Loop and Scan."""
    b = Builder(info("x", (3, 4)), info("c", (), BOOL))
    branch = lambda op: helper.make_graph([helper.make_node(op, ["x"], [op])], op, [], [info(op, (3, 4))])
    b("If", "c", then_branch=branch("Neg"), else_branch=branch("Abs"), out=True)
    body = helper.make_graph(
        [
            helper.make_node("Add", ["v", "x"], ["v2"]),
            helper.make_node("Identity", ["go"], ["go2"]),
            helper.make_node("Neg", ["v2"], ["s"]),
        ],
        "body",
        [info("it", (), INT64), info("go", (), BOOL), info("v", (3, 4))],
        [info("go2", (), BOOL), info("v2", (3, 4)), info("s", (3, 4))],
    )
    true = b.add(array("true", True, bool))
    b("Loop", b.add(ints("trips", 3)), true, "x", body=body, outputs=2, out=True)
    step = helper.make_graph(
        [helper.make_node("Mul", ["h", "row"], ["h2"]), helper.make_node("Exp", ["h2"], ["y"])],
        "step",
        [info("h", (4,)), info("row", (4,))],
        [info("h2", (4,)), info("y", (4,))],
    )
    b("Scan", b.add(weight("h0", 4)), "x", body=step, num_scan_inputs=1, outputs=2, out=True)
    return b.model()


MODELS = {"control": control, "dense": dense, "image": image, "indexed": indexed, "recurrent": recurrent}
