"""pieces.py FUSEC FOLDER: kernels of what stands between contractions, by search mode, model and target."""

import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

fusec, folder = sys.argv[1:]
node = helper.make_node
names = []
ROWS, WIDTH = 4096, 1024


def save(name, nodes, inputs, rank=(ROWS, WIDTH), outputs=("y",)):
    weights = [numpy_helper.from_array(np.ones(rank[-1:], np.float32), n)
               for n in ("scale", "bias") if any(n in item.input for item in nodes)]
    info = lambda n: helper.make_tensor_value_info(n, TensorProto.FLOAT, rank)
    graph = helper.make_graph(nodes, name, [info(n) for n in inputs], [info(n) for n in outputs], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)
    names.append(name)
    onnx.save(model, f"{folder}/{name}.onnx")


save("layernorm", [node("LayerNormalization", ["x", "scale", "bias"], ["y"])], ["x"])
save("softmax", [node("Softmax", ["x"], ["y"])], ["x"])
save("logsoftmax", [node("LogSoftmax", ["x"], ["y"])], ["x"])
save("rmsnorm", [node("RMSNormalization", ["x", "scale"], ["y"])], ["x"])
save("layer", [node("Add", ["x", "bias"], ["a"]), node("Add", ["a", "residual"], ["b"]),
               node("LayerNormalization", ["b", "scale", "bias"], ["c"]), node("Gelu", ["c"], ["y"])],
     ["x", "residual"])
save("onerow", [node("LayerNormalization", ["x", "scale", "bias"], ["a"]), node("Softmax", ["a"], ["y"])], ["x"],
     (1, 768))
save("apart", [node("Softmax", ["x"], ["y"]), node("Softmax", ["z"], ["v"])], ["x", "z"],
     (64, 256), ["y", "v"])

for mode in ("full", "fs", "souffle", "powerfusion", "none"):
    for name in names:
        for target in ("x86-64-v3", "sm_80", "gfx90a"):
            plan = subprocess.run([fusec, f"{folder}/{name}.onnx", "--target", target, f"--search-mode={mode}",
                                   "--dump-ir=plan", "--stop-after=plan"], check=True, capture_output=True, text=True)
            print(mode, name, target, plan.stdout.count("launch {"))
