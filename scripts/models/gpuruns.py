"""Runs a bundle on a device again and again, in a process of its own, and prints one line of JSON:
  gpuruns.py LIBRARY BUNDLE TARGET FOLDER ROUNDS
FOLDER holds feeds0.npz, expected0.npz and so on, of one or several sizes. All are run in an order drawn anew each
round, in one context that lasts ten rounds. An output must be what is expected within the tolerance, and bit for bit
what the first run of the same feeds gave."""

import json
import os
import random
import sys

import numpy

import fusert

TOLERANCE = 1e-3, 1e-4  # relative, absolute
ROUNDS_OF_CONTEXT = 10


def difference(got, right):
    """The largest difference, as a multiple of what is allowed; infinite where types or shapes differ."""
    if got.dtype != right.dtype or got.shape != right.shape:
        return float("inf")
    got, right = got.astype(numpy.float64), right.astype(numpy.float64)
    with numpy.errstate(invalid="ignore"):
        off = numpy.abs(got - right) / (TOLERANCE[1] + TOLERANCE[0] * numpy.abs(right))
    off[(got == right) | (numpy.isnan(got) & numpy.isnan(right))] = 0
    worst = off.max(initial=0)
    return float("inf") if numpy.isnan(worst) else float(worst)


def stored(folder, kind, index):
    with numpy.load(os.path.join(folder, f"{kind}{index}.npz")) as values:
        return dict(values)


def runAll(model, cases, rounds, failures):
    """The worst difference, and how many runs there were."""
    worst, runs, first, context = 0.0, 0, {}, None
    generator = random.Random(os.getpid())
    for number in range(rounds):
        if number % ROUNDS_OF_CONTEXT == 0:
            if context:
                context.destroy()
            context = fusert.Context(model)
        for index in generator.sample(range(len(cases)), len(cases)):
            feeds, expected = cases[index]
            context.setShapes([feeds[name].shape for name, _ in model.inputs])
            got = context.run(feeds)
            runs += 1
            kept = first.setdefault(index, got)
            for name, value in got.items():
                off = difference(value, expected[name])
                worst = max(worst, off)
                if off > 1:
                    failures.append(f"round {number}, feeds {index}: '{name}' is off by {off:.3g} times the tolerance")
                if value.tobytes() != kept[name].tobytes():
                    failures.append(f"round {number}, feeds {index}: '{name}' is not what the first run gave")
            if len(failures) > 5:
                return worst, runs
    context.destroy()
    return worst, runs


def main():
    library, path, target, folder, rounds = sys.argv[1:]
    count = len([name for name in os.listdir(folder) if name.startswith("feeds")])
    failures, result = [], {}
    try:
        model = fusert.Model(fusert.Library(library), path, target)
        cases = [(stored(folder, "feeds", i), stored(folder, "expected", i)) for i in range(count)]
        worst, runs = runAll(model, cases, int(rounds), failures)
        result = {"target": model.target, "worst": worst, "runs": runs}
    except fusert.Failed as failed:
        failures.append(str(failed))
    print(json.dumps({**result, "failures": failures}))


main()
