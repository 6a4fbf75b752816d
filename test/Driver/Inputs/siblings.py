"""siblings.py FUSEC FUSERT FOLDER: many outputs, parts or branches of one input side by side, in 40 numbers; kinds,
fixed and symbolic rows, targets and search modes take turns. All become kernels; some run and give the right values."""

import random
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TARGETS = ["host", "sim:sm_80", "sim:sm_90", "sim:gfx90a"]
MODES = ["full", "mcfuser", "chimera", "fs", "souffle", "powerfusion", "none"]
ROWS = 3


def constant(name, values):
    return numpy_helper.from_array(np.asarray(values), name)


def outputs(count, x):
    """Several outputs of one input."""
    nodes = [helper.make_node("Add", ["x", f"c{i}"], [f"y{i}"]) for i in range(count)]
    return nodes, [constant(f"c{i}", np.float32(i)) for i in range(count)], {f"y{i}": x + i for i in range(count)}


def parts(count, x):
    """Parts of one input, each with something done to it."""
    nodes = [helper.make_node("Split", ["x"], [f"s{i}" for i in range(count)], axis=1, num_outputs=count)]
    nodes += [helper.make_node("Abs" if i % 3 else "Neg", [f"s{i}"], [f"y{i}"]) for i in range(count)]
    pieces = np.split(x, count, axis=1)
    return nodes, [], {f"y{i}": np.abs(p) if i % 3 else -p for i, p in enumerate(pieces)}


def branches(count, x):
    """Branches that come together again, in an order of their own."""
    nodes = [helper.make_node("Add", ["x", f"c{i}"], [f"b{i}"]) for i in range(count)]
    nodes += [helper.make_node("Concat", [f"b{count - 1 - i}" for i in range(count)], ["y"], axis=1)]
    y = np.concatenate([x + (count - 1 - i) for i in range(count)], axis=1)
    return nodes, [constant(f"c{i}", np.float32(i)) for i in range(count)], {"y": y}


def products(count, x):
    """Products of different widths."""
    weights = [np.eye(x.shape[1], 1 + i % 5, dtype=np.float32) * (i + 1) for i in range(count)]
    nodes = [helper.make_node("MatMul", ["x", f"w{i}"], [f"y{i}"]) for i in range(count)]
    return (nodes, [constant(f"w{i}", w) for i, w in enumerate(weights)],
            {f"y{i}": x @ w for i, w in enumerate(weights)})


def reduced(count, x):
    """Reductions of what differs by a number."""
    nodes = []
    for i in range(count):
        nodes += [helper.make_node("Add", ["x", f"c{i}"], [f"a{i}"]),
                  helper.make_node("ReduceMax", [f"a{i}", "axes"], [f"y{i}"], keepdims=0)]
    constants = [constant(f"c{i}", np.float32(i)) for i in range(count)] + [constant("axes", np.array([1]))]
    return nodes, constants, {f"y{i}": (x + i).max(axis=1) for i in range(count)}


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"


def check(make, count, symbolic, target, mode, values):
    x = np.random.default_rng(count).standard_normal((ROWS, count if make is parts else 4)).astype(np.float32)
    nodes, constants, expected = make(count, x)
    rows = "n" if symbolic else ROWS
    graph = helper.make_graph(
        nodes, "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, x.shape[1]])],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in expected], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), folder + "/m.onnx")
    compile = [fusec, folder + "/m.onnx", "--target", target, "--search-mode", mode]
    if not values:
        return run(compile + ["--stop-after=gir"])
    run(compile + ["-o", folder + "/b"])
    np.save(folder + "/x.npy", x)
    run([fusert, "run", folder + "/b", "--target", target, "--input", f"x={folder}/x.npy", "--output-dir", folder])
    for name, value in expected.items():
        np.testing.assert_allclose(np.load(f"{folder}/{name}.npy"), value, rtol=1e-6)


fusec, fusert, folder = sys.argv[1:]
sizes = [30, 61, 62, 63, 64, 65, 127, 600] + random.Random(7).sample(range(31, 600), 32)
kinds = [outputs, parts, branches, products, reduced]
for i, size in enumerate(sizes):
    make = kinds[i % len(kinds)]
    if make is reduced:
        size = min(size, 100)  # each one is a kernel with phases of its own to search
    turn = i // len(kinds)
    check(make, size, (i + turn) % 2 == 1, TARGETS[(i + turn) % len(TARGETS)], MODES[(i + 2 * turn) % len(MODES)],
          turn % len(kinds) == i % len(kinds))
print(len(sizes), "models")
