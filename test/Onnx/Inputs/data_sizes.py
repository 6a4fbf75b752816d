"""Models whose sizes depend on what their inputs hold, compiled with no flag and run on several inputs, against ONNX
Runtime. Prints a line a model, and what a run says that has more than there may be."""

import compiled_run
import numpy as np
from compiled_run import TARGETS

MAX, MIN = (1 << 63) - 1, -(1 << 63)
RANDOM = np.random.default_rng(7)


def model(text, opset=21):
    return compiled_run.model(text, opset)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def longs(*values):
    return np.array(values, np.int64)


def number(value, kind=np.float32):
    return np.array(value, kind)


def flags(*values):
    return np.array(values, bool)


def few(*shape):
    """Numbers of which many are equal."""
    return RANDOM.integers(-2, 3, shape)


def repeated(rows, columns):
    """Rows of which some are equal, and others differ in their last number alone."""
    made = few(4, columns)[RANDOM.integers(0, 4, rows)]
    made[:, -1] += few(rows)
    return made


POSITIVE = model("""g (float[n,m] x) => (int64[r,f] y, float[f] z, float square, float total, int64 many) {
    zero = Constant<value_float = 0.0>()
    mask = Greater(x, zero)
    y = NonZero(mask)
    at = Transpose<perm = [1, 0]>(y)
    z = GatherND(x, at)
    s = Mul(z, z)
    square = ReduceSum<keepdims = 0>(s)
    e = Exp(z)
    total = ReduceSum<keepdims = 0>(e)
    many = Size(z)
}""")


def non_zero(kind, shape):
    return model(f"g ({kind}{shape} x) => (int64[r,f] y) {{ y = NonZero(x) }}")


def compress(axis=None):
    attribute = "" if axis is None else f"<axis = {axis}>"
    return model(f"g (float[a,b] x, bool[k] c) => (float[] y) {{ y = Compress{attribute}(x, c) }}")


def sliced(step, kind="int64", axes="[0, 1]"):
    return model(f"""g (float[n,m] x, {kind}[2] s, {kind}[2] e) => (float[p,q] y) {{
    a = Constant<value_ints = {axes}>()
    p64 = Constant<value_ints = [{step}, 1]>()
    p = CastLike(p64, s)
    i = CastLike(a, s)
    y = Slice(x, s, e, i, p)
}}""")


def reduced(op, kind="float", shape="[n,m,3]"):
    return model(f"g ({kind}{shape} x, int64[k] a) => ({kind}[] y) {{ y = Reduce{op}<keepdims = 1>(x, a) }}")


LARGEST = model("""g (float[3,n] x, int64[1] k) => (float[3,f] y, int64[3,f] z) { y, z = TopK<axis = 1>(x, k) }""")
SMALLEST = model("""g (int32[n,2] x, int64[1] k) => (int32[f,2] y) { y, z = TopK<axis = 0, largest = 0>(x, k) }""")


def unique(kind, shape, axis=None, in_order=1):
    attributes = f"sorted = {in_order}" + ("" if axis is None else f", axis = {axis}")
    return model(f"""g ({kind}{shape} x) => ({kind}[] y, int64[f] z, int64[g] u, int64[f] v) {{
    y, z, u, v = Unique<{attributes}>(x)
}}""")


def boxes(centre=0, operands="most, overlap, least"):
    return model(f"""g (float[2,n,4] x, float[2,3,n] scores, int64[1] most, float[1] overlap, float[1] least)
    => (int64[f,3] y, float[f,4] b) {{
    y = NonMaxSuppression<center_point_box = {centre}>(x, scores, {operands})
    w = Constant<value_ints = [0, 2]>()
    i = Gather<axis = 1>(y, w)
    b = GatherND(x, i)
}}""")


