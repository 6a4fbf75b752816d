"""suite.py ONNX_SUITE FOLDER: what the script says of one case with tools that behave in one way each."""

import json
import os
import re
import subprocess
import sys

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

suite, folder = sys.argv[1:]
case = f"{folder}/cases/node/test_one"
os.makedirs(f"{case}/test_data_set_0")
value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])
graph = helper.make_graph([helper.make_node("Abs", ["x"], ["y"])], "g", [value("x")], [value("y")])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), f"{case}/model.onnx")
for name in ("input_0", "output_0"):
    with open(f"{case}/test_data_set_0/{name}.pb", "wb") as file:
        file.write(numpy_helper.from_array(numpy.ones(2, numpy.float32)).SerializeToString())

COMPILERS = {
    "mute": "echo 'error[E4001] m.onnx: this is not supported' >&2; exit 4",
    "clear": "echo \"error[E4001] m.onnx: node 'Abs_0' (Abs, opset 18): the operator is not supported\" >&2; exit 4",
    "signal": "kill -9 $$",
    "internal": "echo 'error[E1000] a bug' >&2; exit 1",
    "input": "echo 'error[E3103] m.onnx: a name stands twice' >&2; exit 3",
    "empty": "exit 0",
}
os.makedirs(f"{folder}/bin")
for name, more in [(name, []) for name in COMPILERS] + [("floor", ["--floor", "1"])]:
    for tool, text in (("fusec", COMPILERS["clear" if name == "floor" else name]), ("fusert", "exit 0")):
        with open(f"{folder}/bin/{tool}", "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(f"{folder}/bin/{tool}", 0o755)
    done = subprocess.run([sys.executable, suite, "--data", f"{folder}/cases", "--target", "host", "--build", folder,
                           "--json", f"{folder}/{name}.json", *more], capture_output=True, text=True)
    with open(f"{folder}/{name}.json", encoding="utf-8") as file:
        row = json.load(file)["cases"][0]
    said = row["outcome"] + (": " + row["reason"] if row["outcome"] != "refused" else "")
    floor = re.search(r"^only .*", done.stdout, re.M)
    print(f"{name}: exit {done.returncode}, {said}" + (f", {floor[0]}" if floor else ""))
