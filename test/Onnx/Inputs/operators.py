"""Forms of operators that the cases of the onnx package lack: compiles and runs each on the CPU and a simulated GPU,
and compares every output with onnx's reference evaluator, or with values that stand here."""

import argparse
import pathlib
import shutil

import numpy as np
from compare import TARGETS, ours
from onnx.reference import ReferenceEvaluator
from operator_attention import ATTENTION
from operator_others import AT_RUN_TIME, ELEMENTS, NORMS, WORDS
from operator_signals import GRIDS, SIGNALS

CASES = [*ATTENTION, *ELEMENTS, *SIGNALS, *GRIDS, *WORDS, *NORMS, *AT_RUN_TIME]


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
