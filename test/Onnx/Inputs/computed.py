"""Models whose sizes follow from input shapes by arithmetic, compiled once and run at several sizes, against ONNX
Runtime. Prints a line a model."""

import compiled_run
import numpy as np
from onnx import TensorProto, helper

MAX, MIN = (1 << 63) - 1, -(1 << 63)


def model(text, opset=19):
    return compiled_run.model(text, opset)


def scalar(axis, name):
    """Size `axis` of x."""
    return f"""s_{name} = Shape(x)
    i_{name} = Constant<value_int = {axis}>()
    {name} = Gather<axis = 0>(s_{name}, i_{name})"""


def vector(name):
    return f"""z_{name} = Constant<value_ints = [0]>()
    v_{name} = Unsqueeze({name}, z_{name})"""


CEIL_HALF = f"""{scalar(0, "n")}
    f = Cast<to = 1>(n)
    two = Constant<value_float = 2.0>()
    h = Div(f, two)
    c = Ceil(h)
    e = Cast<to = 7>(c)"""


def resize(mode, transform, nearest="round_prefer_floor", scales="[1.0, 1.0, 1.5, 0.75]"):
    return model(f"""g (float[b,2,h,w] x) => (y) {{
    scales = Constant<value_floats = {scales}>()
    y = Resize<mode = "{mode}", coordinate_transformation_mode = "{transform}", nearest_mode = "{nearest}">
        (x, , scales)
}}""")


def upsample(mode, scales):
    return model(f"""g (float[b,2,h,w] x) => (y) {{
    scales = Constant<value = float[4] {{1, 1, {scales}}}>()
    y = Upsample<mode = "{mode}">(x, scales)
}}""", 9)


def resize_to(sizes, mode, transform):
    """`sizes` computes v_a and v_b."""
    return model(f"""g (float[b,2,h,w] x) => (y) {{
    {scalar(2, "h")}
    {scalar(3, "w")}
    {sizes}
    {vector("a")}
    {vector("b")}
    to = Concat<axis = 0>(v_a, v_b)
    y = Resize<mode = "{mode}", coordinate_transformation_mode = "{transform}", axes = [2, 3]>(x, , , to)
}}""")


def resize_by(mode, transform, nearest="round_prefer_floor"):
    """To 10x13, by what floats make of that and the image's size."""
    return model(f"""g (float[b,2,h,w] x) => (y) {{
    s = Shape<start = 2>(x)
    f = Cast<to = 1>(s)
    to = Constant<value_floats = [10.0, 13.0]>()
    r = Div(to, f)
    ones = Constant<value_floats = [1.0, 1.0]>()
    scales = Concat<axis = 0>(ones, r)
    y = Resize<mode = "{mode}", coordinate_transformation_mode = "{transform}", nearest_mode = "{nearest}">
        (x, , scales)
}}""")


def resize_keeping(policy):
    """To sizes of which one alone is met."""
    return model(f"""g (float[h,w] x) => (y) {{
    s = Shape(x)
    more = Constant<value_ints = [-10, 15]>()
    to = Add(s, more)
    y = Resize<mode = "linear", keep_aspect_ratio_policy = "{policy}">(x, , , to)
}}""")


def windowed(op, periodic=1):
    return model(f"""g (float[n] x) => (y) {{
    s = Shape(x)
    three = Constant<value_ints = [3]>()
    k = Add(s, three)
    size = Squeeze(k)
    y = {op}<periodic = {periodic}>(size)
}}""")


def one_hot(axis, depth=""):
    return model(f"""g (float[n,m] x) => (y) {{
    size = Shape<start = 1>(x)
    {depth or "s = Identity(size)"}
    values = Constant<value_floats = [0.5, 2.0]>()
    best = ArgMax<axis = 1, keepdims = 0>(x)
    two = Constant<value_int = 2>()
    i = Sub(best, two)
    y = OneHot<axis = {axis}>(i, s, values)
}}""")


