"""Ifs whose branches make other sizes, compiled with no flag and run on several inputs, against ONNX Runtime. Prints a
line a model, and what is said of one that cannot be served."""

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



def found(mask, rows, out, kind="float"):
    """The rows of `rows` where `mask` is larger than 0."""
    return f"""zero_{out} = CastLike(nought, {mask})
        is_{out} = Greater({mask}, zero_{out})
        at_{out} = NonZero(is_{out})
        flat_{out} = Reshape(at_{out}, all)
        {out} = Gather({rows}, flat_{out})"""


CONSTANTS = """all = Constant<value_ints = [-1]>()
    nought = Constant<value_float = 0.0>()
    none = Constant<value_ints = [0]>()"""


def told(then, otherwise, inputs, kind="float", shape="[f,4]", more="z = Identity(y)"):
    """As choice(), with CONSTANTS in front of it."""
    return model(f"""g ({inputs}, bool c) => ({kind}{shape} y, {kind}{shape} z) {{
    {CONSTANTS}
    y = If<then_branch = t () => ({kind}[] u) {{ {then} }}, else_branch = e () => ({kind}[] v) {{ {otherwise} }}>(c)
    {more}
}}""")


FIRST = "v = Gather(a, none)"
# Two sizes of one branch, one result for each, and one that has both.
TWO_SIZES = model(f"""g (float[n,4] a, float[n] p, float[n] q, bool c) => (float[f,4] y, float[h,4] z, float[f,h] w) {{
    {CONSTANTS}
    y, z, w = If<then_branch = t () => (float[] ty, float[] tz, float[] tw) {{
        {found("p", "a", "ty")}
        {found("q", "a", "tz")}
        turned = Transpose<perm = [1, 0]>(tz)
        tw = MatMul(ty, turned)
    }}, else_branch = e () => (float[] ey, float[] ez, float[] ew) {{
        ey = Gather(a, none)
        ez = Neg(a)
        back = Transpose<perm = [1, 0]>(ez)
        ew = MatMul(ey, back)
    }}>(c)
}}""")
# Both axes of one result.
SUBMATRIX = told(f"""{found("p", "a", "rows")}
        turned = Transpose<perm = [1, 0]>(rows)
        {found("q", "turned", "columns")}
        u = Transpose<perm = [1, 0]>(columns)""", "v = Neg(a)", "float[n,k] a, float[n] p, float[k] q", shape="[f,g]")


def inside(then, otherwise, inputs, other=FIRST):
    """An If in the branch of an If, whose other branch is `other`."""
    return told(f"""u = If<then_branch = t2 () => (float[] u2) {{ {then} }},
            else_branch = e2 () => (float[] v2) {{ {otherwise} }}>(d)""", other, f"{inputs}, bool d")


NESTED = inside(found("p", "a", "u2"), "v2 = Exp(a)", "float[n,4] a, float[n] p")
NESTED_INPUTS = inside("u2 = Exp(a)", "v2 = Neg(b)", "float[n,4] a, float[m,4] b")
NESTED_ORDERED = inside("u2 = ReduceSum(a, none)", "v2 = Neg(a)", "float[n,4] a, float[m,4] b", "v = Exp(b)")

# In each trip another branch, and another number of rows.
IN_LOOP = model(f"""g (float[n,4] a, float[n] p, float[4] x) => (float[4] y, float[h,4] z) {{
    {CONSTANTS}
    trips = Constant<value_int = 4>()
    two = Constant<value_int = 2>()
    odd = Constant<value_int = 1>()
    y, z = Loop<body = b (int64 i, bool go, float[4] v) => (bool go2, float[4] v2, float[4] s) {{
        go2 = Identity(go)
        rest = Mod(i, two)
        isOdd = Equal(rest, odd)
        rows = If<then_branch = t () => (float[] u) {{ {found("p", "a", "u")} }},
                  else_branch = e () => (float[] w) {{ w = Gather(a, none) }}>(isOdd)
        sum = ReduceSum<keepdims = 0>(rows, none)
        v2 = Add(v, sum)
        s = Identity(v2)
    }}>(trips, , x)
}}""")
HALF = told(found("p", "a", "u"), FIRST, "float16[n,4] a, float[n] p", "float16", more="z = Neg(y)")
TRUTH = told(found("p", "a", "u"), FIRST, "bool[n,4] a, float[n] p", "bool", more="z = Not(y)")
# 0 in a branch, told or fixed.
NONE = told(found("p", "a", "u"), """zeros = Constant<value_ints = [0, 4]>()
        v = Expand(nought, zeros)""", "float[n,4] a, float[n] p", more="z = Exp(y)")

