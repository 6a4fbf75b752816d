"""Predicted against counted: check_bytes.py PROGRAMS FOLDER [MODEL]...
What the instructions of every kernel of the networks under models/tiny ask of memory: the compiler's prediction, made
from access maps and schedules (`fusec explain --json`, "moved"), beside what simulated GPUs count of the code that runs
(`fusert run --counters`). Bytes of device memory as asked for by the threads, 32-byte sectors of a unit's lanes, each
read and written, and bytes of shared memory are the same within 5 %, in kernels whose threads keep values (buffers
named *.kept) as in all others.

Not predicted are the sectors of reads whose lanes go where data tells them (from_data): those are checked to lie
within a factor of two, their bytes like all others.

Every predicted kernel runs, but for those that stand in branches and loops alone (within).

With a load planted in the code of one kernel the prediction must no longer fit, be it of a tile or of a value that is
kept. Prints the furthest kernels."""

import json
import os
import re
import sys

sys.dont_write_bytecode = True
root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(root, "scripts", "models"))

import numpy
import onnx

import bundle

TINY = os.path.join(root, "models", "tiny")
TARGETS = ("sim:sm_90", "sim:gfx90a")
RANGES = {"bert-sym": ["--dim", "batch=1..8:2", "--dim", "seq=1..64:12"]}
SIZES = {"batch": 2, "seq": 12}  # what the predictions of symbolic networks are for
FIELDS = ("read_bytes", "write_bytes", "read_sectors", "write_sectors", "shared_bytes")
WITHIN = 0.05
FROM_DATA = 2.0
PLANTED = (("resnet50", "sim:gfx90a", r"^ +%s0\[.*\] = %t\d+\[.*\n"),
           ("mmoe", "sim:gfx90a", r"^ +%t\d+\.kept\[.*\] = %t\d+\[.*\n"))

programs, folder, *names = sys.argv[1:]
fusec, fusert = (os.path.join(programs, program) for program in ("fusec", "fusert"))
os.makedirs(folder, exist_ok=True)


def feeds(name):
    """The inputs that lie beside the network; for a symbolic one random tokens, none of them masked."""
    found = {}
    for i, value in enumerate(onnx.load(os.path.join(TINY, f"{name}.onnx")).graph.input):
        beside = os.path.join(TINY, name, f"in{i}.npy")
        shape = [SIZES.get(dim.dim_param, dim.dim_value) for dim in value.type.tensor_type.shape.dim]
        if name not in RANGES:
            found[value.name] = numpy.load(beside)
        elif "mask" in value.name:
            found[value.name] = numpy.ones(shape, numpy.int64)
        else:
            found[value.name] = numpy.random.default_rng(1).integers(0, 200, shape)
    return found


def counted(made, name, target):
    """Kernel -> counters of one launch."""
    options = bundle.saveInputs(os.path.join(folder, "in"), feeds(name))
    text = bundle.execute([fusert, "run", made, "--target", target, "--counters", *options])
    kernels = json.loads(re.search(r'^\{"kernels".*\}$', text, re.M).group(0))["kernels"]
    return {k["name"]: {field: k[field] / k["launches"] for field in FIELDS} for k in kernels}


def predicted(name, target):
    """Kernel -> what is predicted of one launch; and those that a launch outside of branches and loops runs."""
    text = bundle.execute([fusec, "explain", os.path.join(TINY, f"{name}.onnx"), "--target", target, "--json",
                           *RANGES.get(name, [])])
    kernels = json.loads(text)["kernels"]
    return {k["name"]: k["moved"] for k in kernels}, {k["name"] for k in kernels if not k["within"]}


def keepers(path):
    """Names of the kernels in a dump of gir that keep values for later."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    bodies = re.split(r"^kernel @", text, flags=re.M)[1:]
    return {re.match(r"\w+", body).group(0) for body in bodies
            if re.search(r"^  (?:register|shared) (?:uniform )?%\S*\.kept", body, re.M)}


def distances(model, real):
    """How far off each field is; of a read that follows data, how far beyond what is allowed."""
    off = {}
    for field in FIELDS:
        error = abs(model[field] - real[field]) / max(real[field], 1)
        if model["from_data"] and field.endswith("sectors"):
            low, high = sorted((max(model[field], 1), max(real[field], 1)))
            error = 0 if high <= FROM_DATA * low else error
        off[field] = error
    return off


def check(name, target, made):
    """(distance, text) of every kernel that ran, and the names of those that are predicted and did not."""
    (model, needed), real = predicted(name, target), counted(made, name, target)
    rows, idle = [], set(model)
    for kernel, counts in real.items():
        own = next((known for known in model if known in kernel), None)
        if own is None:
            raise bundle.Failed(f"{name}, {target}: {kernel} is not in the explanation")
        idle.discard(own)
        off = distances(model[own], counts)
        field = max(off, key=off.get)
        rows.append((off[field], f"{name} {target} {kernel}: {field} {model[own][field]} predicted, "
                     f"{counts[field]:.0f} counted" + (", follows data" if model[own]["from_data"] else "")))
    if idle & needed:
        raise bundle.Failed(f"{name}, {target}: predicted, in no branch, and not run: {sorted(idle & needed)}")
    return rows, idle


def compile_(name, target, source=None):
    made = os.path.join(folder, "bundle")
    options = ["--target", target, *RANGES.get(name, [])] if source is None else []
    bundle.execute([fusec, source or os.path.join(TINY, f"{name}.onnx"), "-o", made, "--dump-dir",
                    os.path.join(folder, "dumps"), *options])
    return made


def plant(name, target, pattern):
    """A kernel that does the first load of this form twice no longer moves what is predicted."""
    dumps = os.path.join(folder, "planted")
    bundle.execute([fusec, os.path.join(TINY, f"{name}.onnx"), "--target", target, "--stop-after", "gir", "--dump-dir",
                    dumps])
    path = os.path.join(dumps, "gir.txt")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    load = re.search(pattern, text, re.M)
    kernel = re.findall(r"^kernel @(\S+)", text[:load.start()], re.M)[-1]
    with open(path, "w", encoding="utf-8") as file:
        file.write(text[:load.end()] + load.group(0) + text[load.end():])
    caught = [line for error, line in check(name, target, compile_(name, target, source=path))[0] if error > WITHIN]
    if len(caught) != 1 or kernel not in caught[0]:
        raise bundle.Failed(f"a load planted in {kernel} shows as {caught}")
    print(f"planted: {caught[0]}")


found = []
failures = keeping = idle = 0
for model in names or sorted(entry[:-5] for entry in os.listdir(TINY) if entry.endswith(".onnx")):
    for simulated in TARGETS:
        try:
            rows, unrun = check(model, simulated, compile_(model, simulated))
            found += rows
            idle += len(unrun)
            keeping += len(keepers(os.path.join(folder, "dumps", "gir.txt")))
        except bundle.Failed as failed:
            print(f"FAILED {failed}")
            failures += 1
found.sort(reverse=True)
for distance, line in found[:12]:
    print(f"{distance:7.2%} {line}")
print(f"{len(found)} kernels, {sum(distance > WITHIN for distance, line in found)} off by more than {WITHIN:.0%}, "
      f"{keeping} keep values, {sum('follows data' in line for distance, line in found)} follow data, "
      f"{idle} more stand in branches that were not taken")
for distance, line in found:
    if distance > WITHIN:
        print(f"FAILED {line}")
        failures += 1
for planted in PLANTED:
    try:
        plant(*planted)
    except bundle.Failed as failed:
        print(f"FAILED {failed}")
        failures += 1
sys.exit(1 if failures or not found else 0)
