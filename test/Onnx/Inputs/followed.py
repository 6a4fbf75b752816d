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


def chosen(makes):
    """An element `k` of s, or of a table, at the place that `makes` computes."""
    return lengths(f"""two = Constant<value_int = 2>()
    three = Constant<value_int = 3>()
    eight = Constant<value_int = 8>()
    axis = Constant<value_ints = [0]>()
    {makes}""")


def at(place, data="s"):
    return chosen(f"""{place}
    k = Gather<axis = 0>({data}, place)""")


TABLE = "table = Constant<value_ints = [8, 4, 2, 16, 1, 6, 3, 5]>()"

GREATEST = "place = ArgMax<axis = 0, keepdims = 0>(s)"

REST = "place = Mod(n, three)"


def scattered(op, attributes, where="axis"):
    """s with 5 at n mod 3, or added there; times 1, 2, 3, and added up."""
    return chosen(f"""{REST}
    twice = Constant<value_ints = [0, 1]>()
    at = Unsqueeze(place, {where})
    five = Constant<value_ints = [5]>()
    put = {op}<{attributes}>(s, at, five)
    weights = Constant<value_ints = [1, 2, 3]>()
    all = Mul(put, weights)
    k = ReduceSum<keepdims = 0>(all)""")


def sliced(step):
    """The sum of the two entries of a table from n mod 3 + 2 on."""
    return chosen(f"""{REST}
    {TABLE}
    start = Add(place, two)
    step = Constant<value_ints = [{step}]>()
    from = Unsqueeze(start, axis)
    twice = Add(step, step)
    to = Add(from, twice)
    part = Slice(table, from, to, axis, step)
    k = ReduceSum<keepdims = 0>(part)""")


def powered(makes):
    return chosen(f"""f = Cast<to = 1>(n)
    {makes}
    most = Constant<value_int = 90>()
    k = Mod(power, most)""")


TWICE = """v2 = Loop<body = inner (int64 j, bool again, int64 u) => (bool go3, int64 u2) {
            go3 = Identity(again)
            u2 = Add(u, i)
        }>(few, go, v)
        go2 = Identity(more)"""

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
    ("added in a loop in a loop", lengths(f"""go = Equal(one, one)
    few = Constant<value_int = 3>()
    k = Loop<body = b (int64 i, bool more, int64 v) => (bool go2, int64 v2) {{
        {TWICE}
    }}>(few, , n)""")),
    ("the largest by its place", at(GREATEST)),
    ("the size that a size chooses", at(REST)),
    ("one counted from the end", at("from = Mod(n, three)\nplace = Sub(from, three)")),
    ("a table's entry", at(f"{TABLE}\nplace = Mod(n, eight)", "table")),
    ("an entry along an axis", chosen(f"""{REST}
    where = Unsqueeze(place, axis)
    found = GatherElements<axis = 0>(s, where)
    k = Squeeze(found, axis)""")),
    ("an entry of a matrix", chosen(f"""{REST}
    {TABLE}
    form = Constant<value_ints = [4, 2]>()
    matrix = Reshape(table, form)
    column = Mod(n, two)
    i = Unsqueeze(place, axis)
    j = Unsqueeze(column, axis)
    where = Concat<axis = 0>(i, j)
    k = GatherND(matrix, where)""")),
    ("one put in its place", scattered("ScatterElements", "axis = 0")),
    ("one added at its place", scattered("ScatterElements", 'reduction = "add"')),
    ("the larger at its place", scattered("ScatterND", 'reduction = "max"', "twice")),
    ("two from there on", sliced(2)),
    ("two backwards", sliced(-1)),
    ("a square of integers", powered("power = Pow(n, two)")),
    ("a power of two", powered("power = Pow(two, n)")),
    ("a float to an integer's power", powered("raised = Pow(f, three)\npower = Cast<to = 7>(raised)")),
    ("an integer to a float's power", powered("""half = Constant<value_float = 1.5>()
    power = Pow(n, half)""")),
    ("a product of three", lengths("""first = Constant<value_ints = [1, 2, 3]>()
    wanted = Einsum<equation = "i,i->">(s, first)
    most = Constant<value_int = 50>()
    k = Mod(wanted, most)""")),
    ("an outer product", lengths("""both = Einsum<equation = "i,j->ji">(s, s)
    sums = ReduceSum<keepdims = 0>(both)
    most = Constant<value_int = 50>()
    k = Mod(sums, most)""")),
    ("a product with an addend", lengths("""f = Cast<to = 1>(s)
    column = Constant<value_ints = [3, 1]>()
    a = Reshape(f, column)
    c = Constant<value_float = 4.0>()
    g = Gemm<transA = 1, alpha = 0.5, beta = 2.0>(a, a, c)
    up = Ceil(g)
    zero1 = Constant<value_ints = [0, 1]>()
    flat = Squeeze(up, zero1)
    k = Cast<to = 7>(flat)""")),
]


if __name__ == "__main__":
    OPTIONS = compiled_run.read_options()
    for NAME, PROTO in CASES:
        compiled_run.agrees(OPTIONS, NAME, PROTO, [(s, inputs_of(PROTO, s)) for s in SIZES])
