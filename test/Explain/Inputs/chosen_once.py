"""chosen_once.py < TEXT: no two schedules of a kernel have one name, and the chosen one is not among the rejected."""

import sys

kernels, names = 0, set()
for line in sys.stdin:
    word, _, rest = line.strip().partition(" ")
    if word in ("schedule", "phase"):
        names = set()
    elif word in ("chosen", "considered") and ": " in rest:
        name = rest.strip().rsplit(": ", 1)[0]
        assert name not in names, name
        names.add(name)
        kernels += word == "chosen"
assert kernels > 1
