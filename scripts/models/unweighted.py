"""unweighted.py strip|fill FOLDER FILE.onnx...: networks of full size in files of some kilobytes, since plans follow
from shapes. `strip` leaves the numbers of large float weights out, `fill` draws them anew, no two alike; the results
are files of the same names in FOLDER."""

import os
import sys

import numpy as np
import onnx
from onnx import TensorProto, numpy_helper

LARGE = 64  # elements: smaller ones may be axes, sizes or what a pass looks at


def strip(model):
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and np.prod(tensor.dims) > LARGE:
            tensor.ClearField("raw_data")
            tensor.ClearField("float_data")


def fill(model):
    random = np.random.default_rng(0)
    for tensor in model.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT and not tensor.raw_data and not tensor.float_data:
            values = random.standard_normal(tuple(tensor.dims), np.float32) / 16
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))


change, folder, *sources = sys.argv[1:]
for source in sources:
    network = onnx.load(source)
    {"strip": strip, "fill": fill}[change](network)
    onnx.save(network, os.path.join(folder, os.path.basename(source)))
