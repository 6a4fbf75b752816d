"""What scripts/models/sizechanges.py says of contexts that keep memory, or that earlier sizes have spoilt."""

import os
import sys

import numpy

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "models"))

import sizechanges
import symbols

LEAKED, CHANGES = 200, 5000


class Model:
    inputs = [("x", "float32")]


class Context:
    """Doubles its input, as it should."""

    def __init__(self, model):
        self.shapes = None

    def setShapes(self, shapes):
        self.shapes = shapes

    def preparedShapes(self, shapes):
        def call():
            self.setShapes(shapes)
            return 0

        return call

    def run(self, feeds):
        assert [list(feeds["x"].shape)] == [list(shape) for shape in self.shapes]
        return {"y": 2 * feeds["x"]}

    def destroy(self):
        pass


class Keeps(Context):
    kept = []

    def setShapes(self, shapes):
        super().setShapes(shapes)
        self.kept.append(bytes(LEAKED))


class Spoilt(Context):
    """Wrong behind the largest of its sizes, which no run has."""

    def __init__(self, model):
        super().__init__(model)
        self.off = 0

    def setShapes(self, shapes):
        super().setShapes(shapes)
        self.off = self.off or int(list(shapes[0]) == [8, 400])

    def run(self, feeds):
        return {"y": super().run(feeds)["y"] + numpy.float32(self.off)}


def said(context):
    sizechanges.fusert.Context = context
    description = {"symbols": {"batch": symbols.symbol("batch", 1, 8), "length": symbols.symbol("length", 1, 400)},
                   "inputs": {"x": symbols.normal("batch", "length")}}
    return sizechanges.soak(Model(), description, CHANGES, 1)["failures"]


def expect(got, wanted):
    if got != wanted:
        sys.exit(f"got      {got!r}\nexpected {wanted!r}")


expect(said(Context), [])
[grown] = said(Keeps)
start = "memory has grown by "
end = f" KiB from change {sizechanges.WARM} to {CHANGES}, over {sizechanges.GROWTH >> 10} KiB"
expect((grown[:len(start)], grown[-len(end):]), (start, end))
expect(int(grown[len(start):-len(end)]) >= (CHANGES - sizechanges.WARM) * LEAKED >> 10, True)
spoilt = said(Spoilt)
expect(spoilt[0].split(":")[1][:len(" output 'y' differs from")], " output 'y' differs from")
expect(len(spoilt) > CHANGES // sizechanges.EVERY // 2, True)
