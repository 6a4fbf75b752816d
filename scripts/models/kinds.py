"""Which share of a run's time the kernels of each kind take, kinds in the words of the model."""

import collections

import onnx

# In this order: what a kernel is called that holds nodes of several of these.
LEADING = ("Conv", "ConvTranspose", "LSTM", "GRU", "RNN", "MatMul", "Gemm", "Einsum", "Softmax", "LayerNormalization")


def allNodes(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from allNodes(attribute.g)


def kindOf(node, weights):
    """The operator; a product with its weight's shape, a convolution with its window and whether it is depthwise."""
    if node.op_type in ("MatMul", "Gemm"):
        shape = next((weights[name] for name in node.input[:2] if len(weights.get(name, ())) == 2), ())
        return " ".join([node.op_type, "x".join(str(extent) for extent in shape)]).rstrip()
    if node.op_type != "Conv":
        return node.op_type
    window = "x".join(str(extent) for extent in weights.get(node.input[1], (0, 0))[2:])
    group = next((a.i for a in node.attribute if a.name == "group"), 1)
    return f"Conv {window}" + (" depthwise" if group > 1 and weights[node.input[1]][1] == 1 else "")


def shares(path, kernels):
    """[(kind, share of the time)], the largest first. `kernels`: the counters of a run on a CPU."""
    graph = onnx.load(path, load_external_data=False).graph
    weights = {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    nodes = {node.name: node for node in allNodes(graph)}
    spent = collections.Counter()
    for kernel in kernels:
        held = [nodes[name] for name in kernel["nodes"] if name in nodes]
        held.sort(key=lambda node: LEADING.index(node.op_type) if node.op_type in LEADING else len(LEADING))
        spent[kindOf(held[0], weights) if held else "constants"] += kernel["ns"]
    total = sum(spent.values())
    return [(kind, time / total) for kind, time in spent.most_common()]
