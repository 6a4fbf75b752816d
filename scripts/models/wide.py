"""Models that are large in one operator: what a compile takes for thousands of operands, long rows, heavy weights."""

import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPERANDS = 4096
WEIGHTS_MIB = 1024
DEPTH = 2048


class Model:
    def __init__(self, nodes, inputs, outputs, constants=()):
        def infos(values):
            return [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in values]

        graph = helper.make_graph(nodes, "wide", infos(inputs), infos(outputs), constants)
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)

    def save(self, path):
        with open(path, "wb") as file:  # onnx.save would look for external data
            file.write(self.model.SerializeToString())


def concat():
    names = [f"x{i}" for i in range(OPERANDS)]
    return Model([helper.make_node("Concat", names, ["y"], axis=1)], [(name, [4, 3]) for name in names], [("y", None)])


def split():
    names = [f"s{i}" for i in range(OPERANDS)]
    nodes = [helper.make_node("Split", ["x"], names, axis=1, num_outputs=OPERANDS),
             helper.make_node("Concat", names[::-1], ["y"], axis=1)]
    return Model(nodes, [("x", [4, 3 * OPERANDS])], [("y", None)])


def gather():
    nodes, places, names = [], [], [f"g{i}" for i in range(OPERANDS)]
    for i, name in enumerate(names):
        places.append(numpy_helper.from_array(np.array([i * 7 % OPERANDS], np.int64), f"i{i}"))
        nodes.append(helper.make_node("Gather", ["x", f"i{i}"], [name], axis=1))
    nodes.append(helper.make_node("Concat", names, ["y"], axis=1))
    return Model(nodes, [("x", [4, 3 * OPERANDS])], [("y", None)], places)


def topK(length=200000):
    nodes = [helper.make_node("TopK", ["x", "k"], ["y", "i"]), helper.make_node("Cast", ["i"], ["j"], to=1)]
    return Model(nodes, [("x", [length])], [("y", None), ("j", None)],
                 [numpy_helper.from_array(np.array([length], np.int64), "k")])


class Heavy(Model):
    """A product with a weight of WEIGHTS_MIB, in a file beside the model."""

    def __init__(self, transposed):
        width = WEIGHTS_MIB * 2**20 // 4 // DEPTH
        shape = [width, DEPTH] if transposed else [DEPTH, width]
        self.weight = TensorProto(name="w", dims=shape, data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
        nodes = [helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0])] if transposed else []
        nodes += [helper.make_node("MatMul", ["x", "t" if transposed else "w"], ["m"]),
                  helper.make_node("ReduceMax", ["m"], ["y"], keepdims=0)]
        super().__init__(nodes, [("x", [4, DEPTH])], [("y", [])])

    def save(self, path):
        random = np.random.default_rng(0)
        with open(dataOf(path), "wb") as file:
            for _ in range(64):
                file.write(random.standard_normal(WEIGHTS_MIB * 2**14 // 4, dtype=np.float32).tobytes())
        self.weight.external_data.add(key="location", value=os.path.basename(dataOf(path)))
        self.model.graph.initializer.append(self.weight)
        super().save(path)


def dataOf(path):
    """The file with the weights of the model, if it has one."""
    return path + ".data"


WIDE = {  # and the seconds and MiB that a compile for one target may take
    "wide-concat": (concat, 2.0, 1024),
    "wide-split": (split, 8.0, 1024),
    "wide-gather": (gather, 8.0, 1024),
    "long-topk": (topK, 4.0, 1024),
    "heavy": (lambda: Heavy(False), 30.0, 1.3 * WEIGHTS_MIB),
    "heavy-transposed": (lambda: Heavy(True), 30.0, 1.3 * WEIGHTS_MIB),
}
