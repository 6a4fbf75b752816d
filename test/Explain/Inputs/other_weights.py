"""other_weights.py IN.onnx OUT.onnx: the same model with other numbers."""

import sys

import onnx
from onnx import numpy_helper

model = onnx.load(sys.argv[1])
for tensor in model.graph.initializer:
    tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * 2, tensor.name))
onnx.save(model, sys.argv[2])
