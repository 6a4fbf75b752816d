"""What the case files share: the Case record and small models."""

import onnx
from onnx import TensorProto, helper

BAD, UNSUPPORTED, LIMIT, OK = 3, 4, 5, 0


class Case:
    """A model (made by `make(folder) -> path`), the exit codes allowed and a part of the message."""

    def __init__(self, name, make, codes, text="", several=False):
        self.name = name
        self.make = make
        self.codes = set(codes) if isinstance(codes, (set, tuple, list)) else {codes}
        self.text = text
        self.several = several
        self.files = set()


def value(name, shape=(2, 3), kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs=("x",), outputs=("y",), initializer=(), opset=18, functions=(), **extra):
    """A model over f32[2,3] tensors unless value infos are given."""
    as_info = lambda v: value(v) if isinstance(v, str) else v
    graph = helper.make_graph(
        list(nodes), "g", [as_info(i) for i in inputs], [as_info(o) for o in outputs], list(initializer), **extra
    )
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid("own", 1)] * bool(functions)
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=10)


def relu(x="x", y="y"):
    return helper.make_node("Relu", [x], [y])


def save(m, folder, name="m.onnx"):
    path = folder / name
    path.write_bytes(m if isinstance(m, (bytes, bytearray)) else m.SerializeToString())
    return path


def of(build):
    """A maker from a function that returns a model or bytes."""
    return lambda folder: save(build(), folder)


def varint(v):
    out = bytearray()
    while True:
        b = v & 127
        v >>= 7
        out.append(b | (128 if v else 0))
        if not v:
            return bytes(out)


def field(number, payload):
    """A length-delimited field."""
    return varint(number << 3 | 2) + varint(len(payload)) + payload


assert onnx.__version__
