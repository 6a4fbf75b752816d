"""weights.py FUSEC FOLDER: the most memory that compiles of products with weights of 16, 32 and 64 MiB take, as
these grow, for each byte of the bundle."""

import multiprocessing
import os
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

fusec, folder = sys.argv[1:]
MIB = 2**20
DEPTH = 1024
STEPS = (16, 32, 64)


def save(mib, count, kind=np.float32, transposed=False, embedded=False, shared=False, multiple=1):
    """`count` products of x [4,DEPTH] with weights of `mib` MiB together, in a file beside the model."""
    width = mib * MIB // (1 if shared else count) // np.dtype(kind).itemsize // DEPTH // multiple * multiple
    shape = (width, DEPTH) if transposed else (DEPTH, width)
    type = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    floats = TensorProto.FLOAT if kind == np.int8 else type
    random = np.random.default_rng(0)
    nodes, weights = [], [numpy_helper.from_array(np.float32(0.5), "scale")]
    with open(f"{folder}/weights", "wb") as file:
        for i in range(count):
            tensor = TensorProto(name=f"w{i}", dims=shape, data_type=type)
            if not shared or i == 0:
                data = random.integers(0, 100, shape).astype(kind).tobytes()
            if embedded:
                tensor.raw_data = data
            else:
                tensor.data_location = TensorProto.EXTERNAL
                for key, value in (("location", "weights"), ("offset", 0 if shared else file.tell()),
                                   ("length", len(data))):
                    tensor.external_data.add(key=key, value=str(value))
                if not shared or i == 0:
                    file.write(data)
            weights.append(tensor)
            value = tensor.name
            if kind == np.int8:
                nodes.append(helper.make_node("DequantizeLinear", [value, "scale"], [f"d{i}"]))
                value = f"d{i}"
            if transposed:
                nodes.append(helper.make_node("Transpose", [value], [f"t{i}"], perm=[1, 0]))
                value = f"t{i}"
            nodes += [helper.make_node("MatMul", ["x", value], [f"m{i}"]),
                      helper.make_node("ReduceMax", [f"m{i}"], [f"y{i}"], keepdims=0)]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(nodes, "g", [info("x", floats, [4, DEPTH])],
                              [info(f"y{i}", floats, []) for i in range(count)], weights)
    with open(f"{folder}/m.onnx", "wb") as file:
        file.write(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)],
                                     ir_version=10).SerializeToString())


def peakMib(targets):
    # Every equation is a kernel of its own: which products share one depends on their widths and on the processor, and
    # LLVM takes several MiB more for a kernel of sixteen than for sixteen kernels.
    process = subprocess.Popen([fusec, f"{folder}/m.onnx", f"--target={targets}", "--search-mode=none", "--threads=2",
                                "-o", f"{folder}/b"])
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, status
    return usage.ru_maxrss / 1024


if __name__ == "__main__":
    os.makedirs(folder, exist_ok=True)
    for name, targets, arguments in (
            ("one weight", "host", {"count": 1}),
            ("one weight transposed", "host", {"count": 1, "transposed": True}),
            ("16 weights transposed", "host,sm_90,gfx942", {"count": 16, "transposed": True}),
            # Columns that tiles of 16 and of 24 divide: cut ones are code, for which LLVM's memory grows in one step.
            ("16 f16 weights", "host", {"count": 16, "kind": np.float16, "multiple": 48}),
            ("16 i8 weights, which become f32", "host", {"count": 16, "kind": np.int8}),
            ("16 weights in the model's file", "host", {"count": 16, "embedded": True}),
            ("64 readers of one range of a file", "host", {"count": 64, "shared": True})):
        peaks, sizes = [], []
        for mib in STEPS:
            # A process counts what its parent had when it began: this one stays small.
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                pool.apply(save, (mib,), arguments)
            peaks.append(peakMib(targets))
            sizes.append(os.path.getsize(f"{folder}/b") / MIB)
        growth = [(after - before) / (larger - smaller)
                  for before, after, smaller, larger in zip(peaks, peaks[1:], sizes, sizes[1:])]
        once = all(g <= 1.3 for g in growth)
        print(f"{name}, {targets}: {'once' if once else f'{peaks} MiB for bundles of {sizes}'}", flush=True)
    for name in ("weights", "m.onnx", "b"):
        os.remove(f"{folder}/{name}")
