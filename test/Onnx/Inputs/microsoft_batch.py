"""Several nodes of domain com.microsoft in one model, with their inputs."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

DOMAIN = "com.microsoft"
TYPES = (np.uint8, np.int8)
# Type inference wants parameters of these without axes, and all zero points but the last.
SCALARS = ("QLinearAdd", "QLinearMul", "QLinearAveragePool")
# Their kernels look at the last input even where it could be left out.
FULL = ("QLinearLeakyRelu", "QLinearSigmoid")


class Batch:
    """Nodes that share one model; parameters are constants or inputs."""

    def __init__(self, op, rng):
        self.op, self.rng = op, rng
        self.nodes, self.data, self.inputs, self.outputs = [], [], {}, []
        self.drawn = {}  # by output: the combination as text

    def pick(self, *items):
        return items[self.rng.integers(len(items))]

    def chance(self, share=0.5):
        return self.rng.random() < share

    def size(self, low=1, high=6):
        return int(self.rng.integers(low, high + 1))

    def shape(self, ranks, low=1, high=6):
        return tuple(self.size(low, high) for _ in range(self.pick(*ranks)))

    def value(self, array, constant=False):
        array = np.asarray(array)
        name = f"v{len(self.data) + len(self.inputs)}"
        if constant:
            self.data.append(numpy_helper.from_array(array, name))
        else:
            self.inputs[name] = array
        return name

    def parameter(self, array):
        """A scale, a zero point, weights: mostly constant."""
        return self.value(array, self.chance(0.8))

    def bytes(self, shape, dtype, small=False):
        """Numbers of all the type's range; small: whose products in pairs fit 16 bits, since ONNX Runtime's u8 x i8
        kernels add such pairs with saturation where a processor lacks VNNI."""
        limits = np.iinfo(dtype)
        low, high = (limits.min // 2, limits.max // 2) if small else (limits.min, limits.max)
        return self.rng.integers(low, high + 1, shape).astype(dtype)

    def floats(self, shape):
        return self.rng.standard_normal(shape).astype(np.float32)

    def scale(self, low=0.005, high=0.1):
        return self.rng.uniform(low, high)

    def single(self, number, dtype):
        """One number as a scalar or a vector."""
        vector = self.op not in SCALARS and self.chance()
        return self.parameter(np.array([number] if vector else number, dtype))

    def quantisation(self, dtype, low=0.005, high=0.1, last=False):
        """Names of a scale and a zero point ("": left out)."""
        scale = self.single(self.scale(low, high), np.float32)
        absent = self.chance(0.2) and (last or self.op not in SCALARS)
        return scale, "" if absent else self.zero(dtype)

    def zero(self, dtype):
        return self.single(self.bytes((), dtype, small=True), dtype)

    def node(self, names, outputs=1, wanted=None, **attributes):
        while names[-1] == "" and self.op not in FULL:
            names.pop()
        made = [f"y{len(self.nodes)}_{i}" for i in range(outputs)]
        if wanted is not None:
            made = [name if i in wanted else "" for i, name in enumerate(made)]
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(self.op, names, made, name=name, domain=DOMAIN, **attributes))
        for name in filter(None, made):
            self.outputs.append(name)
            self.drawn[name] = f"{attributes} {[self.form(n) for n in names]}"

    def form(self, name):
        array = self.inputs.get(name)
        kind = "input"
        if array is None:
            found = [t for t in self.data if t.name == name]
            if not found:
                return "absent"
            array, kind = numpy_helper.to_array(found[0]), "constant"
        return f"{kind} {array.dtype}{list(array.shape)}"

    def model(self):
        inputs = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in self.inputs.items()
        ]
        outputs = [helper.make_empty_tensor_value_info(name) for name in self.outputs]
        graph = helper.make_graph(self.nodes, "g", inputs, outputs, self.data)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)
