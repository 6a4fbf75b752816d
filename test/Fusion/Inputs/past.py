"""Attention of one token, or of several, behind a past whose keys and values are handed on with the new ones.

past.py FILE: 12 heads whose rows are inputs. past.py FILE HEADS: with the four products around them.
"""

import sys

import onnx
from onnx import parser

HEADS = int(sys.argv[2]) if len(sys.argv) > 2 else 12
WIDTH = 64 * HEADS
ROWS = f"float[b,{HEADS},s,64]"
PAST = f"float[b,{HEADS},p,64] pk, float[b,{HEADS},p,64] pv"
FUTURE = f"float[b,{HEADS},t,64] nk, float[b,{HEADS},t,64] nv"
ATTENTION = """
    nk = Concat<axis = 2>(pk, k)
    nv = Concat<axis = 2>(pv, v)
    kt = Transpose<perm = [0, 1, 3, 2]>(nk)
    a = MatMul(q, kt)
    w = Softmax<axis = -1>(a)
    y = MatMul(w, nv)
"""


def split(name):
    return f"""
    x{name} = MatMul(x, w{name})
    r{name} = Reshape(x{name}, heads)
    {name} = Transpose<perm = [0, 2, 1, 3]>(r{name})
"""


ALONE = f"g ({ROWS} q, {ROWS} k, {ROWS} v, {PAST}) => ({ROWS} y, {FUTURE}) {{ {ATTENTION} }}"
MATRICES = ", ".join(f"float[{WIDTH},{WIDTH}] w{name}" for name in "qkvo")
WITH_PRODUCTS = f"""
g (float[b,s,{WIDTH}] x, {MATRICES}, {PAST}) => (float[b,s,{WIDTH}] z, {FUTURE})
<int64[4] heads = {{0, 0, {HEADS}, 64}}, int64[3] rows = {{0, 0, {WIDTH}}}> {{
    {"".join(map(split, "qkv"))}
    {ATTENTION}
    yt = Transpose<perm = [0, 2, 1, 3]>(y)
    yr = Reshape(yt, rows)
    z = MatMul(yr, wo)
}}"""

onnx.save(parser.parse_model('<ir_version: 9, opset_import: ["" : 21]>' +
                             (WITH_PRODUCTS if len(sys.argv) > 2 else ALONE)), sys.argv[1])