# Values that are known, and follow from the condition, beside a size that is told.
KNOWN_BESIDE = model(f"""g (float[n,4] a, float[n] p, float[2,3,2] x, bool c) => (float[f,4] y, float[r,s] z) {{
    {CONSTANTS}
    y, to = If<then_branch = t () => (float[] ty, int64[2] tt) {{
        {found("p", "a", "ty")}
        tt = Constant<value_ints = [3, 4]>()
    }}, else_branch = e () => (float[] ey, int64[2] et) {{
        ey = Gather(a, none)
        et = Constant<value_ints = [3, 4]>()
    }}>(c)
    z = Reshape(x, to)
}}""")


def remainder(size):
    """Rows of `a`, as many as are left of `size` by 8."""
    return f"""count = Shape<start = 0, end = 1>({size})
        eight = Constant<value_ints = [8]>()
        left = Mod(count, eight)
        part = Slice(a, none, left)"""


REMAINDER = told(f"""{found("p", "a", "rows")}
        {remainder("rows")}
        u = Identity(part)""", FIRST, "float[n,4] a, float[n] p")
# Zeros behind the rows, for a multiple of 8.
FILLED_UP = told(f"""{found("p", "a", "rows")}
        count = Shape<start = 0, end = 1>(rows)
        eight = Constant<value_ints = [8]>()
        over = Neg(count)
        more = Mod(over, eight)
        four = Constant<value_ints = [4]>()
        size = Concat<axis = 0>(more, four)
        zeros = ConstantOfShape(size)
        u = Concat<axis = 0>(rows, zeros)""", FIRST, "float[n,4] a, float[n] p")
# As many of the first rows as 100 leaves by the number of those found.
DIVIDED = told(f"""{found("p", "a", "rows")}
        count = Shape<start = 0, end = 1>(rows)
        hundred = Constant<value_ints = [100]>()
        one = Constant<value_ints = [1]>()
        least = Max(count, one)
        left = Mod(hundred, least)
        u = Slice(a, none, left)""", FIRST, "float[n,4] a, float[n] p")
# Of a size that is told in front of the If.
REMAINDER_BEFORE = model(f"""g (float[n,4] a, float[n] p, float[n] q, bool c) => (float[f,4] y) {{
    {CONSTANTS}
    {found("q", "a", "before")}
    y = If<then_branch = t () => (float[] u) {{
        {found("p", "a", "rows")}
        {remainder("before")}
        u = Concat<axis = 0>(rows, part)
    }}, else_branch = e () => (float[] v) {{ {FIRST} }}>(c)
}}""")
UNUSED = model(f"""g (float[n,4] a, float[n] p, bool c) => (float[f,4] y) {{
    {CONSTANTS}
    y, unused, last = If<then_branch = t () => (float[] ty, float[] tu, float[] tl) {{
        {found("p", "a", "ty")}
        tu = Exp(ty)
        tl = Neg(a)
    }}, else_branch = e () => (float[] ey, float[] eu, float[] el) {{
        ey = Gather(a, none)
        eu = Exp(ey)
        el = Exp(a)
    }}>(c)
}}""")
RANKS = choice("u = Identity(a)", "v = ReduceSum<keepdims = 0>(a)", "float[n,4] a", shape="[]")
RANKS_OF_SIZES = model("""g (float[n,4] a) => (float[] y) {
    three = Constant<value_ints = [3]>()
    rows = Shape<start = 0, end = 1>(a)
    c = Greater(rows, three)
    y = If<then_branch = t () => (float[] u) { u = Identity(a) },
           else_branch = e () => (float[] v) { v = ReduceSum<keepdims = 0>(a) }>(c)
}""")