LOOP = model("""g (float[3] x, float enough) => (float[3] y, float[f,3] z) {
    trips = Constant<value_int = 50>()
    y, z = Loop<body = b (int64 i, bool go, float[3] v) => (bool go2, float[3] v2, float[3] s) {
        v2 = Add(v, x)
        sum = ReduceSum<keepdims = 0>(v2)
        go2 = Less(sum, enough)
        s = Mul(v2, v2)
    }>(trips, , x)
}""")

# Each trip slices as much as fits what is carried.
ROLLING = model("""g (float[1] x, float[5] w, int64 trips) => (float[1] y, float[5,1] z) {
    y, z = Loop<body = b (int64 i, bool go, float[1] v) => (bool go2, float[1] v2, float[1] s) {
        go2 = Identity(go)
        zero = Constant<value_ints = [0]>()
        one = Constant<value_ints = [1]>()
        from = Unsqueeze(i, zero)
        to = Add(from, one)
        part = Slice(w, from, to)
        v2 = Add(v, part)
        s = Identity(v2)
    }>(trips, , x)
}""")

# Sizes that are told in front of others decide these, and nodes ask of them what only the run can tell.
SUMMED = model("""g (float[a,b] x, bool[a] c) => (float s) {
    chosen = Compress<axis = 0>(x, c)
    s = ReduceSum<keepdims = 0>(chosen)
}""")
CHAIN = model("""g (float[n] x, float least) => (float[f] y, int64[1,g] at, float z) {
    above = Greater(x, least)
    a = Compress<axis = 0>(x, above)
    twice = Add(a, a)
    two = Constant<value_float = 2.0>()
    large = Greater(twice, two)
    y = Compress<axis = 0>(twice, large)
    at = NonZero(y)
    z = ReduceSum<keepdims = 0>(y)
}""")
PAIRS = model("""g (float[n,3] x, float[n,3] z, bool[n] c, bool[n] d) => (float[f,3] y, float[f,3] w) {
    a = Compress<axis = 0>(x, c)
    b = Compress<axis = 0>(z, d)
    y = Add(a, b)
    zero = Constant<value_float = 0.0>()
    w = Max(y, zero)
}""")
TWINS = model("""g (float[n,3] x, float[n,3] z, bool[n] c) => (float[f,3] y) {
    a = Compress<axis = 0>(x, c)
    b = Compress<axis = 0>(z, c)
    y = Mul(a, b)
}""")
ROWS = model("""g (float[n,3] x, bool[n] c, float[3,3] z) => (float[3,3] y) {
    a = Compress<axis = 0>(x, c)
    y = MatMul(z, a)
}""")
LEAST = model("""g (float[n] x, bool[n] c) => (int64 y) {
    a = Compress<axis = 0>(x, c)
    y = ArgMax<keepdims = 0>(a)
}""")
# Of 2^37 places.
FAR = model("""g (bool[1,262144] x, bool[524288,1] z) => (int64[2,f] y) {
    both = And(x, z)
    y = NonZero(both)
}""")
# The rate chooses how many rows there are,
CHOSEN = model("""g (float[n,3] x, int64 rate) => (float[f,3] y, float[f,3] z) {
    fast = Constant<value_int = 16000>()
    is = Equal(rate, fast)
    y = If<then_branch = t () => (float[a,3] u) { u = Concat<axis = 0>(x, x) },
           else_branch = e () => (float[b,3] v) { v = Neg(x) }>(is)
    z = Exp(y)
}""")
FIXED = model("""g (float[n,4] x, bool c) => (float[n,f] y) {
    y = If<then_branch = t () => (float[n,3] u) {
        p = Constant<value_ints = [0, 1, 2]>()
        u = Gather<axis = 1>(x, p)
    }, else_branch = e () => (float[n,1] v) {
        q = Constant<value_ints = [1]>()
        v = ReduceSum<keepdims = 1>(x, q)
    }>(c)
}""")

