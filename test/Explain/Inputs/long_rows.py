"""long_rows.py FILE: 64 rows of 100,000 elements, normalised."""

import sys

import onnx
from onnx import TensorProto, helper

SIZE = 100_000
row = [helper.make_tensor(name, TensorProto.FLOAT, [SIZE], [1.0] * SIZE) for name in ("scale", "bias")]
values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [64, SIZE]) for name in ("x", "y")]
node = helper.make_node("LayerNormalization", ["x", "scale", "bias"], ["y"], name="normalize")
graph = helper.make_graph([node], "rows", values[:1], values[1:], row)
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), sys.argv[1])
