"""What an exported file is made ready for keeping with."""

import onnx


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
