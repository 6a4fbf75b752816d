"""Whether predicted times put things in the order of the measured ones."""

import itertools
import math

FIRST = 8  # of what the model predicts to be fastest
NEAR = 2.0  # times as long as the fastest


def kendall(pairs):
    """Kendall's tau-b of two numbers each: 1 for one order, -1 for the reverse one; not a number where either number is
    the same for all."""
    agree, firstDiffer, secondDiffer = 0, 0, 0
    for (a, b), (c, d) in itertools.combinations(pairs, 2):
        first, second = (a > c) - (a < c), (b > d) - (b < d)
        agree += first * second
        firstDiffer += abs(first)
        secondDiffer += abs(second)
    return agree / math.sqrt(firstDiffer * secondDiffer) if firstDiffer and secondDiffer else math.nan


def of(predicted, measured):
    """Among the `near` that take at most twice as long as the fastest, Kendall's tau; the positions of the `first` that
    are predicted to be the fastest, and how many times as long as the fastest the best of these takes."""
    fastest = min(measured)
    near = [(p, m) for p, m in zip(predicted, measured) if m <= NEAR * fastest]
    first = sorted(range(len(predicted)), key=lambda i: predicted[i])[:FIRST]
    return {"near": len(near), "tau": kendall(near), "first": first,
            "best_of_first": min(measured[i] for i in first) / fastest}
