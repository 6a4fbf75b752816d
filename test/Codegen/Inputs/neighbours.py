"""Inputs and right outputs of neighbours.test. Usage: neighbours.py FOLDER"""
import pathlib
import sys

import numpy as np

folder = pathlib.Path(sys.argv[1])
random = np.random.default_rng(5)
x = random.random((16, 64), np.float32)
h = random.random((16, 64), np.float32).astype(np.float16)
n = np.array([3, 0, 15, 7], np.int64)
flat = x.reshape(-1)
pieces = np.where(np.arange(64) < 20, x, np.float32(7))
shifted = np.stack([flat[r * 64 + 1 : r * 64 + 64] for r in range(15)])
values = {
    "x": x,
    "h": h,
    "n": n,
    "a": x * 2,
    "b": h.astype(np.float32) * 2,
    "c": x[:, :60],
    "d": shifted,
    "e": x * 3 + 1,
    "f": pieces,
    "g": x[n],
    "i": x[:4, :16] @ x[:16],
}
for name, value in values.items():
    np.save(folder / f"{name}.npy", value)
