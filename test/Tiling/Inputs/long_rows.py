"""Few long rows: long_rows.py softmax|log-sum-exp|moments ROWS LENGTH FILE.onnx. `moments`: mean and variance."""

import sys

import onnx
from onnx import TensorProto, helper

kind, rows, length, path = sys.argv[1], *map(int, sys.argv[2:4]), sys.argv[4]
node = helper.make_node
KINDS = {
    "softmax": ([node("Softmax", ["x"], ["y"], axis=-1)], {"y": [rows, length]}),
    "log-sum-exp": ([node("ReduceLogSumExp", ["x", "axes"], ["y"], keepdims=0)], {"y": [rows]}),
    "moments": ([node("ReduceMean", ["x", "axes"], ["mean"]), node("Sub", ["x", "mean"], ["d"]),
                 node("Mul", ["d", "d"], ["q"]), node("ReduceMean", ["q", "axes"], ["variance"])],
                {"mean": [rows, 1], "variance": [rows, 1]}),
}
nodes, outputs = KINDS[kind]
info = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
axes = [helper.make_tensor("axes", TensorProto.INT64, [1], [1])] if kind != "softmax" else []
graph = helper.make_graph(nodes, kind, [info("x", [rows, length])], [info(*o) for o in outputs.items()], axes)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
