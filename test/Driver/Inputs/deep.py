"""deep.py PROGRAMS FOLDER: models as deep or wide as they are large go through every tool with a stack of 256 KiB, on
which a function that calls itself once an element would end. Says for each kind of model what became of it."""

import functools
import pathlib
import resource
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

programs, folder = map(pathlib.Path, sys.argv[1:])
DEEP = 20000
HALVES = np.full(4, 0.5, np.float32)
PLACES = np.array([4, 6, 1, 3])
PLACED = np.concatenate([PLACES, [7, 6, 5, 0]])


def smallStack():
    resource.setrlimit(resource.RLIMIT_STACK, (256 << 10, 256 << 10))


def run(tool, *arguments):
    """The exit code, and what the tool says."""
    command = [programs / tool, *map(str, arguments)]
    done = subprocess.run(command, preexec_fn=smallStack, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def tensor(name, shape, type=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, type, shape)


def write(path, nodes, inputs, outputs, constants=(), functions=()):
    graph = helper.make_graph(nodes, "deep", inputs, outputs,
                              [numpy_helper.from_array(np.asarray(v), k) for k, v in dict(constants).items()])
    domains = [helper.make_opsetid("", 20)] + ([helper.make_opsetid("own", 1)] if functions else [])
    onnx.save(helper.make_model(graph, opset_imports=domains, functions=functions, ir_version=10), path)


def follow(*steps, count=DEEP, before="x"):
    """`count` nodes in a row; a step is an operator, its operands behind the first, and its attributes."""
    nodes = []
    for i in range(count):
        step = steps[i % len(steps)]
        operator, operands, attributes = step + ([], {})[len(step) - 1:]
        nodes.append(helper.make_node(operator, [before, *operands], [f"t{i}"], **attributes))
        before = f"t{i}"
    return nodes


def chain(path, *steps, shape=(4,), out=None, constants=(), count=DEEP):
    nodes = follow(*steps, count=count)
    write(path, nodes, [tensor("x", shape)], [tensor(nodes[-1].output[0], out or shape)], constants)


def maps(path, count=DEEP):
    chain(path, ("Relu",), ("Add", ["h"]), constants={"h": HALVES}, count=count)


def softmaxes(path):
    chain(path, ("Softmax",), ("Tanh",), count=1000)


def products(path):
    chain(path, ("Relu",), ("MatMul", ["m"]), shape=(4, 4), constants={"m": np.eye(4, dtype=np.float32)}, count=4000)


def identities(path):
    chain(path, ("Identity",))


def casts(path):
    chain(path, ("Cast", [], {"to": TensorProto.FLOAT16}), ("Cast", [], {"to": TensorProto.FLOAT}))


def transposes(path):
    chain(path, ("Transpose", [], {"perm": [1, 0]}), shape=(4, 3))


def reshapes(path):
    chain(path, ("Reshape", ["a"]), ("Reshape", ["b"]), shape=(2, 2), constants={"a": [4], "b": [2, 2]})


def integers(path):
    nodes = follow(("Add", ["w"]), ("Mul", ["w"]), ("Max", ["w"]), count=2000)
    write(path, nodes, [tensor("x", (4,), TensorProto.INT64)], [tensor("t1999", (4,), TensorProto.INT64)],
          {"w": [3, 5, 7, 9]})


def truths(path):
    nodes = follow(("And", ["w"]), ("Not",), ("Xor", ["w"]), count=4000)
    write(path, nodes, [tensor("x", (4,), TensorProto.BOOL)], [tensor("t3999", (4,), TensorProto.BOOL)],
          {"w": [True, False, True, True]})


def gathers(path):
    nodes = [helper.make_node("GatherElements", ["x" if i % 2 else "w", f"t{i - 1}" if i else "i"], [f"t{i}"])
             for i in range(2000)]
    write(path, nodes, [tensor(n, (4,), TensorProto.INT64) for n in ("x", "i")],
          [tensor("t1999", (4,), TensorProto.INT64)], {"w": [3, 2, 1, 0]})


def placed(path):
    """Each result says where the next one lies in both halves of a concatenation: two guarded reads an index."""
    nodes = [helper.make_node("Cast", ["x"], ["p"], to=TensorProto.INT64),
             helper.make_node("Concat", ["p", "w"], ["c"], axis=0),
             *(helper.make_node("GatherElements", ["c", f"t{i - 1}" if i else "p"], [f"t{i}"]) for i in range(64)),
             helper.make_node("Cast", ["t63"], ["y"], to=TensorProto.FLOAT)]
    write(path, nodes, [tensor("x", (4,))], [tensor("y", (4,))], {"w": PLACED[4:]})


def folded(path):
    nodes = follow(("Relu",), ("Add", ["h"]), before="h")
    write(path, nodes + [helper.make_node("Add", ["x", nodes[-1].output[0]], ["y"])], [tensor("x", (4,))],
          [tensor("y", (4,))], {"h": HALVES})


def repeated(path, count=DEEP):
    write(path, [helper.make_node("Sum", ["x"] * count, ["y"])], [tensor("x", (4,))], [tensor("y", (4,))])


def summed(path):
    """Inputs of their own for each operand: constants."""
    names = [f"c{i}" for i in range(DEEP)]
    write(path, [helper.make_node("Sum", [*names, "x"], ["y"])], [tensor("x", (4,))], [tensor("y", (4,))],
          {name: np.full(4, i % 5, np.float32) for i, name in enumerate(names)})


def sliced(path):
    """Inputs of their own for each operand: computed."""
    nodes = [helper.make_node("Mul", ["x", f"c{i}"], [f"s{i}"]) for i in range(4000)]
    write(path, [*nodes, helper.make_node("Sum", [n.output[0] for n in nodes], ["y"])], [tensor("x", (4,))],
          [tensor("y", (4,))], {f"c{i}": np.full(4, i % 5, np.float32) for i in range(4000)})


def outputs(path):
    nodes = [helper.make_node("Relu", ["x"], [f"y{i}"]) for i in range(5000)]
    write(path, nodes, [tensor("x", (4,))], [tensor(n.output[0], (4,)) for n in nodes])


def chainOfFunctions(count):
    calls = [helper.make_node("Relu", ["a"], ["b"])]
    calls += [helper.make_node(f"f{i}", ["a"], ["b"], domain="own") for i in range(count - 1)]
    return [helper.make_function("own", f"f{i}", ["a"], ["b"], [call],
                                 [helper.make_opsetid("", 20), helper.make_opsetid("own", 1)])
            for i, call in enumerate(calls[:count])]


def branches(path, calls=0):
    """If inside of If, as deep as is read, with functions in the innermost one."""
    own = chainOfFunctions(calls)
    body, last = [helper.make_node("Relu", ["x"], ["r"])], "r"
    if calls:
        body = [helper.make_node(own[-1].name, ["x"], ["r"], domain="own")]
    for i in range(32 if calls == 0 else 30):
        graphs = {f"{side}_branch": helper.make_graph(nodes, f"{side}{i}", [], [tensor(name, (4,))])
                  for side, nodes, name in (("then", body, last),
                                            ("else", [helper.make_node("Tanh", ["x"], [f"e{i}"])], f"e{i}"))}
        last = f"b{i}"
        body = [helper.make_node("If", ["c"], [last], **graphs)]
    write(path, body, [tensor("x", (4,)), tensor("c", (), TensorProto.BOOL)], [tensor(last, (4,))], functions=own)


def calls_in_branches(path):
    branches(path, 50)


def too_many_calls(path):
    branches(path, 99)


def loops(path):
    nodes = follow(("Relu",), ("Add", ["h"]), before="v", count=4000)
    inputs = [tensor("i", (), TensorProto.INT64), tensor("go", (), TensorProto.BOOL), tensor("v", (4,))]
    body = helper.make_graph([helper.make_node("Identity", ["go"], ["on"]), *nodes], "body", inputs,
                             [tensor("on", (), TensorProto.BOOL), tensor(nodes[-1].output[0], (4,))])
    write(path, [helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)], [tensor("x", (4,))],
          [tensor("y", (4,))], {"h": HALVES, "trips": np.array(2)})


