"""Attention of one token, or of several, behind a past whose keys and values are handed on with the new ones."""

import sys

import onnx
from onnx import parser

MODEL = parser.parse_model("""<ir_version: 9, opset_import: ["" : 21]>
g (float[b,12,s,64] q, float[b,12,s,64] k, float[b,12,s,64] v, float[b,12,p,64] pk, float[b,12,p,64] pv)
=> (float[b,12,s,64] y, float[b,12,t,64] nk, float[b,12,t,64] nv) {
    nk = Concat<axis = 2>(pk, k)
    nv = Concat<axis = 2>(pv, v)
    kt = Transpose<perm = [0, 1, 3, 2]>(nk)
    a = MatMul(q, kt)
    w = Softmax<axis = -1>(a)
    y = MatMul(w, nv)
}""")
onnx.save(MODEL, sys.argv[1])
