"""What a network has to do at least: the multiplications of its contractions and the bytes that it has to touch."""

import numpy
import onnx
import onnxruntime

CONTRACTIONS = ("MatMul", "Gemm", "Conv", "ConvTranspose", "LSTM")


def demands(path, feeds):
    """Flop (a fused multiply-add counts two) and bytes (weights, inputs and outputs once each). None instead of flop
    where contractions stand inside If or Loop: how often they run is not written in the model."""
    model = onnx.load(path)
    for node in model.graph.node:
        if any(attribute.type == onnx.AttributeProto.GRAPH for attribute in node.attribute):
            return None, sum(value.nbytes for value in feeds.values())
    constants = {tensor.name: tuple(tensor.dims) for tensor in model.graph.initializer}
    nodes = [node for node in model.graph.node if node.op_type in CONTRACTIONS]
    wanted = {name for node in nodes for name in (*node.input[:3], node.output[0])} - set(constants) - set(feeds) - {""}
    outputs = [value.name for value in model.graph.output]
    made = {name for node in model.graph.node for name in node.output}
    extra = sorted(wanted.intersection(made) - set(outputs))
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in extra)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    # Without fusions: each contraction of the model is there by its name.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    values = dict(zip(outputs + extra, session.run(outputs + extra, feeds)))
    shapes = {**constants, **{name: value.shape for name, value in (*feeds.items(), *values.items())}}

    flop = 0
    for node in nodes:
        given = [shapes.get(name) for name in node.input]
        result = shapes[node.output[0]]
        if node.op_type == "LSTM":
            steps, batch, width = given[0]
            directions, gates, hidden = given[2]
            flop += 2 * directions * steps * batch * gates * (width + hidden)
            continue
        if node.op_type == "ConvTranspose":
            flop += 2 * int(numpy.prod(given[0])) * int(numpy.prod(given[1][1:]))
            continue
        if node.op_type == "Conv":
            inner = int(numpy.prod(given[1][1:]))
        elif node.op_type == "Gemm":
            transposed = any(a.name == "transA" and a.i for a in node.attribute)
            inner = given[0][0 if transposed else 1]
        else:
            inner = given[0][-1]
        flop += 2 * int(numpy.prod(result)) * inner
    # A table of which rows are gathered is not read as a whole.
    gathered = {node.input[0] for node in model.graph.node if node.op_type == "Gather"}
    used = {name for node in model.graph.node if node.op_type != "Gather" for name in node.input}
    weights = sum(
        tensor.ByteSize() for tensor in model.graph.initializer if tensor.name in used or tensor.name not in gathered
    )
    return flop, weights + sum(value.nbytes for value in (*feeds.values(), *(values[name] for name in outputs)))
