"""Inputs with default values: default_inputs.py FUSEC FUSERT FUSEC_OPT FUSEC_REDUCE FOLDER
Compiles models whose initialisers are inputs too, and compares runs that give some of them with ONNX Runtime."""

import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

fusec, fusert, fusec_opt, fusec_reduce = sys.argv[1:5]
folder = pathlib.Path(sys.argv[5])
folder.mkdir(parents=True, exist_ok=True)
rng = np.random.default_rng(1)
node = helper.make_node
TYPES = {"float32": "FLOAT", "float16": "FLOAT16", "float64": "DOUBLE", "int64": "INT64", "bool": "BOOL"}


def info(name, value, shape=None):
    kind = getattr(TensorProto, TYPES[value.dtype.name])
    return helper.make_tensor_value_info(name, kind, value.shape if shape is None else shape)


def output(name, kind):
    return helper.make_tensor_value_info(name, kind, None)


def save(name, nodes, required, defaults, outputs, version=8, shapes=None, constants=()):
    """`required` and `defaults` are values by name; the former are given in every run."""
    shapes = shapes or {}
    infos = [info(k, v, shapes.get(k)) for k, v in (required | defaults).items()]
    data = [numpy_helper.from_array(v, k) for k, v in [*defaults.items(), *constants]]
    graph = helper.make_graph(nodes, "g", infos, [output(*o) for o in outputs], data)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 8 if version < 5 else 17)])
    model.ir_version = version
    path = folder / f"{name}.onnx"
    onnx.save(model, path)
    return path


def call(*command):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    return (result.stdout + result.stderr).strip()


def compile(path, *options, bundle=folder / "b"):
    """Without the warning of which runs there may be."""
    text = call(fusec, path, "-o", bundle, *options)
    for line in text.splitlines():
        if "W0005" not in line:
            print(line.replace(f"{folder}/", ""))
    return bundle


def listed(bundle):
    return "|".join(line[6:] for line in call(fusert, "info", bundle).splitlines() if line.startswith("input"))


def run(bundle, given, *options):
    """The outputs by name, or what fusert says."""
    out = folder / "out"
    for old in out.glob("*.npy"):
        old.unlink()
    command = [fusert, "run", bundle, "--output-dir", out, *options]
    for name, value in given.items():
        np.save(folder / f"{name}.npy", value)
        command += ["--input", f"{name}={folder}/{name}.npy"]
    text = call(*command)
    return {p.stem: np.load(p) for p in out.glob("*.npy")} or text


def compare(path, bundle, given, *options):
    made = run(bundle, given, *options)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # not that an initialiser is an input too
    session = onnxruntime.InferenceSession(path, options)
    names = [o.name for o in session.get_outputs()]
    for name, want in zip(names, session.run(names, given)):
        if name not in made:
            return made
        same = made[name].dtype == want.dtype and made[name].shape == want.shape
        if not same or not np.allclose(made[name], want, 1e-4, 1e-4):
            return f"{name} is {made[name]}, not {want}"
    return "right"


x = rng.standard_normal((2, 3)).astype(np.float32)
DEFAULTS = {
    "w": rng.standard_normal((3, 4)).astype(np.float32),
    "b": rng.standard_normal(4).astype(np.float32),  # used twice
    "k": np.array(5, np.int64),
    "choice": np.array([[True], [False]]),
    "h": rng.standard_normal((2, 1, 2, 3)).astype(np.float16),
    "at": np.array([1, 0, -1], np.int64),
    "turn": np.array(True),  # decides a branch
    "trips": np.array(2, np.int64),
    "inner": np.array(0.5, np.float32),  # read by a branch and the body of a loop alone
    "passed": np.array([1.5, -2.5]),  # an output, as it is
    "unused": np.ones(5, np.float32),
}
OTHERS = {k: v[::-1].copy() if v.ndim else np.array(3, v.dtype) for k, v in DEFAULTS.items()}
OTHERS["b"] = OTHERS["b"] + 1
OTHERS["h"] = OTHERS["h"] * np.float16(2)
OTHERS["choice"] = np.array([[True], [True]])
OTHERS["turn"] = np.array(False)
KINDS = {"y": TensorProto.FLOAT, "i": TensorProto.INT64, "z": TensorProto.FLOAT16, "c": TensorProto.FLOAT}
KINDS |= {"r": TensorProto.FLOAT, "t": TensorProto.FLOAT, "passed": TensorProto.DOUBLE}


def branch(name, op):
    made = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
    return helper.make_graph([node(op, ["x", "inner"], [name])], name, [], [made])


def loop_body():
    ins = [helper.make_tensor_value_info(*i) for i in (("n", TensorProto.INT64, []), ("go", TensorProto.BOOL, []))]
    state = helper.make_tensor_value_info("s", TensorProto.FLOAT, [2, 3])
    outs = [helper.make_tensor_value_info("gone", TensorProto.BOOL, []), output("u", TensorProto.FLOAT)]
    nodes = [node("Mul", ["s", "inner"], ["u"]), node("Identity", ["go"], ["gone"])]
    return helper.make_graph(nodes, "l", [*ins, state], outs)


def all_kinds(version=8, rows=2):
    nodes = [
        node("MatMul", ["x", "w"], ["p"]),
        node("Add", ["b", "b"], ["bb"]),
        node("Add", ["p", "bb"], ["y"]),
        node("Add", ["k", "k"], ["i"]),
        node("Mul", ["h", "h"], ["z"]),
        node("Where", ["choice", "x", "inner"], ["c"]),
        node("Gather", ["x", "at"], ["g"], axis=1),
        node("If", ["turn"], ["v"], then_branch=branch("th", "Add"), else_branch=branch("el", "Mul")),
        node("Add", ["g", "v"], ["r"]),
        node("Loop", ["trips", "", "x"], ["t"], body=loop_body()),
    ]
    return save("kinds", nodes, {"x": x}, DEFAULTS, KINDS.items(), version, {"b": ("columns",)})


