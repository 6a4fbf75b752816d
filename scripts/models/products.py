"""Products of matrices as models: the chains of two that MCFuser and Chimera measure, and single ones."""

import math
import os

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

# Table II of MCFuser: (batch, M, N, K, H), E[M, H] over N.
MCFUSER = (
    (1, 512, 256, 64, 64), (1, 512, 256, 64, 128), (1, 512, 256, 64, 256), (1, 512, 256, 256, 256),
    (1, 512, 512, 256, 256), (1, 512, 1024, 256, 256), (1, 512, 512, 128, 128), (1, 1024, 512, 128, 128),
    (1, 2048, 512, 128, 128), (1, 1024, 1024, 128, 128), (4, 1024, 1024, 128, 128), (8, 1024, 1024, 128, 128),
)
# Table IV of Chimera, without softmax: (batch, M, N, K, L), E[M, N] over L.
CHIMERA = (
    (8, 512, 64, 64, 512), (12, 512, 64, 64, 512), (16, 512, 64, 64, 512), (12, 256, 64, 64, 256),
    (16, 256, 64, 64, 256), (16, 256, 80, 80, 256), (12, 208, 64, 64, 208), (16, 208, 64, 64, 208),
    (16, 208, 80, 80, 208), (1, 512, 64, 64, 256), (1, 768, 64, 64, 384), (1, 1024, 64, 64, 512),
)
# Name -> (batch, rows, columns of the first product, what it sums over, columns of the second product).
CHAINS = {f"mcfuser-g{i}": sizes for i, sizes in enumerate(MCFUSER, 1)}
CHAINS |= {f"chimera-g{i}": (batch, m, length, k, n) for i, (batch, m, n, k, length) in enumerate(CHIMERA, 1)}


def chainShapes(name):
    """Shapes of the three operands."""
    batch, m, n, k, h = CHAINS[name]
    return [(batch, m, k), (batch, k, n), (batch, n, h)]


def demands(shapes):
    """Flop (a fused multiply-add counts two) and bytes of operands and result, once each."""
    left, flop = shapes[0], 0
    for right in shapes[1:]:
        flop += 2 * math.prod(left) * right[-1]
        left = (*left[:-1], right[-1])
    return flop, 4 * sum(math.prod(shape) for shape in (*shapes, left))


def save(path, shapes, weights=()):
    """Writes the product of two or three operands, from the left, as a model; those at the positions in `weights` are
    constants. Gives the values of the others, which are its inputs, and the name of the product."""
    generator = numpy.random.default_rng(0)
    names, results = "ABD"[:len(shapes)], "CE"[:len(shapes) - 1]
    values = {name: generator.standard_normal(shape, numpy.float32) for name, shape in zip(names, shapes)}
    for name in names[1:]:
        values[name] /= numpy.sqrt(values[name].shape[-2], dtype=numpy.float32)  # sums as large as what is summed
    feeds = {name: value for i, (name, value) in enumerate(values.items()) if i not in weights}
    nodes = [helper.make_node("MatMul", [left, right], [result])
             for left, right, result in zip(names[0] + results, names[1:], results)]
    shape = (*shapes[0][:-1], shapes[-1][-1])
    graph = helper.make_graph(
        nodes, "product",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape) for name, value in feeds.items()],
        [helper.make_tensor_value_info(results[-1], TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(value, name) for name, value in values.items() if name not in feeds],
    )
    os.makedirs(os.path.dirname(path), exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9), path)
    return feeds, results[-1]


def operands(path):
    """Names of such a model's operands, from the left, and the values of those that are constants."""
    graph = onnx.load(path).graph
    return ([graph.node[0].input[0], *(node.input[1] for node in graph.node)],
            {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer})
