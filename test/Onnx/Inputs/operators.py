"""Forms of operators that the cases of the onnx package lack: compiles and runs each on the CPU and a simulated GPU,
and compares every output with onnx's reference evaluator, or with values that stand here."""

import argparse
import pathlib
import shutil

import numpy as np
from compare import TARGETS, ours
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

RNG = np.random.default_rng(3)


def tensor_info(name, array):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def case(name, op, opset, inputs, expected=None, outputs=("y",), constants=(), tolerance=1e-5, **attributes):
    """`inputs` by name in the operator's order, None where one is left out; those of `constants` are initialisers."""
    operands = [key if value is not None else "" for key, value in inputs.items()]
    given = {key: np.asarray(value) for key, value in inputs.items() if value is not None}
    node = helper.make_node(op, operands, list(outputs), name="n", **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [tensor_info(key, value) for key, value in given.items() if key not in constants],
        [helper.make_empty_tensor_value_info(o) for o in outputs],
        [numpy_helper.from_array(given[key], key) for key in constants],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    fed = {key: value for key, value in given.items() if key not in constants}
    return name, proto, fed, expected, tolerance


# --- element-wise ---


def floor_remainder(dtype):
    a = np.array([5.5, -5.5, 5.5, -5.5, 0.0, -0.0, 0.0, -6.0, 1.0, 1.0, -2.0, np.inf, 3.0, np.nan], dtype)
    b = np.array([2.0, 2.0, -2.0, -2.0, 3.0, 3.0, -3.0, -3.0, np.inf, -np.inf, np.inf, 2.0, 0.0, 1.0], dtype)
    y = np.array([1.5, 0.5, -0.5, -1.5, 0.0, 0.0, -0.0, -0.0, 1.0, -np.inf, np.inf, np.nan, np.nan, np.nan], dtype)
    return case(f"floor remainder of {np.dtype(dtype)}", "Mod", 28, {"a": a, "b": b}, [y], tolerance=0)


def shifts(dtype, direction):
    bits = np.iinfo(dtype).bits
    x = np.array([-100, 100, -1, 1, np.iinfo(dtype).min, np.iinfo(dtype).max, -7, 7], dtype)[:, None]
    s = np.array([0, 1, 3, bits - 1, bits, bits + 1, -1], dtype)
    wide, counts = [[int(v) for v in r] for r in x], [int(v) for v in s]
    right = lambda v, c: v >> c if 0 <= c < bits else (-1 if v < 0 else 0)
    left = lambda v, c: v << c if 0 <= c < bits else 0
    made = [[(left if direction == "LEFT" else right)(v, c) % (1 << bits) for c in counts] for (v,) in wide]
    y = np.array(made, np.uint64).astype(np.dtype(f"u{np.dtype(dtype).itemsize}")).view(dtype)
    return case(f"{direction} shift of {np.dtype(dtype)}", "BitShift", 28, {"x": x, "s": s}, [y], direction=direction)


def in_blocks(mode, block, dtype):
    x = RNG.integers(-50, 50, (2, 3, 2 * block, 3 * block)).astype(dtype)
    n, c, h, w = x.shape
    t = x.reshape(n, c, h // block, block, w // block, block)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    y = t.transpose(order).reshape(n, c * block * block, h // block, w // block)
    return case(f"{mode} blocks of {block}, {np.dtype(dtype)}", "SpaceToDepth", 28, {"x": x}, [y], blocksize=block,
                mode=mode)


CASES = [
    *(floor_remainder(t) for t in (np.float16, np.float32, np.float64)),
    *(shifts(t, d) for t in (np.int8, np.int16, np.int32, np.int64) for d in ("LEFT", "RIGHT")),
    *(in_blocks(m, b, t) for m, b, t in (("DCR", 2, np.float32), ("CRD", 2, np.int8), ("CRD", 3, np.float16))),
]


def run(options, name, proto, inputs, expected, tolerance, target):
    found = ours(options, name, proto, inputs, target)
    if isinstance(found, str):
        return found
    if expected is None:
        expected = ReferenceEvaluator(proto).run(None, inputs)
    for output, value in zip(proto.graph.output, expected):
        mine = found[output.name]
        if mine.shape != value.shape or mine.dtype != value.dtype:
            return f"{output.name} is {mine.dtype}{mine.shape}, not {value.dtype}{value.shape}"
        if not np.allclose(mine.astype(np.float64), value.astype(np.float64), tolerance, tolerance, equal_nan=True):
            return f"{output.name} differs: {mine} {value}"
        zeros = value == 0
        if tolerance == 0 and not np.array_equal(np.signbit(mine[zeros]), np.signbit(value[zeros])):
            return f"{output.name} has zeros of another sign: {mine} {value}"
    return "same"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fusec", required=True)
    parser.add_argument("--fusert", required=True)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    differ = 0
    for name, proto, inputs, expected, tolerance in CASES:
        answers = [run(options, name, proto, inputs, expected, tolerance, target) for target in TARGETS]
        if any(answer != "same" for answer in answers):
            differ += 1
            print(f"{name}: {answers}")
    print(f"{len(CASES)} forms, {differ} differ")


if __name__ == "__main__":
    main()
