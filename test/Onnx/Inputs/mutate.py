"""Changes valid models at random and checks that whatever comes out is compiled or refused:
  mutate.py --programs DIR --cases DIR --work DIR [--seed N] [--count N] [--drawn SHARE]

Models are the cases of the onnx package (written to --cases if they are not there) and, a share of them, nodes of
domain com.microsoft that are drawn at random and what modules beside this one give as seeds(): pairs of name and model.
Every operator that fusec lists must stand in one of them, so that a new one joins by its cases in the package or by
those of its own test. A mutant differs in one to three
places: an attribute, a dimension, an element type, a wire between nodes, a constant operand, the opset; integer inputs
of a case become constants half of the time, so that axes, sizes and indices are met as constants too. fusec must end
with 0, 3, 4 or 5, and what it made must run (fusert: 0, 3, 5 or 6, for inputs at random may be refused and memory may
not suffice), each within a minute. What fails stays in --work."""

import argparse
import collections
import glob
import importlib.machinery
import importlib.util
import math
import os
import pathlib
import random
import re
import subprocess
import sys

sys.dont_write_bytecode = True
root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

import onnx
from onnx import AttributeProto, TensorProto, numpy_helper

import microsoft

INTEGERS = [-1, 0, 1, 2, 3, 5, 7, -2, -3, 127, 255, 1000003, 2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -1.0, 0.5, 3.0, 1e38, -1e38, 1e-45, float("inf"), float("-inf"), float("nan")]
TEXTS = [b"", b"xyz", b"\xff\xfe", b"SAME_UPPER", b"wrap"]
EXTENTS = [0, 1, 2, 3, 5, 7, 16, 4096, 2**31, 2**40, -1, 2**63 - 1]
COMPILED, RAN = {0, 3, 4, 5}, {0, 3, 5, 6}
SECONDS = 60


def writeSeeds(folder):
    """The models that test modules of this folder have, as files."""
    paths = []
    for source in sorted(pathlib.Path(__file__).parent.glob("*.py")):
        if not re.search(r"^def seeds\(", source.read_text(), re.MULTILINE):
            continue
        for i, (_, model) in enumerate(importlib.import_module(source.stem).seeds()):
            path = folder / f"{source.stem}-{i}" / "model.onnx"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(model.SerializeToString())
            paths.append(str(path))
    return paths


def operatorsIn(paths):
    found = set()
    for path in paths:
        model = onnx.load(path)
        found.update(node.op_type for graph in graphs(model.graph) for node in graph.node)
    return found


def operatorsOf(fusec):
    """Those of the table that fusec prints, domains left out."""
    table = subprocess.run([fusec, "--list-operators"], capture_output=True, text=True, check=True).stdout
    rows = [line.split("|")[2].strip() for line in table.splitlines()[2:]]
    return {re.search(r"\w+$", row)[0] for row in rows}


def graphs(graph):
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == AttributeProto.GRAPH:
                yield from graphs(attribute.g)


class Mutator:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def one(self, items):
        return self.random.choice(list(items))

    def attribute(self, graph, node):
        candidates = [a for a in node.attribute if a.type in (
            AttributeProto.INT, AttributeProto.INTS, AttributeProto.FLOAT, AttributeProto.STRING)]
        if not candidates:
            return None
        chosen = self.one(candidates)
        if chosen.type == AttributeProto.INT:
            chosen.i = self.one(INTEGERS)
        elif chosen.type == AttributeProto.FLOAT:
            chosen.f = self.one(FLOATS)
        elif chosen.type == AttributeProto.STRING:
            chosen.s = self.one(TEXTS)
        elif chosen.ints and self.random.random() < 0.7:
            chosen.ints[self.random.randrange(len(chosen.ints))] = self.one(INTEGERS)
        elif chosen.ints and self.random.random() < 0.5:
            del chosen.ints[-1]
        else:
            chosen.ints.append(self.one(INTEGERS))
        return f"{node.op_type}.{chosen.name}"

    def shape(self, graph, node):
        values = [v for v in [*graph.input, *graph.output] if v.type.HasField("tensor_type")]
        if not values:
            return None
        value = self.one(values)
        extents = value.type.tensor_type.shape.dim
        if extents and self.random.random() < 0.8:
            extent = self.one(extents)
            if self.random.random() < 0.6:
                extent.dim_value = self.one(EXTENTS)
            else:
                extent.dim_param = self.one(["N", "M", "batch"])
        elif extents and self.random.random() < 0.5:
            del extents[-1]
        else:
            extents.add().dim_value = self.one([1, 2, 3])
        return f"shape of {value.name}"

    def elementType(self, graph, node):
        values = [v for v in graph.input if v.type.HasField("tensor_type")]
        if not values:
            return None
        value = self.one(values)
        value.type.tensor_type.elem_type = self.one([0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16, 99])
        return f"type of {value.name}"

    def wire(self, graph, node):
        if not node.input:
            return None
        names = [name for other in graph.node for name in [*other.input, *other.output]]
        slot = self.random.randrange(len(node.input))
        node.input[slot] = self.one([*names, *(v.name for v in graph.input), "", "nowhere"])
        return f"{node.op_type} input {slot}"

    def arity(self, graph, node):
        kind = self.random.randrange(5)
        if kind == 0 and node.input:
            del node.input[-1]
        elif kind == 4 and node.output:
            del node.output[-1]
        elif kind == 1:
            node.input.append(self.one([*(v.name for v in graph.input), ""]))
        elif kind == 2 and node.attribute:
            del node.attribute[self.random.randrange(len(node.attribute))]
        else:
            node.output.append("one too many")
        return f"{node.op_type} has more or less"

    def constant(self, graph, node):
        integers = [t for t in graph.initializer if t.data_type in (TensorProto.INT32, TensorProto.INT64)]
        if not integers:
            return None
        tensor = self.one(integers)
        try:
            values = numpy_helper.to_array(tensor).copy()
        except ValueError:  # its extents were changed before
            return None
        if values.size == 0 or self.random.random() < 0.2:
            tensor.dims.append(self.one(INTEGERS))
            return f"extents of {tensor.name}"
        fitting = [i for i in INTEGERS if tensor.data_type == TensorProto.INT64 or abs(i) < 2**31]
        values.reshape(-1)[self.random.randrange(values.size)] = self.one(fitting)
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
        return f"constant {tensor.name}"

    def constantInputs(self, model, folder):
        for i, value in enumerate(list(model.graph.input)):
            path = os.path.join(folder, "test_data_set_0", f"input_{i}.pb")
            integers = (TensorProto.INT32, TensorProto.INT64)
            if not os.path.exists(path) or value.type.tensor_type.elem_type not in integers:
                continue
            with open(path, "rb") as file:
                tensor = TensorProto.FromString(file.read())
            tensor.name = value.name
            model.graph.initializer.append(tensor)
            if self.random.random() < 0.5:
                model.graph.input.remove(value)

    def mutate(self, path):
        """A changed model and what was changed, or None where nothing could be."""
        model = onnx.load(path)
        if self.random.random() < 0.5:
            self.constantInputs(model, os.path.dirname(path))
        done = []
        for _ in range(self.one([1, 1, 1, 2, 3])):
            graph = self.one(graphs(model.graph))
            if not graph.node:
                continue
            if self.random.random() < 0.02:
                model.opset_import[0].version = self.random.randrange(1, 30)
                done.append("opset")
                continue
            kind = self.one([self.attribute] * 4 + [self.shape, self.elementType, self.wire, self.arity, self.constant])
            done.append(kind(graph, self.one(graph.node)))
        return (model, ", ".join(filter(None, done))) if any(done) else None


