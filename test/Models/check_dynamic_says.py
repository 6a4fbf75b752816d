"""What scripts/check-dynamic says of an output that is wrong, and of a program that does not end."""

import importlib.machinery
import importlib.util
import os
import sys
import types

import numpy

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "check-dynamic")
sys.dont_write_bytecode = True
loader = importlib.machinery.SourceFileLoader("check_dynamic", SCRIPT)
script = importlib.util.module_from_spec(importlib.util.spec_from_loader("check_dynamic", loader))
loader.exec_module(script)


def expect(got, wanted):
    if got != wanted:
        sys.exit(f"got      {got!r}\nexpected {wanted!r}")


right = numpy.array([[1, 2, 3], [4, 5, 6]], numpy.float32)
got = right.copy()
expect(script.difference(got, right)[0], 0)
got[0, 1], got[1, 2] = 2.5, 7
off, where = script.difference(got, right)
expect(off > 1, True)
expect(where, "[0, 1] is 2.5, should be 2.0: off by 1.67e+03 times the tolerance, as the worst of 2 of 6 elements")
got[1, 0] = numpy.nan
expect(script.difference(got, right), (float("inf"), "[1, 0] is nan, should be 4.0: off by inf times the tolerance, as "
                                                     "the worst of 3 of 6 elements"))
expect(script.difference(right[:1], right), (float("inf"), "is float32[1, 3], should be float32[2, 3]"))
expect(script.difference(right[:0], right[:0])[0], 0)
expect(script.difference(numpy.float32(1), numpy.float32(2))[1].split(":")[0], "[] is 1.0, should be 2.0")
infinite = numpy.array([numpy.inf, numpy.nan])
expect(script.difference(infinite, infinite)[0], 0)

# A compilation that does not end is no wrong value, and no failure.
script.environment.program = lambda name: "sleep"
checked = object.__new__(script.Checked)
checked.path, checked.bundle, checked.failures = "60", "60", []
checked.caches, checked.counting = [], ()
checked.arguments = types.SimpleNamespace(seconds=0.1, target="host", sims=False)
real, script.call = script.call, lambda command, seconds: real(["sleep", "60"], seconds)
expect(checked.compile(), False)
expect(checked.compiled, "timed out: no end within 0.1 s")
row = {"network": "net", "exporter": "dynamo", "compiled": checked.compiled, "outcomes": {}, "odd": {}, "worst": 0,
       "caches": None, "failures": []}
expect(script.table([row]).splitlines()[-1],
       "0 of 1 compile, 0 of them with nothing wrong. Timed out, in part or as a whole: net.dynamo.")

# What ONNX Runtime computes is refused for a reason, or it is a failure.
said = {"dimension 1 of input 'ids' is 4 ('n'), given is 3": "refused by us alone: two sizes of one name",
        "node 'view' (Reshape): the element counts must be equal: 'n' is 3 and 4":
            "refused by us alone, for no reason that is listed"}
for words, wanted in said.items():
    expect(script.refusedAlone(f"error[E3202] {words}"), wanted)
checked.description = {"symbols": {"n": {"kind": "length", "least": 1, "most": 8}},
                       "inputs": {"x": {"type": "float32", "shape": ["n"], "values": "normal"}}}
checked.arguments.seed = 1
checked.expectedOfOdd = lambda feeds: {}
for words, wanted in said.items():
    checked.odd, checked.failures = script.collections.Counter(), []
    checked.compare = lambda feeds, right, target: ("refused", f"error[E3202] {words}")
    checked.runOdd()
    expect(dict(checked.odd), {wanted: 2})
    expect(len(checked.failures), 0 if ":" in wanted else 2)
