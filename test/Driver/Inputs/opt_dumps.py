"""opt_dumps.py FUSEC FUSEC_OPT FOLDER: fusec-opt reads and writes the dumps of FOLDER/m.onnx, and runs its programs."""

import pathlib
import subprocess
import sys

import numpy
import onnx

fusec, opt = sys.argv[1:3]
folder = pathlib.Path(sys.argv[3])
model = folder / "m.onnx"


def run(*arguments):
    subprocess.run(arguments, check=True)


def withoutLog(path):
    """A dump without the comments that list what the search considered: they are told, not read."""
    return [line for line in path.read_text().splitlines() if not line.startswith(("# chosen: ", "# considered: "))]


dumps, again = folder / "d", folder / "again"
run(fusec, model, "-o", folder / "b", "--target", "x86-64-v3,sim:sm_90", "--dump-dir", dumps)
again.mkdir()
for stage in ("graph", "expr", "plan", "schedule", "gir"):
    name = f"{stage}.txt"
    run(opt, dumps / name, "-o", again / name)
    assert withoutLog(dumps / name) == withoutLog(again / name), f"{stage}: the text differs"
    run(fusec, again / name, "-o", again / "b")
    assert (folder / "b").read_bytes() == (again / "b").read_bytes(), f"{stage}: the bundle differs"
    print(f"{stage} same")

run(fusec, model, "--target", "x86-64-v3", "--stop-after=gir", "--dump-dir", folder / "one")
graph_input = onnx.load(model).graph.input[0]
sizes = [d.dim_value or 1 for d in graph_input.type.tensor_type.shape.dim]
value = numpy.random.default_rng(3).standard_normal(sizes).astype("float32")
(folder / "x.pb").write_bytes(onnx.numpy_helper.from_array(value).SerializeToString())
first = None
for stage in ("graph", "expr", "gir"):
    out = folder / f"out.{stage}"
    out.mkdir()
    run(opt, folder / "one" / f"{stage}.txt", "--interpret", "--input", f"{graph_input.name}={folder / 'x.pb'}",
        "--output-dir", out)
    results = [numpy.load(path) for path in sorted(out.glob("*.npy"))]
    first = first or results
    assert results and len(results) == len(first), stage
    for got, want in zip(results, first):
        numpy.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
    print(f"{stage} agrees")