def functions(path):
    """Functions that call each other, as deep as is read."""
    own = chainOfFunctions(99)
    write(path, [helper.make_node("f98", ["x"], ["y"], domain="own")], [tensor("x", (4,))], [tensor("y", (4,))],
          functions=own)


def sizes(path, *steps, count=DEEP):
    chain(path, *steps, shape=("n",), out=(None,), count=count,
          constants={"one": [1], "zero": [0], "two": [2], "end": [2**62], "pads": [0, 1]})


def padded(path):
    sizes(path, ("Pad", ["pads"]), count=200)


def cut(path):
    sizes(path, ("Slice", ["one", "end"]), count=40)


def halved(path):
    """(n / 2 + n) / 2 + n ...: sizes that no normal form makes shorter."""
    sizes(path, ("Slice", ["zero", "end", "zero", "two"]), ("Concat", ["x"], {"axis": 0}))


VALUES = {maps: (np.zeros(4), DEEP / 4), repeated: (np.arange(4), np.arange(4) * DEEP),
          folded: (np.zeros(4), HALVES * (DEEP / 2 + 1)), loops: (np.zeros(4), np.full(4, 2000.0)),
          placed: (PLACES, functools.reduce(lambda t, _: PLACED[t], range(64), PLACES)),
          summed: (np.arange(4), np.arange(4) + 2 * DEEP), sliced: (np.arange(4), np.arange(4) * 2 * 4000)}
