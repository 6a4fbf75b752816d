"""topk_long.py FUSEC FUSERT FOLDER: TopK of rows that no block holds, of several types, with all values of the
attributes and rows of a range of lengths; and what it reads, on a simulator, as rows grow."""

import json
import math
import re
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

fusec, fusert, folder = sys.argv[1:]


def expected(x, k, axis, largest):
    """A NaN is the largest; of equal values the first."""
    x = np.moveaxis(x, axis, -1)
    isNan = x != x
    keys = np.where(isNan, 0, x)
    if keys.dtype.kind in "iu":
        keys = ~keys.astype(np.int64) if largest else keys
    else:
        keys = -keys.astype(np.float64) if largest else keys
    order = np.lexsort((keys, ~isNan if largest else isNan))[..., :k]
    return np.moveaxis(order, -1, axis)


def compile(shape, k, axis, largest, type, target, dims=()):
    info = helper.make_tensor_value_info
    node = helper.make_node("TopK", ["x", "k"], ["v", "i"], axis=axis, largest=largest)
    named = ["n" if size is None else size for size in shape]
    graph = helper.make_graph([node], "g", [info("x", type, named)],
                              [info("v", type, None), info("i", TensorProto.INT64, None)],
                              [numpy_helper.from_array(np.array([k], np.int64), "k")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), folder + "/m.onnx")
    subprocess.run([fusec, folder + "/m.onnx", "--target", target, "-o", folder + "/b", *dims], check=True)


def run(x, k, axis, largest, target):
    np.save(folder + "/x.npy", x)
    out = subprocess.run([fusert, "run", folder + "/b", "--target", target, "--input", f"x={folder}/x.npy",
                          "--output-dir", folder, *(["--counters"] if target.startswith("sim:") else [])],
                         check=True, capture_output=True, text=True).stdout
    i, v = np.load(folder + "/i.npy"), np.load(folder + "/v.npy")
    assert np.array_equal(i, expected(x, k, axis, largest)), (x.shape, k, axis, largest, target)
    assert v.tobytes() == np.take_along_axis(x, i, axis).tobytes(), (x.shape, k, axis, largest, target)
    return out


def numbers(shape, type, random):
    """Many equal ones, the type's ends, and what floats have besides."""
    kind = helper.tensor_dtype_to_np_dtype(type)
    x = random.integers(0, 300, shape).astype(kind)
    if kind.kind == "f":
        for place, value in enumerate((np.nan, np.inf, -np.inf, 0.0, -0.0)):
            x.flat[place::503] = value
    else:
        x.flat[3::503], x.flat[4::503] = np.iinfo(kind).min, np.iinfo(kind).max // 4
    return x


random = np.random.default_rng(0)
F32, I64, U8 = TensorProto.FLOAT, TensorProto.INT64, TensorProto.UINT8
for shape, k, axis, largest, type, target in (
        ((9001,), 9001, 0, 1, F32, "host"), ((3, 4097), 4097, -1, 0, TensorProto.FLOAT16, "host"),
        ((2, 70000), 600, 1, 1, I64, "host"), ((5000, 2), 4500, 0, 0, TensorProto.DOUBLE, "host"),
        ((12289,), 5, 0, 0, TensorProto.INT32, "host"), ((8193,), 8193, 0, 1, U8, "host"),
        ((2, 5000), 5000, 1, 1, F32, "sim:sm_90"), ((9000,), 700, 0, 0, I64, "sim:gfx90a")):
    compile(shape, k, axis, largest, type, target)
    run(numbers(shape, type, random), k, axis, largest, target)
compile((2, None), 300, 1, 1, F32, "host", ("--dim", "n=300..20000"))
for n in (300, 4096, 4097, 20000):
    run(numbers((2, n), F32, random), 300, 1, 1, "host")
# Rows without a bound: runs are merged in a loop, where the row is long enough.
for shape, k, axis, largest, type, target, sizes in (
        ((2, None), 600, 1, 1, F32, "host", (600, 4096, 4097, 8192, 20001)),
        ((None, 2), 5000, 0, 0, TensorProto.FLOAT16, "host", (5000, 12288, 12289)),
        ((None,), 6, 0, 1, I64, "host", (6, 50000)),
        ((2, None), 300, 1, 1, F32, "sim:sm_90", (300, 1000, 4096)),
        ((None,), 200, 0, 0, I64, "sim:gfx90a", (200, 513, 5000)),
        ((None,), 4100, 0, 0, TensorProto.INT32, "sim:sm_90", (4100, 8200))):
    compile(shape, k, axis, largest, type, target)
    for n in sizes:
        run(numbers([n if size is None else size for size in shape], type, random), k, axis, largest, target)
print("right")

# Sizes say which of the ways runs, and nothing of the others is predicted to.
compile((None,), 600, 0, 1, F32, "host")
out = subprocess.run([fusec, "explain", folder + "/m.onnx", "--target", "x86-64-v3", "--json"] +
                     [w for n in (600, 1200, 4096, 40000) for w in ("--at", f"n={n}")],
                     check=True, capture_output=True, text=True).stdout
least, twice, part, long = json.loads(out.splitlines()[0])["at"]
kernels = [{kernel["name"] for kernel in at["kernels"]} for at in (least, twice, part, long)]
assert len(kernels[2]) < len(kernels[3]) and kernels[2] - kernels[3], kernels
assert least["predicted_s"] < twice["predicted_s"] < part["predicted_s"] / 2 < long["predicted_s"] / 10
print("a row that a block sorts has no merges")

# One more merge of all elements wherever the parts double. An element of a merge reads its split and, five times, two
# keys, of which threads keep some: 140 to 320 bytes. Passes over the row would read 4 * n * k bytes, of which k is made
# such that the bound is far below them.
MANY = 6000
for length in ("fixed", "without a bound"):
    if length != "fixed":
        compile((None,), MANY, 0, 1, F32, "sim:sm_80")
    each = []
    for n in (10000, 20000, 40000):
        if length == "fixed":
            compile((n,), n, 0, 1, F32, "sim:sm_80")
        out = run(numbers((n,), F32, random), n if length == "fixed" else MANY, 0, 1, "sim:sm_80")
        counters = json.loads(re.search(r"^\{.*\}$", out, re.M).group(0))
        read = sum(kernel["read_bytes"] for kernel in counters["kernels"])
        merges = math.ceil(math.log2(math.ceil(n / 4096)))
        assert read <= 400 * n * merges, (length, n, read)
        each.append(read / (n * merges))
    assert all(more <= 1.15 * less for less, more in zip(each, each[1:])), (length, each)
    print(f"a row {length}: reads grow as n log n")