def drawnModels(folder, seed, count=4):
    """Writes `count` models of one node for each operator of com.microsoft; gives their paths."""
    paths = []
    for op in microsoft.OPERATORS:
        for i in range(count):
            paths.append(os.path.join(folder, f"{op}-{i}", "model.onnx"))
            os.makedirs(os.path.dirname(paths[-1]), exist_ok=True)
            onnx.save(microsoft.batch(op, seed * count + i, 1).model(), paths[-1])
    return paths


def fillsMemory(model):
    """An input of 2 GiB and more, which takes longer to make and to read than a mutant may."""
    def elements(value):
        return math.prod(max(d.dim_value, 1) for d in value.type.tensor_type.shape.dim)
    return any(elements(value) >= 2**31 for value in model.graph.input)


def exitCode(command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "no end", ""
    return done.returncode, done.stderr.strip()[:300]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in ("programs", "cases", "work"):
        parser.add_argument(f"--{option}", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--drawn", type=float, default=0.1, help="share of the mutants of nodes that are drawn")
    arguments = parser.parse_args()
    loader = importlib.machinery.SourceFileLoader("suite", os.path.join(root, "scripts", "onnx-suite"))
    suite = importlib.util.module_from_spec(importlib.util.spec_from_loader("suite", loader))
    loader.exec_module(suite)
    paths = sorted(glob.glob(os.path.join(suite.packageCases(arguments.cases), "node", "*", "model.onnx")))
    os.makedirs(arguments.work, exist_ok=True)
    drawn = drawnModels(os.path.join(arguments.work, "drawn"), arguments.seed)
    drawn += writeSeeds(pathlib.Path(arguments.work) / "seeds")
    missing = operatorsOf(os.path.join(arguments.programs, "fusec")) - operatorsIn(paths + drawn)
    if missing:
        print(f"no model to mutate has {', '.join(sorted(missing))}: give one as a seed")
        return 1
    mutator = Mutator(arguments.seed)
    bundle = os.path.join(arguments.work, "bundle")
    counts, failed = collections.Counter(), 0
    for i in range(arguments.count):
        path = mutator.one(drawn if mutator.random.random() < arguments.drawn else paths)
        target = mutator.one(["host", "host", "sim:sm_90"])
        made = mutator.mutate(path)
        if made is None:
            continue
        model, changes = made
        mutant = os.path.join(arguments.work, f"{arguments.seed}-{i}.onnx")
        with open(mutant, "wb") as file:
            file.write(model.SerializeToString())
        code, text = exitCode([os.path.join(arguments.programs, "fusec"), mutant, "-o", bundle, "--target", target])
        wrong = code not in COMPILED
        counts[code] += 1
        if code == 0 and not fillsMemory(model):
            code, text = exitCode([os.path.join(arguments.programs, "fusert"), "run", bundle, "--random", "1",
                                   *(["--target", target] if target.startswith("sim") else [])])
            wrong = code not in RAN
        if wrong:
            failed += 1
            print(f"{mutant}: {target}, exit code {code}; {os.path.basename(os.path.dirname(path))}: {changes}; {text}")
        else:
            os.remove(mutant)
    print(f"seed {arguments.seed}: {sum(counts.values())} mutants, exit codes of fusec {dict(counts)}, {failed} failed")
    return 1 if failed or counts[0] < arguments.count // 20 else 0


sys.exit(main())
