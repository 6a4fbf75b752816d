"""Resize with antialias over sizes that are not fixed, compiled with no flag and run at several sizes, against ONNX
Runtime. Prints a line a model."""

import compiled_run
import numpy as np

SIZES = [{"b": b, "h": h, "w": w} for b, h, w in ((1, 1, 1), (2, 8, 9), (1, 30, 7), (1, 4, 120), (0, 8, 9), (1, 0, 3))]
FULL = [s for s in SIZES if s["h"] > 0]
LARGE = [s for s in FULL if s["h"] > 1]

HALF = """s = Shape<start = 2>(x)
    k = Constant<value_ints = [3, 2]>()
    to = Div(s, k)"""
SHRUNK = """s = Shape<start = 2>(x)
    f = Cast<to = 1>(s)
    k = Constant<value_floats = [5.0, 11.0]>()
    by = Div(k, f)"""


def resize(operands, to, mode="linear", more=""):
    """`to` makes `to` or `by`."""
    return compiled_run.model(f"""g (float[b,2,h,w] x) => (y) {{
    {to}
    y = Resize<mode = "{mode}", antialias = 1, axes = [2, 3]{more}>({operands})
}}""", 19)


def given(sizes):
    return f"to = Constant<value_ints = {sizes}>()"


def scaled(scales):
    return f"by = Constant<value_floats = {scales}>()"


def of_data():
    """Sizes that only a run has, and whose result is declared."""
    return compiled_run.model("""g (float[b,2,h,w] x, float[2] by) => (float[b,2,3,5] y) {
    y = Resize<mode = "linear", antialias = 1, axes = [2, 3]>(x, , by)
}""", 19)


TO, BY = "x, , , to", "x, , by"
CASES = [
    ("linear, to 3x4", resize(TO, given([3, 4])), SIZES),
    ("cubic, to 3x18, nothing outside", resize(TO, given([3, 18]), "cubic", ", exclude_outside = 1"), SIZES),
    ("linear, by 0.6 and 0.3", resize(BY, scaled([0.6, 0.3])), SIZES),
    ("cubic, by 0.01 and 1.5", resize(BY, scaled([0.01, 1.5]), "cubic"), SIZES),
    ("linear, to computed sizes", resize(TO, HALF), LARGE),
    ("linear, by computed scales", resize(BY, SHRUNK), FULL),
    ("linear, to what is not larger",
     resize(TO, given([6, 5]), more=', keep_aspect_ratio_policy = "not_larger"'), LARGE),
    ("linear, by scales of the data", of_data(), [{"b": 2, "h": 8, "w": 9}, {"b": 1, "h": 30, "w": 7}]),
]


def inputs_of(sizes, proto):
    random = np.random.default_rng(1)
    made = {"x": random.standard_normal((sizes["b"], 2, sizes["h"], sizes["w"])).astype(np.float32)}
    if len(proto.graph.input) > 1:
        made["by"] = np.array([3.01 / sizes["h"], 5.01 / sizes["w"]], np.float32)
    return made


if __name__ == "__main__":
    OPTIONS = compiled_run.read_options()
    for NAME, PROTO, OF in CASES:
        compiled_run.served(OPTIONS, NAME, PROTO, [(str(s), inputs_of(s, PROTO)) for s in OF])
