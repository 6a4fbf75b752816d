"""Runs one bundle after the other in one process, so that a GPU's driver is started once: runserver.py LIBRARY.
Each line of standard input is a job, {"bundle": FILE, "target": NAME, "inputs": {name: FILE.pb}, "out": FOLDER}; the
answer is {"files": {output: FILE.npy}} or {"status": "...", "said": "..."}. After DEVICE_LOST it ends. The first model
stays loaded: a GPU's context goes with the last one, and making one takes longer than most jobs."""

import json
import os
import sys

import numpy
import onnx
from onnx import numpy_helper

import fusert


def read(path):
    tensor = onnx.TensorProto()
    with open(path, "rb") as file:
        tensor.ParseFromString(file.read())
    return numpy_helper.to_array(tensor)


def run(library, job, kept):
    feeds = {name: read(path) for name, path in job["inputs"].items()}
    model, context = fusert.Model(library, job["bundle"], job["target"]), None
    try:
        context = fusert.Context(model)
        context.setShapes([feeds[name].shape for name, _ in model.inputs])
        results, files = context.run(feeds), {}
        for index, (name, kind) in enumerate(model.outputs):
            files[name] = os.path.join(job["out"], f"{index}.npy")
            value = results[name]
            numpy.save(files[name], value.view("V2") if kind == fusert.BFLOAT16 else value)
        return {"files": files}
    finally:
        if context:
            context.destroy()
        if kept:
            model.unload()
        else:
            kept.append(model)


def main():
    library, kept = fusert.Library(sys.argv[1]), []
    for line in sys.stdin:
        try:
            answer = run(library, json.loads(line), kept)
        except fusert.Failed as failed:
            answer = {"status": failed.status, "said": str(failed)}
        print(json.dumps(answer), flush=True)
        if answer.get("status") == "DEVICE_LOST":
            return


main()
