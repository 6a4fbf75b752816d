"""Models whose kernels are computed another way than their equations say: alternatives.py NAME FILE."""

import sys

import onnx
from onnx import TensorProto, helper


def value(name, shape):
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def deferred():
    """Every term of a row's sum is divided by the row's number."""
    nodes = [
        helper.make_node("Exp", ["x"], ["e"], name="exp"),
        helper.make_node("Div", ["e", "d"], ["q"], name="divide"),
        helper.make_node("ReduceSum", ["q", "axis"], ["y"], name="sum", keepdims=0),
    ]
    axis = helper.make_tensor("axis", TensorProto.INT64, [1], [1])
    return nodes, [value("x", [64, 512]), value("d", [64, 1])], [value("y", [64])], [axis]


name, path = sys.argv[1:]
nodes, inputs, outputs, constants = globals()[name]()
graph = helper.make_graph(nodes, name, inputs, outputs, constants)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
