"""moved.py FUSEC FUSERT FOLDER TARGET...: what `fusec explain` says that instructions move (`moved`), and how often
the threads of a block wait for each other, against what simulated GPUs count, on equations that the networks under
models/tiny lack. test/Models/check_bytes.py does it for those. The two share no code."""

import itertools
import json
import pathlib
import subprocess
import sys

import numpy
from onnx import TensorProto, helper, numpy_helper, save

fusec, fusert, folder, *targets = sys.argv[1:]
FIELDS = ("read_bytes", "write_bytes", "read_sectors", "write_sectors", "shared_bytes")
node = helper.make_node


def constant(name, *values):
    return numpy_helper.from_array(numpy.array(values, numpy.int64), name)


def weights(name, *shape):
    return numpy_helper.from_array(numpy.random.default_rng(1).standard_normal(shape).astype(numpy.float32) / 4, name)


def recurrent(op, gates, steps, batch, size, width, *outputs):
    """A network of one recurrent layer; `outputs`: the operator's."""
    names = ["x", "w", "r", "b", "", "h"] + ["c"] * (op == "LSTM")
    constants = [weights("w", 1, gates * width, size), weights("r", 1, gates * width, width),
                 weights("b", 1, 2 * gates * width), weights("h", 1, batch, width), weights("c", 1, batch, width)]
    return ((steps, batch, size), [node(op, names, outputs, hidden_size=width)], constants[:len(names) - 2],
            TensorProto.FLOAT)


SUM = node("CumSum", ["x", "axis"], ["s"])
AXIS = numpy_helper.from_array(numpy.array(0, numpy.int64), "axis")

# name: shape of x, nodes, constants, type of y
MODELS = {
    # The maximum itself is not stored, for nothing reads it.
    "place": ((64, 100), [node("ArgMax", ["x"], ["y"], axis=1, keepdims=0)], [], TensorProto.INT64),
    # A step's state is shared and stacked: computed once, the rows of 396 bytes where they come to lie.
    "steps": ((33, 33, 3), [node("CumSum", ["x", "axis"], ["y"])],
              [numpy_helper.from_array(numpy.array(1, numpy.int64), "axis")], TensorProto.FLOAT),
    # A step's state is a row of the stack, where no row begins with a sector, and is copied from there.
    "rows of a stack": ((5, 99), [node("CumSum", ["x", "axis"], ["y"])], [AXIS], TensorProto.FLOAT),
    # The second sum has fewer steps: in those without it nothing is stacked, and what would be is not read.
    "fewer steps": ((12, 7, 13), [SUM, node("Slice", ["s", "from", "to"], ["t"]), node("CumSum", ["t", "axis"], ["y"])],
                    [AXIS, constant("from", 0), constant("to", 5)], TensorProto.FLOAT),
    # Of two rows one begins with a sector, not one of eight.
    "two rounds": ((2, 12545), [node("CumSum", ["x", "axis"], ["y"])], [AXIS], TensorProto.FLOAT),
    # All blocks take a step together: the state goes to two places of device memory.
    "rounds": ((4, 12544), [node("CumSum", ["x", "axis"], ["y"])],
               [numpy_helper.from_array(numpy.array(0, numpy.int64), "axis")], TensorProto.FLOAT),
    # What hands states on, and tiles that end at 52 and 39 of 8 units' rows: none of a step's places begins with the
    # first thread, so that others read what it has written.
    "odd gates": recurrent("LSTM", 4, 12, 3, 7, 13, "y"),
    "last state": recurrent("LSTM", 4, 12, 1, 7, 13, "", "y"),
    "three gates": recurrent("GRU", 3, 9, 2, 7, 13, "y"),
    "one gate": recurrent("RNN", 1, 9, 1, 70, 130, "y"),
    # Indices are read where a thread has a point, by all of its lanes.
    "rows": ((6, 3, 13), [node("Gather", ["x", "i"], ["g"], axis=1), node("Mul", ["g", "g"], ["q"]),
                          node("ReduceSum", ["q", "axes"], ["y"], keepdims=0)],
             [constant("i", 0, 2, 1, 2, 0, 0, 1), constant("axes", 1, 2)], TensorProto.FLOAT),
    # One of the indices, which is no axis of the map.
    "row": ((3, 5, 24), [node("Gather", ["x", "i"], ["g"], axis=0), node("Slice", ["g", "from", "to"], ["s"]),
                         node("Relu", ["s"], ["y"])],
            [constant("i", 1, 0, 2, 1), constant("from", 3), constant("to", 4)], TensorProto.FLOAT),
    # An index is asked whether it lies inside, and then where.
    "scattered": ((4, 33), [node("ScatterND", ["b", "i", "x"], ["y"])],
                  [constant("i", [3], [1], [7], [0]), numpy_helper.from_array(numpy.ones((9, 33), numpy.float32), "b")],
                  TensorProto.FLOAT),
    # All lanes read one element of a guarded read, also those beyond the two outputs.
    "padded": ((17,), [node("Pad", ["x", "pads"], ["p"]), node("MatMul", ["p", "w"], ["y"])],
               [constant("pads", 2, 0), numpy_helper.from_array(numpy.ones((19, 2), numpy.float32), "w")],
               TensorProto.FLOAT),
}


def run(*arguments):
    return subprocess.run(list(map(str, arguments)), check=True, capture_output=True, text=True).stdout


wrong = []
for name, (shape, nodes, constants, kind) in MODELS.items():
    path = pathlib.Path(folder) / f"{name}.onnx"
    graph = helper.make_graph(nodes, name, [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", kind, None)], constants)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    for target, mode in itertools.product(targets, ("none", "full")):
        options = ["--target", target, f"--search-mode={mode}"]
        kernels = {k["name"]: k for k in json.loads(run(fusec, "explain", path, *options, "--json"))["kernels"]}
        run(fusec, path, *options, "-o", f"{folder}/bundle")
        out = run(fusert, "run", f"{folder}/bundle", "--target", target, "--random", "1", "--counters",
                  "--output-dir", f"{folder}/out")
        for sim in json.loads(out.splitlines()[-1])["kernels"]:
            kernel = kernels[sim["name"]]
            pairs = [(field, kernel["moved"][field], sim[field] / sim["launches"]) for field in FIELDS]
            off = [pair for pair in pairs if abs(pair[1] - pair[2]) > 0.05 * pair[2]]
            taken = sim["barriers"] / sim["blocks"]
            if kernel["each_step"] and kernel["barriers"]["of_device"] and "gfx" in target:
                # Each step is launched, and what copies the states.
                taken = round(taken * kernel["each_step"]["steps"], 1)
            waits = ("barriers", kernel["barriers"]["of_block"], taken)
            wrong += [f"{name} {target} {mode} {sim['name']}: {what} {predicted} predicted, {counted:.1f} counted"
                      for what, predicted, counted in off + [waits] * (waits[1] != waits[2])]
print("\n".join(wrong) or f"{len(MODELS)} models move what is predicted")
