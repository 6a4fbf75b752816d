"""The papers' chains of contractions as models, with what they give: two products of matrices, attention, and two
convolutions."""

import os

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

import products

# Table III of MCFuser: heads, length, length of keys, columns of keys and of values.
ATTENTION = {
    "s1": (8, 512, 512, 64, 64), "s2": (12, 512, 512, 64, 64), "s3": (16, 512, 512, 64, 64),
    "s4": (12, 256, 256, 64, 64), "s5": (16, 256, 256, 64, 64), "s6": (16, 256, 256, 80, 80),
    "s7": (1, 512, 256, 64, 64), "s8": (1, 768, 384, 64, 64), "s9": (1, 1024, 512, 64, 64),
}
# Table IV of Chimera, with softmax.
SOFTMAX = {name + "-softmax": sizes for name, sizes in products.CHAINS.items() if name.startswith("chimera")}
BERT = (12, 512, 512, 64, 64)
# Table V of Chimera: channels, height, width; channels, stride and window of the first convolution, then of the second.
CONVOLUTIONS = {
    "c1": ((64, 112, 112), (192, 2, 3), (128, 1, 1)), "c2": ((32, 147, 147), (64, 2, 3), (80, 1, 1)),
    "c3": ((64, 56, 56), (128, 1, 3), (64, 1, 1)), "c4": ((128, 28, 28), (256, 1, 3), (128, 1, 1)),
    "c5": ((16, 227, 227), (64, 4, 3), (16, 1, 1)), "c6": ((64, 56, 56), (64, 1, 1), (64, 1, 3)),
    "c7": ((64, 56, 56), (64, 1, 1), (64, 1, 1)), "c8": ((256, 56, 56), (256, 1, 1), (64, 1, 1)),
}


class Made:
    """A model in a file: `feeds` by input, the name of its only output and its values, and the bytes that a run has to
    move at least."""

    def __init__(self, feeds, output, expected, touched):
        self.feeds, self.output, self.expected, self.bytes = feeds, output, expected.astype(numpy.float32), touched


def write(path, nodes, feeds, output, shape, weights):
    info = helper.make_tensor_value_info
    inputs = [info(name, TensorProto.FLOAT, each.shape) for name, each in feeds.items()]
    graph = helper.make_graph(nodes, "chain", inputs, [info(output, TensorProto.FLOAT, shape)],
                              [numpy_helper.from_array(value, name) for name, value in weights.items()])
    os.makedirs(os.path.dirname(path), exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)


def productsOf(path, sizes):
    batch, m, n, k, h = sizes
    shapes = [(batch, m, k), (batch, k, n), (batch, n, h)]
    feeds, output = products.save(path, shapes)
    wide = [value.astype(numpy.float64) for value in feeds.values()]
    return Made(feeds, output, wide[0] @ wide[1] @ wide[2], products.demands(shapes)[1])


