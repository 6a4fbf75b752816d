"""Nodes of domain com.microsoft over sizes that are known when the model runs."""

import numpy as np
from microsoft_batch import Batch
from onnx import helper


class Sized:
    """One node. Inputs have shapes of numbers and names of sizes; `draw` makes the values of one."""

    def __init__(self, op, operands, sizes, outputs=1, **attributes):
        self.op, self.sizes = op, sizes
        self.b = Batch(op, np.random.default_rng(1))
        self.shapes, names = {}, []
        for operand in operands:
            if operand is None or isinstance(operand, np.ndarray):
                names.append("" if operand is None else self.b.value(operand, True))
            else:
                names.append(f"x{len(self.shapes)}")
                self.shapes[names[-1]] = operand
        self.b.node(names, outputs=outputs, **attributes)

    def model(self):
        proto = self.b.model()
        for name, (shape, dtype) in self.shapes.items():
            kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
            proto.graph.input.append(helper.make_tensor_value_info(name, kind, shape))
        return proto

    def inputs(self, sizes):
        drawn = {}
        for name, (shape, dtype) in self.shapes.items():
            shape = tuple(sizes.get(d, d) for d in shape)
            if dtype in (np.uint8, np.int8):
                drawn[name] = self.b.bytes(shape, dtype)
            elif dtype is np.float32:
                drawn[name] = self.b.floats(shape)
            else:
                drawn[name] = (self.b.rng.random(shape) < 0.7).astype(dtype)
        return drawn


def number(value, dtype=np.float32):
    return np.array(value, dtype)


def cases():
    rng = np.random.default_rng(7)

    def weights(*shape):
        return rng.integers(-60, 60, shape).astype(np.int8)

    def floats(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    u8 = np.uint8
    one = [number(0.02), number(120, u8)]
    two = [number(0.03), number(110, u8)]
    scale, zero = number(0.01), number(0, np.int8)
    lstm = [(("steps", "batch", 3), np.float32), weights(2, 3, 16), weights(2, 4, 16), floats(2, 32)]
    lstm += [None, ((2, "batch", 4), np.float32), None, None]
    lstm += [np.full(2, 0.01, np.float32), np.zeros(2, np.int8)] * 2
    text = [(("batch", "seq", 5), u8), weights(5, 18), floats(18), one[0], scale, (("batch", "seq"), np.int32), one[1]]
    image = ("batch", 3, "h", "w")
    few, many = {"batch": 1, "seq": 4, "n": 5}, {"batch": 3, "seq": 7, "n": 1}
    small, large = {"batch": 1, "h": 6, "w": 9}, {"batch": 2, "h": 11, "w": 5}
    runs, plane = [few, many], [small, large]
    return [
        Sized("QLinearAdd", [(("n", 3), u8), *one, ((1, 3), u8), *two, *one], runs),
        Sized("QLinearMul", [(("n", 3), u8), *one, (("n", 1), u8), *two, number(3), one[1]], runs),
        Sized("QLinearSigmoid", [(("n", 3), u8), *one, number(0.004), number(0, u8)], runs),
        Sized("QLinearSoftmax", [(("batch", "seq", 3), u8), *one, number(0.004), number(0, u8)], runs, opset=11,
              axis=1),
        Sized("QLinearConcat", [*one, (("n", 3), u8), *two, (("n", 3), u8), *one], runs, axis=0),
        Sized("QLinearWhere", [(("n", 1), bool), (("n", 3), u8), *one, ((1, 3), u8), *two, *one], runs),
        Sized("QLinearAveragePool", [(image, u8), *one, *two], plane, kernel_shape=[3, 2], pads=[1, 0, 1, 1]),
        Sized("QLinearAveragePool", [(("batch", "h", "w", 3), u8), *one, *two], plane, kernel_shape=[2, 2],
              strides=[2, 2], ceil_mode=1, channels_last=1),
        Sized("QLinearGlobalAveragePool", [(image, u8), *one, *two], plane),
        Sized("QGemm", [(("n", 5), u8), *one, weights(5, 4), scale, zero, None, *two], runs),
        Sized("DynamicQuantizeMatMul", [(("batch", "seq", 5), np.float32), weights(5, 4), scale, zero], runs),
        Sized("MatMulIntegerToFloat", [(("batch", "seq", 5), u8), weights(5, 4), one[0], scale, one[1]], runs),
        Sized("QAttention", text, runs, num_heads=2, unidirectional=1),
        Sized("QAttention", [*text[:5], (("batch",), np.int32), one[1]], runs, num_heads=2),
        Sized("QAttention", [*text[:5], (("limits",), np.int32), one[1]], [{**few, "limits": 1}, {**many, "limits": 6}],
              num_heads=2),
        Sized("DynamicQuantizeLSTM", lstm, [{"steps": 3, "batch": 1}, {"steps": 6, "batch": 2}], outputs=3,
              hidden_size=4, direction="bidirectional"),
        Sized("FusedMatMul", [(("batch", "seq", 5), np.float32), (("batch", "n", 5), np.float32)], runs, transB=1,
              alpha=0.5),
        Sized("SkipLayerNormalization", [(("batch", "seq", 5), np.float32)] * 2 + [floats(5)], runs, epsilon=1e-5),
    ]
