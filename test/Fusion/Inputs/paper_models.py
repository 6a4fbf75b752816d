"""Layers of networks that the papers measure, as lists of ONNX nodes with names that begin with what they are."""

import numpy as np
from onnx import helper


class Layers:
    """Nodes and weights, in one type of number. What a product does has a name that begins with `product `."""

    def __init__(self, width, heads, inner, dtype=np.float32):
        self.width, self.heads, self.inner, self.dtype = width, heads, inner, dtype
        self.nodes, self.weights = [], {}
        self.generator = np.random.default_rng(1)

    def add(self, kind, inputs, output, **attributes):
        name = ("product " if kind == "MatMul" else f"{kind} ") + output
        self.nodes.append(helper.make_node(kind, inputs, [output], name=name, **attributes))
        return output

    def constant(self, name, array):
        self.weights[name] = array
        return name

    def weight(self, name, *shape):
        return self.constant(name, (self.generator.standard_normal(shape) / 8).astype(self.dtype))

    def linear(self, x, y, inputs, outputs):
        product = self.add("MatMul", [x, self.weight(f"{y}.w", inputs, outputs)], f"{y}.p")
        return self.add("Add", [product, self.weight(f"{y}.b", outputs)], y)

    def norm(self, x, y):
        scale, bias = self.weight(f"{y}.g", self.width), self.weight(f"{y}.o", self.width)
        return self.add("LayerNormalization", [x, scale, bias], y)

    def heads_of(self, x, source, name, perm):
        apart = self.constant("apart", np.array([-1, self.heads, self.width // self.heads]))
        y = self.linear(source, f"{x}.{name}", self.width, self.width)
        return self.add("Transpose", [self.add("Reshape", [y, apart], f"{y}.r")], f"{y}.t", perm=perm)

    def attention(self, x, source, name, mask=None):
        """x attends to `source`, both [tokens, width]; x is added, and the sum normalised."""
        q = self.heads_of(name, x, "q", [1, 0, 2])
        k, v = self.heads_of(name, source, "k", [1, 2, 0]), self.heads_of(name, source, "v", [1, 0, 2])
        scale = self.constant("scale", np.array((self.width // self.heads) ** -0.5, self.dtype))
        scores = self.add("Mul", [self.add("MatMul", [q, k], f"{name}.s"), scale], f"{name}.z")
        if mask:
            scores = self.add("Add", [scores, mask], f"{name}.m")
        mixed = self.add("MatMul", [self.add("Softmax", [scores], f"{name}.a", axis=-1), v], f"{name}.c")
        rows = self.add("Transpose", [mixed], f"{name}.t", perm=[1, 0, 2])
        together = self.constant("together", np.array([-1, self.width]))
        out = self.linear(self.add("Reshape", [rows, together], f"{name}.r"), f"{name}.o", self.width, self.width)
        return self.norm(self.add("Add", [x, out], f"{name}.x"), f"{name}.n")

    def forward(self, x, name, activation):
        up = self.add(activation, [self.linear(x, f"{name}.u", self.width, self.inner)], f"{name}.h")
        down = self.linear(up, f"{name}.d", self.inner, self.width)
        return self.norm(self.add("Add", [x, down], f"{name}.x"), f"{name}.n")

    def cell(self, x, h, c, name, weights):
        """One step of an LSTM: the gates' products, and what stands between them. Gives h and c."""
        w, r, b = weights
        products = [self.add("MatMul", [x, w], f"{name}.px"), self.add("MatMul", [h, r], f"{name}.ph")]
        gates = self.add("Add", [self.add("Add", products, f"{name}.a"), b], f"{name}.g")
        parts = [f"{name}.{gate}" for gate in "iofn"]
        self.nodes.append(helper.make_node("Split", [gates], parts, name=f"Split {name}", axis=1, num_outputs=4))
        i, o, f = (self.add("Sigmoid", [part], f"{part}.s") for part in parts[:3])
        n = self.add("Tanh", [parts[3]], f"{parts[3]}.t")
        c = self.add("Add", [self.add("Mul", [f, c], f"{name}.fc"), self.add("Mul", [i, n], f"{name}.in")], f"{name}.c")
        return self.add("Mul", [o, self.add("Tanh", [c], f"{name}.tc")], f"{name}.h"), c


def transformer(layers, tokens):
    """A layer of the encoder over x, and one of the decoder over y with a causal mask; gives y's result."""
    mask = layers.constant("causal", np.triu(np.full((tokens, tokens), -1e4, layers.dtype), 1))
    seen = layers.forward(layers.attention("x", "x", "e"), "ef", "Relu")
    own = layers.attention("y", "y", "d", mask)
    return layers.forward(layers.attention(own, seen, "c"), "cf", "Relu")


def recurrent(layers, batch, steps, width, depth=2):
    """CRNN's recurrent part, unrolled as its graph is: `depth` layers of LSTM cells in both directions over x0, x1 and
    so on; gives the last layer's outputs."""
    zero = layers.constant("zero", np.zeros((batch, width), layers.dtype))
    found = [f"x{t}" for t in range(steps)]
    for layer in range(depth):
        sides = []
        for side in "fb":
            name = f"{side}{layer}"
            weights = (layers.weight(f"{name}.w", layers.width if layer == 0 else 2 * width, 4 * width),
                       layers.weight(f"{name}.r", width, 4 * width), layers.weight(f"{name}.b", 4 * width))
            h = c = zero
            made = {}
            for t in range(steps) if side == "f" else reversed(range(steps)):
                h, c = layers.cell(found[t], h, c, f"{name}.{t}", weights)
                made[t] = h
            sides.append(made)
        found = [layers.add("Concat", [sides[0][t], sides[1][t]], f"y{layer}.{t}", axis=1) for t in range(steps)]
    return found
