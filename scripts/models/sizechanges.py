"""Sizes that change back and forth in one context: what setting them takes, and whether anything is left over."""

import ctypes
import gc
import os
import random
import time

import fusert
import symbols
from timing import summary

DRAWN = 16  # sizes among which a context goes back and forth
LARGEST_RUN = 16  # of lengths and batches that are run, so that runs are short in real widths too
WARM = 200  # changes after which memory must not grow
EVERY = 50  # changes from run to run
GROWTH = 512 << 10  # bytes that may come and go: the allocator's, Python's
FUSERT_VERSION = 1
LIBC = ctypes.CDLL(None)
LEAST_SECONDS = 0.02  # of a loop that is timed


def residentBytes():
    """Of this process, less what is nobody's: pages of files, which the system drops and reads again as it likes, what
    Python has not collected (ctypes makes a type for each length of an array), what the allocator keeps for later."""
    gc.collect()
    LIBC.malloc_trim(0)
    with open("/proc/self/statm", encoding="ascii") as file:
        resident, shared = file.read().split()[1:3]
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGESIZE")


def shapesAt(model, description, sizes):
    shapes = symbols.shapes(description, sizes)
    return [shapes[name] for name, _ in model.inputs]


def timeOf(calls, gives):
    """Milliseconds of one of them, on average; each must give that."""
    passes, others = 1, 0
    while True:
        started = time.perf_counter()
        for _ in range(passes):
            for call in calls:
                others += call() != gives
        seconds = time.perf_counter() - started
        if others:
            raise fusert.Failed(f"{others} calls", "other sizes could not be set")
        if seconds >= LEAST_SECONDS:
            return seconds / passes / len(calls) * 1e3
        passes *= 2


def timeSetting(model, description, repetitions, seed):
    """{"other": of sizes that are others than before, "same": of those that are set}, as timing.summary() gives times.
    What Python takes for a call is measured, by a function that does nothing with its arguments, and taken off."""
    context = fusert.Context(model)
    drawn = [shapesAt(model, description, sizes) for sizes in symbols.draw(description, DRAWN, seed)]
    calls = {"other": ([context.preparedShapes(shapes) for shapes in drawn], 0),
             "same": ([context.preparedShapes(drawn[0])] * len(drawn), 0),
             "nothing": ([context.preparedShapes(shapes, "version") for shapes in drawn], FUSERT_VERSION)}
    found = {"other": [], "same": []}
    for _ in range(repetitions):
        times = {what: timeOf(*some) for what, some in calls.items()}
        for what, values in found.items():
            values.append(times[what] - times["nothing"])
    context.destroy()
    return {what: summary(values) for what, values in found.items()}


class Soak:
    """Changes sizes in one context again and again, and every so often runs."""

    def __init__(self, model, description, seed):
        self.model, self.random = model, random.Random(seed)
        self.failures, self.runs = [], 0
        self.all = [shapesAt(model, description, sizes) for sizes in symbols.draw(description, DRAWN, seed)]
        self.feeds = [symbols.feeds(description, sizes, seed)
                      for sizes in symbols.draw(description, DRAWN, seed, LARGEST_RUN)]
        self.expected = [self.fresh(feeds) for feeds in self.feeds]
        self.context = fusert.Context(model)

    def shapesOf(self, feeds):
        return [feeds[name].shape for name, _ in self.model.inputs]

    def fresh(self, feeds):
        """What a context gives that has seen no other sizes."""
        context = fusert.Context(self.model)
        context.setShapes(self.shapesOf(feeds))
        results = context.run(feeds)
        context.destroy()
        return results

    def run(self, index):
        self.context.setShapes(self.shapesOf(self.feeds[index]))
        got = self.context.run(self.feeds[index])
        self.runs += 1
        for name, value in self.expected[index].items():
            if value.shape != got[name].shape or value.tobytes() != got[name].tobytes():
                self.failures.append(f"run {self.runs}: output '{name}' differs from a fresh context's, of shape "
                                     f"{list(got[name].shape)}, there {list(value.shape)}")

    def change(self, count):
        """Sizes that are others than before, each time; then a run at the first ones."""
        prepared = [self.context.preparedShapes(shapes) for shapes in self.all]
        last = None
        for number in range(count):
            if number % EVERY == EVERY - 1:
                self.run(self.runs % len(self.feeds))
                last = None
                continue
            last = self.random.choice([at for at in range(len(prepared)) if at != last] or [last])
            if prepared[last]():
                self.failures.append(f"sizes refused: {self.all[last]}")
        self.run(0)

    def grown(self, changes):
        """Bytes that the process has more after the last change than after the first ones."""
        for index in range(len(self.feeds)):
            self.run(index)
        self.change(WARM)
        before = residentBytes()
        self.change(changes - WARM)
        return residentBytes() - before


def soak(model, description, changes, seed):
    soaked = Soak(model, description, seed)
    growth = soaked.grown(changes)
    if growth > GROWTH:
        soaked.failures.append(f"memory has grown by {growth >> 10} KiB from change {WARM} to {changes}, over "
                               f"{GROWTH >> 10} KiB")
    soaked.context.destroy()
    return {"changes": changes, "runs": soaked.runs, "growth": growth, "failures": soaked.failures}
