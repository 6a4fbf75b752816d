"""Networks of ten thousand operations, for what the compiler's search takes, and larger ones for the whole of it."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPERATIONS = 10000
DEEP = 300000
ROWS = 32


class Writer:
    def __init__(self, width):
        self.width, self.nodes, self.weights = width, [], []
        self.last = "x"
        self.inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (ROWS, width))]

    def node(self, operator, *inputs):
        output = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [output], name=f"n{len(self.nodes)}"))
        self.last = output
        return output

    def weight(self, *shape):
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.zeros(shape, np.float32), name))
        return name

    def save(self, path):
        outputs = [helper.make_tensor_value_info(self.last, TensorProto.FLOAT, (ROWS, self.width))]
        graph = helper.make_graph(self.nodes, "large", self.inputs, outputs, self.weights)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10), path)


def layers(widths, activations):
    """LayerNorm, product, bias, activation, in three layers of ten a softmax, and a residual where the width stays."""
    writer, random = Writer(64), np.random.default_rng(0)
    while len(writer.nodes) < OPERATIONS:
        before, width = writer.last, int(random.choice(widths))
        writer.node("LayerNormalization", before, writer.weight(writer.width), writer.weight(writer.width))
        writer.node("MatMul", writer.last, writer.weight(writer.width, width))
        writer.node("Add", writer.last, writer.weight(width))
        writer.node(str(random.choice(activations)), writer.last)
        if random.random() < 0.3:
            writer.node("Softmax", writer.last)
        if width == writer.width:
            writer.node("Add", writer.last, before)
        writer.width = width
    return writer


def chain():
    """Element-wise operations drawn at random, those of two operands with one of the last six values."""
    writer, random = Writer(128), np.random.default_rng(0)
    values = ["x"]
    while len(writer.nodes) < OPERATIONS:
        operator = str(random.choice(["Relu", "Tanh", "Sigmoid", "Neg", "Abs", "Add", "Mul", "Sub"]))
        others = [values[-1 - random.integers(min(6, len(values)))]] if operator in ("Add", "Mul", "Sub") else []
        values.append(writer.node(operator, writer.last, *others))
    return writer


def softmaxes():
    """A quarter softmaxes, else element-wise, of values drawn near the last ones: kernels of up to 64 equations."""
    writer, random = Writer(256), np.random.default_rng(0)
    values = ["x"]
    while len(writer.nodes) < OPERATIONS:
        operator = str(random.choice(["Softmax", "Tanh", "Add", "Mul"]))
        inputs = [values[-1 - min(random.geometric(0.25) - 1, len(values) - 1)]
                  for _ in range(1 + (operator in ("Add", "Mul")))]
        values.append(writer.node(operator, *inputs))
    used = {name for node in writer.nodes for name in node.input}
    for value in values[1:-1]:  # the network has one output
        if value not in used:
            writer.node("Add", writer.last, value)
    return writer


def deep():
    """A chain of 300,000 operations."""
    writer = Writer(64)
    addend = writer.weight(64)
    while len(writer.nodes) < DEEP:
        writer.node("Relu", writer.last)
        writer.node("Add", writer.last, addend)
    return writer


LARGE = {
    "large-alike": lambda: layers([64], ["Relu"]),
    "large-chain": chain,
    "large-apart": lambda: layers(range(8, 200), ["Relu", "Tanh", "Sigmoid", "Gelu"]),
    "large-softmax": softmaxes,
}
WHOLE = {  # and the seconds and MiB that a whole compile for the host may take
    "large-deep": (deep, 30.0, 2048),
}
