"""The logarithm of a sum of exponentials along rows: log_sum_exp.py ROWS LENGTH FILE.onnx"""

import sys

import onnx
from onnx import TensorProto, helper

rows, length = map(int, sys.argv[1:3])
graph = helper.make_graph(
    [helper.make_node("ReduceLogSumExp", ["x", "axes"], ["y"], "lse", keepdims=0)],
    "lse",
    [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, length])],
    [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows])],
    [helper.make_tensor("axes", TensorProto.INT64, [1], [1])],
)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), sys.argv[3])
