"""Compiles small models, runs them for given sizes and compares every output with ONNX Runtime."""

import argparse
import pathlib
import re
import shutil
import subprocess

import numpy as np
import onnxruntime
from onnx import helper
from compare_models import (
    branch_names,
    broadcast_products,
    far_samples,
    floats,
    identity,
    ints,
    large_unsigned,
    lengths_at_run_time,
    loop,
    never,
    one,
    one_state,
    padded,
    reduced_at_run_time,
    resized_by_whole_factors,
    resized_to_one,
    reverse,
    shapes_of_parameters,
    sparse_constants,
    summed_at_run_time,
    unknown_sizes,
    unpooled,
    until,
)

TARGETS = ("x86-64-v3", "sim:sm_90")


def is_sane(node, x, y):
    """Zeros outside, values of the data (which cubic weights may leave by a half) at and between its borders."""
    attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if attributes["padding_mode"] == b"zeros":
        return not y.any()
    room = 0.5 * np.ptp(x) if attributes["mode"] == b"cubic" else 1e-5
    return bool(((y >= x.min() - room) & (y <= x.max() + room)).all())


# What ONNX calls invalid data: a CPU refuses it. A GPU reads nothing outside the operand: a simulated one would say so.
TOLERATED = [
    ("sequence lengths beyond the sequence", lengths_at_run_time(), {"x": (5, 3, 2), "l": [9, -3, 1 << 62]}),
]
# Name, model, shape of x or all inputs (shapes of floats, lists of integers, or arrays), and the model that the oracle
# runs where it is another.
CASES = [
    ("loop, condition passed on", loop([identity("go", "go2")]), (3,)),
    ("loop, condition passed on twice", loop([identity("go", "t"), identity("t", "go2")]), (3,)),
    ("loop, condition true again", loop([identity("true", "go2")]), (3,)),
    ("loop, carried condition", until(), (3,)),
    ("loop of no rounds", never(0, None), (3,)),
    ("loop of -2 rounds", never(-2, True), (3,)),
    ("loop of a false condition", never(4, False), (3,)),
    ("endless loop of a false condition", never(None, False), (3,)),
    *((f"reshape of even rows, n={n}", one("Reshape", ints("to", [-1, 12])), (n, 6)) for n in (4, 6, 5)),
    *(
        (f"largest of n, n={n}", one("TopK", ints("k", [3]), outputs=("y", "z"), axis=0), (n, 6))
        for n in (3, 9, 2)
    ),
    (
        "slice backwards",
        one("Slice", ints("s", [-1]), ints("e", [-(1 << 63)]), ints("a", [1]), ints("p", [-2]), shape=(2, 6)),
        (2, 6),
    ),
    *(
        (
            f"slice {start}:{end}:{step} of 5",
            one("Slice", ints("s", [start]), ints("e", [end]), ints("a", [0]), ints("p", [step]), shape=(5, 4)),
            (5, 4),
        )
        for start, end, step in (
            (-9, -99, -1),
            (-6, -(1 << 63), -2),
            (-(1 << 63), -(1 << 63), -1),
            (-9, 0, -1),
            (9, -6, -3),
            (7, -9, 1),
        )
    ),
    ("branches that use names of outputs", branch_names(), {"x": (3,), "c": [2]}),
    *(
        (f"{mode} pad that cuts", one("Pad", ints("p", [0, 2, 0, -2]), mode=mode, shape=(2, 6)), (2, 6))
        for mode in ("reflect", "edge", "wrap")
    ),
    *((f"reflecting pad, n={n}", one("Pad", ints("p", [1, 0, 1, 0]), mode="reflect"), (n, 6)) for n in (3, 2)),
    ("reversed sequences", reverse(), (5, 3, 2)),
    *(
        (f"{op} over axes {axes}", reduced_at_run_time(op), {"x": (3, 3, 3, 2), "a": axes})
        for op, axes in (("ReduceSum", [0, 1]), ("ReduceMax", [2, 0]), ("ReduceL2", [-3, -2]))
    ),
    *((f"running sum along {a}", summed_at_run_time(), {"x": (2, 3, 4), "a": [a]}) for a in (0, 1, 2, -2)),
    *(
        (f"pads {pads}, {mode}", padded(mode), {"x": (3, 4), "p": pads})
        for mode in ("constant", "edge", "reflect", "wrap")
        for pads in ([1, 2, 1, -1], [0, 0, 2, 1])
    ),
    ("unpooled", unpooled(), (1, 2, 4, 6)),
    ("global pool", one("GlobalLpPool", shape=("n", 2, 3, 4), p=3), (2, 2, 3, 4)),
    ("floats to u64", *large_unsigned()),
    ("resized to length 1", resized_to_one(), (1, 1, 4, 4)),
    *((f"resized by whole factors, h={h}", resized_by_whole_factors(), (1, 2, h, 3)) for h in (1, 4)),
    ("products that broadcast", *broadcast_products()),
    *(
        (f"{' '.join(map(str, kind))} of one state, n={n}", one_state(*kind), (4, n, 3), one_state(*kind, rows=n))
        for kind, n in (
            (("GRU", 3), 1),
            (("GRU", 3), 3),
            (("LSTM", 4, "bidirectional", True), 3),
            (("RNN", 1, "reverse"), 2),
        )
    ),
    ("sparse constants", sparse_constants(), (2, 3)),
    ("unknown sizes", unknown_sizes(), {"a": (2, 3), "b": (4, 5)}),
    (
        "shapes of parameters",
        shapes_of_parameters(),
        {"x": (2, 3), "q": np.array([[0, 3, 7], [255, 1, 128]], np.uint8)},
    ),
]