def transformed(attributes="", parts=1, makes="", length="", opset=19):
    """The spectrum of the columns of x, in f32."""
    return model(f"""g (float[n,h,{parts}] x) => (y) {{
    s = Shape<start = 1, end = 2>(x)
    zero = Constant<value_ints = [0]>()
    h = Squeeze(s, zero)
    two = Constant<value_int = 2>()
    {makes}
    y = DFT<{attributes}>(x{length})
}}""", opset)


def framed(operands, makes=""):
    return model(f"""g (float[n,h,1] x, float[k] window) => (y) {{
    step = Constant<value_int = 2>()
    {makes}
    y = STFT<onesided = 1>(x, step{operands})
}}""")


def stepped(start, end, sign):
    """In steps of half of n, and one."""
    return model(f"""g (float[n,3] x) => (y) {{
    s = Shape<end = 1>(x)
    two = Constant<value_ints = [2]>()
    half = Div(s, two)
    one = Constant<value_ints = [1]>()
    more = Add(half, one)
    sign = Constant<value_ints = [{sign}]>()
    t = Mul(more, sign)
    from = Constant<value_ints = [{start}]>()
    to = Constant<value_ints = [{end}]>()
    a = Constant<value_ints = [0]>()
    y = Slice(x, from, to, a, t)
}}""")


def centred(axes, to):
    """To sizes that those of x give."""
    return model(f"""g (float[n,m,3] x) => (y) {{
    s = Shape<end = 2>(x)
    {to}
    y = CenterCropPad<axes = {axes}>(x, k)
}}""")


def crossed():
    """Twice, each to sizes that the other axis gives; the first one of nothing for few columns."""
    return model(f"""g (float[n,m] x) => (y, z) {{
    s = Shape(x)
    none = Constant<value_ints = [0, 0]>()
    a = Constant<value_ints = [3, -2]>()
    b = Add(s, a)
    c = Max(b, none)
    y = CenterCropPad<axes = [-1, 0]>(x, c)
    d = Constant<value_ints = [5, 4]>()
    e = Add(s, d)
    z = CenterCropPad<axes = [-1, 0]>(x, e)
}}""")


def columns(block, strides, dilations, pads):
    """Of an image of h x w, whose size is an operand's."""
    return model(f"""g (float[b,{2 * block[0] * block[1]},l] x, float[h,w] i) => (y) {{
    image = Shape(i)
    block = Constant<value_ints = {block}>()
    y = Col2Im<strides = {strides}, dilations = {dilations}, pads = {pads}>(x, image, block)
}}""")


def columns_of(block, strides, dilations, pads):
    """Sizes of such images, and of the columns."""
    def along(d, size):
        return (size + pads[d] + pads[d + 2] - dilations[d] * (block[d] - 1) - 1) // strides[d] + 1
    return [{"b": b, "h": h, "w": w, "l": along(0, h) * along(1, w)} for b, h, w in ((1, 5, 7), (2, 8, 6))]


HALVES = """half = Constant<value_float = 0.5>()
    fh = Cast<to = 1>(h)
    gh = Mul(fh, half)
    ph = Floor(gh)
    a = Cast<to = 7>(ph)
    k = Constant<value_int = 3>()
    b = Add(w, k)"""

PAD = """k = Constant<value_int = 8>()
    r = Mod(n, k)
    q = Sub(k, r)
    p = Mod(q, k)
    z_p = Constant<value_ints = [0]>()
    v_p = Unsqueeze(p, z_p)"""


def pad(mode):
    return model(f"""g (float[n,3] x) => (y) {{
    {scalar(0, "n")}
    {PAD}
    none = Constant<value_ints = [0]>()
    one = Constant<value_ints = [1]>()
    pads = Concat<axis = 0>(one, none, v_p, none)
    y = Pad<mode = "{mode}">(x, pads)
}}""")


def number(name, kind=TensorProto.INT64):
    return helper.make_tensor_value_info(name, kind, ())


def branch(name, body):
    return helper.make_graph(body, name, [], [number(body[-1].output[0])])


