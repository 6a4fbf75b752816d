"""Operators all of whose sizes have names of their own, compiled with no flag and run at sizes that fit, against ONNX
Runtime. Prints a line a model."""

import compiled_run
import numpy as np

HEADS = "float[b,i,s,d] q, float[c,j,t,e] k, float[f,l,u,g] v"
ROWS = "float[b,s,d] q, float[c,t,e] k, float[f,u,g] v"


def attention(heads, keys):
    return {"b": 2, "c": 2, "f": 2, "i": heads, "j": keys, "l": keys, "s": 3, "t": 5, "u": 5, "d": 4, "e": 4, "g": 6}


def rows(heads, keys):
    return {**attention(heads, keys), "d": 4 * heads, "e": 4 * keys, "g": 6 * keys}


def batches(*pairs):
    return [{"b": b, "c": c, "n": 2, "m": 3, "p": 3, "k": 4} for b, c in pairs]


PAIRS = batches((2, 1), (1, 2), (2, 2), (1, 1), (0, 1))

CASES = [
    ("Einsum of batches", """(float[b,n,m] x, float[c,p,k] z) => (y) {
    y = Einsum<equation = "bnm,bmk->bnk">(x, z)
}""", 19, PAIRS),
    ("Einsum of axes without a letter", """(float[b,n,m] x, float[c,p,k] z) => (y) {
    y = Einsum<equation = "...nm,...mk->n...k">(x, z)
}""", 19, PAIRS),
    ("Einsum of two batches", """(float[2,n,m] x, float[c,p,k] z) => (y) {
    y = Einsum<equation = "bnm,bmk->bkn">(x, z)
}""", 19, batches((2, 1), (2, 2))),
    ("regions", """(float[b,c,h,w] x, float[r,k] z, int64[i] a) => (y) {
    y = RoiAlign<output_height = 2, output_width = 3>(x, z, a)
}""", 19, [{"b": 1, "c": 2, "h": 7, "w": 5, "r": r, "k": 4, "i": r} for r in (0, 1, 3)]),
    ("grid", """(float[b,n,m] x) => (y) {
    s = Constant<value_ints = [2, 1, 3, 4]>()
    y = AffineGrid(x, s)
}""", 20, [{"b": 2, "n": 2, "m": 3}]),
    ("columns to an image", """(float[b,c,l] x) => (y) {
    i = Constant<value_ints = [5, 6]>()
    k = Constant<value_ints = [2, 3]>()
    y = Col2Im(x, i, k)
}""", 18, [{"b": b, "c": c, "l": 16} for b, c in ((1, 6), (2, 18))]),
    ("attention of heads", f"({HEADS}) => (y) {{ y = Attention(q, k, v) }}", 23,
     [attention(2, 2), attention(4, 2), attention(3, 1)]),
    ("attention of rows", f"({ROWS}) => (y) {{ y = Attention<q_num_heads = 4, kv_num_heads = 2>(q, k, v) }}", 23,
     [rows(4, 2)]),
]


def inputs_of(proto, sizes):
    made, random = {}, np.random.default_rng(1)
    for value in proto.graph.input:
        shape = [sizes[d.dim_param] if d.dim_param else d.dim_value for d in value.type.tensor_type.shape.dim]
        made[value.name] = (random.standard_normal(shape).astype(np.float32)
                            if value.type.tensor_type.elem_type == 1 else np.zeros(shape, np.int64))
    return made


if __name__ == "__main__":
    OPTIONS = compiled_run.read_options()
    for NAME, TEXT, OPSET, SIZES in CASES:
        PROTO = compiled_run.model(f"g {TEXT}", OPSET)
        compiled_run.served(OPTIONS, NAME, PROTO, [(str(s), inputs_of(PROTO, s)) for s in SIZES])