# Boxes that a threshold leaves, where there is one, and else the first: a branch tells how many there are.
DETECTED = model("""g (float[n,4] x, float[n] p, bool c) => (float[f,4] y, float[f] q, int64[1] k, float[f,4] z) {
    least = Constant<value_float = 0.0>()
    y, q, k = If<then_branch = t () => (float[a,4] ty, float[a] tq, int64[1] tk) {
        flat = Constant<value_ints = [-1]>()
        mask = Greater(p, least)
        found = NonZero(mask)
        at = Reshape(found, flat)
        ty = Gather(x, at)
        tq = Gather(p, at)
        tk = Shape(tq)
    }, else_branch = e () => (float[1,4] ey, float[1] eq, int64[1] ek) {
        first = Constant<value_ints = [0]>()
        ey = Gather(x, first)
        eq = Gather(p, first)
        ek = Shape(eq)
    }>(c)
    axis = Constant<value_ints = [1]>()
    column = Unsqueeze(q, axis)
    z = Mul(y, column)
}""")


def rates(fast, slow):
    """or a network that takes another number of samples: `fast` and `slow` make u and v of x."""
    return model(f"""g (float[b,2,n] x, int64 rate) => (float[b,2] y) {{
    fast = Constant<value_int = 16000>()
    last = Constant<value_ints = [-1]>()
    one = Constant<value_ints = [1]>()
    is = Equal(rate, fast)
    y = If<then_branch = t () => (float[r,2] u) {{ {fast} }}, else_branch = e () => (float[r,2] v) {{ {slow} }}>(is)
}}""")


def pooled(size, out):
    return f"""w{size} = AveragePool<kernel_shape = [{size}], strides = [{size}]>(x)
        {out} = Squeeze(w{size}, last)"""


def pooled_if_one(size, out):
    """As PyTorch exports squeeze(-1)."""
    return f"""w{size} = AveragePool<kernel_shape = [{size}], strides = [{size}]>(x)
        s{size} = Shape<start = 2>(w{size})
        c{size} = Equal(s{size}, one)
        {out} = If<then_branch = t{size} () => (float[p,2] t_{out}) {{ t_{out} = Squeeze(w{size}, last) }},
            else_branch = e{size} () => (float[p,2,q] e_{out}) {{ e_{out} = Identity(w{size}) }}>(c{size})"""


RATES = rates(pooled(4, "u"), pooled(2, "v"))
RATES_IF_ONE = rates(pooled_if_one(4, "u"), pooled_if_one(2, "v"))
COUNTED = model("""g (int64 a, int64 b, int64 d) => (int64[f] y) { y = Range(a, b, d) }""")


def counted(*values):
    return {name: number(value, np.int64) for name, value in zip("abd", values)}


def sound(samples, rate):
    return {"x": floats(3, 2, samples), "rate": number(rate, np.int64)}


ODD = model("""g (float[a] x, bool[a] c) => (float[m,2] y) {
    pairs = Constant<value_ints = [-1, 2]>()
    chosen = Compress<axis = 0>(x, c)
    y = Reshape(chosen, pairs)
}""")
# As many elements as no int64 counts.
CUBE = model("""g (float[n] x) => (float[n,n,n] y) {
    size = Shape(x)
    target = Concat<axis = 0>(size, size, size)
    y = Expand(x, target)
}""")

MASK = flags(1, 0, 1, 1)
WHOLE = {"x": floats(2, 9, 4), "scores": floats(2, 3, 9), "most": longs(4), "overlap": np.float32([0.3])}
CORNERS = {**WHOLE, "x": np.abs(WHOLE["x"])}
EMPTY = {**WHOLE, "x": floats(2, 0, 4), "scores": floats(2, 3, 0), "least": np.float32([0])}

