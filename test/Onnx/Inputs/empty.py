"""Models of open sizes, compiled with no flag and run with sizes of 0 among others, against ONNX Runtime. What that
refuses has to be refused. Prints a line a model."""

import compiled_run
import numpy as np


def model(text):
    return compiled_run.model(f"g {text}", 19)


ROWS = [{"n": n} for n in (0, 1, 5)]
PAIRS = [{"n": n, "m": m} for n, m in ((0, 0), (0, 2), (3, 0), (2, 5))]
ONES = [{"n": n, "m": m} for n, m in ((0, 1), (1, 0), (0, 0), (1, 3), (3, 1), (2, 2), (1, 1))]
IMAGES = [{"b": b, "h": h} for b, h in ((0, 8), (1, 8), (2, 9))]

def rest_where(compares):
    """A Reshape to [0, -1] where n is less or greater than 2."""
    return f"""(float[n,6] x) => (float[n,6] y) {{
    s = Shape<start = 0, end = 1>(x)
    two = Constant<value_ints = [2]>()
    holds = {compares}(s, two)
    c = Squeeze(holds)
    y = If<then_branch = t () => (float[n,6] u) {{
               r = Constant<value_ints = [0, -1]>()
               u = Reshape(x, r)
           }},
           else_branch = f () => (float[n,6] v) {{ v = Exp(x) }}>(c)
}}"""