def pair(n, m, c):
    return {"a": floats(n, 4), "b": floats(m, 4), "c": flag(c)}


SOME = [{"a": floats(n, 4), "p": floats(n), "c": flag(c)} for n, c in ((12, 1), (3, 1), (12, 0))]
CASES = [
    ("two inputs", TWO_INPUTS, [pair(*s) for s in ((3, 5, 1), (3, 5, 0), (5, 2, 1), (5, 2, 0), (4, 4, 1))]),
    ("both axes", BOTH_AXES, [{"a": floats(3, 7), "b": floats(5, 2), "c": flag(c)} for c in (1, 0)]),
    ("a size beside 3", FIXED_BESIDE, [{"a": floats(n), "s": np.array(2, np.float32), "c": flag(c)}
                                       for n, c in ((2, 1), (2, 0), (3, 1), (9, 1), (9, 0))]),
    ("one more", ONE_MORE, [{"a": floats(n, 4), "s": floats(1, 4), "c": flag(c)} for n, c in ((3, 1), (3, 0))]),
    ("two sizes", TWO_SIZES, [{"a": floats(n, 4), "p": floats(n), "q": floats(n), "c": flag(c)}
                              for n, c in ((6, 1), (6, 0), (1, 0))]),
    ("a submatrix", SUBMATRIX, [{"a": floats(n, k), "p": floats(n), "q": floats(k), "c": flag(c)}
                                for n, k, c in ((6, 5, 1), (3, 9, 1), (6, 5, 0))]),
    *((f"an If inside, {name}", proto, [{"a": floats(5, 4), "b": floats(m, 4), "p": floats(5), "c": flag(c),
                                         "d": flag(d)} for m, c, d in ((3, 1, 1), (3, 1, 0), (9, 1, 0), (3, 0, 1))])
      for name, proto in (("found", NESTED), ("of two inputs", NESTED_INPUTS), ("ordered", NESTED_ORDERED))),
    ("an If in a loop", IN_LOOP, [{"a": floats(n, 4), "p": floats(n), "x": floats(4)} for n in (5, 1)]),
    ("f16", HALF, [{"a": floats(6, 4).astype(np.float16), "p": floats(6), "c": flag(c)} for c in (1, 0)]),
    ("bool", TRUTH, [{"a": floats(6, 4) > 0, "p": floats(6), "c": flag(c)} for c in (1, 0)]),
    ("none", NONE, [{"a": floats(3, 4), "p": p, "c": flag(c)}
                    for p, c in ((floats(3), 1), (-np.ones(3, np.float32), 1), (floats(3), 0))]),
    ("known beside", KNOWN_BESIDE, [{"a": floats(5, 4), "p": floats(5), "x": floats(2, 3, 2), "c": flag(c)}
                                    for c in (1, 0)]),
    ("a remainder", REMAINDER, SOME),
    ("filled up", FILLED_UP, SOME),
    ("divided", DIVIDED, SOME),
    ("a remainder told before", REMAINDER_BEFORE, [
        {"a": floats(n, 4), "p": floats(n), "q": np.arange(n, dtype=np.float32), "c": flag(c)}
        for n, c in ((8, 1), (9, 1), (12, 0))]),
    ("unused", UNUSED, [{"a": floats(5, 4), "p": floats(5), "c": flag(c)} for c in (1, 0)]),
    ("used", USED, [{**pair(*s), "w": floats(4)} for s in ((3, 5, 1), (3, 5, 0), (5, 2, 0))]),
]

# What is said of models that cannot be served.
REFUSED = [("ranks", RANKS), ("ranks, as sizes say", RANKS_OF_SIZES)]


def used(proto, inputs):
    return {value.name: inputs[value.name] for value in proto.graph.input if value.name in inputs}


def main():
    options = compiled_run.read_options()
    for name, proto, runs in CASES:
        compiled_run.agrees(options, name, proto, [(k, used(proto, r)) for k, r in enumerate(runs)])
    for name, proto in REFUSED:
        if options.only in name:
            folder = compiled_run.folder_of(options, name, TARGETS[0])
            print(f"{name}: {compiled_run.compiled(options, proto, TARGETS[0], folder)}", flush=True)


if __name__ == "__main__":
    main()
