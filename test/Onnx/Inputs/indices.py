"""Models that read at indices of the data, against ONNX Runtime: with indices that fit, and with others, which it
refuses and a CPU must refuse. Prints a line a model, what the runs say, and how many tests of indices a model has."""

import subprocess

import compiled_run
import numpy as np
import onnxruntime
from compiled_run import TARGETS

RANDOM = np.random.default_rng(7)


def model(text, opset=21):
    return compiled_run.model(text, opset)


def floats(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def longs(values):
    return np.array(values, np.int64)


ROWS = model("g (float[10,4] w, int64[2,2] ids) => (float[2,2,4] y) { e = Gather(w, ids) y = Relu(e) }")
COLUMNS = model("g (float[3,5] x, int32[3] at) => (float[3,3] y) { y = Gather<axis = 1>(x, at) }")
ELEMENTS = model("g (float[2,3] x, int64[2,2] at) => (float[2,2] y) { y = GatherElements<axis = 1>(x, at) }")
PLACES = model("g (float[5,6] x, int64[2,2] at) => (float[2] y) { y = GatherND(x, at) }")
WRITTEN = model("g (float[4,3] x, int64[1,3] at, float[1,3] u) => (float[4,3] y) { y = ScatterElements(x, at, u) }")
STORED = model("g (float[4,3] x, int64[2,2] at, float[2] u) => (float[4,3] y) { y = ScatterND(x, at, u) }")
# As exporters number the tokens of a text that is padded on the left: with the mask's running sum.
POSITIONS = model("""g (float[6,4] w, int64[1,7] mask) => (float[1,7,4] y) {
    axis = Constant<value_int = 1>()
    sum = CumSum(mask, axis)
    one = Constant<value_int = 1>()
    at = Sub(sum, one)
    y = Gather(w, at)
}""")
# Sizes that are open, with plans of their own for few tokens: each of them tests.
TOKENS = model("""g (float[10,4] w, float[4,8] u, float[8,4] v, int64[b,n] ids) => (float[b,n,4] y) {
    e = Gather(w, ids)
    axis = Constant<value_ints = [-1]>()
    mean = ReduceMean(e, axis)
    c = Sub(e, mean)
    s = Softmax(c)
    h = MatMul(s, u)
    r = Relu(h)
    o = MatMul(r, v)
    y = Add(e, o)
}""")
# What a run leaves out is not tested.
BRANCH = model("""g (bool c, float[5,4] w, float[2,4] x, int64[2] at) => (float[2,4] y) {
    y = If (c) <
        then_branch = taken () => (float[2,4] a) { a = Gather(w, at) },
        else_branch = left () => (float[2,4] b) { b = Relu(x) }
    >
}""")
BODY = model("""g (int64 trips, float[5,4] w, float[4] x, int64 first) => (float[4] y) {
    go = Constant<value = bool {1}>()
    y = Loop (trips, go, x) <
        body = step (int64 i, bool on, float[4] s) => (bool more, float[4] t) {
            more = Identity(on)
            at = Add(first, i)
            row = Gather(w, at)
            t = Add(s, row)
        }
    >
}""")

REVERSED = model("g (float[t,2] x, int64[2] at) => (float[t,2] y) { y = ReverseSequence(x, at) }")
REGIONS = model("""g (float[n,1,6,6] x, float[2,4] w, int64[2] at) => (float[2,1,2,2] y) {
    y = RoiAlign<output_height = 2, output_width = 2>(x, w, at)
}""")
UNPOOLED = model("""g (float[1,2,1] x, int64[1,2,1] at) => (float[1,2,4] y) {
    y = MaxUnpool<kernel_shape = [4], strides = [4]>(x, at)
}""")
GATED = model("""g (float[t,2,1] x, float[1,3,1] w, float[1,3,1] r, int32[2] at) => (float[t,1,2,1] y) {
    y = GRU<hidden_size = 1>(x, w, r, , at)
}""")
SUMMED_UP = model("g (float[2,n] x, int64 at) => (float[2,n] y) { y = CumSum(x, at) }")
SCORED = model("g (float[n,3] x, int64[n] at) => (float y) { y = NegativeLogLikelihoodLoss(x, at) }")
WEIGHED = model("""g (float[n,3] x, int32[n] at, float[3] w) => (float[n] y) {
    y = SoftmaxCrossEntropyLoss<reduction = "none", ignore_index = -9>(x, at, w)
}""")
CACHED = model("""g (float[2,c,3] x, float[2,r,3] u, int64[2] at) => (float[2,c,3] y) {
    y = TensorScatter(x, u, at)
}""", 24)
ROUND = model("""g (float[2,4,3] x, float[2,2,3] u, int64[2] at) => (float[2,4,3] y) {
    y = TensorScatter<mode = "circular">(x, u, at)
}""", 24)

# Beside a size of 0 nothing is left to be any, in runs that take the branch.
LEFT_OPEN = model("""g (int64 at, float[n,4] x) => (float[n,4] y) {
    zero = Constant<value_int = 0>()
    c = Greater(at, zero)
    y = If (c) <
        then_branch = taken () => (float[n,4] a) {
            s = Constant<value_ints = [0, -1]>()
            a = Reshape(x, s)
        },
        else_branch = left () => (float[n,4] b) { b = Relu(x) }
    >
}""")
# As exporters read a mask whose sizes are its own: at every pair of places along two other lengths.
PAIRS = """g (float[r,c] x, float[n,m] u) => (float[n,m] y) {
    zero = Constant<value_int = 0>()
    one = Constant<value_int = 1>()
    first = Constant<value_ints = [0]>()
    last = Constant<value_ints = [-1]>()
    target = Shape(u)
    n = Gather(target, zero)
    m = Gather(target, one)
    rows = Range(zero, n, one)
    columns = Range(zero, m, one)
    standing = Unsqueeze(rows, last)
    lying = Unsqueeze(columns, first)
    all_rows = Expand(standing, target)
    all_columns = Expand(lying, target)
    i = Unsqueeze(all_rows, last)
    j = Unsqueeze(all_columns, last)
    at = Concat<axis = -1>(i, j)
    e = GatherND(x, at)
    y = Mul(e, u)
}"""
# Where there may be no pair, none has to be there.
FULL_PAIRS = PAIRS.replace("    y = Mul(e, u)", """    rows_alone = Unsqueeze(n, first)
    by_rows = Concat<axis = 0>(rows_alone, last)
    v = Reshape(u, by_rows)
    columns_alone = Unsqueeze(m, first)
    by_columns = Concat<axis = 0>(last, columns_alone)
    w = Reshape(v, by_columns)
    y = Mul(e, w)""")
# A pair that is a Range itself: no column reaches both of its ends.
STEPPED = model("""g (float[r,c] x, float[p] u) => (float y, float[p] z) {
    start = Constant<value_int = 0>()
    two = Constant<value_int = 2>()
    one = Constant<value_int = 1>()
    sizes = Shape(u)
    p = Gather(sizes, start)
    end = Add(p, two)
    at = Range(p, end, one)
    y = GatherND(x, at)
    z = Relu(u)
}""")
FIRST = model("g (float[2,n] x, int64[1] at) => (float[2,k] y, int64[2,k] z) { y, z = TopK(x, at) }")

LEAST, MOST = -(2**63), 2**63 - 1

CASES = [
    ("rows", ROWS, {"w": floats(10, 4)}, "ids", [[[0, 9], [-10, 3]]], [[[0, 12], [-10, 3]], [[0, 9], [-11, 3]]]),
    ("columns", COLUMNS, {"x": floats(3, 5)}, "at", [np.int32([4, -5, 0])],
     [np.int32([4, 5, 0]), np.int32([-6, 0, 0])]),
    ("elements", ELEMENTS, {"x": floats(2, 3)}, "at", [[[0, -3], [2, 1]]], [[[0, 1], [3, 1]], [[0, -4], [0, 1]]]),
    ("places", PLACES, {"x": floats(5, 6)}, "at", [[[0, 5], [4, -6]]], [[[0, 6], [4, 0]], [[5, 0], [0, 0]]]),
    ("written", WRITTEN, {"x": floats(4, 3), "u": floats(1, 3)}, "at", [[[0, 3, -4]]], [[[0, 4, 0]], [[-5, 0, 0]]]),
    ("stored", STORED, {"x": floats(4, 3), "u": floats(2)}, "at", [[[0, 2], [-4, 1]]], [[[0, 3], [0, 0]]]),
    ("positions", POSITIONS, {"w": floats(6, 4)}, "mask", [[[0, 1, 1, 1, 1, 1, 1]]], [[[1, 1, 1, 1, 1, 1, 1]]]),
    ("tokens", TOKENS, {"w": floats(10, 4), "u": floats(4, 8), "v": floats(8, 4)}, "ids",
     [[[-10]], [[1], [9]], [[2, 4, 9]], [list(range(10)) * 3], [[]]],
     [[[-11]], [[1], [10]], [[2, 10, 9]], [list(range(11)) * 3]]),
    ("branch", BRANCH, {"c": np.array(True), "w": floats(5, 4), "x": floats(2, 4)}, "at", [[0, -5]], [[0, 5]]),
    ("left", BRANCH, {"c": np.array(False), "w": floats(5, 4), "x": floats(2, 4)}, "at", [[0, 5]], []),
    ("reversed", REVERSED, {"x": floats(4, 2)}, "at", [[0, 4], [3, 1]], [[5, 1], [2, -1]]),
    ("regions", REGIONS, {"x": floats(2, 1, 6, 6), "w": 6 * abs(floats(2, 4))}, "at", [[0, 1]], [[0, 2], [-1, 0]]),
    ("unpooled", UNPOOLED, {"x": floats(1, 2, 1)}, "at", [[[[3], [5]]]], [[[[8], [0]]], [[[-1], [0]]]]),
    ("gated", GATED, {"x": floats(3, 2, 1), "w": floats(1, 3, 1), "r": floats(1, 3, 1)}, "at",
     [np.int32([3, 0]), np.int32([1, 2])], [np.int32([4, 1]), np.int32([1, -1])]),
    ("summed up", SUMMED_UP, {"x": floats(2, 3)}, "at", [1, -2], [2, -3]),
    ("scored", SCORED, {"x": floats(2, 3)}, "at", [[0, 2], [-3, 1]], [[0, 3], [-4, 1]]),
    ("weighed", WEIGHED, {"x": floats(2, 3), "w": abs(floats(3))}, "at", [np.int32([-9, 2]), np.int32([0, 1])],
     [np.int32([3, -9]), np.int32([-4, 1])]),
    ("cached", CACHED, {"x": floats(2, 4, 3), "u": floats(2, 2, 3)}, "at", [[0, 2], [1, 1]], [[3, 0], [0, -1]]),
    ("cached in full", CACHED, {"x": floats(2, 4, 3), "u": floats(2, 5, 3)}, "at", [], [[0, 0]]),
    ("round", ROUND, {"x": floats(2, 4, 3), "u": floats(2, 2, 3)}, "at", [[3, 9], [0, MOST]],
     [[-1, 0], [2, LEAST]]),
    ("left open", LEFT_OPEN, {"x": floats(0, 4)}, "at", [0], [1]),
    ("first", FIRST, {"x": floats(2, 3)}, "at", [[0], [3]], [[4], [-1], [LEAST], [MOST]]),
    ("pairs", model(FULL_PAIRS), {"u": floats(3, 4)}, "x", [floats(3, 4), floats(5, 7)], [floats(2, 4), floats(3, 3)]),
    ("no pairs", model(PAIRS), {"x": floats(2, 4)}, "u", [floats(3, 0), floats(2, 4)], [floats(3, 4)]),
    ("a stepped pair", STEPPED, {"u": floats(3)}, "x", [floats(4, 5)], [floats(3, 5), floats(4, 4)]),
    ("body", BODY, {"trips": longs(3), "w": floats(5, 4), "x": floats(4)}, "first", [2], [3]),
]

# Operators keep these within their axis: nothing is left to test.
WITHIN = {
    "pairs": FULL_PAIRS,
    "largest": """g (float[6,8] x, float[8,3] w) => (float[6,3] y) {
        at = ArgMax<axis = 1, keepdims = 0>(x)
        y = Gather(w, at)
    }""",
    "first": """g (float[6,8] x, float[8,3] w) => (float[6,2,3] y) {
        k = Constant<value_ints = [2]>()
        v, at = TopK<axis = 1>(x, k)
        y = Gather(w, at)
    }""",
    "clipped": """g (int64[6] x, float[8,3] w) => (float[6,3] y) {
        least = Constant<value_int = 0>()
        most = Constant<value_int = 7>()
        at = Clip(x, least, most)
        y = Gather(w, at)
    }""",
    "wrapped": """g (int64[6] x, float[8,3] w) => (float[6,3] y) {
        axis = Constant<value_ints = [0]>()
        size = Constant<value_int = 8>()
        m = Mod(x, size)
        at = Unsqueeze(m, axis)
        rows = Gather(w, at)
        y = Squeeze(rows, axis)
    }""",
    "smaller": """g (int64[6] x, bool[6] c, float[8,3] w) => (float[6,3] y) {
        least = Constant<value_int = -4>()
        most = Constant<value_int = 3>()
        low = Max(x, least)
        at = Min(low, most)
        two = Constant<value_int = 2>()
        moved = Add(at, two)
        chosen = Where(c, moved, at)
        y = Gather(w, chosen)
    }""",
    "bits": """g (float[6] x, float[2,3] w) => (float[6,3] y) {
        zero = Constant<value_float = 0.0>()
        c = Greater(x, zero)
        at = Cast<to = 7>(c)
        y = Gather(w, at)
    }""",
    "trips": """g (float[4,3] w, float[3] x) => (float[3] y) {
        trips = Constant<value_int = 4>()
        go = Constant<value = bool {1}>()
        y = Loop (trips, go, x) <
            body = step (int64 i, bool on, float[3] s) => (bool more, float[3] t) {
                more = Identity(on)
                row = Gather(w, i)
                t = Add(s, row)
            }
        >
    }""",
}
# And these not, by one element.
BEYOND = {
    "pairs": PAIRS,
    "clipped": WITHIN["clipped"].replace("value_int = 7", "value_int = 8"),
    "wrapped": WITHIN["wrapped"].replace("value_int = 8", "value_int = 9"),
    "smaller": WITHIN["smaller"].replace("value_int = 2", "value_int = 5"),
    "first": WITHIN["first"].replace("float[8,3] w", "float[7,3] w"),
    "trips": WITHIN["trips"].replace("float[4,3] w", "float[3,3] w"),
}


# Sizes that the model declares stand in the place of those that the data asks for: a run has the same, or ends.
DECLARED = [
    ("k", "g (float[n,8] x, int64[1] a) => (float[n,3] y) { y, at = TopK(x, a) }", {"x": floats(4, 8)}, [[3]], [[2]]),
    ("length", """g (float[n] x, int64 a) => (int64[n] y, float[n] z) {
        start = Constant<value_int = 1>()
        step = Constant<value_int = 2>()
        y = Range(start, a, step)
        z = Relu(x)
    }""", {"x": floats(3)}, [7], [11]),
    ("length of none", """g (float[n] x, int64 a) => (int64[0] y, float[n] z) {
        limit = Constant<value_int = 9223372036854775807>()
        step = Constant<value_int = 1>()
        y = Range(a, limit, step)
        z = Relu(x)
    }""", {"x": floats(3)}, [MOST], [LEAST, -1]),
    ("long steps of a range", """g (float[n] x, int64 a) => (int64[1] y, float[n] z) {
        start = Constant<value_int = 0>()
        limit = Constant<value_int = 9223372036854775807>()
        y = Range(start, limit, a)
        z = Relu(x)
    }""", {"x": floats(3)}, [MOST], [2**62, LEAST]),
    ("steps of a range", """g (float[n] x, int64 a) => (int64[n] y, float[n] z) {
        start = Constant<value_int = 4>()
        limit = Constant<value_int = 1>()
        y = Range(start, limit, a)
        z = Relu(x)
    }""", {"x": floats(3)}, [-1], [-2, 0]),
    ("reduced", "g (float[n,4] x, int64[1] a) => (float[n,1] y) { y = ReduceSum(x, a) }", {"x": floats(3, 4)},
     [[1], [-1]], [[0], [2]]),
    ("reduced ones", "g (float[n,1] x, int64[1] a) => (float[n,1] y) { y = ReduceSum(x, a) }", {"x": floats(3, 1)},
     [[1], [-1]], [[2], [-3], [LEAST], [MOST]]),
    ("reduced away", "g (float[4,4,n] x, int64[1] a) => (float[4,n] y) { y = ReduceMax<keepdims = 0>(x, a) }",
     {"x": floats(4, 4, 3)}, [[0], [1], [-3]], [[2], [3]]),
    ("target", "g (float[2,n] x, int64[2] a) => (float[n,2] y) { y = Reshape(x, a) }", {"x": floats(2, 3)},
     [[-1, 2], [3, -1]], [[2, 3], [-1, -1]]),
    ("target of nothing", "g (float[n,3] x, int64[2] a) => (float[n,3] y) { y = Reshape(x, a) }", {"x": floats(0, 3)},
     [[-1, 3], [0, 3], [-1, 0]], [[0, -1], [LEAST, 3]]),
    ("target of nothing, with zeros", """g (float[n,3] x, int64[2] a) => (float[n,3] y) {
        y = Reshape<allowzero = 1>(x, a)
    }""", {"x": floats(0, 3)}, [[-1, 3], [0, 3]], [[LEAST, 3], [-2, 3]]),
    ("copied", "g (float[2,n] x, int64[2] a) => (float[n,2] y) { y = Reshape(x, a) }", {"x": floats(2, 3)},
     [[3, 2]], [[0, 3]]),
    ("copied ones", "g (float[n] x, int64[2] a) => (float[n,1] y) { y = Reshape(x, a) }", {"x": floats(3)},
     [[0, 1]], [[3, 0]]),
    ("rows", "g (float[1,n] x, int64[2] a) => (float[4,n] y) { y = Expand(x, a) }", {"x": floats(1, 3)},
     [[4, 1]], [[5, 3]]),
    ("one row", "g (float[1,n] x, int64[2] a) => (float[4,n] y) { y = Expand(x, a) }", {"x": floats(1, 3)},
     [[4, 3]], [[1, 3]]),
    ("one element", "g (float[1,1] x, int64[2] a) => (float[4,1] y) { y = Expand(x, a) }", {"x": floats(1, 1)},
     [[4, 1]], [[4, 0]]),
    ("no row", "g (float[1,n] x, int64[2] a) => (float[0,n] y) { y = Expand(x, a) }", {"x": floats(1, 3)},
     [[0, 3]], [[LEAST, 3], [-1, 3]]),
    ("columns", "g (float[4,n] x, int64[2] a) => (float[4,n] y) { y = Expand(x, a) }", {"x": floats(4, 3)},
     [[4, 3], [1, 1]], [[4, 2]]),
    ("any length", "g (float[4,n] x, int64[r] a) => (float[4,n] y) { y = Expand(x, a) }", {"x": floats(4, 3)},
     [[4, 3], [1], [3]], [[2], [4, 2], [1, 4, 3]]),
    ("filled", """g (float[n] x, int64[2] a) => (float[2,n] y, float[n] z) {
        y = ConstantOfShape(a)
        z = Relu(x)
    }""", {"x": floats(3)}, [[2, 3]], [[2, 4]]),
    ("depth", "g (int64[n] x, int64 a, float[2] v) => (float[n,5] y) { y = OneHot(x, a, v) }",
     {"x": longs([0, 4, 2]), "v": floats(2)}, [5], [4]),
    ("centred", "g (float[3,n] x, int64[1] a) => (float[6,n] y) { y = CenterCropPad<axes = [0]>(x, a) }",
     {"x": floats(3, 2)}, [[6]], [[4]]),
    ("part", """g (float[n] x, int64[1] a) => (float[3] y) {
        end = Constant<value_ints = [9223372036854775807]>()
        y = Slice(x, a, end)
    }""", {"x": floats(5)}, [[2], [-3]], [[3], [-99]]),
    ("part backwards", """g (float[n,2] x, int64[1] a) => (float[3,2] y) {
        start = Constant<value_ints = [-1]>()
        zero = Constant<value_ints = [0]>()
        step = Constant<value_ints = [-2]>()
        y = Slice(x, start, a, zero, step)
    }""", {"x": floats(6, 2)}, [[-99], [0], [-6]], [[1], [7]]),
    ("steps", """g (float[n,4] x, int64[1] a) => (float[3,4] y) {
        start = Constant<value_ints = [0]>()
        end = Constant<value_ints = [99]>()
        zero = Constant<value_ints = [0]>()
        y = Slice(x, start, end, zero, a)
    }""", {"x": floats(6, 4)}, [[2]], [[3], [-1], [0]]),
    ("axes", """g (float[4,4] x, int64[1] a) => (float[2,4] y) {
        start = Constant<value_ints = [1]>()
        end = Constant<value_ints = [3]>()
        y = Slice(x, start, end, a)
    }""", {"x": floats(4, 4)}, [[0], [-2]], [[1], [2]]),
    ("axis twice", """g (float[4,4] x, int64[2] a) => (float[2,2] y) {
        start = Constant<value_ints = [1, 1]>()
        end = Constant<value_ints = [3, 3]>()
        y = Slice(x, start, end, a)
    }""", {"x": floats(4, 4)}, [[0, 1], [-1, 0]], [[0, -2]]),
    ("pads", "g (float[n,2] x, int64[4] a) => (float[6,2] y) { y = Pad(x, a) }", {"x": floats(3, 2)},
     [[1, 0, 2, 0], [4, 1, -1, -1]], [[2, 0, 2, 0], [1, 1, 2, 0]]),
    ("pads of nothing", "g (float[n,2] x, int64[4] a) => (float[1,2] y) { y = Pad(x, a) }", {"x": floats(0, 2)},
     [[0, 0, 1, 0], [1, 0, 0, 0]], [[1, 0, 1, 0], [LEAST, 0, LEAST + 1, 0]]),
    ("pads that repeat", """g (float[n,2] x, int64[4] a) => (float[8,2] y) { y = Pad<mode = "edge">(x, a) }""",
     {"x": floats(7, 2)}, [[-3, 0, 4, 0], [7, 0, -6, 0]], [[-7, 0, 8, 0], [9, 0, -8, 0], [MOST, 0, 2 + LEAST, 0]]),
    ("pads that repeat none", """g (float[n,2] x, int64[4] a) => (float[n,3] y) {
        y = Pad<mode = "edge">(x, a)
    }""", {"x": floats(0, 2)}, [[0, 0, 0, 1]], [[0, -2, 0, 3]]),
    ("pads that repeat all", """g (float[n,2] x, int64[4] a) => (float[8,2] y) { y = Pad<mode = "wrap">(x, a) }""",
     {"x": floats(7, 2)}, [[-3, 0, 4, 0], [7, 0, -6, 0]], [[8, 0, -7, 0], [-8, 0, 9, 0]]),
    ("pads that reflect", """g (float[n] x, int64[2] a) => (float[8] y) { y = Pad<mode = "reflect">(x, a) }""",
     {"x": floats(7)}, [[-2, 3], [2, -1]], [[-3, 4], [-6, 7], [8, -7]]),
    ("axes of pads", """g (float[3,2] x, int64[4] p, int64[2] a) => (float[5,2] y) { y = Pad(x, p, , a) }""",
     {"x": floats(3, 2), "p": longs([1, 0, 1, 0])}, [[0, 1], [-2, -1]], [[0, 0], [0, 2], [0, LEAST]]),
    ("pads of an axis", """g (float[n,2] x, int64[2] a, int64[1] at) => (float[6,2] y) {
        y = Pad<mode = "edge">(x, a, , at)
    }""", {"x": floats(3, 2), "at": longs([-2])}, [[1, 2]], [[2, 2]]),
    ("scales", """g (float[1,1,n,5] x, float[4] a) => (float[1,1,10,13] y) {
        y = Resize<mode = "linear">(x, , a)
    }""", {"x": floats(1, 1, 7, 5)}, [np.float32([1, 1, 10 / 7, 13 / 5])], [np.float32([1, 1, 10 / 7, 2.5])]),
    ("sizes", """g (float[1,1,7,5] x, int64[4] a) => (float[1,1,10,13] y) {
        y = Resize<mode = "linear">(x, , , a)
    }""", {"x": floats(1, 1, 7, 5)}, [[1, 1, 10, 13]], [[1, 1, 10, 12]]),
    ("repeats", "g (float[3,2] x, int64[2] a) => (float[6,2] y) { y = Tile(x, a) }", {"x": floats(3, 2)},
     [[2, 1]], [[3, 1], [2, 2]]),
    ("repeats of nothing", "g (float[n,2] x, int64[2] a) => (float[n,4] y) { y = Tile(x, a) }", {"x": floats(0, 2)},
     [[5, 2], [MOST, 2]], [[-1, 2], [LEAST, 2]]),
    ("many repeats", "g (float[n,2] x, int64[2] a) => (float[n,4] y) { y = Tile(x, a) }", {"x": floats(2, 2)},
     [[1, 2]], [[1, 2**62 + 2], [1, 2 + LEAST], [LEAST + 1, 2]]),
    ("parts", "g (float[6,n] x, int64[2] a) => (float[2,n] y, float[4,n] z) { y, z = Split<axis = 0>(x, a) }",
     {"x": floats(6, 3)}, [[2, 4]], [[3, 3]]),
    ("no part", "g (float[6,n] x, int64[2] a) => (float[0,n] y, float[6,n] z) { y, z = Split<axis = 0>(x, a) }",
     {"x": floats(6, 3)}, [[0, 6]], [[LEAST, 6]]),
    ("crop", "g (float[4,5] x, int64[2] a) => (float[6,3] y) { y = CenterCropPad(x, a) }", {"x": floats(4, 5)},
     [[6, 3]], [[6, 4]]),
    ("grid", "g (float[2,2,3] x, int64[4] a) => (float[2,4,5,2] y) { y = AffineGrid(x, a) }", {"x": floats(2, 2, 3)},
     [[2, 1, 4, 5], [2, 7, 4, 5]], [[2, 1, 5, 4], [3, 1, 4, 5]]),
    ("squeezed", "g (float[1,n,1] x, int64[2] a) => (float[n] y) { y = Squeeze(x, a) }", {"x": floats(1, 3, 1)},
     [[0, 2], [-1, 0]], [[0, 1], [0, 0]]),
    ("unsqueezed", "g (float[n,3] x, int64[2] a) => (float[1,n,1,3] y) { y = Unsqueeze(x, a) }", {"x": floats(4, 3)},
     [[0, 2], [-2, -4]], [[0, 1], [2, 3], [0, 0], [0, 4]]),
    ("length of a transform", "g (float[n,9,1] x, int64 a) => (float[n,5,2] y) { y = DFT<onesided = 1>(x, a) }",
     {"x": floats(2, 9, 1)}, [9, 8], [10, 7, 0, LEAST]),
    ("steps of frames", """g (float[1,n,1] x, int64 a) => (float[1,4,3,2] y) {
        length = Constant<value_int = 4>()
        y = STFT(x, a, , length)
    }""", {"x": floats(1, 16, 1)}, [4], [3, 5, -4, LEAST, MOST]),
    ("length of frames", """g (float[1,16,1] x, int64 a) => (float[1,3,3,2] y) {
        step = Constant<value_int = 5>()
        y = STFT(x, step, , a)
    }""", {"x": floats(1, 16, 1)}, [4, 5], [6, 3, LEAST]),
    ("place of the others", """g (float[1,1,2,2] x, int64[4] a, int64[1,1,2,2] at) => (float[1,1,5,5] y) {
        y = MaxUnpool<kernel_shape = [2, 2], strides = [2, 2]>(x, at, a)
    }""", {"x": floats(1, 1, 2, 2), "at": longs([[[[0, 1], [2, 3]]]])}, [[1, 1, 5, 5]],
     [[1, 1, 4, 4], [1, 1, LEAST, 5]]),
    ("kept sizes", """g (float[7,5] x, int64[2] a) => (float[14,10] y) {
        y = Resize<keep_aspect_ratio_policy = "not_larger">(x, , , a)
    }""", {"x": floats(7, 5)}, [[14, 11]], [[15, 9]]),
]


def shaped(data):
    return data if isinstance(data, np.ndarray) else longs(data)


def is_refused_there(proto, inputs):
    try:
        onnxruntime.InferenceSession(proto.SerializeToString()).run(None, inputs)
    except Exception:  # its exceptions have no common class
        return True
    return False


def tests_of(options, name, text):
    path = options.work / f"{name}.onnx"
    path.write_bytes(model(text).SerializeToString())
    command = [options.fusec, path, "--target=x86-64-v3", "--stop-after=expr", "--dump-ir=expr"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.count(" indices of ")


def main():
    options = compiled_run.read_options()
    options.work.mkdir(parents=True)
    for name, proto, others, index, good, bad in CASES:
        runs = [(number, {**others, index: shaped(data)}) for number, data in enumerate(good)]
        compiled_run.agrees(options, name, proto, runs)
        folder = compiled_run.folder_of(options, name, TARGETS[0])
        for data in bad:
            inputs = {**others, index: shaped(data)}
            assert is_refused_there(proto, inputs), (name, data)
            print(f"{name}: {compiled_run.ran(options, inputs, TARGETS[0], folder)}", flush=True)
    for name, text, others, good, bad in DECLARED:
        runs = [(number, {**others, "a": shaped(data)}) for number, data in enumerate(good)]
        compiled_run.agrees(options, f"declared {name}", model(text), runs)
        folder = compiled_run.folder_of(options, f"declared {name}", TARGETS[0])
        for data in bad:
            print(f"{name}: {compiled_run.ran(options, {**others, 'a': shaped(data)}, TARGETS[0], folder)}", flush=True)
    for what, models in ("within", WITHIN), ("beyond", BEYOND):
        print(f"{what}: {', '.join(f'{name} {tests_of(options, name, text)}' for name, text in models.items())}")


if __name__ == "__main__":
    main()
