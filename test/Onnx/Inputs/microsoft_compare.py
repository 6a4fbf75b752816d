"""Compiles generated nodes of com.microsoft and compares them with ONNX Runtime, its optimisations off:
  microsoft_compare.py --fusec F --fusert F --work DIR [--seed N] [--count N] [--op NAME] [--target T]...

Bytes are the same, or one step off where a sum of f32 lies between two steps; floats are within 1e-4 of the largest."""

import argparse
import pathlib
import shutil
import subprocess

import numpy as np
import onnxruntime
import microsoft_symbolic
from microsoft import OPERATORS, batch, refusals

TARGETS = ("x86-64-v3", "sim:sm_90")


def reference(model, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1  # more quantise the batch of an LSTM in parts
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options).run(None, inputs)


def compile_model(options, model, folder, targets):
    folder.mkdir(parents=True)
    (folder / "m.onnx").write_bytes(model)
    subprocess.run([options.fusec, folder / "m.onnx", "-o", folder / "b", "--target", ",".join(targets)], check=True)


def run(options, inputs, folder, targets):
    """Outputs by target and name."""
    given = []
    for name, array in inputs.items():
        np.save(folder / f"{name}.npy", array)
        given += ["--input", f"{name}={folder}/{name}.npy"]
    found = {}
    for target in targets:
        out = folder / target.replace(":", "-")
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        command = [options.fusert, "run", folder / "b", "--target", target, "--output-dir", out, *given]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        found[target] = {path.stem: np.load(path) for path in out.glob("*.npy")}
    return found


def difference(mine, right):
    """What is wrong, or ""."""
    if mine.dtype != right.dtype or mine.shape != right.shape:
        return f"{mine.dtype}{mine.shape} for {right.dtype}{right.shape}"
    if right.dtype.kind in "iu":
        apart = np.abs(mine.astype(int) - right.astype(int))
        if apart.size and (apart.max() > 1 or (apart > 0).sum() > 1 + apart.size // 50):
            return f"{(apart > 0).sum()} of {apart.size} differ, by up to {apart.max()}"
        return ""
    if not right.size:
        return ""
    bound = 1e-4 * max(1.0, np.abs(right).max())
    apart = np.abs(mine.astype(float) - right.astype(float)).max()
    return "" if apart <= bound else f"differs by up to {apart}, largest {np.abs(right).max()}"


def refused(options, model):
    """What fusec says, from the operator on."""
    (options.work / "m.onnx").write_bytes(model)
    command = [options.fusec, options.work / "m.onnx", "-o", options.work / "b"]
    text = subprocess.run(command, capture_output=True, text=True, check=False).stderr.strip()
    return text.replace(f"{options.work}/m.onnx: ", "")


def symbolic(options, targets):
    for number, case in enumerate(microsoft_symbolic.cases()):
        folder = options.work / f"{number}"
        model = case.model().SerializeToString()
        compile_model(options, model, folder, targets)
        wrong = []
        for sizes in case.sizes:
            inputs = case.inputs(sizes)
            right = dict(zip(case.b.outputs, reference(model, inputs)))
            for target, mine in run(options, inputs, folder, targets).items():
                wrong += [f"{target} {sizes}: {text}" for n, a in right.items() if (text := difference(mine[n], a))]
        print(f"{case.op} over symbols: {'agrees' if not wrong else wrong}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fusec", required=True)
    parser.add_argument("--fusert", required=True)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--op", action="append", choices=OPERATORS)
    parser.add_argument("--target", action="append")
    parser.add_argument("--symbolic", action="store_true", help="nodes over symbolic sizes instead")
    parser.add_argument("--refusals", action="store_true", help="print what is refused instead, with its message")
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    if options.refusals:
        options.work.mkdir(parents=True)
        for b in refusals():
            print(refused(options, b.model().SerializeToString()))
        return
    targets = options.target or TARGETS
    if options.symbolic:
        symbolic(options, targets)
        return
    print(f"seed {options.seed}")
    for op in options.op or OPERATORS:
        b = batch(op, options.seed, options.count)
        model = b.model().SerializeToString()
        right = dict(zip(b.outputs, reference(model, b.inputs)))
        compile_model(options, model, options.work / op, targets)
        found = run(options, b.inputs, options.work / op, targets)
        wrong = []
        for target, mine in found.items():
            for name, array in right.items():
                if text := difference(mine[name], array):
                    wrong.append(f"{target} {name}: {text}: {b.drawn[name]}")
        agree = "agree" if not wrong else "\n  ".join(["differ", *wrong])
        print(f"{op}: {len(b.nodes)} combinations {agree}", flush=True)


if __name__ == "__main__":
    main()
