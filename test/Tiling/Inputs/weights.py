"""Rows times a matrix of weights, small integers all, so that products are exact: weights.py model ROWS TERMS COLUMNS
FILE.onnx writes such a model (ROWS: a number or a name); weights.py check FUSERT BUNDLE ROWS,ROWS... TERMS COLUMNS
FOLDER runs one with so many rows and compares all of the result."""

import subprocess
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper


def weights(terms, columns):
    return numpy.random.default_rng(terms).integers(-4, 5, (terms, columns)).astype(numpy.float32)


def model(rows, terms, columns, path):
    rows = int(rows) if rows.isdigit() else rows
    info = lambda name, shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "weights", [info("x", [rows, terms])],
                              [info("y", [rows, columns])], [numpy_helper.from_array(weights(terms, columns), "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def check(fusert, bundle, rows, terms, columns, folder):
    x = numpy.random.default_rng(rows).integers(-4, 5, (rows, terms)).astype(numpy.float32)
    numpy.save(f"{folder}/x.npy", x)
    subprocess.run([fusert, "run", bundle, "--input", f"x={folder}/x.npy", "--output-dir", folder], check=True)
    wrong = numpy.load(f"{folder}/y.npy") != x @ weights(terms, columns)
    assert not wrong.any(), f"{rows} rows: {wrong.sum()} elements are wrong"


if sys.argv[1] == "model":
    model(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
else:
    for count in sys.argv[4].split(","):
        check(*sys.argv[2:4], int(count), int(sys.argv[5]), int(sys.argv[6]), sys.argv[7])
