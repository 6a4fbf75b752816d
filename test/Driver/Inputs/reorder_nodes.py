"""reorder_nodes.py MODEL OUT SEED: the same model with its nodes listed in another order that serves."""

import random
import sys

import onnx

model, out, seed = sys.argv[1:]
generator = random.Random(int(seed))
network = onnx.load(model)
graph = network.graph
known = {value.name for value in (*graph.input, *graph.initializer)} | {""}
waiting, listed = list(graph.node), []
while waiting:
    node = generator.choice([n for n in waiting if known.issuperset(n.input)])
    waiting.remove(node)
    listed.append(node)
    known.update(node.output)
assert [n.name for n in listed] != [n.name for n in graph.node]
del graph.node[:]
graph.node.extend(listed)
onnx.save(network, out)
