"""Draws nodes whose operands are bytes: element-wise, softmax, concatenation and pools."""

import numpy as np
from microsoft_batch import TYPES


def broadcast_shapes(b):
    shape = b.shape((0, 1, 2, 3, 4))
    other = tuple(1 if b.chance(0.3) else d for d in shape)[b.pick(0, 0, 1) :] if shape else ()
    return (shape, other) if b.chance() else (other, shape)


def qlinear_binary(b):
    dtype = b.pick(*TYPES)
    names = []
    for shape in broadcast_shapes(b):
        names += [b.value(b.bytes(shape, dtype), b.chance(0.2)), *b.quantisation(dtype)]
    high = 20.0 if b.op == "QLinearMul" else 0.2
    b.node(names + list(b.quantisation(dtype, 0.02, high, last=True)))


def qlinear_unary(b, output=(0.005, 0.1), **attributes):
    dtype = b.pick(*TYPES)
    x = b.value(b.bytes(b.shape((0, 1, 2, 3, 4)), dtype))
    b.node([x, *b.quantisation(dtype), *b.quantisation(dtype, *output)], **attributes)


def qlinear_leaky_relu(b):
    qlinear_unary(b, **({"alpha": float(b.rng.uniform(-0.5, 0.5))} if b.chance(0.7) else {}))


def qlinear_sigmoid(b):
    qlinear_unary(b, (0.0039, 0.01))


def qlinear_softmax(b):
    dtype = b.pick(*TYPES)
    shape = b.shape((1, 2, 3, 4))
    attributes = {"opset": b.pick(1, 11, 12, 13, 17)}
    if b.chance(0.7):
        attributes["axis"] = int(b.rng.integers(-len(shape), len(shape)))
    axis = attributes.get("axis", -1) % len(shape)
    count = np.prod(shape[axis:]) if attributes["opset"] < 13 else shape[axis]
    scale, zero = b.quantisation(dtype)
    # Results stay inside the type, since ONNX Runtime wraps what lies beyond that of i8, and steps are few where one
    # number is all that is summed, since its table's largest number times their count must be finite.
    low = 0 if dtype is np.uint8 else -128
    y_zero = b.single(low + b.size(0, 5), dtype)
    steps = b.pick(256, 200, 195.4) if dtype is np.uint8 else b.size(180, 245)
    y = b.single(1 / (100 if count == 1 else steps), np.float32)
    b.node([b.value(b.bytes(shape, dtype)), scale, zero, y, y_zero], **attributes)


def qlinear_concat(b):
    dtype = b.pick(*TYPES)
    shape = b.shape((1, 2, 3, 4))
    axis = int(b.rng.integers(-len(shape), len(shape)))
    scale, zero = b.single(b.scale(), np.float32), b.zero(dtype)
    names = [scale, zero]
    for _ in range(b.size(1, 4)):
        part = list(shape)
        part[axis] = b.size()
        same = b.chance(0.3)  # as the output has them
        names.append(b.value(b.bytes(part, dtype), b.chance(0.2)))
        names += [scale, zero] if same else [b.single(b.scale(), np.float32), b.zero(dtype)]
    b.node(names, axis=axis)


def qlinear_where(b):
    dtype = b.pick(*TYPES)
    condition, x = broadcast_shapes(b)
    whole = np.broadcast_shapes(condition, x)
    y = tuple(1 if b.chance(0.3) else d for d in whole)
    names = [b.value(b.rng.random(condition) < 0.5)]
    # The kernel takes its zero points for constants where it is made.
    zeros = [b.value(b.bytes(b.pick((), (1,)), dtype, small=True), True) for _ in range(3)]
    for shape, zero in zip((x, y), zeros):
        names += [b.value(b.bytes(shape, dtype)), b.single(b.scale(), np.float32), zero]
    b.node(names + [b.single(b.scale(), np.float32), zeros[2]])


def pooled(b, rank, channels_last):
    spatial = tuple(b.size(4, 9) for _ in range(rank))
    batch, channels = b.size(1, 2), b.size(1, 10)
    return spatial, (batch, *spatial, channels) if channels_last else (batch, channels, *spatial)


def qlinear_average_pool(b):
    dtype = b.pick(*TYPES)
    rank, last = b.pick(1, 2, 2, 3), b.chance(0.4)
    spatial, shape = pooled(b, rank, last)
    attributes = {"kernel_shape": [b.size(1, 4) for _ in spatial]}
    if b.chance(0.15):
        attributes["kernel_shape"] = list(spatial)
    if last:
        attributes["channels_last"] = 1
    if b.chance(0.7):
        attributes["strides"] = [b.size(1, 3) for _ in spatial]
    kind = b.pick("none", "pads", "pads", "SAME_UPPER", "SAME_LOWER", "VALID")
    if kind == "pads":
        attributes["pads"] = [int(b.rng.integers(0, k)) for k in attributes["kernel_shape"] * 2]
    elif kind != "none":
        attributes["auto_pad"] = kind
    if b.chance():
        attributes["count_include_pad"] = b.pick(0, 1)
    if b.chance() and "auto_pad" not in attributes:
        attributes["ceil_mode"] = b.pick(0, 1)
    b.node([b.value(b.bytes(shape, dtype)), *b.quantisation(dtype), *b.quantisation(dtype, last=True)], **attributes)


def qlinear_global_average_pool(b):
    dtype, last = b.pick(*TYPES), b.chance()
    _, shape = pooled(b, b.pick(1, 2, 3), last)
    attributes = {"channels_last": int(last)} if last or b.chance() else {}
    names = [b.value(b.bytes(shape, dtype))]
    for _ in range(2):
        names += [b.single(b.scale(), np.float32), b.zero(dtype)]
    b.node(names, **attributes)


def parameters(b, shape, floats, integers):
    """Attributes, a scale and a zero point ("": left out): of all numbers, or one for each entry of an axis, where no
    attribute means axis 1. ONNX Runtime wants an i32's zero point to be 0."""
    attributes, form = {}, ()
    if b.chance() and shape:
        axis = 1 if len(shape) > 1 and b.chance(0.3) else int(b.rng.integers(-len(shape), len(shape)))
        attributes, form = {} if axis == 1 and b.chance() else {"axis": axis}, (shape[axis],)
    elif b.chance():
        form = (1,)
    scale = b.parameter(b.rng.uniform(0.01, 0.2, form).astype(floats))
    if b.chance(0.2):
        return attributes, scale, ""
    zero = np.zeros(form, integers) if integers is np.int32 else b.bytes(form, integers, small=True)
    return attributes, scale, b.parameter(np.asarray(zero))


def quantize_linear(b):
    floats, integers = b.pick(np.float32, np.float32, np.float16), b.pick(*TYPES, np.uint16, np.int16)
    shape = b.shape((0, 1, 2, 3, 4))
    attributes, *names = parameters(b, shape, floats, integers)
    wide = 10 if integers in TYPES else 1000
    b.node([b.value((b.floats(shape) * wide).astype(floats)), *names], **attributes)


def dequantize_linear(b):
    floats, integers = b.pick(np.float32, np.float32, np.float16), b.pick(*TYPES, np.uint16, np.int16, np.int32)
    shape = b.shape((0, 1, 2, 3, 4))
    attributes, *names = parameters(b, shape, floats, integers)
    b.node([b.value(b.bytes(shape, integers, small=True) // (1 << 16 if integers is np.int32 else 1)), *names],
           **attributes)
