"""Small ONNX models made at test time: small_models.py KIND OUT.onnx [--seed N] [--prefix P] [--reorder]

KIND: mlp | conv | attention | lstm | rows. Widths, depths and weights follow from the seed; --prefix renames
every value and node, --reorder permutes nodes where the graph allows it. The same seed gives the same computation."""

import argparse
import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Graph:
    def __init__(self, seed, prefix):
        self.random = np.random.default_rng(seed)
        self.prefix = prefix
        self.nodes, self.inputs, self.outputs, self.weights = [], [], [], []

    def name(self, base):
        return self.prefix + base

    def size(self, low, high):
        return int(self.random.integers(low, high + 1))

    def weight(self, base, *shape):
        data = (self.random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32)
        self.weights.append(numpy_helper.from_array(data, self.name(base)))
        return self.name(base)

    def whole(self, base, numbers):
        self.weights.append(numpy_helper.from_array(np.array(numbers, np.int64), self.name(base)))
        return self.name(base)

    def input(self, base, *shape):
        self.inputs.append(helper.make_tensor_value_info(self.name(base), TensorProto.FLOAT, shape))
        return self.name(base)

    def op(self, kind, inputs, base, **attributes):
        node = helper.make_node(kind, inputs, [self.name(base)], name=self.name(base + "_node"), **attributes)
        self.nodes.append(node)
        return self.name(base)

    def output(self, name, *shape):
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def save(self, path, reorder):
        if reorder:
            self.nodes = shuffled(self.nodes, {i.name for i in self.inputs} | {w.name for w in self.weights})
        graph = helper.make_graph(self.nodes, self.name("graph"), self.inputs, self.outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        onnx.checker.check_model(model)
        onnx.save(model, path)


def shuffled(nodes, known):
    """Another topological order."""
    chooser, left, out = random.Random(7), list(nodes), []
    known = set(known)
    while left:
        ready = [n for n in left if all(i in known or not i for i in n.input)]
        node = chooser.choice(ready)
        left.remove(node)
        known.update(node.output)
        out.append(node)
    return out


def mlp(g):
    rows, width = g.size(3, 70), g.size(5, 90)
    x = g.input("x", rows, width)
    parts = []
    for branch in range(2):
        value, size = x, width
        for layer in range(g.size(1, 3)):
            wider = g.size(4, 80)
            tag = f"{branch}_{layer}"
            value = g.op("MatMul", [value, g.weight("w" + tag, size, wider)], "m" + tag)
            value = g.op("Add", [value, g.weight("b" + tag, wider)], "a" + tag)
            value = g.op("Relu", [value], "r" + tag)
            size = wider
        parts.append(g.op("MatMul", [value, g.weight(f"last{branch}", size, 12)], f"o{branch}"))
    y = g.op("Softmax", [g.op("Add", parts, "sum")], "y", axis=-1)
    g.output(y, rows, 12)


def conv(g):
    channels, size = g.size(1, 4), g.size(9, 21)
    value = g.input("x", 2, channels, size, size)
    for layer in range(g.size(1, 3)):
        wider = g.size(3, 20)
        weights = [g.weight(f"w{layer}", wider, channels, 3, 3), g.weight(f"b{layer}", wider)]
        value = g.op("Conv", [value] + weights, f"c{layer}", pads=[1, 1, 1, 1], kernel_shape=[3, 3])
        value = g.op("Relu", [value], f"r{layer}")
        channels = wider
    pooled = g.op("GlobalAveragePool", [value], "pooled")
    y = g.op("Flatten", [pooled], "y")
    g.output(y, 2, channels)


def attention(g):
    heads, length, width = g.size(1, 3), g.size(3, 40), g.size(4, 33)
    q, k, v = (g.input(n, 1, heads, length, width) for n in "qkv")
    scores = g.op("MatMul", [q, g.op("Transpose", [k], "kt", perm=[0, 1, 3, 2])], "scores")
    mixed = g.op("MatMul", [g.op("Softmax", [scores], "p", axis=-1), v], "mixed")
    y = g.op("Transpose", [mixed], "y", perm=[0, 2, 1, 3])
    g.output(y, 1, length, heads, width)


def lstm(g):
    steps, batch, width, hidden = g.size(2, 7), g.size(1, 3), g.size(3, 20), g.size(3, 24)
    x = g.input("x", steps, batch, width)
    w, r = g.weight("w", 1, 4 * hidden, width), g.weight("r", 1, 4 * hidden, hidden)
    y = g.op("LSTM", [x, w, r, g.weight("b", 1, 8 * hidden)], "y", hidden_size=hidden)
    g.output(y, steps, 1, batch, hidden)


def rows(g):
    count, width = g.size(3, 40), g.size(9, 200)
    x = g.input("x", count, width)
    normal = g.op("LayerNormalization", [x, g.weight("scale", width)], "normal", axis=-1)
    most = g.op("ReduceMax", [normal, g.whole("last", [1])], "most", keepdims=1)
    g.output(g.op("Sub", [normal, most], "below"), count, width)
    g.output(g.op("Mul", [most, most], "square"), count, 1)
    g.output(g.op("Softmax", [x], "shares", axis=-1), count, width)
    g.output(g.op("CumSum", [g.op("Exp", [normal], "e"), g.whole("axis", 1)], "sums"), count, width)


KINDS = {"mlp": mlp, "conv": conv, "attention": attention, "lstm": lstm, "rows": rows}

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=sorted(KINDS))
    parser.add_argument("path")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--prefix", default="")
    parser.add_argument("--reorder", action="store_true")
    arguments = parser.parse_args()
    graph = Graph(arguments.seed, arguments.prefix)
    KINDS[arguments.kind](graph)
    graph.save(arguments.path, arguments.reorder)
