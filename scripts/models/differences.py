"""How far an output is from what it should be."""

import numpy

TOLERANCE = 1e-4  # absolute and relative


def difference(got, right):
    """The largest difference, as a multiple of what is allowed, and where it is, in words; infinite where types or
    shapes differ, or one is not a number."""
    if got.dtype != right.dtype or got.shape != right.shape:
        return float("inf"), f"is {got.dtype}{list(got.shape)}, should be {right.dtype}{list(right.shape)}"
    if not right.size:
        return 0.0, "has no elements"
    wide, expected = got.astype(numpy.float64), right.astype(numpy.float64)
    with numpy.errstate(invalid="ignore"):
        off = numpy.array(numpy.abs(wide - expected) / (TOLERANCE + TOLERANCE * numpy.abs(expected)))
    off[numpy.isnan(off)] = numpy.inf
    off[(got == right) | (numpy.isnan(wide) & numpy.isnan(expected))] = 0
    worst = numpy.unravel_index(off.argmax(), off.shape)
    many = numpy.count_nonzero(off > 1)
    return float(off[worst]), (f"[{', '.join(map(str, worst))}] is {got[worst]}, should be {right[worst]}: off by "
                               f"{off[worst]:.3g} times the tolerance, as the worst of {many} of {off.size} elements")
