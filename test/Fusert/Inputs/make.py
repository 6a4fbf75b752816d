"""Inputs and expected outputs of two.graph, in the folder given: x.npy, y.npy, wrong.npy, short.npy, x.pb."""

import pathlib
import sys

import numpy
import onnx

folder = pathlib.Path(sys.argv[1])
x = numpy.arange(8, dtype=numpy.float32).reshape(4, 2) - 3
w = numpy.array([[1.5, -0.5], [2, 3]], dtype=numpy.float32)
y = numpy.maximum(x @ w, 0)
numpy.save(folder / "x.npy", x)
numpy.save(folder / "y.npy", y)
numpy.save(folder / "wrong.npy", y + numpy.float32(0.01))
numpy.save(folder / "short.npy", x[:3])
numpy.save(folder / "fortran.npy", numpy.asfortranarray(x))
(folder / "x.pb").write_bytes(onnx.numpy_helper.from_array(x, "x").SerializeToString())
