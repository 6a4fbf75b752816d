"""einsum.py FUSEC FOLDER: prints what the compiler says of Einsum's equations that do not fit their operands."""

import os
import subprocess
import sys

import onnx
from onnx import TensorProto, helper

FLOAT, DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE
CASES = [
    ("ij,jk->ik", [2, 3], [4, 5]),
    ("ii->i", [2, 3]),
    ("ii->i", [1, 3]),
    ("abA,Bb->aB", [2, 3, 4], [2, 5]),
    ("...i,...i->...", [2, 3, 4], [5, 3, 4]),
    ("A...,...->A...", [2, 3, 4], [3, 5]),
    ("i...j,jB...->...B", [2, 7, 3], [3, 4, 8]),
    ("nk,km->nm", ["n", "k"], ["c", 4]),
    ("...k,...k->...", ["n", 4], ["m", 4]),
    ("bb->b", ["n", 4]),
    ("ij,jk->ik", [2, 3], (DOUBLE, [3, 2])),
    ("ij;jk->ik", [2, 3], [3, 2]),
    ("ij->ij", [2, 3], [2, 3]),
    ("i j k -> i", [2, 3]),
    ("...ijk->i", [2, 3]),
    ("i..j->ij", [2, 3]),
    ("ij->ik", [2, 3]),
    ("ij->ii", [2, 3]),
    ("...i->......", [2, 3]),
]

fusec, folder = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
for equation, *operands in CASES:
    typed = [o if isinstance(o, tuple) else (FLOAT, o) for o in operands]
    inputs = [helper.make_tensor_value_info(f"x{i}", *o) for i, o in enumerate(typed)]
    node = helper.make_node("Einsum", [i.name for i in inputs], ["y"], name="n", equation=equation)
    graph = helper.make_graph([node], "g", inputs, [helper.make_empty_tensor_value_info("y")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), f"{folder}/m.onnx")
    run = subprocess.run([fusec, "m.onnx", "-o", "b"], cwd=folder, capture_output=True, text=True, check=False)
    said = [line for line in run.stderr.splitlines() if not line.startswith("note: kernels are tuned for")]
    print(f"{equation}: {' '.join(said)} ({run.returncode})")