CASES = [
    ("positive", POSITIVE, [{"x": floats(*s)} for s in ((3, 4), (1, 1), (40, 50))] + [{"x": -np.abs(floats(3, 5))}]),
    ("not zero", non_zero("int64", "[a,b,c]"), [{"x": few(*s)} for s in ((3, 4, 5), (1, 2, 1))]),
    ("not zero, static", non_zero("float", "[4,600]"), [{"x": few(4, 600).astype(np.float32)}]),
    ("compressed", compress(), [{"x": floats(2, 3), "c": c} for c in (flags(0, 1, 1, 0, 1), flags(0, 0), flags())]),
    ("compressed rows", compress(0), [{"x": floats(4, 3), "c": c} for c in (MASK, MASK[:2], np.zeros(4, bool))]),
    ("compressed columns", compress(-1), [{"x": floats(3, 4), "c": MASK}]),
    *(
        (f"sliced by {step}", sliced(step, kind), [
            {"x": floats(5, 6), "s": np.array(s, as_type), "e": np.array(e, as_type)} for s, e in bounds
        ])
        for step, kind, as_type, bounds in (
            (1, "int64", np.int64, (([1, -3], [4, 99]), ([4, 0], [1, 6]), ([-99, -1], [99, -2]))),
            (2, "int64", np.int64, (([-99, 0], [1 << 62, 1]), ([1, 2], [MAX, MAX]))),
            (MAX, "int64", np.int64, (([1, -3], [4, 99]), ([-1, 0], [99, 1]), ([4, 0], [1, 6]))),
            (-MAX, "int64", np.int64, (([4, -3], [1, 99]), ([1, 0], [4, 6]))),
            (-1, "int64", np.int64, (([-1, 2], [MIN, 3]), ([3, 0], [0, 1]))),
            (-2, "int32", np.int32, (([9, -1], [0, 9]), ([-1, 0], [-(1 << 31), 2]))),
        )
    ),
    ("chosen rows added up", SUMMED, [{"x": floats(5, n), "c": flags(1, 0, 1, 1, 0)} for n in (3, 700)]),
    *((f"Reduce{op} along axes of the data", reduced(op),
       [{"x": floats(n, m, 3), "a": longs(*a)} for n, m, a in ((4, 5, (0, 2)), (1, 7, (-2, 1)), (3, 2, (-1, 1)))])
      for op in ("Sum", "Max", "LogSumExp")),
    ("ReduceL1 along a column", reduced("L1", "int32", "[n,1]"),
     [{"x": few(3, 1).astype(np.int32), "a": longs(*a)} for a in ((1,), (0,), (-1, 0))]),
    ("largest", LARGEST, [{"x": floats(3, n), "k": longs(k)} for n, k in ((9, 2), (5, 0), (7, 7))]),
    ("smallest", SMALLEST, [{"x": few(6, 2).astype(np.int32), "k": longs(k)} for k in (1, 6)]),
    *(
        (f"distinct, axis {axis}, sorted={in_order}", unique("float", "[n,3]", axis, in_order),
         [{"x": few(n, 3).astype(np.float32)} for n in (5, 1)])
        for axis in (None, 0, 1)
        for in_order in (1, 0)
        if axis != 1
    ),
    ("distinct columns", unique("int64", "[4,n]", 1), [{"x": few(4, n)} for n in (9, 1)]),
    ("distinct wide rows", unique("float", "[n,65]", 0), [{"x": repeated(9, 65).astype(np.float32)}]),
    ("distinct rows of any width", unique("int64", "[n,m]", 0, 0),
     [{"x": repeated(n, m)} for n, m in ((9, 80), (1, 1))]),
    *(
        (f"boxes by {'centres' if centre else 'corners'}", boxes(centre),
         [{**(WHOLE if centre else CORNERS), "least": np.float32([v])} for v in (0, 9)] + [EMPTY])
        for centre in (0, 1)
    ),
    ("boxes without a limit", boxes(0, "most"), [{**CORNERS, "least": np.float32([0])}]),
    ("rounds of a loop", LOOP, [{"x": floats(3), "enough": number(e)} for e in (-9, 3, 1e9)]),
    ("slices of a loop", ROLLING, [{"x": floats(1), "w": floats(5), "trips": number(5, np.int64)}]),
    ("sizes of sizes", CHAIN, [{"x": floats(n), "least": number(v)} for n, v in ((50, 0), (1, 0), (20, 9))]),
    ("pairs", PAIRS, [{"x": floats(4, 3), "z": floats(4, 3), "c": MASK, "d": MASK[::-1].copy()}]),
    ("pairs of one mask", TWINS, [{"x": floats(4, 3), "z": floats(4, 3), "c": MASK}]),
    ("rows of a factor", ROWS, [{"x": floats(4, 3), "z": floats(3, 3), "c": MASK}]),
    ("one at least", LEAST, [{"x": floats(4), "c": MASK}]),
    ("chosen rows", CHOSEN, [{"x": floats(n, 3), "rate": number(r, np.int64)} for n, r in
                             ((5, 16000), (5, 8000), (1, 1), (40, 16000))]),
    ("chosen columns", FIXED, [{"x": floats(n, 4), "c": number(c, bool)} for n, c in ((5, 1), (5, 0), (40, 0))]),
    ("boxes found", DETECTED, [{"x": floats(n, 4), "p": p, "c": number(c, bool)} for n, p, c in
                               ((5, floats(5), 1), (3, -np.ones(3, np.float32), 1), (7, floats(7), 0))]),
    ("rates", RATES, [sound(4, 16000), sound(2, 8000), sound(7, 16000), sound(3, 1)]),
    ("rates, where it is one", RATES_IF_ONE, [sound(4, 16000), sound(2, 8000), sound(7, 16000)]),
]

