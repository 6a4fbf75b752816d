"""The single operations of scripts/bench-gpu: each as an ONNX model, and as PyTorch computes it."""

from dataclasses import dataclass

import numpy
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch.nn import functional

OPSET = 18
TYPES = {"f32": (TensorProto.FLOAT, torch.float32), "f16": (TensorProto.FLOAT16, torch.float16),
         "bf16": (TensorProto.BFLOAT16, torch.bfloat16)}


@dataclass
class Piece:
    type: str
    shapes: dict  # of inputs, by name
    nodes: list  # the last one makes "y"
    function: callable  # of PyTorch's tensors, in the order of `shapes`
    flops: float = 0  # of the contraction; 0: bound by memory
    constants: dict = None  # of the model alone

    def model(self):
        kind = TYPES[self.type][0]
        inputs = [helper.make_tensor_value_info(name, kind, shape) for name, shape in self.shapes.items()]
        graph = helper.make_graph(self.nodes, "piece", inputs, [helper.make_tensor_value_info("y", kind, None)],
                                  [numpy_helper.from_array(value, name)
                                   for name, value in (self.constants or {}).items()])
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)

    def tensors(self):
        generator = torch.Generator("cuda").manual_seed(0)
        return [torch.randn(shape, generator=generator, device="cuda", dtype=torch.float32).to(TYPES[self.type][1])
                for shape in self.shapes.values()]


def node(op, inputs, **attributes):
    return helper.make_node(op, inputs.split(), ["y"], op, **attributes)


def product(kind, m, n, k):
    return Piece(kind, {"a": [m, k], "b": [k, n]}, [node("MatMul", "a b")], torch.matmul, 2.0 * m * n * k)


def convolution(kind, batch, channels, size, groups=1):
    return Piece(kind, {"x": [batch, channels, size, size], "w": [channels, channels // groups, 3, 3]},
                 [node("Conv", "x w", pads=[1, 1, 1, 1], group=groups)],
                 lambda x, w: functional.conv2d(x, w, padding=1, groups=groups),
                 2.0 * 9 * batch * size * size * channels * channels // groups)


def attention(kind, heads, length, width):
    scale = {"f32": numpy.float32, "f16": numpy.float16}[kind](width ** -0.5)
    nodes = [helper.make_node("Transpose", ["k"], ["kt"], "Transpose", perm=[0, 2, 1]),
             helper.make_node("MatMul", ["q", "kt"], ["s"], "Scores"),
             helper.make_node("Mul", ["s", "scale"], ["t"], "Scale"),
             helper.make_node("Softmax", ["t"], ["p"], "Softmax", axis=-1), node("MatMul", "p v")]
    return Piece(kind, {name: [heads, length, width] for name in "qkv"}, nodes,
                 lambda q, k, v: functional.scaled_dot_product_attention(q[None], k[None], v[None])[0],
                 4.0 * heads * length * length * width, {"scale": numpy.array(scale)})


def rows(kind, op, count, width):
    shapes = {"x": [count, width]}
    if op == "LayerNormalization":
        return Piece(kind, {**shapes, "g": [width], "b": [width]}, [node(op, "x g b", axis=-1, epsilon=1e-5)],
                     lambda x, g, b: functional.layer_norm(x, (width,), g, b))
    return Piece(kind, shapes, [node("Softmax", "x", axis=-1)], lambda x: torch.softmax(x, -1))


def total(axes):
    nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["y"], "Sum", keepdims=0)]
    return Piece("f32", {"x": [4096, 4096]}, nodes, lambda x: torch.sum(x, axes),
                 constants={"axes": numpy.array(axes, numpy.int64)})


def each(kind, sigmoid):
    shape = [4096, 4096]
    if not sigmoid:
        return Piece(kind, {"x": shape, "z": shape}, [node("Add", "x z")], torch.add)
    nodes = [helper.make_node("Sigmoid", ["x"], ["s"], "Sigmoid"), node("Mul", "x s")]
    return Piece(kind, {"x": shape}, nodes, functional.silu)


def transposed(kind):
    return Piece(kind, {"x": [4096, 4096]}, [node("Transpose", "x", perm=[1, 0])], lambda x: x.t().contiguous())


PIECES = {f"product-{n}-f32": (lambda n=n: product("f32", n, n, n)) for n in (256, 512, 1024, 2048, 4096)}
PIECES |= {f"product-{n}-{kind}": (lambda n=n, kind=kind: product(kind, n, n, n))
           for kind in ("f16", "bf16") for n in (1024, 4096)}
PIECES |= {f"product-{m}x4096x4096-{kind}": (lambda m=m, kind=kind: product(kind, m, 4096, 4096))
           for kind in ("f32", "f16") for m in (1, 8, 64)}
PIECES |= {"convolution-1x64x56-f32": lambda: convolution("f32", 1, 64, 56),
           "convolution-8x64x56-f32": lambda: convolution("f32", 8, 64, 56),
           "convolution-8x64x56-f16": lambda: convolution("f16", 8, 64, 56),
           "depthwise-8x96x56-f32": lambda: convolution("f32", 8, 96, 56, 96),
           "attention-12x512x64-f32": lambda: attention("f32", 12, 512, 64),
           "attention-12x512x64-f16": lambda: attention("f16", 12, 512, 64)}
for _kind in ("f32", "f16"):
    PIECES |= {f"softmax-4096x1024-{_kind}": lambda kind=_kind: rows(kind, "Softmax", 4096, 1024),
               f"layernorm-4096x1024-{_kind}": lambda kind=_kind: rows(kind, "LayerNormalization", 4096, 1024),
               f"add-16m-{_kind}": lambda kind=_kind: each(kind, False),
               f"silu-16m-{_kind}": lambda kind=_kind: each(kind, True),
               f"transpose-4096-{_kind}": lambda kind=_kind: transposed(kind)}
PIECES |= {"softmax-512x32768-f32": lambda: rows("f32", "Softmax", 512, 32768),
           "sum-of-rows-4096-f32": lambda: total([1]), "sum-of-columns-4096-f32": lambda: total([0]),
           "sum-of-all-4096-f32": lambda: total([0, 1])}
