"""The model two.onnx with inputs and expected outputs, and symbolic.onnx with a batch, in the folder given."""

import pathlib
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

folder = pathlib.Path(sys.argv[1])
x = numpy.arange(8, dtype=numpy.float32).reshape(4, 2) - 3
w = numpy.array([[1.5, -0.5], [2, 3]], dtype=numpy.float32)
y = numpy.maximum(x @ w, 0)


def save(name, rows):
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["m"], name="matmul"),
            helper.make_node("Relu", ["m"], ["y"], name="relu"),
        ],
        name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, 2])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, 2])],
        [numpy_helper.from_array(w, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / f"{name}.onnx")


save("two", 4)
save("symbolic", "batch")
numpy.save(folder / "x.npy", x)
numpy.save(folder / "y.npy", y)
numpy.save(folder / "wrong.npy", y + numpy.float32(0.01))
numpy.save(folder / "short.npy", x[:3])
numpy.save(folder / "fortran.npy", numpy.asfortranarray(x))
(folder / "x.pb").write_bytes(numpy_helper.from_array(x, "x").SerializeToString())
