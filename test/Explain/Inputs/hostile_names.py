"""hostile_names.py OUT.onnx: products and reductions whose names are markup, quotes and line breaks."""

import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

BAD = '</script><script>document.documentElement.dataset.seen="{}"</script><!-- \n "quoted" \\ <b>&amp;'
weight = numpy.ones((8, 8), numpy.float32)
nodes, value = [], "x"
for step in range(5):
    nodes.append(helper.make_node("MatMul", [value, "w"], [f"{BAD} m{step}"], name=f"{BAD} node {step}"))
    nodes.append(helper.make_node("Softmax", [f"{BAD} m{step}"], [f"{BAD} s{step}"], name=f"{BAD} soft {step}"))
    value = f"{BAD} s{step}"
nodes.append(helper.make_node("MatMul", [value, "w"], [f"{BAD} product"], name=f"{BAD} product"))
nodes.append(helper.make_node("Relu", [f"{BAD} product"], ["y"], name="last"))
graph = helper.make_graph(nodes, BAD.replace("\n", ""), [helper.make_tensor_value_info("x", TensorProto.FLOAT, [8, 8])],
                          [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, 8])],
                          [numpy_helper.from_array(weight, "w")])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
onnx.save(model, sys.argv[1])