KINDS = [maps, softmaxes, products, identities, casts, transposes, reshapes, integers, truths, gathers, placed, folded,
         repeated, summed, sliced, outputs, branches, loops, functions,
         calls_in_branches, too_many_calls, padded, cut, halved]


def compiled():
    for kind in KINDS:
        model, bundle = folder / f"{kind.__name__}.onnx", folder / f"{kind.__name__}.bundle"
        kind(model)
        code, text = run("fusec", model, "--target=host", "-o", bundle)
        said = text.replace(f"{folder}/", "").splitlines()
        print(f"{kind.__name__}: " + ("compiled" if code == 0 else f"{said[0]}: exit code {code}"))
        if kind in VALUES:
            given, wanted = VALUES[kind]
            np.save(folder / "x.npy", given.astype(np.float32))
            code, text = run("fusert", "run", bundle, "--input", f"x={folder}/x.npy", "--output-dir", folder / "out")
            assert code == 0, text
            got = np.load(next(iter((folder / "out").glob("*.npy"))))
            np.testing.assert_allclose(got, np.broadcast_to(wanted, 4), rtol=1e-3, err_msg=kind.__name__)
            for path in (folder / "out").glob("*.npy"):
                path.unlink()
            print(f"{kind.__name__}: right")


def targets():
    model = folder / "short.onnx"
    maps(model, 2000)
    for target in ("sim:sm_90", "sm_90", "gfx942"):
        for mode in ("none", "fs", "souffle", "powerfusion", "chimera", "mcfuser", "full"):
            code, text = run("fusec", model, f"--target={target}", f"--search-mode={mode}", "-o", folder / "b")
            assert code == 0, text
        print(f"{target}: compiled")
    code, text = run("fusec", "explain", model, "--target=sm_90")
    assert code == 0, text
    print("explained")


def decisions():
    """Written, followed and compared."""
    model = folder / "maps.onnx"
    for options in (["--emit-decisions", folder / "decisions", "-o", folder / "first"],
                    ["--decisions", folder / "decisions", "-o", folder / "second"]):
        code, text = run("fusec", model, "--target=host", *options)
        assert code == 0, text
    code, text = run("fusec", "diff", folder / "first", folder / "second")
    assert code == 0, text
    print("decisions: followed")


def reduced():
    """As long as an addition is left."""
    code, text = run("fusec-reduce", folder / "maps.onnx", "-o", folder / "small.txt", "--", "grep", "-q", "Add(")
    assert code == 0, text
    print("reduced:", sum(" = " in line for line in (folder / "small.txt").read_text().splitlines()), "node")


def dumps():
    """fusec-opt reads, writes and interprets dumps, and fusec goes on from them to the same bundle."""
    model, dump, whole = folder / "short.onnx", folder / "dump", folder / "whole"
    for options in (["-o", whole], ["--stop-after=gir", "--dump-dir", dump]):
        code, text = run("fusec", model, "--target=x86-64-v3", *options)
        assert code == 0, text
    for stage in ("graph", "expr", "plan", "schedule", "gir"):
        for tool, read, wrote in (("fusec-opt", dump / f"{stage}.txt", folder / "again.txt"),
                                  ("fusec", folder / "again.txt", folder / "b")):
            wrote.unlink(missing_ok=True)
            code, text = run(tool, read, "-o", wrote)
            assert code == 0, text
        assert (folder / "b").read_bytes() == whole.read_bytes(), stage
    np.save(folder / "x.npy", np.arange(4, dtype=np.float32))
    for stage in ("graph", "expr", "gir"):
        out = folder / f"out_{stage}"
        code, text = run("fusec-opt", dump / f"{stage}.txt", "--interpret", "--input", f"x={folder}/x.npy",
                         "--output-dir", out)
        assert code == 0, text
        (got,) = out.glob("*.npy")
        np.testing.assert_array_equal(np.load(got), np.arange(4) + np.float32(500), stage)
    print("dumps: same")


