"""Whether a decoder continues its caches in place, in a process of its own, which prints one line of JSON:
  decoding.py LIBRARY MODEL BUNDLE [SIMULATED]
BUNDLE is compiled from MODEL (MODEL.json beside it describes it, symbols.py) for the host and for the target SIMULATED.
Each input whose length is that of the past must be a cache of the bundle. Texts are decoded step by step with inputs
and outputs in one memory (fusert_share_caches), and each step's outputs are compared with ONNX Runtime's, which goes on
from its own. Old rows and what is behind the last one must stay as they are. A simulated GPU counts the bytes that it
writes: with shared memory they must be less by those of the old rows, at each length of the past."""

import json
import sys

import numpy
import onnxruntime

import fusert
import symbols
from differences import difference

BATCHES, STEPS = (1, 3), (5, 1, 1, 3, 1)  # new tokens of each step
BEHIND, UNTOUCHED = 7, 9.0  # rows for which there is room behind the last one, and what is there
PASTS = (3, 4, 11)  # at which bytes are counted


def rowsOf(array, axis, first, last):
    return array[(slice(None),) * axis + (slice(first, last),)]


class Decoder:
    def __init__(self, path):
        self.description = symbols.load(path.removesuffix(".onnx") + ".json")
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        self.failures, self.worst = [], 0.0

    def sizes(self, **wanted):
        """Of symbols, given by kinds; one that the exporter made constant stays."""
        return {name: min(max(wanted[one["kind"]], one["least"]), one["most"])
                for name, one in self.description["symbols"].items()}

    def cached(self, model):
        """The bundle's caches that grow, input -> (output, axis)."""
        found = {given: (taken, axis) for given, taken, axis, grows in model.caches if grows}
        past = symbols.caches(self.description)
        if missing := [name for name in past if name not in found]:
            self.failures.append(f"{len(missing)} of {len(past)} caches cannot be continued in place: "
                                 + ", ".join(missing))
        return found

    def expected(self, feeds):
        names = [value.name for value in self.session.get_outputs()]
        return dict(zip(names, self.session.run(names, feeds)))

    def memory(self, caches, feeds, rows):
        """Input -> array with room for so many rows, which begins with those of the feeds."""
        made = {}
        for name, (_, axis) in caches.items():
            shape = list(feeds[name].shape)
            made[name] = numpy.full(shape[:axis] + [rows] + shape[axis + 1:], UNTOUCHED, feeds[name].dtype)
            rowsOf(made[name], axis, 0, shape[axis])[...] = feeds[name]
        return made

    def run(self, context, feeds, right, caches, memory):
        """Outputs by name, as long as those that are right; of caches in `memory` a part of that."""
        model, dense = context.model, {name: numpy.empty_like(value) for name, value in right.items()}
        context.setShapes([feeds[name].shape for name, _ in model.inputs])
        together = {taken: memory[name] for name, (taken, _) in caches.items() if memory}
        given = [memory.get(name, feeds[name]) for name, _ in model.inputs]
        taken = [together.get(name, dense[name]) for name, _ in model.outputs]
        context.runAt(*([(array.ctypes.data, array.nbytes) for array in side] for side in (given, taken)))
        axes = {taken: axis for taken, axis in caches.values()}
        return {name: rowsOf(together[name], axes[name], 0, right[name].shape[axes[name]]).copy()
                if name in together else value for name, value in dense.items()}

    def decode(self, model, caches, batch):
        """Steps from no past on, in one context and one memory."""
        context, past = fusert.Context(model), self.sizes(batch=batch, past=0, length=1)
        context.shareCaches(rows := sum(STEPS) + BEHIND)
        theirs = {name: symbols.feeds(self.description, past)[name] for name in caches}
        memory, old = self.memory(caches, theirs, rows), 0
        for step, length in enumerate(STEPS):
            sizes = self.sizes(batch=batch, past=old, length=length)
            feeds = {**symbols.feeds(self.description, sizes, step), **theirs}
            right, before = self.expected(feeds), {name: values.copy() for name, values in memory.items()}
            got = self.run(context, feeds, right, caches, memory)
            for name, value in right.items():
                off, where = difference(got[name], value)
                self.worst = max(self.worst, off)
                if off > 1:
                    self.failures.append(f"step {step}, {symbols.text(sizes)}: output '{name}' {where}")
            for name, (_, axis) in caches.items():
                for what, first, last in (("old rows", 0, old), ("what is behind the last row", old + length, rows)):
                    if not numpy.array_equal(*(rowsOf(one[name], axis, first, last) for one in (before, memory))):
                        self.failures.append(f"step {step}, {symbols.text(sizes)}: {what} of '{name}' changed")
            theirs, old = {name: right[taken] for name, (taken, _) in caches.items()}, old + length
        context.destroy()

    def count(self, model, caches, past):
        """Bytes that a run writes less where it shares its caches."""
        sizes = self.sizes(batch=2, past=past, length=1)
        feeds = symbols.feeds(self.description, sizes, past)
        right, written, results = self.expected(feeds), [], []
        for share in (False, True):
            context = fusert.Context(model, counters=True)
            if share:
                context.shareCaches(past + BEHIND)
            results.append(self.run(context, feeds, right, caches,
                                    self.memory(caches, feeds, past + BEHIND) if share else {}))
            written.append(sum(kernel["write_bytes"] for kernel in context.counters()))
            context.destroy()
        where = f"{model.target}, {symbols.text(sizes)}"
        for name, value in results[0].items():
            if not numpy.array_equal(value, results[1][name]):
                self.failures.append(f"{where}: output '{name}' differs where caches share memory")
        saved, old = written[0] - written[1], sum(feeds[name].nbytes for name in caches)
        if saved != old:
            self.failures.append(f"{where}: a run with shared caches writes {saved} bytes less, where old rows have "
                                 f"{old}")
        return saved


def main():
    library, path, made, *simulated = sys.argv[1:]
    decoder, runtime = Decoder(path), fusert.Library(library)
    model = fusert.Model(runtime, made)
    caches, saved = decoder.cached(model), []
    if not decoder.failures:
        for batch in BATCHES:
            decoder.decode(model, caches, batch)
        for target in simulated:
            counting = fusert.Model(runtime, made, target)
            saved += [decoder.count(counting, caches, past) for past in PASTS]
    print(json.dumps({"caches": len(caches), "worst": decoder.worst, "saved": saved, "failures": decoder.failures}))


main()
