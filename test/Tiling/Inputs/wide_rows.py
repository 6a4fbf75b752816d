"""Rows of two values that outlive the loops that make them, the second one twice as wide, since it is of doubles:
wide_rows.py ROWS LENGTH FILE.onnx"""

import sys

import onnx
from onnx import TensorProto, helper

rows, length, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
node = helper.make_node
nodes = [
    node("Exp", ["x"], ["e"], name="e"),
    node("ReduceSum", ["e", "axes"], ["s"], name="s"),
    node("Div", ["e", "s"], ["share"]),
    node("Cast", ["share"], ["wide"], to=TensorProto.DOUBLE),
    node("Exp", ["wide"], ["t"], name="t"),
    node("ReduceMean", ["t"], ["m"], axes=[1], name="m"),
    node("Sub", ["t", "m"], ["d"]),
    node("Mul", ["d", "d"], ["q"]),
    node("ReduceMean", ["q"], ["v"], axes=[1], name="v"),
    node("Div", ["d", "v"], ["n"]),
    node("Cast", ["n"], ["narrow"], to=TensorProto.FLOAT),
    node("Add", ["narrow", "e"], ["y"], name="y"),
]
info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, length])
axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
graph = helper.make_graph(nodes, "wide", [info("x")], [info("y")], [axes])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
