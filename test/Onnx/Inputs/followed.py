"""Models whose sizes follow from input shapes by running sums, orders, products and loops, compiled once and run at
several sizes, against ONNX Runtime. Prints a line a model."""

import compiled_run
import numpy as np
from computed import inputs_of, scalar


def model(text):
    return compiled_run.model(text, 19)


def lengths(makes):
    """A Range as long as the i64 `k` of rank 0 that `makes` computes of s, the shape of x, and n, its first size."""
    return model(f"""g (float[n,m,3] x) => (y) {{
    {scalar(0, "n")}
    s = Identity(s_n)
    zero = Constant<value_int = 0>()
    one = Constant<value_int = 1>()
    {makes}
    y = Range(zero, k, one)
}}""")


def element(name, vector, place):
    """Element `place` of a vector."""
    return f"""at_{name} = Constant<value_int = {place}>()
    {name} = Gather<axis = 0>({vector}, at_{name})"""


def cumulated(attributes, place):
    return lengths(f"""axis = Constant<value_int = 0>()
    sums = CumSum<{attributes}>(s, axis)
    {element("k", "sums", place)}""")


def extreme(op, attributes=""):
    """The place of the largest or smallest of n, m, 3, n."""
    return lengths(f"""first = Constant<value_ints = [0]>()
    again = Gather<axis = 0>(s, first)
    all = Concat<axis = 0>(s, again)
    at = {op}<axis = 0, keepdims = 0{attributes}>(all)
    k = Add(at, one)""")


def top(output, largest, count, place):
    return lengths(f"""count = Constant<value_ints = [{count}]>()
    values, places = TopK<axis = 0, largest = {largest}>(s, count)
    {element("found", output, place)}
    k = Add(found, one)""")


def reduced(op, values="s"):
    """Of n, m, 3 as integers of 32 bits, which ONNX Runtime reduces in all ways."""
    return lengths(f"""narrow = Cast<to = 6>({values})
    whole = {op}<keepdims = 0>(narrow)
    wide = Cast<to = 7>(whole)
    forty = Constant<value_int = 40>()
    k = Mod(wide, forty)""")


def until(condition, init="one", trips="", makes="v2 = Add(v, v)"):
    """What a Loop carries out that goes on while the bool go2 holds."""
    return lengths(f"""{"most = Constant<value_int = 5>()" if trips == "most" else ""}
    go = Constant<value_int = 1>()
    start = Cast<to = 9>(go)
    k = Loop<body = b (int64 i, bool more, int64 v) => (bool go2, int64 v2) {{
        {makes}
        {condition}
    }}>({trips}, start, {init})""")


def levels():
    return model(f"""g (float[n,m,3] x) => (y, z, w) {{
    {scalar(0, "n")}
    zero = Constant<value_int = 0>()
    one = Constant<value_int = 1>()
    half = Constant<value_float = 0.5>()
    go = Less(one, n)
    width, steps, w = Loop<body = b (int64 i, bool more, int64 v, int64 c, float[n,m,3] f)
                                  => (bool go2, int64 v2, int64 c2, float[n,m,3] f2) {{
        v2 = Add(v, v)
        c2 = Add(c, one)
        f2 = Mul(f, half)
        go2 = Less(v2, n)
    }}>(, go, one, zero, x)
    y = Range(zero, width, one)
    z = Range(zero, steps, one)
}}""")


COLLATZ = """two = Constant<value_int = 2>()
        three = Constant<value_int = 3>()
        half = Div(v, two)
        odd = Mod(v, two)
        isodd = Equal(odd, one)
        v3 = Mul(v, three)
        grown = Add(v3, one)
        v2 = If(isodd)<then_branch = t () => (int64 a) { a = Identity(grown) },
                       else_branch = e () => (int64 c) { c = Identity(half) }>"""

FLOATS = """f = Cast<to = 1>(s)
    mean = ReduceMean<keepdims = 0>(f)
    up = Ceil(mean)
    k = Cast<to = 7>(up)"""

SIZES = [{"n": n, "m": m} for n, m in ((1, 1), (2, 5), (5, 2), (7, 3), (3, 3), (6, 6))]

CASES = [
    ("the second running sum", cumulated("exclusive = 0, reverse = 0", 1)),
    ("the last running sum without its own", cumulated("exclusive = 1, reverse = 0", 2)),
    ("the first running sum from the end", cumulated("exclusive = 0, reverse = 1", 0)),
    ("the place of the largest", extreme("ArgMax")),
    ("the last place of the largest", extreme("ArgMax", ", select_last_index = 1")),
    ("the place of the smallest", extreme("ArgMin")),
    ("the last place of the smallest", extreme("ArgMin", ", select_last_index = 1")),
    ("the second largest", top("values", 1, 3, 1)),
    ("where the second largest is", top("places", 1, 3, 1)),
    ("the smallest", top("values", 0, 2, 0)),
    ("where the second smallest is", top("places", 0, 2, 1)),
    ("the mean of integers", reduced("ReduceMean")),
    ("the mean of integers below zero", lengths("""four = Constant<value_int = 4>()
    less = Sub(s, four)
    narrow = Cast<to = 6>(less)
    mean = ReduceMean<keepdims = 0>(narrow)
    wide = Cast<to = 7>(mean)
    k = Add(wide, four)""")),
    ("the mean of floats", lengths(FLOATS)),
    ("the sum of squares", reduced("ReduceSumSquare")),
    ("the sum of magnitudes", reduced("ReduceL1", "s")),
    ("a product with a vector", lengths("""weights = Constant<value_ints = [2, 1, 1]>()
    k = MatMul(s, weights)""")),
    ("a product of matrices", lengths("""entries = Constant<value_ints = [1, 2, 0, 0, 1, 1]>()
    form = Constant<value_ints = [2, 3]>()
    matrix = Reshape(entries, form)
    column = MatMul(matrix, s)
    k = ReduceMax<keepdims = 0>(column)""")),
    ("the sign of a difference", lengths("""four = Constant<value_int = 4>()
    less = Sub(n, four)
    sign = Sign(less)
    k = Add(sign, four)""")),
    ("the sign of a float", lengths("""f = Cast<to = 1>(n)
    four = Constant<value_float = 4.5>()
    less = Sub(f, four)
    sign = Sign(less)
    whole = Cast<to = 7>(sign)
    k = Add(whole, one)""")),
    ("doubled until there is room", until("go2 = Less(v2, n)")),
    ("doubled five times at most", until("go2 = Less(v2, n)", trips="most")),
    ("doubled as often as there are rows", until("go2 = Identity(more)", trips="n")),
    ("five steps of Collatz", until("go2 = Identity(more)", "n", "most", COLLATZ)),
    ("as many doublings as there is room for, beside what they carry", levels()),
    ("added while the trip allows", until("go2 = Less(i, one)", "n", "", "v2 = Add(v, i)")),
]


if __name__ == "__main__":
    OPTIONS = compiled_run.read_options()
    for NAME, PROTO in CASES:
        compiled_run.agrees(OPTIONS, NAME, PROTO, [(s, inputs_of(PROTO, s)) for s in SIZES])
