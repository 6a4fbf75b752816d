"""Counters and orders of sim targets: sim.py FUSEC FUSERT MODELS FOLDER."""

import json
import pathlib
import subprocess
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

fusec, fusert = sys.argv[1:3]
models, folder = pathlib.Path(sys.argv[3]), pathlib.Path(sys.argv[4])
TARGETS = ["sim:sm_80", "sim:sm_90", "sim:gfx90a"]


def run(bundle, target, *options):
    """Counters of each kernel, and the bytes of all outputs."""
    out = folder / "out"
    command = [fusert, "run", bundle, "--random", "1", "--target", target, "--counters"]
    command += ["--output-dir", out, *options]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    counters = json.loads(text.splitlines()[-1])["kernels"]
    files = sorted(out.glob("*.npy"))
    outputs = [(f.name, f.read_bytes()) for f in files]
    for f in files:
        f.unlink()
    assert outputs
    return counters, outputs


def matmul(m, n, k):
    """y = relu(x w + b)"""
    rng = numpy.random.default_rng(0)
    constants = [
        numpy_helper.from_array(rng.random(s, numpy.float32), c) for c, s in (("w", (k, n)), ("b", n))
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], name="matmul"),
        helper.make_node("Add", ["p", "b"], ["s"], name="add"),
        helper.make_node("Relu", ["s"], ["y"], name="relu"),
    ]
    graph = helper.make_graph(
        nodes,
        "matmul",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [m, k])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [m, n])],
        constants,
    )
    path = folder / f"matmul-{m}-{n}-{k}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def compile(model, *options):
    bundle = folder / (model.stem + ".bundle")
    subprocess.run([fusec, model, "-o", bundle, "--target", ",".join(TARGETS), *options], check=True)
    return bundle


# Two for each product and sum of the product, one for each addition; a maximum is none. These sizes fill whole tiles.
for m, n, k in ((64, 64, 64), (64, 128, 96), (256, 64, 128)):
    bundle = compile(matmul(m, n, k))
    for target in TARGETS:
        counters, _ = run(bundle, target)
        flops = sum(kernel["flops"] for kernel in counters)
        assert flops == 2 * m * n * k + m * n, (target, m, n, k, flops)

# Neither the order nor the number of threads changes a bit or a count. Nor a bit whether the phases of a kernel run by
# one grid with barriers between them or, with a seed, one after the other.
ORDERS = (["--threads", "2"], *(["--sim-seed", str(s), "--threads", str(1 + s % 3)] for s in (1, 2, 3)))
for model in (models / "digits-cnn.onnx", models / "digits-transformer.onnx", matmul(33, 17, 50)):
    bundle = compile(model, "--search-mode=fs")
    plain = {target: run(bundle, target, "--threads", "1") for target in TARGETS}
    for target in TARGETS:
        assert sum(kernel["flops"] for kernel in plain[target][0]) > 0
        for options in ORDERS:
            assert run(bundle, target, *options) == plain[target], (model, target, options)
    bundle = compile(model)
    for target in TARGETS:
        counters, outputs = run(bundle, target, "--threads", "1")
        for options in ORDERS:
            assert run(bundle, target, *options)[1] == outputs, (model, target, options)
print("good")