# Sorting is slow to compile for a GPU: these are for the CPU alone.
LIKE_OTHERS = {
    "smallest", "distinct columns", "distinct wide rows", "distinct rows of any width", "boxes by centres",
    "boxes without a limit",
} | {
    f"distinct, axis {axis}, sorted={in_order}" for axis, in_order in ((None, 1), (None, 0), (0, 0))
}
BOUND = ["--dim", "y_d0=0..10"]
COUNTS = [(3, 13, 1), (3, 14, 2), (5, 1, -1), (5, 9, -1)]

# Runs that ask for what cannot be.
REFUSED = [
    ("pairs that do not fit", PAIRS, [], {"x": floats(4, 3), "z": floats(4, 3), "c": MASK, "d": flags(1, 1, 0, 0)}),
    ("rows that do not fit", ROWS, [], {"x": floats(4, 3), "z": floats(3, 3), "c": ~MASK}),
    ("not one", LEAST, [], {"x": floats(4), "c": np.zeros(4, bool)}),
    ("an odd count", ODD, [], {"x": floats(4), "c": MASK}),
    ("a cube", CUBE, [], {"x": np.zeros(3000000, np.float32)}),
    ("eight of seven", LARGEST, [], {"x": floats(3, 7), "k": longs(8)}),
    ("fewer than none", LARGEST, [], {"x": floats(3, 7), "k": longs(-1)}),
    ("a mean of integers", reduced("Mean", "int32"), [], {}),
    ("an axis of four", reduced("Sum"), [], {"x": floats(2, 3, 3), "a": longs(0, 3)}),
    ("another rate", RATES, [], sound(4, 8000)),
    ("another rate, where it is one", RATES_IF_ONE, [], sound(2, 16000)),
    ("far too many", FAR, [], {}),
    ("eleven of ten", COUNTED, BOUND, counted(3, 14, 1)),
]


def used(proto, inputs):
    return {value.name: inputs[value.name] for value in proto.graph.input if value.name in inputs}


def main():
    options = compiled_run.read_options()
    cases = [(name, proto, [], runs) for name, proto, runs in CASES]
    cases.append(("range", COUNTED, BOUND, [counted(*values) for values in COUNTS]))
    for name, proto, flags_, runs in cases:
        targets = TARGETS[: 1 if name in LIKE_OTHERS else 2]
        numbered = [(number, used(proto, inputs)) for number, inputs in enumerate(runs)]
        compiled_run.agrees(options, name, proto, numbered, targets, flags_)
    for name, proto, flags_, inputs in REFUSED:
        compiled_run.refuses(options, name, proto, used(proto, inputs), flags_)


if __name__ == "__main__":
    main()
