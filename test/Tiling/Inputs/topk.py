"""topk.py FUSEC FUSERT FOLDER: TopK of rows of 1024 with k = 5 and k = 600 by the schedule that is chosen and, from an
edited dump, by the other one; what the chosen ones read; bundles made from every dump."""

import json
import re
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

fusec, fusert, folder = sys.argv[1:]
ROWS, N = 4, 1024
random = np.random.default_rng(0)
x = random.integers(-200, 200, (ROWS, N)).astype(np.float32)
x[0, 17] = x[2, 40] = np.nan
x[1, :8] = [0.0, -0.0, np.inf, -np.inf, np.inf, -np.inf, -0.0, 0.0]
np.save(folder + "/x.npy", x)


def expected(k, largest):
    """A NaN is the largest; of equal values the first."""
    keys = np.where(np.isnan(x), 1e30, np.clip(x, -1e20, 1e20)).astype(np.float64)
    indices = np.argsort(-keys if largest else keys, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(x, indices, 1), indices


def model(k, largest):
    path = f"{folder}/m{k}.onnx"
    info = lambda n, t, c: helper.make_tensor_value_info(n, t, [ROWS, c])
    node = helper.make_node("TopK", ["x", "k"], ["v", "i"], name="Top", largest=largest)
    graph = helper.make_graph([node], "g", [info("x", TensorProto.FLOAT, N)],
                              [info("v", TensorProto.FLOAT, k), info("i", TensorProto.INT64, k)],
                              [numpy_helper.from_array(np.array([k], np.int64), "k")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), path)
    return path


def check(path, target, k, largest):
    """Compiles, runs and compares; the counters of the kernel where the target has some."""
    subprocess.run([fusec, path, "-o", folder + "/b"] + (["--target", target] if path.endswith("onnx") else []),
                   check=True)
    arguments = ["--target", target, "--counters"] if target.startswith("sim:") else []
    result = subprocess.run([fusert, "run", folder + "/b", "--input", f"x={folder}/x.npy", "--output-dir", folder]
                            + arguments, check=True, capture_output=True, text=True)
    values, indices = expected(k, largest)
    assert np.array_equal(np.load(folder + "/i.npy"), indices), (path, target, k)
    assert np.load(folder + "/v.npy").tobytes() == values.tobytes(), (path, target, k)
    counters = re.search(r"^\{.*\}$", result.stdout, re.M)
    return json.loads(counters.group(0))["kernels"][0] if counters and target.startswith("sim:") else None


def resume(k, target):
    subprocess.run([fusec, model(k, 1), "--target", target, "-o", folder + "/whole", "--dump-dir", folder], check=True)
    whole = open(folder + "/whole", "rb").read()
    for stage in ("graph", "expr", "plan", "schedule", "gir"):
        subprocess.run([fusec, f"{folder}/{stage}.txt", "-o", folder + "/part"], check=True)
        assert open(folder + "/part", "rb").read() == whole, (stage, k, target)


# From the head of the schedule: its units, which follow from how it works, and the tree.
PARTS = re.compile(r"( units \d+)( lanes .*?)(  tree \{.*)", re.S)
KIND = re.compile(r"pattern 0 \{ \} schedule \S*\.(select|sort)")
for target in ("x86-64-v3", "sim:sm_90", "sim:gfx90a"):
    dumps = {}
    for k in (5, 600):
        for largest in (0, 1):
            counters = check(model(k, largest), target, k, largest)
            if counters and k == 5:
                # Each pass reads a row once, and then the one element that it found, in every thread.
                least = ROWS * k * N * 4
                assert least <= counters["read_bytes"] <= 2 * least, (counters, least)
        subprocess.run([fusec, model(k, 1), "--target", target, "--stop-after=schedule", "--dump-dir", folder],
                       check=True)
        dumps[k] = open(folder + "/schedule.txt").read()
    kinds = [KIND.search(dumps[k]).group(1) for k in (5, 600)]
    assert kinds == ["select", "sort"], kinds
    parts = {k: PARTS.search(text) for k, text in dumps.items()}
    for k, other in ((5, 600), (600, 5)):
        text = PARTS.sub(lambda m: parts[other].group(1) + m.group(2) + parts[other].group(3), dumps[k], count=1)
        assert text != dumps[k]
        open(folder + "/edited.txt", "w").write(text)
        check(folder + "/edited.txt", target, k, 1)
    for k in (5, 600):
        resume(k, target)
    print(f"{target}: k 5 selected, k 600 sorted; both ways right for both; dumps resume")
for k in (5, 600):
    subprocess.run([fusec, model(k, 1), "--target", "sm_90,gfx942", "-o", folder + "/gpu"], check=True)
print("sm_90, gfx942: compiled")
