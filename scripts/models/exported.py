"""Files of models from PyTorch, and what makes them ready for keeping."""

import warnings

import onnx

OPSET = 18


def tidy(path, symbols=None):
    """Takes the exporter's notes out (they hold paths of the machine that ran it), and gives symbolic dimensions their
    names: `symbols` is input -> {axis: name}."""
    model = onnx.load(path)
    for node in model.graph.node:
        del node.metadata_props[:]
    names = {}
    for value in model.graph.input:
        for axis, name in (symbols or {}).get(value.name, {}).items():
            names[value.type.tensor_type.shape.dim[axis].dim_param] = name
    for value in (*model.graph.input, *model.graph.output, *model.graph.value_info):
        del value.metadata_props[:]
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in names:
                dim.dim_param = names[dim.dim_param]
    onnx.save(model, path)


def export(network, path):
    """Writes a nets.Network."""
    import torch  # not in the environment of those that only tidy

    options = dict(input_names=network.inputs, output_names=network.outputs, opset_version=OPSET, verbose=False)
    if network.scripted:
        options["dynamo"] = False
    else:
        options.update(dynamo=True, external_data=False)
        if network.symbols:
            # forward(*arguments) of Picked: one entry that holds all of them
            options["dynamic_shapes"] = (tuple(
                {axis: torch.export.Dim.DYNAMIC for axis in network.symbols[name]} for name in network.inputs
            ),)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(network.module, network.arguments, path, **options)
    tidy(path, network.symbols)
