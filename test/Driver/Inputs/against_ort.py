"""Compiles models and compares their outputs with ONNX Runtime: against_ort.py FUSEC FUSERT TARGETS MODEL..."""

import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime


def run(fusec, fusert, target, path, folder):
    model = onnx.load(path)
    random = np.random.default_rng(1)
    feeds, arguments = {}, []
    for i, value in enumerate(model.graph.input):
        shape = [d.dim_value for d in value.type.tensor_type.shape.dim]
        feeds[value.name] = random.standard_normal(shape).astype(np.float32)
        np.save(f"{folder}/{i}.npy", feeds[value.name])
        arguments += ["--input", f"{value.name}={folder}/{i}.npy"]
    subprocess.run([fusec, path, "-o", folder + "/b", "--target", target], check=True)
    subprocess.run([fusert, "run", folder + "/b", "--target", target, "--output-dir", folder] + arguments,
                   check=True, stdout=subprocess.DEVNULL)
    expected = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, feeds)
    for value, reference in zip(model.graph.output, expected):
        actual = np.load(f"{folder}/{value.name}.npy")
        assert actual.shape == reference.shape and actual.dtype == reference.dtype, (value.name, actual.shape)
        error = np.linalg.norm(actual - reference) / max(np.linalg.norm(reference), 1e-30)
        print(f"{os.path.basename(path)} {target} {value.name}: relative L2 {error:.1e}")
        assert error <= 1e-4, f"{path} on {target}: {value.name} differs"


fusec, fusert, targets, *models = sys.argv[1:]
for model in models:
    for target in targets.split(","):
        with tempfile.TemporaryDirectory() as folder:
            run(fusec, fusert, target, model, folder)
print("all agree")
