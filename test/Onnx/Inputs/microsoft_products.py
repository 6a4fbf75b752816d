"""Draws products, attention, LSTMs and what is fused to an operator of floats."""

import numpy as np
from microsoft_batch import TYPES


def columns(b, count, dtype, per_column):
    """Scales, or zero points of bytes, of shape `count` where there is one a column."""
    shape = count if per_column else b.pick((), (1,))
    array = b.bytes(shape, dtype, small=True) if dtype is not np.float32 else b.rng.uniform(0.005, 0.05, shape)
    return b.parameter(np.asarray(array).astype(dtype))


def qgemm(b):
    a_type = b.pick(*TYPES)
    b_type = np.int8 if a_type is np.int8 else b.pick(*TYPES)
    m, k, n = b.size(), b.size(1, 40), b.size()
    attributes = {}
    if b.chance():
        attributes["alpha"] = float(b.rng.uniform(0.5, 2))
    for key in ("transA", "transB"):
        if b.chance():
            attributes[key] = b.pick(0, 1)
    a = (k, m) if attributes.get("transA") else (m, k)
    w = (n, k) if attributes.get("transB") else (k, n)
    # One form for the scale and the zero point of b.
    shape = b.pick((), (1,), (n,), (n,))
    names = [
        b.value(b.bytes(a, a_type)),
        b.single(b.scale(), np.float32),
        b.zero(a_type),
        b.value(b.bytes(w, b_type, small=True), b.chance(0.7)),
        b.parameter(b.rng.uniform(0.005, 0.05, shape).astype(np.float32)),
        b.parameter(b.bytes(shape, b_type, small=True)),
        "",
    ]
    if b.chance(0.7):
        bias = b.pick((), (1,), (n,), (1, n), (m, 1), (m, n))
        names[6] = b.parameter(b.rng.integers(-5000, 5000, bias).astype(np.int32))
    if b.chance(0.7):
        names += [b.single(b.scale(0.1, 1.0), np.float32), b.zero(a_type)]
    b.node(names, **attributes)


def columnShape(b, shape):
    """Of one parameter for each column of weights of this shape; a vector is one column."""
    if len(shape) == 1:
        return (1,)
    return (*shape[:-2], 1, shape[-1]) if len(shape) > 2 or b.chance(0.3) else shape[-1:]


def factors(b):
    """A stack of matrices, or a vector, and the other factor, the same; no stack and a vector: ONNX Runtime crashes."""
    lead = b.shape((0, 0, 1, 2), 1, 3)
    m, k, n = b.size(), b.size(1, 40), b.size()
    other = lead if b.chance(0.3) else ()
    if b.chance(0.2):
        return b.pick((k,), (m, k)), (k,)
    return (k,) if b.chance(0.1) else (*lead, m, k), (*other, k, n)


def dynamic_quantize_matmul(b):
    dtype = b.pick(*TYPES)
    a, w = factors(b)
    names = [b.value(b.floats(a) * b.pick(0.1, 1, 10)), b.value(b.bytes(w, dtype, small=True), b.chance(0.7))]
    per_column, wide = b.chance(), columnShape(b, w)
    names += [columns(b, wide, np.float32, per_column), "", ""]
    if b.chance(0.7):
        names[3] = columns(b, wide, dtype, per_column)
    if b.chance():
        names[4] = b.parameter(b.floats(w[-1:] if len(w) > 1 else (1,)))
    b.node(names)


def matmul_integer_to_float(b):
    a_type = b.pick(*TYPES)
    b_type = np.int8 if a_type is np.int8 else b.pick(*TYPES)
    a, w = factors(b)
    per_column, wide = b.chance(), columnShape(b, w)
    names = [
        b.value(b.bytes(a, a_type)),
        b.value(b.bytes(w, b_type, small=True), b.chance(0.7)),
        b.single(b.scale(), np.float32),
        columns(b, wide, np.float32, per_column),
        b.zero(a_type) if b.chance(0.7) else "",
        columns(b, wide, b_type, per_column) if b.chance(0.7) else "",
        b.parameter(b.floats(w[-1:] if len(w) > 1 else (1,))) if b.chance() else "",
    ]
    if len(a) > 1 and len(w) > 1 and b.chance(0.4):
        form = b.pick((*a[:-1], 1), (*a[:-1], 1), (1, 1), (1, w[-1]), w[-1:])
        place = 2 if form[-1] == 1 and form != (1, 1) else b.pick(2, 3)
        names[place] = b.parameter(b.rng.uniform(0.005, 0.1, form).astype(np.float32))
    elif len(wide) == 1 and b.chance(0.3):
        names[2], names[3] = names[3], names[2]
    b.node(names)


