"""What scripts/models, the folder of the first argument, says of chains of products; with fusec and fusert of the next
two, in the folder of the last one."""

import functools
import os
import sys
from xml.etree import ElementTree

sys.dont_write_bytecode = True
models, fusec, fusert, folder = sys.argv[1:]
sys.path.insert(0, models)

import numpy

import agreement
import bundle
import environment
import products
import scatter
from candidates import Candidates


def bytesInF16(name):
    """Operands and result, and with what stands between the products, which is written and read."""
    batch, rows, between, _, _ = products.CHAINS[name]
    compulsory = products.demands(products.chainShapes(name))[1] // 2
    return compulsory, compulsory + 2 * 2 * batch * rows * between


def saved(paper):
    pairs = [bytesInF16(name) for name in products.CHAINS if name.startswith(paper)]
    return " ".join(f"{100 * (1 - fused / apart):.1f}" for fused, apart in pairs)


print("mcfuser-g12: {} bytes of {} in f16, chimera-g2: {} of {}".format(*bytesInF16("mcfuser-g12"),
                                                                        *bytesInF16("chimera-g2")))
print(f"saved by MCFuser's: {saved('mcfuser')} %\nsaved by Chimera's: {saved('chimera')} %")
orders = {"same order": "1234", "reverse": "4321", "one pair turned": "1243", "a tie": "1224", "all equal": "1111"}
print("tau: " + ", ".join(f"{name} {agreement.kendall(list(zip([1, 2, 3, 4], map(int, order)))):.2f}"
                          for name, order in orders.items()))
# Predicted to be the last one is the fastest: the model's first eight do not have it.
found = agreement.of(range(10), [30, 15, 18, 40, 50, 60, 70, 80, 90, 10])
print(f"near {found['near']}, tau {found['tau']:.2f}, best of the first {found['best_of_first']:.2f}")

environment.program = {"fusec": fusec, "fusert": fusert}.get
sizes = 1, 50, 40, 24, 33  # tiles and blocks are cut
path = os.path.join(folder, "chain.onnx")
feeds, output = products.save(path, [(1, 50, 24), (1, 24, 40), (1, 40, 33)])
expected = functools.reduce(numpy.matmul, feeds.values())
candidates = Candidates(path, folder, sizes)
rows = candidates.compiled(6)
errors = [bundle.relativeL2(bundle.run(fusert, row["bundle"], feeds, folder)(output), expected) for row in rows]
told = "outputs within 1e-5" if max(errors) < 1e-5 else errors
print(f"{len(rows)} schedules, {len(candidates.refused)} refused, {told}")
picture = scatter.svg([scatter.Panel("<chain>", [(row["predicted_ms"], 1 + i) for i, row in enumerate(rows)], [1])],
                      "predicted ms", "measured ms", "own", "first", "twice")
circles = list(ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}circle"))
print(f"picture: {len(circles)} circles, two of them in its legend")
