"""Inputs of networks for the benchmarks."""

import numpy
import onnx

import bundle

# Ranges to compile for, and the sizes to run with: the symbolic dimensions of scripts/export-models.
RANGES = {"batch": ("1..8:1", 1), "seq": ("1..512:128", 128)}


def feedsFor(path):
    """Random values for each input, and the options of fusec for its symbolic dimensions."""
    model = onnx.load(path, load_external_data=False)
    constants = {tensor.name for tensor in model.graph.initializer}
    generator = numpy.random.default_rng(0)
    feeds, symbols = {}, set()
    for value in model.graph.input:
        if value.name in constants:
            continue
        shape = []
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                if dim.dim_param not in RANGES:
                    raise bundle.Failed(f"{path}: no range for the symbolic dimension {dim.dim_param}")
                symbols.add(dim.dim_param)
            shape.append(RANGES[dim.dim_param][1] if dim.dim_param else dim.dim_value)
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        if kind.kind == "f":
            feeds[value.name] = generator.standard_normal(shape).astype(kind)
        elif "mask" in value.name:
            feeds[value.name] = numpy.ones(shape, kind)
        else:
            feeds[value.name] = generator.integers(0, 100, shape).astype(kind)
    return feeds, [word for name in sorted(symbols) for word in ("--dim", f"{name}={RANGES[name][0]}")]