def seeds():
    """What mutate.py changes."""
    return [(name, proto) for name, proto, *_ in TOLERATED + CASES]


def ours(options, name, proto, inputs, target):
    """Outputs of the compiled model by name, or what it said."""
    folder = options.work / target.replace(":", "_") / re.sub("[ =,]+", "-", name)
    folder.mkdir(parents=True)
    (folder / "m.onnx").write_bytes(proto.SerializeToString())
    subprocess.run([options.fusec, folder / "m.onnx", "-o", folder / "b", "--target", target], check=True)
    command = [options.fusert, "run", folder / "b", "--target", target, "--output-dir", folder]
    for key, data in inputs.items():
        np.save(folder / f"{key}.npy", data)
        command += ["--input", f"{key}={folder}/{key}.npy"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        return result.stderr.strip()
    return {output.name: np.load(folder / f"{output.name}.npy") for output in proto.graph.output}


def arrays(given):
    made = {list: lambda v: np.array(v, np.int64), tuple: floats, np.ndarray: lambda v: v}
    return {k: made[type(v)](v) for k, v in given.items()}


def run(options, name, proto, given, target, oracle=None):
    """`oracle`: a model that says the same in words that ONNX Runtime takes."""
    inputs = arrays(given if isinstance(given, dict) else {"x": given})
    found = ours(options, name, proto, inputs, target)
    if isinstance(found, str):
        return found
    expected = onnxruntime.InferenceSession((oracle or proto).SerializeToString()).run(None, inputs)
    for output, value in zip(proto.graph.output, expected):
        mine = found[output.name]
        if mine.shape != value.shape or mine.dtype != value.dtype or not np.allclose(mine, value, 1e-5, 1e-6):
            return f"{output.name} differs: {mine} {value}"
    return "same"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fusec", required=True)
    parser.add_argument("--fusert", required=True)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    for name, proto, given, *oracle in CASES:
        answers = [run(options, name, proto, given, target, *oracle) for target in TARGETS]
        print(f"{name}: {answers[0] if answers[0] == answers[1] else answers}")
    for name, proto, given in TOLERATED:
        inputs = arrays(given)
        said, found = (ours(options, name, proto, inputs, target) for target in TARGETS)
        inside = isinstance(found, dict) and np.isin(found["y"], inputs["x"]).all()
        print(f"{name}: {said if isinstance(said, str) else 'runs'}")
        print(f"{name}, on a GPU: {'inside the operand' if inside else found}")
    for rank in (2, 3):
        proto, given = far_samples(rank)
        inputs = arrays(given)
        for target in TARGETS:
            found = ours(options, f"far samples {rank}", proto, inputs, target)
            wrong = found if isinstance(found, str) else [
                n for n in proto.graph.node if not is_sane(n, inputs["x"], found[n.output[0]])
            ]
            print(f"far samples of {rank} axes, {target}: {wrong or 'sane'}")


if __name__ == "__main__":
    main()
