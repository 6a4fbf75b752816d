"""paper_figures.py FUSEC MODELS FOLDER: what Souffle, FusionStitching and PowerFusion say of their plans, asked of
ours. Prints a line for each figure that holds; the figures are in the test."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import paper_models

fusec, models, folder = sys.argv[1:]
node = helper.make_node
FLOAT = 4
TARGETS = "x86-64-v3,sm_80,gfx90a"


def save(name, nodes, inputs, outputs, weights, dtype=TensorProto.FLOAT):
    """inputs: {name: shape}; weights: {name: array}."""
    info = lambda n, shape: helper.make_tensor_value_info(n, dtype, shape)
    infos = lambda tensors: [info(*item) for item in tensors.items()]
    constants = [numpy_helper.from_array(array, n) for n, array in weights.items()]
    graph = helper.make_graph(nodes, name, infos(inputs), infos(outputs), constants)
    path = f"{folder}/{name}.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10), path)
    return path


def explain(path, *options, targets=TARGETS):
    command = [fusec, "explain", path, f"--target={targets}", "--json", *options]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [json.loads(line) for line in lines]


generator = np.random.default_rng(1)


def random(*shape):
    return generator.standard_normal(shape).astype(np.float32)


def totals(found):
    return {key: found["totals"][key] for key in ("launches", "bytes_read", "bytes_written")}


# Every figure holds for the search of its own paper, and for the full one.


def both(path, mode):
    return explain(path, f"--search-mode={mode}") + explain(path)


# FusionStitching, section 1: LayerNorm is one kernel, with one read of x and one write of y; what lies between stays on
# chip. A GPU's instructions read x once too, and with each row the scale and the bias, which caches hold; a CPU's core
# walks over a row three times, which its first cache holds.
rows, width = 4096, 1024
path = save("layernorm", [node("LayerNormalization", ["x", "scale", "bias"], ["y"])], {"x": (rows, width)},
            {"y": (rows, width)}, {"scale": random(width), "bias": random(width)})
for found in both(path, "fs"):
    assert totals(found) == {"launches": 1, "bytes_read": FLOAT * (rows * width + 2 * width),
                             "bytes_written": FLOAT * rows * width}
    assert found["unfused"]["launches"] >= 4
    kernel, = found["kernels"]
    assert {edge["level"] for edge in kernel["edges"]} <= {"register", "shuffle", "shared"}, kernel["edges"]
    walks = 5 if found["target"] == "x86-64-v3" else 3
    asked = [kernel["moved"][field] for field in ("read_bytes", "write_bytes")]
    assert asked == [walks * FLOAT * rows * width, FLOAT * rows * width], (found["target"], asked)
print("layernorm: one kernel, one write, one read by a GPU's instructions")

# PowerFusion, section 2: concat, channel shuffle and split of a ShuffleNet block move the inputs and the outputs, once,
# and nothing waits for the whole device.
channels, size = 58, 28
half = (1, channels, size, size)
nodes = [node("Concat", ["a", "b"], ["c"], axis=1), node("Reshape", ["c", "apart"], ["d"]),
         node("Transpose", ["d"], ["e"], perm=[0, 2, 1, 3, 4]), node("Reshape", ["e", "together"], ["f"]),
         node("Split", ["f"], ["y", "z"], axis=1, num_outputs=2)]
path = save("shuffle", nodes, {"a": half, "b": half}, {"y": half, "z": half},
            {"apart": np.array([1, 2, channels, size, size]), "together": np.array([1, 2 * channels, size, size])})
for found in both(path, "powerfusion"):
    each = 2 * FLOAT * channels * size * size
    assert found["totals"]["bytes_read"] == found["totals"]["bytes_written"] == each, totals(found)
    assert not any(edge["level"] in ("device", "barrier") for kernel in found["kernels"] for edge in kernel["edges"])
    assert all(not kernel["phase_starts"] for kernel in found["kernels"])
    print(f"shuffle: {found['totals']['launches']} kernel(s) on {found['target']}")

# Souffle, section 8.4: squeeze-and-excitation blocks. The gate of a channel needs the means of all of them, and y needs
# the gate: where blocks share the work, they wait for each other in between. On a GPU each thread holds in registers
# what it has read of x for the means, so that x is read once. What blocks hand to each other, means, the inner layer
# and gates, is written once and read once. A CPU's blocks hold nothing behind a barrier, and read x again; one block
# would read it once, on one core, in nine times as long: no search takes it.


def handed(found, channels, reduced):
    """Elements of the values that go through device memory, inside of kernels and between them."""
    elements = {"m.acc": channels, "m": channels, "h": reduced, "r": reduced, "g": channels, "s": channels}
    tensors, parts = {a["tensor"] for a in found["apart"]}, 1
    for kernel in found["kernels"]:
        tensors |= {e["tensor"] for e in kernel["edges"] if e["level"] in ("device", "barrier", "counters")}
        for line in kernel["schedules"][-1]:
            if split := re.search(r'via "two-phase" (\d+)', line):
                parts = int(split[1])
    return sum(elements[t.removesuffix(".part")] * (parts if t.endswith(".part") else 1) for t in tensors)


BLOCKS = (("M0", 112, 32, 8, 3213312, 4818944), ("M2", 56, 144, 6, 3619584, 5425920),
          ("M9", 7, 1152, 48, 893952, 1119744))  # bytes with one read of x, and with two
for name, height, channels, reduced, once, twice in BLOCKS:
    shape = (1, channels, height, height)
    nodes = [node("GlobalAveragePool", ["x"], ["m"]), node("Conv", ["m", "w"], ["h"]), node("Relu", ["h"], ["r"]),
             node("Conv", ["r", "v"], ["g"]), node("Sigmoid", ["g"], ["s"]), node("Mul", ["x", "s"], ["y"])]
    path = save(name, nodes, {"x": shape}, {"y": shape},
                {"w": random(reduced, channels, 1, 1), "v": random(channels, reduced, 1, 1)})
    for mode in ("souffle", "full"):
        for found in explain(path, f"--search-mode={mode}"):
            where = name, mode, found["target"]
            moved = found["totals"]["bytes_read"] + found["totals"]["bytes_written"]
            between = handed(found, channels, reduced)
            held = [h["tensor"] for kernel in found["kernels"] for h in kernel["held"]]
            # Held, y is made by as many blocks as there are rows to sum: 32 in M0, where the full search takes more.
            holds = found["target"] == "sm_80" and (mode == "souffle" or name != "M0")
            assert held == (["x"] if holds else []), where
            footprint = once if holds else twice
            assert between > 0 and moved == footprint + 2 * FLOAT * between, (where, moved, between)
            # From the shapes alone: the six values between x and y, written once and read once.
            assert moved <= footprint + 2 * FLOAT * (4 * channels + 2 * reduced), (where, moved)
            print(f"{name}: {found['totals']['launches']} kernels by {mode} on {found['target']}"
                  f"{', x is held' if held else ''}")

# FusionStitching, table 2: of BERT's kernels beside the contractions (inference), 77 stay of the 277 of basic fusion.
path = f"{models}/bert128.onnx"
products = [n for n in onnx.load(path).graph.node if n.op_type in ("MatMul", "Gemm")]
contractions = {n.name for n in products}
memory = lambda found: sum(not contractions & set(kernel["nodes"]) for kernel in found["kernels"])
stitched = explain(path, "--search-mode=fs")
for fused, basic in zip(stitched, explain(path, "--search-mode=none")):
    share = memory(fused) / memory(basic)
    assert share <= 77 / 277, (share, fused["target"])
    print(f"bert: {memory(fused)} of {memory(basic)} kernels beside contractions on {fused['target']}")


def waits(found):
    """Blocks wait for each other: in phases, or in the rounds of a scan."""
    return any("barrier" in line for kernel in found["kernels"] for text in kernel["schedules"] for line in text)


# FusionStitching, section 4.1: no blocks wait for each other; contractions belong to libraries. PowerFusion leaves them
# there too.
path_of_long = save("long", [node("Softmax", ["x"], ["y"])], {"x": (1, 1 << 20)}, {"y": (1, 1 << 20)}, {})
assert any(waits(found) for found in explain(path_of_long))
for found in explain(path_of_long, "--search-mode=fs") + stitched:
    assert not waits(found), found["target"]
results = {name for n in products for name in n.output}
alone = set()
for found in stitched + explain(path, "--search-mode=powerfusion"):
    for kernel in found["kernels"]:
        starts = [0] + kernel["phase_starts"] + [len(kernel["equations"])]
        for begin, end in zip(starts, starts[1:]):
            equations = set(kernel["equations"][begin:end])
            assert not results & equations or len(equations) == 1, (found["target"], equations)
            alone |= results & equations
assert alone == results  # each is one of the equations
print("contractions stay alone, blocks of stitched kernels do not wait")

# Souffle, section 8.3: BERT in two kernels a layer at most, where a barrier of the device costs less than a launch.
layers = sum(n.op_type == "Softmax" for n in onnx.load(path).graph.node)
for found in both(path, "souffle"):
    if found["target"] == "sm_80":
        assert layers > 0 and found["totals"]["launches"] <= 2 * layers, totals(found)
        print(f"bert: {found['totals']['launches']} kernels in {layers} layers on sm_80")

# FusionStitching, table 2 again: of a Transformer's 903 kernels beside the contractions 423 stay, of CRNN's 993 311 (on
# an NVIDIA GPU), and CRNN moves 225.8 MB in place of 667.6. Their Transformer is trained, with gradients; ours is one
# layer of encoder and decoder each; of CRNN it is the recurrent part: next to nothing stands between its convolutions.
# Kernels are counted from those with element-wise chains fused, as in the table; bytes from those of each node alone.
# On gfx90a of CRNN's 48 kernels 16 stay, a third: there each output joins the backward cell that it reads, which then
# waits for the forward ones and goes beside none of them.
CRNN_KERNELS = {"x86-64-v3": 311 / 993, "sm_80": 311 / 993, "gfx90a": 16 / 48}


def beside(found):
    """Kernels without a contraction, and the bytes of those with one."""
    holds = [any(name.startswith("product ") for name in kernel["nodes"]) for kernel in found["kernels"]]
    return holds.count(False), sum(k["bytes_read"] + k["bytes_written"] for k, c in zip(found["kernels"], holds) if c)


tokens, width, steps, batch = 32, 64, 4, 8
layers = paper_models.Layers(width, heads=4, inner=128)
result = paper_models.transformer(layers, tokens)
path = save("transformer", layers.nodes, {"x": (tokens, width), "y": (tokens, width)}, {result: (tokens, width)},
            layers.weights)
for fused, basic in zip(explain(path, "--search-mode=fs"), explain(path, "--search-mode=none")):
    assert 0 < beside(fused)[0] <= 423 / 903 * beside(basic)[0], (fused["target"], beside(fused), beside(basic))
    print(f"transformer: {beside(fused)[0]} of {beside(basic)[0]} kernels beside contractions on {fused['target']}")
layers = paper_models.Layers(16, heads=1, inner=0)
results = paper_models.recurrent(layers, batch, steps, width // 2)
path = save("crnn", layers.nodes, {f"x{t}": (batch, 16) for t in range(steps)},
            {name: (batch, width) for name in results}, layers.weights)
for fused, basic in zip(explain(path, "--search-mode=fs"), explain(path, "--search-mode=none")):
    (kernels, ofProducts), (before, ofProductsBefore) = beside(fused), beside(basic)
    moved = lambda sums: sums["bytes_read"] + sums["bytes_written"]
    share = (moved(fused["totals"]) - ofProducts) / (moved(basic["uncomposed"]) - ofProductsBefore)
    assert 0 < share <= 225.8 / 667.6, (fused["target"], share)
    assert 0 < kernels <= CRNN_KERNELS[fused["target"]] * before, (fused["target"], kernels, before)
    more = f", more than FusionStitching's {311 / 993:.0%}" if kernels > 311 / 993 * before else ""
    print(f"crnn: {kernels} of {before} kernels beside contractions, {share:.2f} of the bytes on "
          f"{fused['target']}{more}")

# Souffle, tables 4 and 6: BERT-base in half precision, 384 tokens; three layers of the twelve. The products of twelve
# have 169,869,312 bytes of weights, which a plan reads. TensorRT takes 10 kernels a layer, Souffle 2, and so it is here
# where a launch runs no kernel twice, so that layers share code.
tokens, width, inner, count = 384, 768, 3072, 3
layers = paper_models.Layers(width, 12, inner, np.float16)
result = "x"
for layer in range(count):
    result = layers.forward(layers.attention(result, result, f"a{layer}"), f"f{layer}", "Gelu")
path = save("bert-base", layers.nodes, {"x": (tokens, width)}, {result: (tokens, width)}, layers.weights,
            TensorProto.FLOAT16)
HALF = 2
basic, = explain(path, "--search-mode=none", targets="sm_80")
products = [k for k in basic["kernels"] if k["equations"][0].endswith(".p.acc")]
activations = tokens * (5 * width + inner)
ofWeights = 12 // count * (sum(k["bytes_read"] for k in products) - HALF * count * activations)
assert len(products) == 6 * count and ofWeights == 169_869_312, (len(products), ofWeights)
for found in explain(path, "--search-mode=souffle", targets="sm_80") + explain(path, targets="sm_80"):
    launches = found["totals"]["launches"]
    assert 12 // count * found["totals"]["bytes_read"] > ofWeights and launches <= 2 * count, totals(found)
    barred = {a["to"] for a in found["apart"] if a["to"] == a["from"] + 1 and "share their code" in a["reason"]}
    assert barred == set(range(1, launches)), (barred, launches)
    print(f"bert-base: {launches} kernels in {count} layers, {ofWeights} bytes of weights in twelve")

# Souffle, section 8.4 and table 6: an LSTM of ten layers and a hundred steps is one kernel, a wavefront of the layers'
# cells, in 109 rounds. Its footprint holds 20,971,520 bytes of weights, each once, beside the inputs and what is handed
# on; its threads read them once (section 6.5) and hold them in registers and shared memory from round to round.
steps, width, layers = 100, 256, 10
nodes, weights, before = [], {}, "x"
for layer in range(layers):
    weights[f"w{layer}"], weights[f"r{layer}"] = random(1, 4 * width, width), random(1, 4 * width, width)
    nodes += [node("LSTM", [before, f"w{layer}", f"r{layer}"], [f"h{layer}"], hidden_size=width),
              node("Squeeze", [f"h{layer}", "direction"], [f"s{layer}"])]
    before = f"s{layer}"
nodes[-1].output[0] = "y"
path = save("lstm", nodes, {"x": (steps, 1, width)}, {"y": (steps, 1, width)}, {**weights, "direction": np.array([1])})
assert not any(waits(found) for found in explain(path, "--search-mode=fs"))
ofWeights, ofSteps, state = 20_971_520, FLOAT * steps * width, FLOAT * width
gir = subprocess.run([fusec, path, "--target=sm_80", "--stop-after=gir", "--dump-ir=gir"], check=True,
                     capture_output=True, text=True).stdout
assert re.findall(r"^  rounds \(\w+: (\d+)\) {$", gir, re.MULTILINE) == ["109"]  # blocks wait behind each
for found in both(path, "souffle"):
    if found["target"] != "sm_80":
        continue
    moved = totals(found)
    # Sums of the gates, and states twice, from phase to phase and step to step.
    handed = moved["bytes_written"] - ofSteps
    assert 0 < handed <= FLOAT * width * (12 * layers + 1), handed
    assert moved["launches"] == 1 and moved["bytes_read"] == ofWeights + ofSteps + state + handed, moved
    assert found["kernels"][0]["predicted_s"] < found["unfused"]["predicted_s"] / 5
    chosen = os.path.join(folder, "lstm.txt")
    explain(path, "--search-mode=souffle", f"--emit-decisions={chosen}", targets="sm_80")
    held = re.findall(r"^  keep (e\d+\.r\d+) (register|shared) from \1$", open(chosen).read(), re.MULTILINE)
    assert sorted(level for _, level in held) == layers * ["register"] + layers * ["shared"], held
    print(f"lstm: 1 kernel on sm_80, {ofWeights} bytes of weights, read once by {len(held)} loads")

# Souffle, Fig. 3: two products whose results lie side by side in one tensor are one kernel, which moves each operand
# and the result once.
pair = {"a0": (4, 8), "b0": (8, 16), "a1": (2, 8), "b1": (8, 16)}
nodes = [node("MatMul", ["a0", "b0"], ["c0"]), node("MatMul", ["a1", "b1"], ["c1"]),
         node("Concat", ["c0", "c1"], ["c"], axis=0)]
path = save("pair", nodes, pair, {"c": (6, 16)}, {})
for found in both(path, "souffle"):
    read = FLOAT * sum(int(np.prod(shape)) for shape in pair.values())
    assert found["totals"]["launches"] == 1
    # Where a barrier of the device costs little, two phases are faster still, for no more bytes than the equations take
    # apart: both products beside each other, then c.
    if not found["kernels"][0]["phase_starts"]:
        assert totals(found) == {"launches": 1, "bytes_read": read, "bytes_written": FLOAT * 6 * 16}, totals(found)
    else:
        unfused = found["unfused"]
        assert found["target"] == "sm_80"
        assert all(totals(found)[key] <= unfused[key] for key in ("bytes_read", "bytes_written")), totals(found)
    assert found["unfused"]["launches"] == 3
print("two products: one kernel")

# Souffle, table 5: MMoE (100 inputs, 8 experts of 16 units, 2 tasks) has 58,576 bytes of weights, biases and input. It
# is one kernel where a barrier of the device costs less than a launch, and two at most on the other GPU: the second
# part reads the input again, and the experts' units pass between them, and at most one gate's logits, so that more
# blocks share the products.
inputs, units, experts, tasks = 100, 16, 8, 2
nodes, weights, outputs = [], {}, {}


def linear(x, name, width):
    weights[f"w_{name}"], weights[f"b_{name}"] = random(inputs, width), random(width)
    nodes.append(node("Gemm", [x, f"w_{name}", f"b_{name}"], [name]))


for e in range(experts):
    linear("x", f"e{e}", units)
    nodes += [node("Relu", [f"e{e}"], [f"r{e}"]), node("Unsqueeze", [f"r{e}", "two"], [f"u{e}"])]
nodes.append(node("Concat", [f"u{e}" for e in range(experts)], ["all"], axis=2))
for t in range(tasks):
    linear("x", f"g{t}", experts)
    nodes += [node("Softmax", [f"g{t}"], [f"s{t}"], axis=-1), node("Unsqueeze", [f"s{t}", "one"], [f"v{t}"]),
              node("Mul", ["all", f"v{t}"], [f"m{t}"]), node("ReduceSum", [f"m{t}", "two"], [f"y{t}"], keepdims=0)]
    outputs[f"y{t}"] = (1, units)
weights |= {"one": np.array([1]), "two": np.array([2])}
path = save("mmoe", nodes, {"x": (1, inputs)}, outputs, weights)
weighs, passed, result = 58_576, FLOAT * experts * (units + 1), FLOAT * tasks * units
for found in both(path, "souffle"):
    if found["target"] == "x86-64-v3":
        continue
    assert found["totals"]["launches"] <= (1 if found["target"] == "sm_80" else 2), totals(found)
    assert weighs <= found["totals"]["bytes_read"] <= weighs + FLOAT * inputs + passed, totals(found)
    assert result <= found["totals"]["bytes_written"] <= result + passed, totals(found)
    print(f"mmoe: {found['totals']['launches']} kernels on {found['target']}")