def deepText(step, first, last, count, type="f32"):
    """A program whose one equation has `count` times `step` one inside the other."""
    before, lets = first, ""
    for i in range(count):
        lets += f"  let t{i} = {step.format(before)};\n"
        before = f"t{i}"
    return (f"# fusec dump expr x86-64-v3\n=== expr\nexpr deep\ntensor %x: {type}[4] input\n"
            f"tensor %y: {type}[4] output\ninputs (%x)\noutputs (%y)\nmap y [i:4]\n{lets}"
            f"  %y = {last.format(before)}\n")


def guardedReads():
    """As deep as they are read they become code, whether one is what another falls back to or its index."""
    for name, step, count, type in (("fallbacks", "if(lt(i, 3), %x[i], {})", 180, "f32"),
                                    ("indices", "if(lt(i, 3), %x[{}], 2)", 180, "i64")):
        for n in (count, 181):
            (folder / "text.txt").write_text(deepText(step, "%x[i]", "{}", n, type))
            codes = [run("fusec", folder / "text.txt", f"--target={target}", "-o", folder / "b")[0]
                     for target in ("host", "sm_90")]
            print(f"{name} {n}: exit codes {codes}")
        guardedReadsOfKernel(name, deepText(step, "%x[i]", "{}", count, type))


def guardedReadsOfKernel(name, text):
    """Dumps of kernels have the same limit: one more is put around what a kernel of as many stores."""
    deep, deeper = folder / "gir.txt", folder / "deeper.txt"
    (folder / "text.txt").write_text(text)
    code, said = run("fusec", folder / "text.txt", "--target=host", "--stop-after=gir", "--resumable", "--dump-ir=gir")
    assert code == 0, said
    deep.write_text(said)
    lines = said.splitlines()
    (at,) = [i for i, line in enumerate(lines) if line.lstrip().startswith("%t1[")]
    store, value = lines[at].split(" = ", 1)
    index = store.strip()[len("%t1["):-1]
    lines[at] = f"{store} = if(lt({index}, 3), %t0[{index}], {value})"
    deeper.write_text("\n".join(lines) + "\n")
    codes = [run(tool, path, "-o", folder / "b")[0] for path in (deep, deeper) for tool in ("fusec-opt", "fusec")]
    said = run("fusec", deeper, "-o", folder / "b")[1]
    print(f"{name} in a kernel: exit codes {codes}: {said.splitlines()[0].split(': ', 2)[-1]}")


def texts():
    """What no model becomes, and a text can say."""
    head = "expr deep\ntensor %x: f32[4] input\ntensor %y: f32[4] output\ninputs (%x)\noutputs (%y)\nmap y [i:4]\n"
    inside, lets = "  %y = " + "neg(" * DEEP + "%x[i]" + ")" * DEEP + "\n", ""
    for i in range(DEEP):
        lets += f"  let t{i} = neg({f't{i - 1}' if i else '%x[i]'});\n"
    nested = "floordiv(" * DEEP + "1" + ", 2)" * DEEP
    sums = head.replace("f32[4]", "f32[" + "(" * DEEP + "4" + ")" * DEEP + "]", 1)
    for name, text in {"nested": head + inside, "lets": head + lets + f"  %y = t{DEEP - 1}\n",
                       "dims": head.replace("f32[4]", f"f32[{nested}]", 1), "parentheses": sums}.items():
        (folder / "text.txt").write_text(text)
        code, said = run("fusec-opt", folder / "text.txt")
        print(f"{name}: exit code {code}: {said.splitlines()[0].replace(str(folder) + '/', '')[-120:]}")


compiled()
targets()
decisions()
reduced()
dumps()
guardedReads()
texts()
