"""Loops that carry values whose sizes change from trip to trip, compiled and run, against ONNX Runtime. Prints a line a
model, and what a run says that has more than there may be."""

import compiled_run
import numpy as np
from compiled_run import TARGETS
from data_sizes import floats, model, number


def loop(inputs, init, body, outputs="float[r,3] y", behind="", columns="3"):
    """`body` makes what is carried on, v2, and whether there is another trip, go2."""
    return model(f"""g ({inputs}) => ({outputs}) {{
    {init}
    y = Loop<body = b (int64 i, bool go, float[k,{columns}] v) => (bool go2, float[l,{columns}] v2) {{ {body} }}>(
        trips, , x)
    {behind}
}}""")


GO_ON = "go2 = Identity(go)\n"
APPEND = GO_ON + """
    zero = Constant<value_ints = [0]>()
    mean = ReduceMean<keepdims = 1>(v, zero)
    next = Exp(mean)
    v2 = Concat<axis = 0>(v, next)"""
FIVE = "trips = Constant<value_int = 5>()"
APPENDED = loop("float[n,3] x", FIVE, APPEND)
# As many trips as there are rows, so that the list is twice as long.
BY_SIZES = loop("float[n,3] x", "size = Shape<start = 0, end = 1>(x)\ntrips = Squeeze(size)", APPEND,
                "float[r,3] y, float[3] z",
                "first = Constant<value_ints = [0]>()\nz = ReduceSum<keepdims = 0>(y, first)")
BY_DATA = loop("float[n,3] x, int64 trips", "", APPEND)
# Ends when the last row has become large, after ten trips at most.
TO_ENOUGH = """
    zero = Constant<value_ints = [0]>()
    next = ReduceSum<keepdims = 1>(v, zero)
    v2 = Concat<axis = 0>(next, v)
    top = ReduceMax<keepdims = 0>(next)
    go2 = Less(top, enough)"""
UNTIL = loop("float[n,3] x, float enough", "trips = Constant<value_int = 10>()", TO_ENOUGH)
DOUBLED = loop("float[n,3] x, int64 trips", "", GO_ON + "n2 = Neg(v)\nv2 = Concat<axis = 0>(v, n2)")
SHORTENED = loop("float[n,3] x", FIVE, GO_ON + """
    one = Constant<value_ints = [1]>()
    far = Constant<value_ints = [9223372036854775807]>()
    rest = Slice(v, one, far)
    v2 = Add(rest, rest)""")
# Keeps the rows that are large, and appends as many others.
CHOSEN = loop("float[n,3] x", FIVE, GO_ON + """
    zero = Constant<value_float = 0.0>()
    last = Constant<value_ints = [1]>()
    sums = ReduceSum<keepdims = 0>(v, last)
    large = Greater(sums, zero)
    kept = Compress<axis = 0>(v, large)
    half = Constant<value_float = -0.5>()
    scaled = Mul(kept, half)
    v2 = Concat<axis = 0>(kept, scaled)""")
# One step of attention a trip, whose keys and values grow along their second axis, beside the tokens and a log of them.
DECODED = model("""g (float[b,p,4] k0, float[b,p,4] v0, float[b,1,4] x, int64[b,m] ids0, float[4,4] w)
    => (float[b,r,4] keys, float[b,q,4] values, float[b,1,4] y, int64[b,o] ids, float[t,b,4] log) {
    trips = Constant<value_int = 6>()
    keys, values, y, ids, log = Loop<body = step (int64 i, bool go, float[b,c,4] k, float[b,d,4] v, float[b,1,4] h,
                                                  int64[b,e] s)
        => (bool go2, float[b,c2,4] k2, float[b,d2,4] v2, float[b,1,4] h2, int64[b,e2] s2, float[b,4] row) {
        go2 = Identity(go)
        key = MatMul(h, w)
        k2 = Concat<axis = 1>(k, key)
        v2 = Concat<axis = 1>(v, h)
        turned = Transpose<perm = [0, 2, 1]>(k2)
        scores = MatMul(h, turned)
        weights = Softmax<axis = -1>(scores)
        h2 = MatMul(weights, v2)
        one = Constant<value_ints = [1]>()
        row = Squeeze(h2, one)
        token = ArgMax<axis = 1, keepdims = 1>(row)
        s2 = Concat<axis = 1>(s, token)
    }>(trips, , k0, v0, x, ids0)
}""")


# Appends what is found; what follows from such a list grows, too, though it begins as long; a loop in a loop.
FOUND = loop("float[n,3] x, float[3,3] more", FIVE, GO_ON + """
    two = Constant<value_int = 2>()
    one = Constant<value_ints = [1]>()
    odd = Mod(i, two)
    least = Cast<to = 1>(odd)
    sums = ReduceSum<keepdims = 0>(more, one)
    large = Greater(sums, least)
    kept = Compress<axis = 0>(more, large)
    v2 = Concat<axis = 0>(v, kept)""")
