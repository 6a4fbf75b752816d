"""Generated nodes of domain com.microsoft.

Every operator has a function that adds one node, drawn from attributes, optional inputs, types, ranks and forms of
parameters, to a Batch. What ONNX Runtime's CPU kernels do not take is not drawn; what fusec refuses stands in
refusals()."""

import numpy as np
from microsoft_batch import Batch
from microsoft_linear import (
    dequantize_linear,
    qlinear_average_pool,
    qlinear_binary,
    qlinear_concat,
    qlinear_global_average_pool,
    qlinear_leaky_relu,
    qlinear_sigmoid,
    qlinear_softmax,
    qlinear_where,
    quantize_linear,
)
from microsoft_products import (
    dynamic_quantize_lstm,
    dynamic_quantize_matmul,
    fused_conv,
    fused_gemm,
    fused_matmul,
    gelu,
    matmul_integer_to_float,
    qattention,
    qgemm,
    skip_norm,
)
from onnx import TensorProto

OPERATORS = {
    "DynamicQuantizeLSTM": dynamic_quantize_lstm,
    "DynamicQuantizeMatMul": dynamic_quantize_matmul,
    "MatMulIntegerToFloat": matmul_integer_to_float,
    "QGemm": qgemm,
    "QLinearAdd": qlinear_binary,
    "QLinearMul": qlinear_binary,
    "QLinearLeakyRelu": qlinear_leaky_relu,
    "QLinearSigmoid": qlinear_sigmoid,
    "QLinearSoftmax": qlinear_softmax,
    "QLinearConcat": qlinear_concat,
    "QLinearAveragePool": qlinear_average_pool,
    "QLinearGlobalAveragePool": qlinear_global_average_pool,
    "QLinearWhere": qlinear_where,
    "QAttention": qattention,
    "FusedMatMul": fused_matmul,
    "Gelu": gelu,
    "BiasGelu": gelu,
    "FastGelu": gelu,
    "QuickGelu": gelu,
    "SkipLayerNormalization": skip_norm,
    "SkipSimplifiedLayerNormalization": skip_norm,
    "FusedGemm": fused_gemm,
    "FusedConv": fused_conv,
    "QuantizeLinear": quantize_linear,
    "DequantizeLinear": dequantize_linear,
}


def attention(shape=None, **attributes):
    """One head of two numbers over 3 steps."""
    b = Batch("QAttention", np.random.default_rng(1))
    x, w = b.value(np.zeros((1, 3, 4), np.uint8)), b.value(np.zeros((4, 6), np.uint8), True)
    names = [x, w, b.value(np.zeros(6, np.float32), True)] + [b.value(np.float32(0.1), True)] * 2
    names.append(b.value(np.zeros(shape, np.int32)) if shape else "")
    b.node(names, num_heads=1, **attributes)
    return b


def lstm(lengths=None, **attributes):
    """Two steps of one number."""
    b = Batch("DynamicQuantizeLSTM", np.random.default_rng(1))
    names = [b.value(np.zeros((2, 1, 1), np.float32))] + [b.value(np.zeros((1, 1, 4), np.int8), True)] * 2
    names += ["", "" if lengths is None else b.value(np.array([lengths], np.int32), True), "", "", ""]
    names += [b.value(np.ones(1, np.float32), True), b.value(np.zeros(1, np.int8), True)] * 2
    b.node(names, outputs=3, wanted={0}, hidden_size=1, **attributes)
    return b


def small(op, *arrays, outputs=1, **attributes):
    b = Batch(op, np.random.default_rng(1))
    b.node(["" if a is None else b.value(a) for a in arrays], outputs=outputs, **attributes)
    return b


def refusals():
    """Models with one node, each with an attribute or an input that fusec refuses."""
    one, zero = np.float32(1), np.uint8(0)
    image, matrix = np.zeros((1, 1, 4), np.uint8), np.zeros((2, 2), np.uint8)
    floats = np.zeros((2, 2), np.float32)
    return [
        attention(do_rotary=1),
        attention(past_present_share_buffer=1),
        attention(shape=(1, 1, 3, 3)),
        attention(qkv_hidden_sizes=[2, 2, 2]),
        lstm(lengths=1),
        lstm(layout=1),
        lstm(activations=["Sigmoid", "Affine", "Tanh"]),
        small("MatMulIntegerToFloat", matrix, matrix, np.float16(1), np.float16(1)),
        small("MatMulIntegerToFloat", matrix, matrix, one, one, np.zeros(2, np.uint8)),
        small("QGemm", matrix, one, zero, matrix, one, zero, None, None, zero),
        small("QGemm", matrix, one, zero, matrix, one, zero, beta=1.0),
        small("QLinearAveragePool", image, one, zero, one, zero, kernel_shape=[2], dilations=[2]),
        small("QLinearSoftmax", image, one, zero, one, zero),
        small("QLinearConcat", one, zero, image, one, zero, image, axis=0),
        small("QLinearAdd", image, one, np.int8(0), image, one, zero, one, zero),
        small("QLinearAdd", image, np.ones(4, np.float32), zero, image, one, zero, one, zero),
        small("FusedGemm", floats, floats, activation="Relu", activation_gamma=1.0),
        small("FusedGemm", floats, floats, activation="Gelu"),
        small("FusedGemm", floats, floats, activation="HardSigmoid", activation_beta=0.5),
        small("SkipSimplifiedLayerNormalization", floats, floats, floats[0], outputs=2),
        small("MatMulIntegerToFloat", matrix, matrix, one, one, zero, np.zeros(3, np.uint8)),
        small("MatMulIntegerToFloat", matrix, matrix, one, np.ones(3, np.float32)),
        small("MatMulIntegerToFloat", matrix, matrix[0], one, one, zero, zero, np.ones(2, np.float32)),
        small("DynamicQuantizeMatMul", floats, matrix, one, np.zeros(3, np.uint8)),
        small("DynamicQuantizeMatMul", floats, matrix, one, zero, np.ones(3, np.float32)),
        small("QGemm", matrix, one, zero, matrix, np.ones(3, np.float32), zero),
        small("QGemm", matrix, one, zero, matrix, one, zero, None, np.ones(2, np.float32), zero),
        small("QuantizeLinear", floats, one, zero, saturate=1),
        small("QuantizeLinear", floats, one, zero, precision=1),
        small("QuantizeLinear", floats, one, output_dtype=TensorProto.INT8),
        small("DequantizeLinear", matrix, one, zero, output_dtype=TensorProto.FLOAT),
        small("DequantizeLinear", matrix, one, zero, block_size=0),
        small("MatMulNBits", floats, matrix, floats),
    ]


def batch(op, seed, count):
    b = Batch(op, np.random.default_rng([seed, list(OPERATORS).index(op)]))
    while len(b.nodes) < count:
        OPERATORS[op](b)
    return b