def fused_matmul(b):
    attributes = {key: b.pick(0, 1) for key in ("transA", "transB") if b.chance()}
    if b.chance():
        attributes["alpha"] = float(b.rng.uniform(-2, 2))
    rank = b.pick(2, 2, 3, 4)
    dtype = b.pick(np.float32, np.float32, np.float64)
    m, k, n = b.size(), b.size(1, 20), b.size()
    lead = tuple(b.size(1, 3) for _ in range(rank - 2))
    shapes = []
    for key, rows, cols in (("A", m, k), ("B", k, n)):
        last = (cols, rows) if attributes.get("trans" + key) else (rows, cols)
        shape = (*lead, *last)
        if lead and b.chance(0.4):
            attributes["transBatch" + key] = 1
            shape = (last[0], *lead, last[1])
        shapes.append(shape)
    b.node([b.value(b.floats(s).astype(dtype)) for s in shapes], **attributes)


def qattention(b):
    b_type = b.pick(*TYPES)
    batch, steps, heads, head = b.size(1, 3), b.size(), b.pick(1, 2, 3), b.pick(1, 4, 5)
    inner, wide = b.size(1, 12), 3 * heads * head
    past = b.size(0, 3) if b.chance(0.4) else None
    total = steps + (past or 0)
    attributes = {"num_heads": heads}
    if b.chance():
        attributes["unidirectional"] = b.pick(0, 1)
    if b.chance(0.3):
        attributes["scale"] = float(b.rng.uniform(0.1, 1))
    if b.chance(0.3):
        attributes["mask_filter_value"] = -50.0
    per_column = b.chance()
    names = [
        b.value(b.bytes((batch, steps, inner), np.uint8)),
        b.value(b.bytes((inner, wide), b_type, small=True), b.chance(0.7)),
        b.parameter(b.floats((wide,))),
        b.single(b.scale(0.005, 0.02), np.float32),
        columns(b, (wide,), np.float32, per_column),
        "",
        b.zero(np.uint8) if b.chance(0.7) else "",
        columns(b, (wide,), b_type, per_column) if b.chance(0.7) else "",
        "",
    ]
    mask = b.pick("none", "ends", "both", "keys", "dummy", "steps")
    shapes = {"keys": (batch, total), "dummy": (b.pick(1, batch), 1), "steps": (batch, steps, total)}
    if mask in shapes:
        names[5] = b.value((b.rng.random(shapes[mask]) < 0.7).astype(np.int32))
    elif mask != "none":
        ends = b.rng.integers(1, total + 1, batch)
        starts = b.rng.integers(0, ends) if mask == "both" else []
        names[5] = b.value(np.concatenate([ends, starts]).astype(np.int32))
    if past is not None:
        names[8] = b.value(b.floats((2, batch, heads, past, head)))
    b.node(names, outputs=2, wanted={0, 1} if past is not None or b.chance() else {0}, **attributes)


def dynamic_quantize_lstm(b):
    direction = b.pick("forward", "reverse", "bidirectional")
    dirs = 2 if direction == "bidirectional" else 1
    steps, batch, inner, hidden = b.size(1, 5), b.size(1, 3), b.size(1, 9), b.size(1, 9)
    attributes = {"hidden_size": hidden}
    if direction != "forward" or b.chance():
        attributes["direction"] = direction
    if b.chance(0.3):
        attributes["clip"] = float(b.rng.uniform(0.3, 2))
    if b.chance(0.3):
        attributes["input_forget"] = b.pick(0, 1)
    if b.chance(0.4):
        # What takes a number has one in both lists, so that they run along.
        chosen = [b.pick("Relu", "Tanh", "Sigmoid", "sigmoid", "HardSigmoid", "Softsign") for _ in range(3 * dirs)]
        attributes["activations"] = chosen
        numbers = chosen.count("HardSigmoid")
        if numbers and b.chance():
            attributes["activation_alpha"] = [float(x) for x in b.rng.uniform(0.1, 0.4, numbers)]
            attributes["activation_beta"] = [float(x) for x in b.rng.uniform(0.3, 0.7, numbers)]
    names = [b.value(b.floats((steps, batch, inner)))]
    parameters, dtype = [], b.pick(*TYPES)
    for rows in (inner, hidden):
        shape = (dirs, 4 * hidden) if b.chance() else (dirs,)
        names.append(b.value(b.bytes((dirs, rows, 4 * hidden), dtype, small=True), b.chance(0.8)))
        zero = np.zeros(shape, dtype)
        if len(shape) == 1 or dtype is np.uint8:
            zero[:] = b.bytes((dirs,) + (1,) * (len(shape) - 1), dtype, small=True)
        if len(shape) == 2:
            zero[:] = zero.flat[0]  # all alike, as the kernel demands
        parameters += [b.value(b.rng.uniform(0.005, 0.02, shape).astype(np.float32), True), b.value(zero, True)]
    state = (dirs, batch, hidden)
    optional = [(dirs, 8 * hidden), "lengths", state, state, (dirs, 3 * hidden)]
    for shape in optional:
        if b.chance():
            names.append("")
        elif shape == "lengths":
            names.append(b.value(np.full(batch, steps, np.int32), True))
        else:
            names.append(b.value(b.floats(shape) * np.float32(0.5), b.chance()))
    wanted = {0, 1, 2} if b.chance(0.7) else {b.pick(0, 1, 2)}
    b.node(names + parameters, outputs=3, wanted=wanted, **attributes)


