"""replay.py FUSEC FOLDER MODEL...: decisions are written, told by the bundle, and followed."""

import pathlib
import subprocess
import sys

import numpy
import onnx
from onnx import numpy_helper

fusec, folder, *models = sys.argv[1:]
folder = pathlib.Path(folder)
targets = "x86-64-v3,sm_90,gfx942"


def run(*arguments):
    subprocess.run([fusec, *map(str, arguments)], check=True, stderr=subprocess.DEVNULL)


def bundle(*arguments):
    run("-o", folder / "out", "--ptxas", "none", *arguments)
    return (folder / "out").read_bytes()


def others(path, to):
    """The same model with other numbers in its large float weights."""
    model = onnx.load(path)
    changed = 0
    for tensor in model.graph.initializer:
        value = numpy_helper.to_array(tensor)
        if value.dtype == numpy.float32 and value.size > 8:
            tensor.CopyFrom(numpy_helper.from_array(value + numpy.float32(0.125), tensor.name))
            changed += 1
    onnx.save(model, to)
    return changed


for name in models:
    path, text, again = folder / f"{name}.onnx", folder / f"{name}.txt", folder / f"{name}.again"
    dumps = folder / f"{name}.d"
    both = bundle(path, "--target", targets, "--emit-decisions", text, "--dump-dir", dumps)
    run(path, "--target", targets, "--emit-decisions", again)
    assert text.read_bytes() == again.read_bytes(), "the same with a bundle and without"
    done = ["written"]

    assert bundle(path, "--target", targets, "--decisions", text, "--emit-decisions", again) == both
    assert text.read_bytes() == again.read_bytes(), "a replay writes what it read"
    assert bundle(path, "--target", "sm_90", "--decisions", text) == bundle(path, "--target", "sm_90")
    done.append("replayed")

    for section in text.read_bytes().split(b"=== target ")[1:]:
        assert section.split(b"\n", 1)[1] in both
    done.append("in the bundle")

    for stage in ("graph", "expr", "plan", "schedule", "gir"):
        run(dumps / f"{stage}.txt", "--emit-decisions", again)
        assert text.read_bytes() == again.read_bytes(), stage
    assert bundle(dumps / "expr.txt", "--decisions", text) == both
    done.append("from dumps")

    changed = folder / f"{name}.changed.onnx"
    if others(path, changed):
        follow = bundle(changed, "--target", targets, "--decisions", text)
        assert follow == bundle(changed, "--target", targets) and follow != both
        done.append("other weights")
    print(f"{name}: {', '.join(done)}")
