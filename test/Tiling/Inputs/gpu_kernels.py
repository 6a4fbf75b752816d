"""gpu_kernels.py FUSEC FUSERT FOLDER: counters of one kernel of each family on both sims."""

import json
import re
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

fusec, fusert, folder = sys.argv[1:]
info = lambda n, *s: helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
node = helper.make_node
CASES = {  # name: (sectors allowed for each that the tiles need, nodes, inputs, outputs)
    "element-wise": (2, [node("Add", ["x", "z"], ["a"]), node("Tanh", ["a"], ["y"])],
                     [info("x", 128, 200), info("z", 128, 200)], [info("y", 128, 200)]),
    "reduction": (2, [node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)],
                  [info("x", 4096, 64)], [info("y", 4096)]),
    "softmax": (2, [node("Softmax", ["x"], ["y"], axis=-1)], [info("x", 512, 256)], [info("y", 512, 256)]),
    "transpose": (2, [node("Transpose", ["x"], ["y"], perm=[1, 0])], [info("x", 192, 160)], [info("y", 160, 192)]),
    "contraction": (4, [node("MatMul", ["x", "z"], ["y"])],
                    [info("x", 128, 96), info("z", 96, 128)], [info("y", 128, 128)]),
}
axes = numpy_helper.from_array(np.array([1], np.int64), "axes")

for name, (allowed, nodes, inputs, outputs) in CASES.items():
    graph = helper.make_graph(nodes, "g", inputs, outputs, [axes] if name == "reduction" else [])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), folder + "/m.onnx")
    for target in ("sim:sm_90", "sim:gfx90a"):
        subprocess.run([fusec, folder + "/m.onnx", "-o", folder + "/b", "--target", target], check=True)
        text = subprocess.run([fusert, "run", folder + "/b", "--target", target, "--random", "1", "--counters"],
                              check=True, capture_output=True, text=True).stdout
        kernels = json.loads(re.search(r"^\{.*\}$", text, re.M).group(0))["kernels"]
        for kernel in kernels:
            if kernel["write_bytes"] < 4 * 4096:  # fewer than 4096 outputs
                continue
            assert kernel["units"] * kernel["lanes"] >= 256, (name, target, "threads a block", kernel)
            assert kernel["blocks"] > 1, (name, target, "one block", kernel)
            sectors = kernel["read_sectors"] + kernel["write_sectors"]
            assert sectors <= allowed * kernel["tile_sectors"], (name, target, sectors, kernel["tile_sectors"])
        print(f"{name} on {target}: {len(kernels)} kernels, real ones")