def chosen():
    """The length of a Range is what an If gives."""
    made = model(f"""g (float[n] x) => (y) {{
    {scalar(0, "n")}
    five = Constant<value_int = 5>()
    zero = Constant<value_int = 0>()
    one = Constant<value_int = 1>()
    c = Less(n, five)
    end = Neg(n)
    y = Range(zero, end, one)
}}""")
    node = helper.make_node("If", ["c"], ["picked"], name="pick",
                            then_branch=branch("t", [helper.make_node("Mul", ["n", "five"], ["t1"])]),
                            else_branch=branch("e", [helper.make_node("Sub", ["n", "five"], ["e1"])]))
    nodes = list(made.graph.node)
    nodes = nodes[:-2] + [node, helper.make_node("Range", ["zero", "picked", "one"], ["y"], name="r")]
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made


def counted():
    made = model(f"""g (float[n] x) => (y) {{
    {CEIL_HALF}
    go = Constant<value_int = 1>()
    y = Identity(go)
}}""")
    body = helper.make_graph(
        [helper.make_node("Identity", ["cond"], ["c2"]), helper.make_node("Add", ["it", "it"], ["s"])], "body",
        [number("it"), number("cond", TensorProto.BOOL)], [number("c2", TensorProto.BOOL), number("s")])
    nodes = list(made.graph.node)[:-2] + [helper.make_node("Loop", ["e", ""], ["y"], name="l", body=body)]
    del made.graph.node[:]
    made.graph.node.extend(nodes)
    return made


def sliced(start, end, step):
    return model(f"""g (float[n,3] x) => (y) {{
    s = Constant<value_ints = [{start}]>()
    e = Constant<value_ints = [{end}]>()
    a = Constant<value_ints = [0]>()
    t = Constant<value_ints = [{step}]>()
    y = Slice(x, s, e, a, t)
}}""")


N = [{"n": n} for n in (1, 2, 7, 16, 33)]
HW = [{"b": b, "h": h, "w": w} for b, h, w in ((1, 5, 7), (2, 16, 9), (1, 1, 30))]
TALL = [{"b": b, "h": h, "w": w} for b, h, w in ((2, 16, 9), (1, 7, 4))]
MANY = [{"b": 1, "h": h, "w": w} for h, w in ((5, 7), (10, 10), (9, 41), (1, 1), (3, 49), (47, 20), (30, 13), (61, 55))]
WIDE = [{"h": h, "w": w} for h, w in ((24, 54), (39, 10), (21, 30))]
NM = [{"n": n, "m": m} for n, m in ((1, 1), (4, 7), (9, 2))]
NH = [{"n": n, "h": h} for n, h in ((1, 2), (2, 7), (3, 12))]
FRAMES = [{"n": n, "h": h, "k": k} for n, h, k in ((1, 6, 4), (2, 11, 5), (3, 7, 7))]
WINDOW = ([3, 2], [1, 2], [1, 2], [0, 1, 2, 0])
FULL = [s for s in N if s["n"] >= 7]

