"""Models that read at indices of the data, against ONNX Runtime: with indices that fit, and with others, which it
refuses and a CPU must refuse. Prints a line a model, what the runs say, and how many tests of indices a model has."""

import subprocess

import compiled_run
import numpy as np
import onnxruntime
from compiled_run import TARGETS

RANDOM = np.random.default_rng(7)


def model(text):
    return compiled_run.model(text, 21)


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
    ("body", BODY, {"trips": longs(3), "w": floats(5, 4), "x": floats(4)}, "first", [2], [3]),
]

# Operators keep these within their axis: nothing is left to test.
WITHIN = {
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
    "clipped": WITHIN["clipped"].replace("value_int = 7", "value_int = 8"),
    "wrapped": WITHIN["wrapped"].replace("value_int = 8", "value_int = 9"),
    "smaller": WITHIN["smaller"].replace("value_int = 2", "value_int = 5"),
    "first": WITHIN["first"].replace("float[8,3] w", "float[7,3] w"),
    "trips": WITHIN["trips"].replace("float[4,3] w", "float[3,3] w"),
}


# Sizes that the model declares stand in the place of those that the data asks for: a run has the same, or ends.
DECLARED = [
    ("k", "g (float[n,8] x, int64[1] a) => (float[n,3] y) { y, at = TopK(x, a) }", {"x": floats(4, 8)}, [3], [2]),
    ("length", """g (float[n] x, int64 a) => (int64[n] y, float[n] z) {
        start = Constant<value_int = 1>()
        step = Constant<value_int = 2>()
        y = Range(start, a, step)
        z = Relu(x)
    }""", {"x": floats(3)}, 7, 11),
    ("target", "g (float[2,n] x, int64[2] a) => (float[n,2] y) { y = Reshape(x, a) }", {"x": floats(2, 3)},
     [-1, 2], [2, 3]),
    ("copied", "g (float[2,n] x, int64[2] a) => (float[n,2] y) { y = Reshape(x, a) }", {"x": floats(2, 3)},
     [3, 2], [0, 3]),
    ("rows", "g (float[1,n] x, int64[2] a) => (float[4,n] y) { y = Expand(x, a) }", {"x": floats(1, 3)},
     [4, 1], [5, 3]),
    ("one row", "g (float[1,n] x, int64[2] a) => (float[4,n] y) { y = Expand(x, a) }", {"x": floats(1, 3)},
     [4, 3], [1, 3]),
    ("filled", """g (float[n] x, int64[2] a) => (float[2,n] y, float[n] z) {
        y = ConstantOfShape(a)
        z = Relu(x)
    }""", {"x": floats(3)}, [2, 3], [2, 4]),
    ("depth", "g (int64[n] x, int64 a, float[2] v) => (float[n,5] y) { y = OneHot(x, a, v) }",
     {"x": longs([0, 4, 2]), "v": floats(2)}, 5, 4),
    ("centred", "g (float[3,n] x, int64[1] a) => (float[6,n] y) { y = CenterCropPad<axes = [0]>(x, a) }",
     {"x": floats(3, 2)}, [6], [4]),
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
        compiled_run.agrees(options, f"declared {name}", model(text), [(0, {**others, "a": longs(good)})])
        folder = compiled_run.folder_of(options, f"declared {name}", TARGETS[0])
        print(f"{name}: {compiled_run.ran(options, {**others, 'a': longs(bad)}, TARGETS[0], folder)}", flush=True)
    for what, models in ("within", WITHIN), ("beyond", BEYOND):
        print(f"{what}: {', '.join(f'{name} {tests_of(options, name, text)}' for name, text in models.items())}")


if __name__ == "__main__":
    main()