def gelu(b):
    x = 3 * b.floats(b.shape((1, 2, 3, 4)))
    names = [b.value(x)]
    if b.op == "BiasGelu" or (b.op == "FastGelu" and b.chance()):
        names.append(b.parameter(b.floats(x.shape[-1:])))
    b.node(names, **({"alpha": float(b.rng.uniform(0.5, 2))} if b.op == "QuickGelu" and b.chance() else {}))


def skip_norm(b):
    shape = b.shape((2, 3), 1, 9)
    width = shape[-1:]
    skip = shape
    if len(shape) == 3 and b.op == "SkipLayerNormalization":
        skip = b.pick(shape, shape, (1, *shape[1:]), shape[1:])
    names = [b.value(b.floats(shape)), b.value(b.floats(skip)), b.parameter(b.floats(width))]
    if b.op == "SkipLayerNormalization":
        names.append(b.parameter(b.floats(width)) if b.chance() else "")
    names.append(b.parameter(b.floats(width)) if b.chance() else "")
    attributes = {"epsilon": b.pick(1e-5, 1e-3)} if b.chance(0.7) else {"epsilon": 1e-6}
    b.node(names, outputs=4, wanted={0, 3} if b.chance() else {0}, **attributes)


def fused_gemm(b):
    attributes = {key: b.pick(0, 1) for key in ("transA", "transB") if b.chance()}
    attributes["activation"] = b.pick("Relu", "LeakyRelu", "Tanh", "Sigmoid")
    if attributes["activation"] == "LeakyRelu":
        attributes["activation_alpha"] = float(b.rng.uniform(0.01, 0.5))
    for key in ("alpha", "beta"):
        if b.chance():
            attributes[key] = float(b.rng.uniform(0.5, 2))
    m, k, n = b.size(), b.size(), b.size()
    names = [
        b.value(b.floats((k, m) if attributes.get("transA") else (m, k))),
        b.parameter(b.floats((n, k) if attributes.get("transB") else (k, n))),
        b.parameter(b.floats(b.pick((n,), (m, n), (1, n)))) if b.chance() else "",
    ]
    b.node(names, **attributes)


def fused_conv(b):
    rank, group = b.pick(1, 2), b.pick(1, 1, 2)
    inner, outer = group * b.size(1, 3), group * b.size(1, 3)
    attributes = {"kernel_shape": [b.size(1, 3) for _ in range(rank)], "group": group}
    attributes["activation"] = b.pick("Relu", "LeakyRelu", "Tanh", "Sigmoid", "HardSigmoid", "Clip")
    numbers = {"LeakyRelu": [0.1], "HardSigmoid": [0.25, 0.4], "Clip": [-0.5, 0.75]}
    if attributes["activation"] in numbers:
        attributes["activation_params"] = numbers[attributes["activation"]]
    if b.chance():
        attributes["pads"] = [b.size(0, 1) for _ in range(2 * rank)]
    if b.chance():
        attributes["strides"] = [b.size(1, 2) for _ in range(rank)]
    x = b.floats((b.size(1, 2), inner, *(b.size(4, 8) for _ in range(rank))))
    names = [b.value(x), b.parameter(b.floats((outer, inner // group, *attributes["kernel_shape"])))]
    pads = attributes.get("pads", [0] * 2 * rank)
    strides = attributes.get("strides", [1] * rank)
    out = [
        (d + pads[i] + pads[rank + i] - k) // s + 1
        for i, (d, k, s) in enumerate(zip(x.shape[2:], attributes["kernel_shape"], strides))
    ]
    names.append(b.parameter(b.floats((outer,))) if b.chance() else "")
    names.append(b.value(b.floats((x.shape[0], outer, *out))) if b.chance() else "")
    b.node(names, **attributes)