def linear(name, version=8, rows=2):
    """x * w + b + b"""
    nodes = [node("MatMul", ["x", "w"], ["p"]), node("Add", ["b", "b"], ["bb"]), node("Add", ["p", "bb"], ["y"])]
    defaults = {k: DEFAULTS[k] for k in "wb"}
    return save(name, nodes, {"x": x}, defaults, [("y", TensorProto.FLOAT)], version, {"x": (rows, 3)})


def shown(names):
    return " and ".join(names) or "nothing"


path = all_kinds()
bundle = compile(path, "--target=x86-64-v3,sim:sm_90")
print(listed(bundle))
for target in ("x86-64-v3", "sim:sm_90"):
    for names in ((), ("w", "k", "h"), ("b", "choice", "at", "inner"), ("turn", "trips", "passed", "unused"), DEFAULTS):
        given = {"x": x} | {n: OTHERS[n] for n in names}
        told = "everything" if names is DEFAULTS else shown(names)
        print(f"{target}, {told} given:", compare(path, bundle, given, "--target", target))

for version in (3, 4, 10):
    path = linear(f"version{version}", version)
    bundle = compile(path)
    print(f"version {version}: {listed(bundle)}:", compare(path, bundle, {"x": x}))
    other = {"x": x, "w": OTHERS["w"]}
    print(f"version {version}, w given:", run(bundle, other) if version < 4 else compare(path, bundle, other))

path = linear("rows", rows="n")
bundle = compile(path)
told = json.loads(call(fusert, "info", bundle, "--json"))["inputs"]
print(*(f"{v['name']} {v['shape']} {v.get('optional')}" for v in told))
for names in ("", "b", "wb"):
    given = {"x": x} | {n: OTHERS[n] for n in names}
    print(f"symbolic rows, {shown(names)} given:", compare(path, bundle, given))
print("b too long:", run(bundle, {"x": x, "b": np.ones(5, np.float32)}))
path = linear("fixed")
bundle = compile(path)
print("b too long:", run(bundle, {"x": x, "b": np.ones(5, np.float32)}))
print("b of doubles:", run(bundle, {"x": x, "b": np.ones(4)}))
call(fusert, "run", bundle, "--random=1", "--input", f"x={folder}/x.npy", "--output-dir", folder)
same = np.allclose(np.load(folder / "y.npy"), x @ DEFAULTS["w"] + 2 * DEFAULTS["b"], 1e-4, 1e-4)
print("random inputs leave defaults alone:", same)
print("x missing:", run(bundle, {}))
compile(path, "--dump-dir", folder / "one", "--target=x86-64-v3")
for stage in (path, *(folder / "one" / f"{name}.txt" for name in ("graph", "expr", "gir"))):
    given = [word for name in ("x", "b") for word in ("--input", f"{name}={folder}/{name}.npy")]
    for inputs, b in ((given[:2], DEFAULTS["b"]), (given, OTHERS["b"])):
        np.save(folder / "b.npy", b)
        text = call(fusec_opt, stage, "--interpret", *inputs, "--output-dir", folder / "opt")
        made = np.load(folder / "opt" / "y.npy")
        print(f"{stage.name} interpreted:", np.allclose(made, x @ DEFAULTS["w"] + 2 * b, 1e-4, 1e-4) or text)

compile(path, "--dump-dir", folder / "dump", "--target=x86-64-v3,sim:sm_90", bundle=folder / "dumped")
for stage in ("graph", "expr", "plan", "schedule", "gir"):
    again = compile(folder / "dump" / f"{stage}.txt", bundle=folder / "again")
    same = (folder / "dumped").read_bytes() == again.read_bytes()
    print(f"from a dump of {stage}:", "the same bundle" if same else "another bundle")

big = onnx.load(path)
onnx.save(big, folder / "outside.onnx", save_as_external_data=True, size_threshold=0, location="outside.bin")
print("data of their own file:", compare(path, compile(folder / "outside.onnx"), {"x": x, "b": OTHERS["b"]}))

np.save(folder / "w2.npy", OTHERS["w"])
bundle = compile(path, "--set-input", f"w=@{folder}/w2.npy")
want = compare(path, bundle, {"x": x})
made = run(bundle, {"x": x})["y"]
print("w set:", listed(bundle), np.allclose(made, x @ OTHERS["w"] + 2 * DEFAULTS["b"], 1e-4, 1e-4))
bundle = compile(path, "--constant-initializers")
print("constants:", listed(bundle), compare(path, bundle, {"x": x}))
bundle = compile(path, "--shape", "w:[3,m]", "--shape", "b:4", "--dim", "m=4")
print("shape given:", listed(bundle), compare(path, bundle, {"x": x}))
bundle = compile(path, "--shape", "w:[3,m]", "--shape", "b:[m]", "--dim", "m=2..8")
print("sizes open:", listed(bundle), run(bundle, {"x": x}))
for given in (OTHERS, {"w": np.ones((3, 5), np.float32), "b": np.arange(5, dtype=np.float32)}):
    given = {"x": x, "w": given["w"], "b": given["b"]}
    made = run(bundle, given)["y"]
    print("sizes open, given:", np.allclose(made, x @ given["w"] + 2 * given["b"], 1e-4, 1e-4))

still = f"grep -q MatMul $0 && {fusec_opt} $0 > {folder}/opt.txt"
call(fusec_reduce, path, "-o", folder / "small.txt", "--", "sh", "-c", still)
text = (folder / "small.txt").read_text()
print("reduced:", *(line for line in text.splitlines() if line.startswith("input") and "default" in line))
