"""Ifs whose branches make other sizes, compiled with no flag and run on several inputs, against ONNX Runtime. Prints a
line a model, and what is said of a model or a run that cannot be served."""

import compiled_run
import numpy as np
from compiled_run import TARGETS

RANDOM = np.random.default_rng(11)


def model(text):
    return compiled_run.model(text, 21)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def flag(value):
    return np.array(value, bool)


def choice(then, otherwise, inputs, kind="float", shape="[f,4]", more="z = Exp(y)", type_of_z="float"):
    """y is `then` or `otherwise`, as c says, and z is made of it."""
    return model(f"""g ({inputs}, bool c) => ({kind}{shape} y, {type_of_z}{shape} z) {{
    y = If<then_branch = t () => ({kind}[] u) {{ {then} }}, else_branch = e () => ({kind}[] v) {{ {otherwise} }}>(c)
    {more}
}}""")


TWO_INPUTS = choice("u = Identity(a)", "v = Neg(b)", "float[n,4] a, float[m,4] b")
BOTH_AXES = choice("u = Identity(a)", "v = Neg(b)", "float[n,k] a, float[m,l] b", shape="[f,g]")
FIXED_BESIDE = choice("u = Identity(a)", "w = Constant<value_floats = [1.0, 2.0, 3.0]>() v = Mul(w, s)",
                      "float[n] a, float s", shape="[f]")
ONE_MORE = choice("u = Concat<axis = 0>(a, s)", "v = Identity(a)", "float[n,4] a, float[1,4] s")

# What is known behind the If, and the sizes of one result beside those of another.
USED = model("""g (float[n,4] a, float[m,4] b, float[4] w, bool c) => (float[f] y, int64[2] z, float[g,4] v, float u) {
    x, k = If<then_branch = t () => (float[p,4] tx, int64[2] tk) { tx = Identity(a) tk = Shape(tx) },
              else_branch = e () => (float[q,4] ex, int64[2] ek) { ex = Neg(b) ek = Shape(ex) }>(c)
    y = MatMul(x, w)
    z = Identity(k)
    v = Concat<axis = 0>(x, a)
    u = ReduceSum<keepdims = 0>(x)
}""")



def pair(n, m, c):
    return {"a": floats(n, 4), "b": floats(m, 4), "c": flag(c)}


CASES = [
    ("two inputs", TWO_INPUTS, [pair(*s) for s in ((3, 5, 1), (3, 5, 0), (5, 2, 1), (5, 2, 0), (4, 4, 1))]),
    ("both axes", BOTH_AXES, [{"a": floats(3, 7), "b": floats(5, 2), "c": flag(c)} for c in (1, 0)]),
    ("a size beside 3", FIXED_BESIDE, [{"a": floats(n), "s": np.array(2, np.float32), "c": flag(c)}
                                       for n, c in ((2, 1), (2, 0), (3, 1), (9, 1), (9, 0))]),
    ("one more", ONE_MORE, [{"a": floats(n, 4), "s": floats(1, 4), "c": flag(c)} for n, c in ((3, 1), (3, 0))]),
    ("used", USED, [{**pair(*s), "w": floats(4)} for s in ((3, 5, 1), (3, 5, 0), (5, 2, 0))]),
]


def used(proto, inputs):
    return {value.name: inputs[value.name] for value in proto.graph.input if value.name in inputs}


def main():
    options = compiled_run.read_options()
    for name, proto, runs in CASES:
        compiled_run.agrees(options, name, proto, [(k, used(proto, r)) for k, r in enumerate(runs)])


if __name__ == "__main__":
    main()
