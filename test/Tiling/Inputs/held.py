"""held.py FUSEC FUSERT MODEL FOLDER: an LSTM's layers whose weights stay on chip from step to step, on a simulated GPU
with all blocks resident and, by other seeds, with fewer of them. Prints what it found; where its instructions ask for
other bytes than is predicted, or its outputs differ, it fails."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

fusec, fusert, model, folder = sys.argv[1:]
FIELDS = ("read_bytes", "write_bytes", "read_sectors", "write_sectors", "shared_bytes")
TARGET = ["--target", "sim:sm_80"]
beside = model[:-len(".onnx")]
expected = np.load(os.path.join(beside, "out0.npy"))
decisions, bundle = os.path.join(folder, "decisions.txt"), os.path.join(folder, "bundle")


def explained(*options):
    text = subprocess.run([fusec, "explain", model, "--json", *TARGET, *options], check=True, capture_output=True,
                          text=True).stdout
    return json.loads(text)["kernels"][0]


def explain(*options):
    return explained(*options)["moved"]


def run(*options):
    """The counters of the one kernel; its outputs are right."""
    out = subprocess.run([fusert, "run", bundle, *TARGET, "--input", f"x={beside}/in0.npy", "--output-dir", folder,
                          "--counters", *options], check=True, capture_output=True, text=True).stdout
    np.testing.assert_allclose(np.load(os.path.join(folder, "y.npy")), expected, rtol=1e-5, atol=1e-6)
    return json.loads(out.splitlines()[-1])["kernels"][0]


def compile(*options):
    return subprocess.run([fusec, model, *TARGET, "-o", bundle, *options], capture_output=True, text=True)


# The layers' weights are their second reads: of the input's product in registers, of the state's in shared memory.
plain = explain("--emit-decisions", decisions)
text = re.sub("^  keep .*\n", "", open(decisions).read(), flags=re.M)
held = [f"  keep e{e}.r1 {level} from e{e}.r1\n" for layer in (0, 4, 8)
        for e, level in ((layer, "register"), (layer + 1, "shared"))]
at = text.index("  tree {")


def write(keep):
    open(decisions, "w").write(text[:at] + keep + text[at:])


write("")
plain = explain("--decisions", decisions)
write("".join(held))
once, step = (explained("--decisions", decisions)[key] for key in ("moved", "each_step"))
assert compile("--decisions", decisions).returncode == 0
counted = run()
for field in FIELDS:
    assert counted[field] == once[field], (field, counted[field], once[field])
steps, weights = 12, 3 * 2 * 4 * 16 * 16 * 4 // 32
assert plain["read_sectors"] - once["read_sectors"] == (steps - 1) * weights, (plain, once, weights)
assert step["held_bytes"] == weights * 32 and 0 < step["constant_bytes"] < weights * 32, step
print(f"sectors read: {plain['read_sectors']} -> {once['read_sectors']}, as counted")

sectors = {run("--sim-seed", str(seed))["read_sectors"] for seed in range(1, 13)}
assert min(sectors) == once["read_sectors"] and max(sectors) == plain["read_sectors"], sectors
print(f"{len(sectors)} ways to run: all blocks resident, or fewer")

# The assembler of the device itself is told how many blocks of the entry for all phases a core is to hold.
ptx = open(decisions).read().replace("sim:sm_80", "sm_80")
open(decisions, "w").write(ptx)
TARGET[1] = "sm_80"
made = compile("--decisions", decisions, "--dump-dir", folder)
assert made.returncode == 0, made.stderr
code = open(f"{folder}/object.sm_80.ptx").read()
entries = re.findall(r"^\.(?:visible \.entry (\w+)|minnctapersm (\d+))", code, re.M)
told = [before[0] for before, here in zip(entries, entries[1:]) if here[1] == "1"]
print("room is left by", *(name[name.rindex("_"):] for name in told))

TARGET[1] = "sim:sm_80"
write(held[0].replace("e0.r1", "e1.r0"))
print(compile("--decisions", decisions).stderr)
write(held[0])
broken = open(decisions).read().replace("seq k00:32", "seq k00:0")
open(decisions, "w").write(broken)
print(compile("--decisions", decisions).stderr)

# A kernel of more threads than a simulated device takes at once holds nothing there, and is right.
width, steps = 512, 3
random = np.random.default_rng(7)
weight = lambda name: numpy_helper.from_array((random.standard_normal((1, width, width)) / 32).astype(np.float32), name)
info = lambda name, *shape: helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
nodes = [helper.make_node("RNN", ["x", "w0", "r0"], ["a"], hidden_size=width),
         helper.make_node("Squeeze", ["a", "axis"], ["b"]),
         helper.make_node("RNN", ["b", "w1", "r1"], ["y"], hidden_size=width)]
graph = helper.make_graph(nodes, "wide", [info("x", steps, 1, width)], [info("y", steps, 1, 1, width)],
                          [weight(name) for name in ("w0", "r0", "w1", "r1")]
                          + [numpy_helper.from_array(np.array([1]), "axis")])
model = os.path.join(folder, "wide.onnx")
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), model)
x = random.standard_normal((steps, 1, width)).astype(np.float32)
np.save(os.path.join(folder, "x.npy"), x)
values = {}
for target in ("host", "sim:sm_80"):
    made = subprocess.run([fusec, model, "--target", target, "-o", bundle], capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    subprocess.run([fusert, "run", bundle, "--target", target, "--input", f"x={folder}/x.npy", "--output-dir", folder],
                   check=True, stdout=subprocess.DEVNULL)
    values[target] = np.load(os.path.join(folder, "y.npy"))
np.testing.assert_allclose(values["sim:sm_80"], values["host"], rtol=1e-4, atol=1e-5)
TARGET[1] = "sim:sm_80"
print("wide layers hold", explained()["each_step"]["held_bytes"], "bytes on a device, and are right on a simulated one")
