"""gpu_kernels.py FUSEC FUSERT FOLDER TINY: counters of one kernel of each family on both sims, and of those of the
networks in the folder TINY."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

fusec, fusert, folder, tiny = sys.argv[1:]
info = lambda n, *s: helper.make_tensor_value_info(n, TensorProto.FLOAT, s)
node = helper.make_node
ONCE = 1.05  # every nest of a kernel has what an earlier one read; a row may begin inside a sector
CASES = {  # name: (sectors allowed for each that the tiles need, nodes, inputs, outputs)
    "element-wise": (2, [node("Add", ["x", "z"], ["a"]), node("Tanh", ["a"], ["y"])],
                     [info("x", 128, 200), info("z", 128, 200)], [info("y", 128, 200)]),
    "reduction": (2, [node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)],
                  [info("x", 4096, 64)], [info("y", 4096)]),
    "short rows": (2, [node("ReduceMax", ["x", "axes"], ["y"], keepdims=0)],
                   [info("x", 6000, 7)], [info("y", 6000)]),
    "softmax of short rows": (ONCE, [node("Softmax", ["x"], ["y"], axis=-1)], [info("x", 4096, 8)],
                              [info("y", 4096, 8)]),
    # Each nest takes the loops that are cheapest for itself: where these differ, a row is read by other threads again.
    "softmax": (2, [node("Softmax", ["x"], ["y"], axis=-1)], [info("x", 512, 256)], [info("y", 512, 256)]),
    "softmax of long rows": (ONCE, [node("Softmax", ["x"], ["y"], axis=-1)], [info("x", 16, 8000)],
                             [info("y", 16, 8000)]),
    "layer norm": (ONCE, [node("LayerNormalization", ["x", "z", "b"], ["y"], axis=-1)],
                   [info("x", 96, 1000), info("z", 1000), info("b", 1000)], [info("y", 96, 1000)]),
    "transpose": (2, [node("Transpose", ["x"], ["y"], perm=[1, 0])], [info("x", 192, 160)], [info("y", 160, 192)]),
    "contraction": (4, [node("MatMul", ["x", "z"], ["y"])],
                    [info("x", 128, 96), info("z", 96, 128)], [info("y", 128, 128)]),
}
axes = numpy_helper.from_array(np.array([1], np.int64), "axes")

TARGETS = ("sim:sm_90", "sim:gfx90a")
# Units that own rows read what these have in common (a mask) each for itself; the counters know no cache.
ROWS = {"Softmax", "LayerNormalization", "LogSoftmax", "RMSNormalization"}
# A tile that has an element for every point copies one that lies under several windows once for each, and units with a
# column each of a product of few rows read these each for itself; caches serve both.
WINDOWS = 5.5
# Where rows fill few blocks, these share the columns of a product, and each makes again what stands in front of it: the
# most that a kernel of the network asks for. Device memory serves it once; the plan is faster by it.
COLUMNS = {("mobilenet_v2", "sim:sm_90"): 5.9}
CONTRACTIONS = {"MatMul", "Gemm", "Conv", "ConvTranspose", "Einsum", "LSTM", "GRU", "RNN"}


def counters(path, target, feeds, options=()):
    subprocess.run([fusec, path, "-o", folder + "/b", "--target", target, *options], check=True)
    text = subprocess.run([fusert, "run", folder + "/b", "--target", target, "--counters", *feeds], check=True,
                          capture_output=True, text=True).stdout
    return json.loads(re.search(r"^\{.*\}$", text, re.M).group(0))["kernels"]


def asked(kernel):
    """Sectors that a kernel asks for, for each that its tiles need."""
    return (kernel["read_sectors"] + kernel["write_sectors"]) / kernel["tile_sectors"]


def check(name, target, kernel, allowed):
    """True for a kernel that is large enough to be judged; fails for one that is a toy."""
    launches = kernel["launches"]
    if kernel["write_bytes"] < 4 * 4096 * launches:  # fewer than 4096 outputs
        return False
    assert kernel["units"] * kernel["lanes"] >= 256, (name, target, "threads a block", kernel)
    assert kernel["blocks"] > launches, (name, target, "one block", kernel)
    assert asked(kernel) <= allowed, (name, target, asked(kernel), kernel)
    return True


for name, (allowed, nodes, inputs, outputs) in CASES.items():
    graph = helper.make_graph(nodes, "g", inputs, outputs, [axes] if "axes" in nodes[0].input else [])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), folder + "/m.onnx")
    for target in TARGETS:
        kernels = counters(folder + "/m.onnx", target, ["--random", "1"])
        judged = sum(check(name, target, kernel, allowed) for kernel in kernels)
        assert judged, f"{name} on {target}: no kernel has 4096 outputs"
        print(f"{name} on {target}: {judged} of {len(kernels)} kernels judged, real ones")


def operators(graph):
    """Node name -> operator, subgraphs included."""
    found = {}
    for item in graph.node:
        found[item.name] = item.op_type
        for attribute in item.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                found.update(operators(attribute.g))
    return found


networks = sorted(os.path.join(tiny, entry) for entry in os.listdir(tiny) if entry.endswith(".onnx"))
assert networks, tiny
for target in TARGETS:
    judged = 0
    most = {}  # by network, of what its kernels ask for
    for path in networks:
        name, graph = os.path.basename(path)[:-5], onnx.load(path).graph
        kinds = operators(graph)
        feeds = [word for i, value in enumerate(graph.input)
                 for word in ("--input", f"{value.name}={path[:-5]}/in{i}.npy")]
        ranges = ["--dim", "batch=1..8", "--dim", "seq=1..64"] if name == "bert-sym" else []
        for kernel in counters(path, target, feeds, ranges):
            inside = {kinds.get(node) for node in kernel["nodes"]}
            allowed = 4 if CONTRACTIONS & inside else 2.5 if ROWS & inside else 2
            if "Conv" in inside:
                allowed = COLUMNS.get((name, target), WINDOWS)
            if check(name, target, kernel, allowed):
                judged += 1
                most[name] = max(asked(kernel), most.get(name, 0))
    for (name, of), bound in COLUMNS.items():
        assert of != target or most[name] > bound - 0.1, f"{name} on {target} asks for {most[name]}, not {bound}"
    assert judged >= 5, f"only {judged} kernels of the networks on {target} have 4096 outputs"
    print(f"networks on {target}: {judged} kernels judged, real ones")
