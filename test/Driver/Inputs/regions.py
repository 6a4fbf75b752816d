"""regions.py FUSEC FUSERT FOLDER: RoiAlign that chooses how many points it takes does as much work for the same regions
in an image of any size, and more for larger regions."""

import json
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper

fusec, fusert, folder = sys.argv[1:]
TARGET = "sim:sm_90"


def work(mode, side, length):
    """Floating-point operations and bytes read for two regions of `length` pixels each way."""
    node = helper.make_node("RoiAlign", ["x", "r", "w"], ["y"], output_height=2, output_width=2, mode=mode)
    given = {"x": np.ones((1, 2, side, side), np.float32),
             "r": np.array([[1, 2, 1 + length, 2 + length], [3, 1, 3 + length, 1 + length]], np.float32),
             "w": np.zeros(2, np.int64)}
    inputs = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
              for name, array in given.items()]
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=9), f"{folder}/m.onnx")
    subprocess.run([fusec, f"{folder}/m.onnx", "-o", f"{folder}/b", "--target", TARGET], check=True)
    command = [fusert, "run", f"{folder}/b", "--target", TARGET, "--counters"]
    for name, array in given.items():
        np.save(f"{folder}/{name}.npy", array)
        command += ["--input", f"{name}={folder}/{name}.npy"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    kernels = json.loads(text[text.index("{") :])["kernels"]
    return tuple(sum(k[what] for k in kernels) for what in ("flops", "read_bytes"))


for mode in ("avg", "max"):
    small, wide, large = work(mode, 32, 8), work(mode, 128, 8), work(mode, 128, 30)
    assert small == wide, (mode, small, wide)
    assert all(4 * a < b for a, b in zip(small, large)), (mode, small, large)
    print(f"{mode}: the work follows the regions")
