"""Runs fusec and fusert for the scripts and tests about models."""

import json
import os
import re
import subprocess

import numpy


class Failed(Exception):
    """A program of ours ended with another code than 0."""


def execute(command, timeout=600):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=timeout)
    if done.returncode:
        raise Failed(f"exit code {done.returncode} from: {' '.join(map(str, command))}\n{done.stderr.strip()[:2000]}")
    return done.stdout


def fileOf(output, printed):
    """The output's file, of what fusert (or fusec-opt) printed: it names those that differ from the output's name."""
    renamed = dict(re.findall(r"^output '(.*)' goes to (\S+)$", printed, re.MULTILINE))
    return renamed.get(output, output + ".npy")


def saveInputs(folder, feeds):
    """Writes one file an input; gives the options that name them."""
    os.makedirs(folder, exist_ok=True)
    options = []
    for index, (name, value) in enumerate(feeds.items()):
        path = os.path.join(folder, f"input{index}.npy")
        numpy.save(path, value)
        options += ["--input", f"{name}={path}"]
    return options


def run(fusert, bundle, feeds, folder, *options):
    """One run; `folder` takes the files. Gives a function from an output's name to its values."""
    inputs = saveInputs(os.path.join(folder, "in"), feeds)
    results = os.path.join(folder, "out")
    printed = execute([fusert, "run", bundle, "--output-dir", results, *inputs, *options])
    return lambda name: numpy.load(os.path.join(results, fileOf(name, printed)))


def bench(fusert, bundle, options):
    return json.loads(execute([fusert, "bench", bundle, "--json", *options]))


def relativeL2(got, expected):
    """The norm of the difference over that of the expected values; infinite where types or shapes differ. Values that
    stand for minus infinity, as in masks, must be equal and would hide all others: they are left out."""
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return float("inf")
    got, expected = got.astype(numpy.float64), expected.astype(numpy.float64)
    huge = ~(numpy.abs(expected) < 1e30)
    if not numpy.allclose(got[huge], expected[huge], rtol=1e-6, equal_nan=True):
        return float("inf")
    got, expected = got[~huge], expected[~huge]
    norm = numpy.linalg.norm(expected)
    difference = numpy.linalg.norm(got - expected)
    if not numpy.isfinite(difference):
        return float("inf")
    return difference / norm if norm else difference