CASES = [
    ("sum", """(float[n,3] x) => (y) {
    a = Constant<value_ints = [0]>()
    y = ReduceSum<keepdims = 0>(x, a)
}""", ROWS),
    ("sum of all squares", "(float[n,3] x) => (y) { y = ReduceSumSquare(x) }", ROWS),
    ("largest of a column", """(float[n,3] x) => (y) {
    a = Constant<value_ints = [0]>()
    y = ReduceMax(x, a)
}""", ROWS),
    ("norm", """(float[n,3] x) => (y) {
    a = Constant<value_ints = [0]>()
    y = ReduceL2(x, a)
}""", ROWS),
    ("product of nothing", "(float[4,n] x, float[n,3] z) => (y) { y = MatMul(x, z) }", ROWS),
    ("layer of nothing", """(float[4,n] x, float[n,3] z) => (y) {
    c = Constant<value_floats = [1.0, 2.0, 3.0]>()
    y = Gemm<alpha = 2.0>(x, z, c)
}""", ROWS),
    ("attention", """(float[2,n,4] x, float[2,m,4] z) => (y, s) {
    k = Transpose<perm = [0, 2, 1]>(z)
    p = MatMul(x, k)
    w = Softmax<axis = -1>(p)
    y = MatMul(w, z)
    s = ReduceSum(y)
}""", PAIRS),
    ("rows behind rows", "(float[n,3] x, float[m,3] z) => (y) { y = Concat<axis = 0>(x, z) }", PAIRS),
    ("broadcast", "(float[n,3] x, float[m,3] z) => (y) { y = Add(x, z) }", ONES),
    ("broadcast twice, added up", """(float[n,3] x, float[m,3] z) => (y, s) {
    a = Add(x, z)
    y = Mul(a, x)
    b = Constant<value_ints = [0]>()
    s = ReduceSum(y, b)
}""", ONES),
    ("norm of rows and their number", """(float[n,8] x) => (y, s) {
    one = Constant<value_floats = [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]>()
    y = LayerNormalization(x, one)
    s = Shape(y)
}""", ROWS),
    ("images", """(float[b,2,h,h] x) => (y, s) {
    k = Constant<value_ints = [4, 2, 3, 3]>()
    w = ConstantOfShape<value = float[1] {0.5}>(k)
    v = Conv<pads = [1, 1, 1, 1]>(x, w)
    p = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(v)
    y = GlobalAveragePool(p)
    s = ReduceSum(y)
}""", IMAGES),
    ("heads split", """(float[n,6] x) => (y, s) {
    t = Constant<value_ints = [-1, 3]>()
    y = Reshape(x, t)
    s = ReduceSum(y)
}""", ROWS),
    ("the rest beside n", """(float[n,6] x) => (y) {
    s = Shape<start = 0, end = 1>(x)
    r = Constant<value_ints = [-1]>()
    t = Concat<axis = 0>(s, r)
    y = Reshape(x, t)
}""", ROWS),
    ("the rest in a branch", rest_where("Less"), ROWS),
    ("the rest in the other branch", rest_where("Greater"), ROWS),
    ("padded with zeros", """(float[n,3] x) => (y) {
    p = Constant<value_ints = [2, 0, 1, 0]>()
    y = Pad(x, p)
}""", ROWS),
    ("padded with the edge", """(float[n,3] x) => (y) {
    p = Constant<value_ints = [2, 0, 1, 0]>()
    y = Pad<mode = "edge">(x, p)
}""", ROWS),
    ("cut, padded with the edge", """(float[n,3] x) => (y) {
    p = Constant<value_ints = [-2, 0, 3, 0]>()
    y = Pad<mode = "edge">(x, p)
}""", [{"n": n} for n in (2, 3, 5)]),
    ("cut, mirrored", """(float[n,3] x) => (y) {
    p = Constant<value_ints = [-2, 0, 3, 0]>()
    y = Pad<mode = "reflect">(x, p)
}""", [{"n": n} for n in (5, 6)]),
    ("cut to a size, repeated", """(float[n,3] x) => (y) {
    s = Shape<start = 0, end = 1>(x)
    t = Constant<value_ints = [9]>()
    cut = Sub(s, t)
    p = Constant<value_ints = [0, 7, 0]>()
    q = Concat<axis = 0>(cut, p)
    y = Pad<mode = "wrap">(x, q)
}""", [{"n": n} for n in (4, 5, 12)]),
    ("centred", """(float[n,m] x) => (y) {
    s = Shape(x)
    t = Constant<value_ints = [2, 1]>()
    more = Add(s, t)
    y = CenterCropPad(x, more)
}""", PAIRS),
    ("first row", """(float[n,3] x) => (y) {
    i = Constant<value_int = 0>()
    y = Gather<axis = 0>(x, i)
}""", ROWS),
    ("last row, if there is one", """(float[n,3] x) => (y) {
    s = Constant<value_ints = [-1]>()
    e = Constant<value_ints = [9223372036854775807]>()
    a = Constant<value_ints = [0]>()
    y = Slice(x, s, e, a)
}""", ROWS),
    ("place of the largest", "(float[n,3] x) => (y) { y = ArgMax<axis = 0>(x) }", ROWS),
    ("place of the largest of each row", """(float[n,3] x) => (y, s) {
    y = ArgMax<axis = 1>(x)
    s = Shape(y)
}""", ROWS),
    ("the two largest of each row", """(float[n,3] x) => (y, i, s) {
    k = Constant<value_ints = [2]>()
    y, i = TopK(x, k)
    s = ReduceSum(y)
}""", ROWS),
    ("as many of the largest as there are", """(float[n,3] x) => (y, i) {
    s = Shape<start = 0, end = 1>(x)
    t = Constant<value_ints = [2]>()
    k = Min(s, t)
    y, i = TopK<axis = 0>(x, k)
}""", ROWS),
    ("sums so far", """(float[n,3] x) => (y, s) {
    a = Constant<value_int = 0>()
    y = CumSum(x, a)
    s = ReduceSum(y)
}""", ROWS),
    ("tiled", """(float[n,3] x) => (y, s) {
    t = Constant<value_ints = [2, 2]>()
    y = Tile(x, t)
    s = ReduceSum(y)
}""", ROWS),
    ("as many ones", """(float[n,3] x) => (y, s) {
    n = Shape<start = 0, end = 1>(x)
    y = ConstantOfShape<value = float[1] {1.0}>(n)
    s = ReduceSum(y)
}""", ROWS),
    ("positive ones", """(float[n,3] x) => (y) {
    z = Constant<value_float = 0.0>()
    c = Greater(x, z)
    y = NonZero(c)
}""", ROWS),
    ("split", """(float[n,4] x) => (y, z, s) {
    y, z = Split<axis = 1, num_outputs = 2>(x)
    a = Constant<value_ints = [0]>()
    s = ReduceSum(z, a)
}""", ROWS),
    ("sums of letters", """(float[n,m] x, float[m,3] z) => (y) { y = Einsum<equation = "nm,mk->k">(x, z) }""", PAIRS),
    ("twice as large", """(float[b,2,h,h] x) => (y, s) {
    f = Constant<value_floats = [1.0, 1.0, 2.0, 2.0]>()
    y = Resize<mode = "linear">(x, , f)
    s = ReduceSum(y)
}""", IMAGES),
    ("whether there are rows", """(float[n,3] x) => (y) {
    n = Shape<start = 0, end = 1>(x)
    z = Constant<value_ints = [0]>()
    c = Greater(n, z)
    a = Constant<value_floats = [1.0]>()
    b = Constant<value_floats = [2.0]>()
    y = Where(c, a, b)
}""", ROWS),
    ("no region", """(float[b,2,h,8] x, float[n,4] z) => (y) {
    n = Shape<start = 0, end = 1>(z)
    i = ConstantOfShape<value = int64[1] {0}>(n)
    y = RoiAlign<output_height = 2, output_width = 2, sampling_ratio = 1>(x, z, i)
}""", [{"b": b, "h": h, "n": n} for b, h, n in ((1, 8, 0), (1, 8, 3), (2, 9, 1), (0, 8, 0), (1, 0, 0), (0, 8, 1))]),
    ("as large as 4", """(float[b,2,h,h] x) => (y) {
    s = Constant<value_ints = [4, 4]>()
    y = Resize<mode = "linear", axes = [2, 3]>(x, , , s)
}""", [*IMAGES, {"b": 1, "h": 0}]),
    ("one of an image", """(float[b,2,h,h] x) => (y, z) {
    y = GlobalAveragePool(x)
    z = GlobalMaxPool(x)
}""", [*IMAGES, {"b": 1, "h": 0}]),
    # A branch of another rank, which no run of 1 and more takes: the size is 1 and more.
    ("branches of another rank", """(float[n,3] x) => (float[] y) {
    n = Shape<start = 0, end = 1>(x)
    z = Constant<value_ints = [0]>()
    e = Equal(n, z)
    c = Squeeze(e)
    y = If<then_branch = t () => (float[] u) { u = ReduceSum<keepdims = 0>(x) },
           else_branch = f () => (float[] v) { v = Exp(x) }>(c)
}""", ROWS),
]


def inputs_of(proto, sizes):
    made, rng = {}, np.random.default_rng(1)
    for value in proto.graph.input:
        shape = [sizes[d.dim_param] if d.dim_param else d.dim_value for d in value.type.tensor_type.shape.dim]
        made[value.name] = rng.standard_normal(shape).astype(np.float32)
    return made


if __name__ == "__main__":
    OPTIONS = compiled_run.read_options()
    for NAME, TEXT, SIZES in CASES:
        PROTO = model(TEXT)
        compiled_run.served(OPTIONS, NAME, PROTO, [(str(s), inputs_of(PROTO, s)) for s in SIZES])