def attention(path, sizes, masked=False):
    """softmax(query keys / sqrt(columns) + mask) values; the mask hides the last keys of the first rows, and all keys
    but one of the last row."""
    heads, rows, length, columns, width = sizes
    generator = numpy.random.default_rng(0)
    shapes = {"query": (heads, rows, columns), "keys": (heads, columns, length), "values": (heads, length, width)}
    feeds = {name: generator.standard_normal(shape, numpy.float32) for name, shape in shapes.items()}
    nodes = [helper.make_node("MatMul", ["query", "keys"], ["scores"]),
             helper.make_node("Mul", ["scores", "scale"], ["scaled"])]
    scale = numpy.float32(columns ** -0.5)
    wide = {name: value.astype(numpy.float64) for name, value in feeds.items()}
    scores = wide["query"] @ wide["keys"] * scale
    if masked:
        mask = numpy.zeros((rows, length), numpy.float32)
        mask[:rows // 2, length - length // 5:] = -numpy.inf
        mask[-1, 1:] = -numpy.inf
        feeds["mask"] = mask
        scores += mask
        nodes.append(helper.make_node("Add", ["scaled", "mask"], ["masked"]))
    nodes += [helper.make_node("Softmax", [nodes[-1].output[0]], ["weights"], axis=-1),
              helper.make_node("MatMul", ["weights", "values"], ["y"])]
    powers = numpy.exp(scores - scores.max(-1, keepdims=True))
    expected = powers / powers.sum(-1, keepdims=True) @ wide["values"]
    write(path, nodes, feeds, "y", expected.shape, {"scale": scale})
    return Made(feeds, "y", expected, 4 * (sum(value.size for value in feeds.values()) + expected.size))


def convolved(image, weights, stride):
    """image [C,H,W], weights [O,C,k,k]: the convolution with k/2 points of padding on each side."""
    window = weights.shape[-1]
    padded = numpy.pad(image, ((0, 0), (window // 2, window // 2), (window // 2, window // 2)))
    taps = [(numpy.einsum("oc,chw->ohw", weights[:, :, i, j],
                          padded[:, i:padded.shape[1] - window + 1 + i:stride,
                                 j:padded.shape[2] - window + 1 + j:stride]))
            for i in range(window) for j in range(window)]
    return sum(taps)


def touchedBytes(shape, window, stride):
    """Bytes of an image that the windows of a convolution with padding cover."""
    covered = [len({p for start in range(-(window // 2), size + window // 2 - window + 1, stride)
                    for p in range(start, start + window) if 0 <= p < size}) for size in shape[1:]]
    return 4 * shape[0] * covered[0] * covered[1]


def convolutions(path, sizes, relu):
    """Both as wide and high as they are with padding; strides are the first one's and the second one's."""
    shape, *layers = sizes
    generator = numpy.random.default_rng(0)
    feeds = {"x": generator.standard_normal((1, *shape), numpy.float32)}
    value, current, nodes, weights = feeds["x"][0].astype(numpy.float64), "x", [], {}
    touched = touchedBytes(shape, layers[0][2], layers[0][1])
    for i, (channels, stride, window) in enumerate(layers):
        kernel = generator.standard_normal((channels, value.shape[0], window, window), numpy.float32)
        kernel /= numpy.float32(value.shape[0] * window * window) ** numpy.float32(0.5)
        weights |= {f"w{i}": kernel, f"b{i}": generator.standard_normal(channels, numpy.float32)}
        nodes.append(helper.make_node("Conv", [current, f"w{i}", f"b{i}"], [f"c{i}"], strides=[stride] * 2,
                                      pads=[window // 2] * 4))
        value = convolved(value, kernel.astype(numpy.float64), stride) + weights[f"b{i}"][:, None, None]
        if relu:
            nodes.append(helper.make_node("Relu", [f"c{i}"], [f"r{i}"]))
            value = numpy.maximum(value, 0)
        current = nodes[-1].output[0]
    write(path, nodes, feeds, current, (1, *value.shape), weights)
    touched += 4 * (sum(each.size for each in weights.values()) + value.size)
    return Made(feeds, current, value[None], touched)


def scaled(sizes, divisor):
    """Sizes of matrices (batch first) divided, 4 at least, and two batches at most."""
    batch, *others = sizes
    return sizes if divisor == 1 else (min(batch, 2), *(max(size // divisor, 4) for size in others))


def scaledImage(sizes, divisor):
    """Sizes of convolutions: channels and points of the image divided, 4 at least."""
    if divisor == 1:
        return sizes
    shape, *layers = sizes
    return (tuple(max(size // divisor, 4) for size in shape),
            *((max(channels // divisor, 4), *rest) for channels, *rest in layers))


# Name -> (path, what divides the sizes) -> Made.
CHAINS = {name: lambda path, divisor, s=sizes: productsOf(path, scaled(s, divisor))
          for name, sizes in products.CHAINS.items()}
CHAINS |= {name: lambda path, divisor, s=sizes: attention(path, scaled(s, divisor))
           for name, sizes in ({f"mcfuser-{name}": sizes for name, sizes in ATTENTION.items()} | SOFTMAX).items()}
CHAINS["bert"] = lambda path, divisor: attention(path, scaled(BERT, divisor), masked=True)
CHAINS |= {
    f"chimera-{name}{suffix}": lambda path, divisor, s=sizes, r=relu: convolutions(path, scaledImage(s, divisor), r)
    for name, sizes in CONVOLUTIONS.items() for suffix, relu in (("", False), ("-relu", True))}
