"""large_numbers.py FUSEC FUSERT FOLDER: reductions that scale or shift by the result of another one, of numbers that
are too large or small without. Prints a line for each that is right everywhere."""

import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

fusec, fusert, folder = sys.argv[1:]
node = helper.make_node
NORM = [node("Abs", ["x"], ["a"]), node("ReduceMax", ["a", "axes"], ["m"]), node("Div", ["x", "m"], ["d"]),
        node("Mul", ["d", "d"], ["q"]), node("ReduceSum", ["q", "axes"], ["s"]), node("Sqrt", ["s"], ["r"]),
        node("Mul", ["r", "m"], ["y"])]
EXPONENTIALS = [node("ReduceMean", ["x", "axes"], ["m"]), node("Sub", ["x", "m"], ["d"]), node("Exp", ["d"], ["e"]),
                node("ReduceSum", ["e", "axes"], ["y"])]
MODELS = (("norm", NORM, 64, 1024, lambda noise: noise * 1e25, 1e25),
          ("norm", NORM, 64, 1024, lambda noise: noise * 1e-25, 1e-25),
          ("exponentials around the mean", EXPONENTIALS, 4, 1 << 18, lambda noise: noise + 1000, 1000))

for name, nodes, rows, length, numbers, size in MODELS:
    x = numbers(np.random.default_rng(1).standard_normal((rows, length))).astype(np.float32)
    exact = x.astype(np.float64)
    around = exact - exact.mean(axis=1, keepdims=True)
    wanted = np.sqrt((exact**2).sum(axis=1)) if nodes is NORM else np.exp(around).sum(axis=1)
    info = lambda tensor, shape: helper.make_tensor_value_info(tensor, TensorProto.FLOAT, shape)
    axes = helper.make_tensor("axes", TensorProto.INT64, [1], [1])
    graph = helper.make_graph(nodes, "large", [info("x", [rows, length])], [info("y", [rows, 1])], [axes])
    path = f"{folder}/model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    np.save(f"{folder}/x.npy", x)
    for target in ("x86-64-v3", "sim:sm_90", "sim:gfx90a"):
        subprocess.run([fusec, path, "--target", target, "-o", f"{folder}/bundle"], check=True)
        subprocess.run([fusert, "run", f"{folder}/bundle", "--target", target, "--input", f"x={folder}/x.npy",
                        "--output-dir", folder], check=True, capture_output=True)
        got = np.load(f"{folder}/y.npy")[:, 0]
        assert np.allclose(got, wanted, rtol=2e-3, atol=0), (name, target, got[:4], wanted[:4])
    print(f"{name} of numbers near {size:.0e}: right on three targets")
