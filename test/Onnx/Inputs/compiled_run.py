"""What scripts share that compile models, run them, and compare what they give with ONNX Runtime."""

import argparse
import pathlib
import shutil
import subprocess

import numpy as np
import onnxruntime
from onnx import parser

TARGETS = ("x86-64-v3", "sim:sm_90")


def read_options():
    """With an empty folder to work in."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--fusec")
    arguments.add_argument("--fusert")
    arguments.add_argument("--work", required=True, type=pathlib.Path)
    arguments.add_argument("--only", default="")
    options = arguments.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    return options


def model(text, opset):
    return parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]> {text}')


def folder_of(options, name, target):
    folder = options.work / name.replace(" ", "_") / target.replace(":", "_")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def compiled(options, proto, target, folder, flags=()):
    """What it says that it cannot, or nothing."""
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    command = [options.fusec, folder / "m.onnx", "-o", folder / "b", "--target", target, "--ptxas", "none", *flags]
    result = subprocess.run(command, capture_output=True, text=True)
    return result.stderr.replace(f"{folder}/", "").strip() if result.returncode else ""


def ran(options, inputs, target, folder):
    """What it says that it cannot, or nothing."""
    command = [options.fusert, "run", folder / "b", "--target", target, "--output-dir", folder]
    for name, data in inputs.items():
        np.save(folder / f"{name}.npy", data)
        command += ["--input", f"{name}={folder}/{name}.npy"]
    result = subprocess.run(command, capture_output=True, text=True)
    return result.stderr.strip() if result.returncode else ""


def difference(proto, inputs, folder):
    quiet = onnxruntime.SessionOptions()
    quiet.log_severity_level = 3  # it warns of operands that a form leaves unused
    expected = onnxruntime.InferenceSession(proto.SerializeToString(), quiet).run(None, inputs)
    for output, value in zip(proto.graph.output, expected):
        mine = np.load(folder / f"{output.name}.npy")
        if mine.shape != value.shape or mine.dtype != value.dtype or not np.allclose(mine, value, 1e-5, 1e-5):
            return f"{output.name} differs: {mine.shape} {value.shape} {mine} {value}"
    return ""


def agrees(options, name, proto, runs, targets=TARGETS, flags=(), expected=None):
    """Prints the first thing that is wrong of a model: `runs` are pairs of a word and of inputs by their names. ONNX
    Runtime runs the model `expected` where it lacks what this one needs."""
    if options.only not in name:
        return
    wrong = []
    for target in targets:
        folder = folder_of(options, name, target)
        problem = compiled(options, proto, target, folder, flags)
        wrong += [f"{target}: {problem}"] if problem else []
        for word, inputs in runs if not problem else []:
            problem = ran(options, inputs, target, folder) or difference(expected or proto, inputs, folder)
            wrong += [f"{target}: {word}: {problem}"] if problem else []
    print(f"{name}: {wrong[0] if wrong else 'same'}", flush=True)


def refuses(options, name, proto, inputs, flags=()):
    """Prints what the compiler, or else a run, says of what is not served: all targets the same, or a list."""
    if options.only not in name:
        return
    said = []
    for target in TARGETS:
        folder = folder_of(options, name, target)
        problem = compiled(options, proto, target, folder, flags)
        said.append(problem or ran(options, inputs, target, folder))
    print(f"{name}: {said[0] if len(set(said)) == 1 else said}", flush=True)


def is_refused(proto, inputs):
    onnxruntime.set_default_logger_severity(4)
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    try:
        session.run(None, inputs)
    except Exception:  # each of its errors is of a class of its own
        return True
    return False


def served(options, name, proto, runs):
    """Prints whether all runs that ONNX Runtime serves agree with it, and what is said of those that it refuses."""
    refused = {word for word, inputs in runs if is_refused(proto, inputs)}
    agrees(options, name, proto, [run for run in runs if run[0] not in refused])
    for word, inputs in runs:
        if word not in refused or options.only not in name:
            continue
        said = {ran(options, inputs, target, folder_of(options, name, target)) for target in TARGETS}
        print(f"{name}, {word}: {' and '.join(sorted(said)) or 'runs'}", flush=True)
