"""One node as a case of operators.py."""

import numpy as np
from onnx import helper, numpy_helper

RNG = np.random.default_rng(3)


def tensor_info(name, array):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def case(name, op, opset, inputs, expected=None, outputs=("y",), constants=(), declared=False, tolerance=1e-5,
         domain="", **attributes):  # fmt: skip
    """`inputs` by name in the operator's order, None where one is left out; those of `constants` are initialisers.
    `declared`: the model says what shapes its outputs have. An operator of another domain has its opset 1."""
    operands = [key if value is not None else "" for key, value in inputs.items()]
    given = {key: np.asarray(value) for key, value in inputs.items() if value is not None}
    node = helper.make_node(op, operands, list(outputs), name="n", domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [tensor_info(key, value) for key, value in given.items() if key not in constants],
        [tensor_info(o, expected[i]) if declared else helper.make_empty_tensor_value_info(o)
         for i, o in enumerate(outputs)],
        [numpy_helper.from_array(given[key], key) for key in constants],
    )
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, 1)] * bool(domain)
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    fed = {key: value for key, value in given.items() if key not in constants}
    return name, proto, fed, expected, tolerance


def symbolic(given, **dims):
    """The same with named sizes: `dims` by input, None where a size stays."""
    name, proto, *rest = given
    copy = type(proto)()
    copy.CopyFrom(proto)
    for info in copy.graph.input:
        for dim, symbol in zip(info.type.tensor_type.shape.dim, dims.get(info.name, ())):
            if symbol:
                dim.dim_param = symbol
    return f"{name}, sizes {dims}", copy, *rest