TWINS = model("""g (float[1,3] x) => (float[r,3] y, float[q,3] z) {
    trips = Constant<value_int = 4>()
    y, z = Loop<body = b (int64 i, bool go, float[k,3] v, float[l,3] w) => (bool go2, float[k2,3] v2, float[l2,3] w2) {
        go2 = Identity(go)
        next = Neg(w)
        zero = Constant<value_ints = [0]>()
        mean = ReduceMean<keepdims = 1>(next, zero)
        v2 = Concat<axis = 0>(v, mean)
        w2 = Exp(v)
    }>(trips, , x, x)
}""")
NESTED = model("""g (float[n,3] x, float s0) => (float[r,3] y, float s) {
    trips = Constant<value_int = 3>()
    y, s = Loop<body = outer (int64 i, bool go, float[k,3] v, float t) => (bool go2, float[k2,3] v2, float t2) {
        inner_trips = Constant<value_int = 2>()
        v2 = Loop<body = inner (int64 j, bool on, float[l,3] u) => (bool on2, float[l2,3] u2) {
            on2 = Identity(on)
            zero = Constant<value_ints = [0]>()
            mean = ReduceMean<keepdims = 1>(u, zero)
            u2 = Concat<axis = 0>(u, mean)
        }>(inner_trips, , v)
        go2 = Identity(go)
        sum = ReduceSum<keepdims = 0>(v2)
        t2 = Add(t, sum)
    }>(trips, , x, s0)
}""")
# A trip multiplies with as many numbers as the list has by then.
WEIGHED = model("""g (float[1] x, float[8] table) => (float[r] y) {
    trips = Constant<value_int = 5>()
    y = Loop<body = b (int64 i, bool go, float[k] v) => (bool go2, float[l] v2) {
        go2 = Identity(go)
        zero = Constant<value_ints = [0]>()
        one = Constant<value_ints = [1]>()
        last = Unsqueeze(i, zero)
        to = Add(last, one)
        part = Slice(table, zero, to)
        dot = MatMul(v, part)
        next = Unsqueeze(dot, zero)
        v2 = Concat<axis = 0>(v, next)
    }>(trips, , x)
}""")
# As exporters write a loop that its condition ends.
WHILE = loop("float[n,3] x, float enough", "trips = Constant<value_int = 9223372036854775807>()", TO_ENOUGH)


def decoded(batch, past):
    return {"k0": floats(batch, past, 4), "v0": floats(batch, past, 4), "x": floats(batch, 1, 4),
            "ids0": np.arange(2 * batch, dtype=np.int64).reshape(batch, 2), "w": floats(4, 4)}


def given(rows, **others):
    return {"x": floats(rows, 3), **others}


BOUND = ["--dim", "y_d0=0..40"]
CASES = [
    ("appended", APPENDED, [], [given(1), given(4)]),
    ("as many as rows", BY_SIZES, [], [given(1), given(7)]),
    ("as often as the data says", BY_DATA, BOUND, [given(3, trips=number(t, np.int64)) for t in (0, 1, 9)]),
    ("until it is large", UNTIL, [], [given(2, enough=number(e)) for e in (-1e9, 5, 1e9)]),
    ("doubled", DOUBLED, BOUND, [given(2, trips=number(t, np.int64)) for t in (0, 3, 4)]),
    ("shortened", SHORTENED, [], [given(9), given(5)]),
    ("chosen anew", CHOSEN, BOUND, [given(6), given(1)]),
    ("what is found", FOUND, [], [given(n, more=floats(3, 3)) for n in (2, 1)]),
    ("what follows a list", TWINS, [], [given(1)]),
    ("a loop in a loop", NESTED, [], [given(n, s0=number(1)) for n in (1, 3)]),
    ("weighed by a table", WEIGHED, [], [{"x": floats(1), "table": floats(8)}]),
    ("while it is small", WHILE, BOUND, [given(2, enough=number(e)) for e in (-1e9, 5)]),
    ("keys and values", DECODED, [], [decoded(2, 3), decoded(1, 1), decoded(3, 0)]),
]
REFUSED = [
    ("no bound", BY_DATA, [], {}),
    ("no bound of a while", WHILE, [], {}),
    ("no bound of what doubles", loop("float[n,3] x", FIVE, GO_ON + "v2 = Concat<axis = 0>(v, v)"), [], {}),
    ("two axes", loop("float[n,3] x", FIVE, GO_ON + "w = Concat<axis = 0>(v, v)\nv2 = Concat<axis = 1>(w, w)",
                      "float[r,s] y", columns="c"), [], {}),
    ("chosen anew, without a bound", CHOSEN, [], given(6)),
    ("beyond the bound", BY_DATA, BOUND, given(39, trips=number(3, np.int64))),
    ("longer than the bound at first", BY_DATA, BOUND, given(41, trips=number(0, np.int64))),
]


def main():
    options = compiled_run.read_options()
    for name, proto, flags, runs in CASES:
        compiled_run.agrees(options, name, proto, list(enumerate(runs)), TARGETS, flags)
    for name, proto, flags, inputs in REFUSED:
        compiled_run.refuses(options, name, proto, inputs, flags)


if __name__ == "__main__":
    main()