CASES = [
    ("slice to half of n and one", model(f"""g (float[n,3] x) => (y) {{
    {CEIL_HALF}
    one = Constant<value_int = 1>()
    u = Add(e, one)
    {vector("u")}
    z = Constant<value_ints = [0]>()
    y = Slice(x, z, v_u, z)
}}"""), N),
    ("slice between counts from either end", model(f"""g (float[n,3] x) => (y) {{
    {scalar(0, "n")}
    k = Constant<value_int = 5>()
    d = Sub(n, k)
    {vector("d")}
    m = Constant<value_ints = [-1]>()
    z = Constant<value_ints = [0]>()
    y = Slice(x, v_d, m, z)
}}"""), N),
    *((f"slice {s}:{e}:{t}", sliced(s, e, t), N) for s, e, t in
      ((MAX, MIN, -1), (-1, MIN, -2), (3, -100, -1), (-2, 1, -3), (5, 0, -2), (-4, -1, 2))),
    ("range to 0.7 n", model(f"""g (float[n] x) => (y) {{
    {scalar(0, "n")}
    f = Cast<to = 1>(n)
    k = Constant<value_float = 0.7>()
    g = Mul(f, k)
    q = Floor(g)
    e = Cast<to = 7>(q)
    zero = Constant<value_int = 0>()
    one = Constant<value_int = 1>()
    y = Range(zero, e, one)
}}"""), N),
    ("range of floats", model(f"""g (float[n] x) => (y) {{
    {scalar(0, "n")}
    f = Cast<to = 1>(n)
    a = Constant<value_float = 0.5>()
    b = Constant<value_float = 1.25>()
    y = Range(a, f, b)
}}"""), N),
    ("range as an If says", chosen(), N),
    ("range in steps that n gives", model(f"""g (float[n] x) => (y) {{
    {scalar(0, "n")}
    k = Constant<value_int = 3>()
    d = Div(n, k)
    one = Constant<value_int = 1>()
    t = Max(d, one)
    zero = Constant<value_int = 0>()
    y = Range(zero, n, t)
}}"""), N),
    ("expand to the root of n", model(f"""g (float[n] x) => (y) {{
    {scalar(0, "n")}
    f = Cast<to = 1>(n)
    r = Sqrt(f)
    q = Round(r)
    e = Cast<to = 7>(q)
    {vector("e")}
    k = Constant<value_float = 2.5>()
    y = Expand(k, v_e)
}}"""), N),
    ("tile as often as a product says", model(f"""g (float[n,2] x) => (y) {{
    s = Shape(x)
    p = ReduceProd<keepdims = 1>(s)
    k = Constant<value_ints = [5]>()
    r = Mod(p, k)
    one = Constant<value_ints = [1]>()
    t = Concat<axis = 0>(one, r)
    y = Tile(x, t)
}}"""), N),
    ("zeros where n is odd", model(f"""g (float[n] x) => (y) {{
    {scalar(0, "n")}
    two = Constant<value_int = 2>()
    r = Mod(n, two)
    one = Constant<value_int = 1>()
    odd = Equal(r, one)
    k = Constant<value_int = 4>()
    c = Where(odd, n, k)
    {vector("c")}
    y = ConstantOfShape(v_c)
}}"""), N),
    ("the largest of n or 10", model(f"""g (float[n,3] x) => (y, i) {{
    {scalar(0, "n")}
    ten = Constant<value_int = 10>()
    k = Min(n, ten)
    {vector("k")}
    y, i = TopK<axis = 0>(x, v_k)
}}"""), N),
    ("split in halves", model(f"""g (float[n,3] x) => (y, z) {{
    {scalar(0, "n")}
    two = Constant<value_int = 2>()
    a = Div(n, two)
    b = Sub(n, a)
    {vector("a")}
    {vector("b")}
    t = Concat<axis = 0>(v_a, v_b)
    y, z = Split<axis = 0>(x, t)
}}"""), N),
    ("loop of half of n rounds", counted(), N),
    *((f"pad to eights, {mode}", pad(mode), FULL if mode == "reflect" else N)
      for mode in ("constant", "edge", "reflect")),
    ("resize linear", resize("linear", "half_pixel"), HW),
    ("resize linear, align_corners", resize("linear", "align_corners", scales="[1.0, 1.0, 2.0, 3.0]"), HW),
    ("resize cubic", resize("cubic", "pytorch_half_pixel", scales="[1.0, 1.0, 2.0, 0.5]"), HW),
    ("resize nearest", resize("nearest", "asymmetric", "floor"), HW),
    ("resize nearest, half_pixel", resize("nearest", "half_pixel", "round_prefer_ceil"), HW),
    ("upsample linear", upsample("linear", "2, 1.5"), HW),
    ("upsample nearest", upsample("nearest", "2, 1.5"), HW),
    ("resize by 0.7", resize("nearest", "asymmetric", "floor", "[1.0, 1.0, 0.7, 1.3]"), MANY),
    ("resize to a fixed size by scales", resize_by("linear", "half_pixel"), MANY),
    ("resize to a fixed size by scales, nearest", resize_by("nearest", "asymmetric", "floor"), MANY),
    ("resize to a fixed size by scales, nearest, half_pixel", resize_by("nearest", "half_pixel"), MANY),
    ("resize to a fixed size by scales, nearest, ceil", resize_by("nearest", "pytorch_half_pixel", "ceil"), MANY),
    ("resize keeping what is not larger", resize_keeping("not_larger"), WIDE),
    ("resize keeping what is not smaller", resize_keeping("not_smaller"), WIDE),
    ("resize to computed sizes", resize_to(HALVES, "linear", "pytorch_half_pixel"), TALL),
    ("resize to computed sizes, nearest", resize_to(HALVES, "nearest", "asymmetric"), TALL),
    ("one of as many as there are columns", one_hot(-1), NM),
    ("one of as many as there are columns, in front", one_hot(0), NM),
    ("one of as many as a float says", one_hot(-1, "s = Cast<to = 1>(size)"), NM),
    ("a spectrum", transformed("axis = 1"), NH),
    ("a complex spectrum", transformed("axis = 1", 2), NH),
    ("half a spectrum", transformed("onesided = 1"), NH),
    ("half a spectrum of twice as many", transformed("onesided = 1", makes="l = Mul(h, two)", length=", l"), NH),
    ("the spectrum of half of them", transformed("axis = 1", 2, "g = Add(h, two)\nl = Div(g, two)", ", l"), NH),
    ("six of them", transformed("axis = 1", 1, "l = Constant<value_int = 6>()", ", l"), NH),
    ("a signal from its spectrum", transformed("inverse = 1", 2), NH),
    ("frames as long as a window", framed(", window"), FRAMES),
    ("frames of half of it", framed(", , l", """s = Shape(window)
    zero = Constant<value_ints = [0]>()
    g = Squeeze(s, zero)
    l = Div(g, step)"""), FRAMES),
    ("window of Hann", windowed("HannWindow"), N),
    ("window of Hamming, symmetric", windowed("HammingWindow", 0), N),
    ("window of Blackman", windowed("BlackmanWindow"), N),
    ("slice in steps that n gives", stepped(1, MAX, 1), N),
    ("slice in steps that n gives, backwards", stepped(-2, MIN, -1), N),
    ("crop and pad to the other size", centred([0, 1], """z = Constant<value_ints = [1, 0]>()
    k = Gather<axis = 0>(s, z)"""), NM),
    ("crop to half, of one axis", centred([1], """z = Constant<value_ints = [1]>()
    g = Gather<axis = 0>(s, z)
    two = Constant<value_ints = [2]>()
    k = Div(g, two)"""), NM),
    ("two crops and pads to other sizes", crossed(), NM),
    ("pooled and back", model("""g (float[b,2,h,w] x) => (y) {
    p, i = MaxPool<kernel_shape = [2, 3], strides = [2, 3]>(x)
    y = MaxUnpool<kernel_shape = [2, 3], strides = [2, 3]>(p, i)
}"""), [{"b": 1, "h": 4, "w": 6}, {"b": 3, "h": 2, "w": 9}]),
    ("pooled and back to an odd height", model("""g (float[1,1,h,w] x) => (y) {
    p, i = MaxPool<kernel_shape = [2, 3], strides = [2, 3]>(x)
    s = Shape(x)
    y = MaxUnpool<kernel_shape = [2, 3], strides = [2, 3]>(p, i, s)
}"""), [{"h": 4, "w": 6}, {"h": 5, "w": 9}]),
    ("columns to an image", columns(*WINDOW), columns_of(*WINDOW)),
    ("columns to an image, plain", columns([2, 2], [1, 1], [1, 1], [0, 0, 0, 0]),
     columns_of([2, 2], [1, 1], [1, 1], [0, 0, 0, 0])),
]


def inputs_of(proto, sizes):
    random, made = np.random.default_rng(1), {}
    for given in proto.graph.input:
        dims = given.type.tensor_type.shape.dim
        shape = [sizes[d.dim_param] if d.dim_param else d.dim_value for d in dims]
        made[given.name] = random.standard_normal(shape).astype(np.float32)
    return made


if __name__ == "__main__":
    OPTIONS = compiled_run.read_options()
    for NAME, PROTO, SIZES in CASES:
        compiled_run.agrees(OPTIONS, NAME, PROTO, [(s, inputs_of(PROTO, s)) for s in SIZES])
