"""Forms of operators that the cases of the onnx package lack: compiles and runs each on the CPU and a simulated GPU,
and compares every output with onnx's reference evaluator, or with values that stand here."""

import argparse
import pathlib
import shutil

import numpy as np
from compare import TARGETS, ours
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

RNG = np.random.default_rng(3)


def tensor_info(name, array, shape=None):
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape or array.shape)


def case(name, op, opset, inputs, expected=None, outputs=("y",), constants=(), tolerance=1e-5, domain="", shapes=None,
         **attributes):
    """`inputs` by name in the operator's order, None where one is left out; those of `constants` are initialisers. An
    operator of another domain has its opset 1; `shapes` are given in place of those of the arrays."""
    operands = [key if value is not None else "" for key, value in inputs.items()]
    given = {key: np.asarray(value) for key, value in inputs.items() if value is not None}
    node = helper.make_node(op, operands, list(outputs), name="n", domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [tensor_info(key, value, (shapes or {}).get(key)) for key, value in given.items() if key not in constants],
        [helper.make_empty_tensor_value_info(o) for o in outputs],
        [numpy_helper.from_array(given[key], key) for key in constants],
    )
    opsets = [helper.make_opsetid("", opset)] + [helper.make_opsetid(domain, 1)] * bool(domain)
    proto = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    fed = {key: value for key, value in given.items() if key not in constants}
    return name, proto, fed, expected, tolerance


# --- element-wise ---


def floor_remainder(dtype):
    a = np.array([5.5, -5.5, 5.5, -5.5, 0.0, -0.0, 0.0, -6.0, 1.0, 1.0, -2.0, np.inf, 3.0, np.nan], dtype)
    b = np.array([2.0, 2.0, -2.0, -2.0, 3.0, 3.0, -3.0, -3.0, np.inf, -np.inf, np.inf, 2.0, 0.0, 1.0], dtype)
    y = np.array([1.5, 0.5, -0.5, -1.5, 0.0, 0.0, -0.0, -0.0, 1.0, -np.inf, np.inf, np.nan, np.nan, np.nan], dtype)
    return case(f"floor remainder of {np.dtype(dtype)}", "Mod", 28, {"a": a, "b": b}, [y], tolerance=0)


def shifts(dtype, direction):
    bits = np.iinfo(dtype).bits
    x = np.array([-100, 100, -1, 1, np.iinfo(dtype).min, np.iinfo(dtype).max, -7, 7], dtype)[:, None]
    s = np.array([0, 1, 3, bits - 1, bits, bits + 1, -1], dtype)
    wide, counts = [[int(v) for v in r] for r in x], [int(v) for v in s]
    right = lambda v, c: v >> c if 0 <= c < bits else (-1 if v < 0 else 0)
    left = lambda v, c: v << c if 0 <= c < bits else 0
    made = [[(left if direction == "LEFT" else right)(v, c) % (1 << bits) for c in counts] for (v,) in wide]
    y = np.array(made, np.uint64).astype(np.dtype(f"u{np.dtype(dtype).itemsize}")).view(dtype)
    return case(f"{direction} shift of {np.dtype(dtype)}", "BitShift", 28, {"x": x, "s": s}, [y], direction=direction)


def in_blocks(mode, block, dtype):
    x = RNG.integers(-50, 50, (2, 3, 2 * block, 3 * block)).astype(dtype)
    n, c, h, w = x.shape
    t = x.reshape(n, c, h // block, block, w // block, block)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    y = t.transpose(order).reshape(n, c * block * block, h // block, w // block)
    return case(f"{mode} blocks of {block}, {np.dtype(dtype)}", "SpaceToDepth", 28, {"x": x}, [y], blocksize=block,
                mode=mode)


# --- attention ---


def linear_attention(rule, tokens, sharing=1, per_entry=True, shared_beta=False, past=None, kind=np.float32, **extra):
    """Two key heads of 4 entries, values of 3, batches of 2; `past` is the type of past_state."""
    draw = lambda *shape: RNG.standard_normal(shape).astype(kind) / 2
    inputs = {"q": draw(2, tokens, 8 * sharing), "k": draw(2, tokens, 8), "v": draw(2, tokens, 6)}
    inputs["past"] = None if past is None else draw(2, 2, 4, 3).astype(past)
    inputs["decay"] = -np.abs(draw(2, tokens, 8 if per_entry else 2)) if "gated" in rule else None
    inputs["beta"] = np.abs(draw(2, tokens, 1 if shared_beta else 2)) if "delta" in rule else None
    name = f"LinearAttention {rule} of {tokens} tokens, {sharing}, {per_entry}, {shared_beta}, {past}, {kind}"
    tolerance = 1e-5 if kind == np.float32 else 2e-3
    return case(name, "LinearAttention", 27, inputs, outputs=("y", "state"), tolerance=tolerance, update_rule=rule,
                q_num_heads=2 * sharing, kv_num_heads=2, **extra)


def symbolic_linear_attention():
    names = {key: ("b", "t", size) for key, size in (("q", 16), ("k", 8), ("v", 6), ("decay", 2), ("beta", 2))}
    return linear_attention("gated_delta", 5, 2, False, shapes=names)


def modifier(name, nodes, data=()):
    """A graph that makes `out` of `in`, f32 [B,H,S,T]."""
    infos = [helper.make_tensor_value_info(f"{name}_{end}", 1, ["B", "H", "S", "T"]) for end in ("in", "out")]
    return helper.make_graph(nodes, name, infos[:1], infos[1:], list(data))


def flex_attention(name, kind=np.float32, shapes=None, heads=4, **attributes):
    draw = lambda *shape: RNG.standard_normal(shape).astype(kind)
    inputs = {"q": draw(2, heads, 3, 8), "k": draw(2, 2, 5, 8), "v": draw(2, 2, 5, 6)}
    tolerance = 1e-5 if kind != np.float16 else 2e-3
    return case(f"FlexAttention, {name}", "FlexAttention", 26, inputs, tolerance=tolerance, domain="ai.onnx.preview",
                shapes=shapes, **attributes)


def capped():
    cap = numpy_helper.from_array(np.float32(1.5), "cap")
    nodes = [helper.make_node("Div", ["cap_in", "cap"], ["cap_a"]), helper.make_node("Tanh", ["cap_a"], ["cap_b"]),
             helper.make_node("Mul", ["cap_b", "cap"], ["cap_out"])]
    return modifier("cap", nodes, [cap])


def squared():
    return modifier("two", [helper.make_node("Mul", ["two_in", "two_in"], ["two_out"])])


SYMBOLS = {"q": ("b", 4, "s", 8), "k": ("b", 2, "t", 8), "v": ("b", 2, "t", 6)}
CASES = [
    linear_attention("linear", 4),
    linear_attention("linear", 1, 2, past=np.float32),
    linear_attention("gated", 3, 3),
    linear_attention("gated", 3, per_entry=False, past=np.float16, scale=0.25),
    linear_attention("delta", 4, 2, shared_beta=True, chunk_size=2),
    linear_attention("gated_delta", 4, 2, past=np.float32, kind=np.float16),
    linear_attention("gated_delta", 1, 1, False, True, np.float32),
    symbolic_linear_attention(),
    flex_attention("both graphs", score_mod=capped(), prob_mod=squared()),
    flex_attention("symbols", shapes=SYMBOLS, score_mod=capped()),
    flex_attention("f16", np.float16, prob_mod=squared()),
    flex_attention("f64 in f32", np.float64, softmax_precision=1, scale=0.2),
    *(floor_remainder(t) for t in (np.float16, np.float32, np.float64)),
    *(shifts(t, d) for t in (np.int8, np.int16, np.int32, np.int64) for d in ("LEFT", "RIGHT")),
    *(in_blocks(m, b, t) for m, b, t in (("DCR", 2, np.float32), ("CRD", 2, np.int8), ("CRD", 3, np.float16))),
]


def run(options, name, proto, inputs, expected, tolerance, target):
    found = ours(options, name, proto, inputs, target)
    if isinstance(found, str):
        return found
    if expected is None:
        expected = ReferenceEvaluator(proto).run(None, inputs)
    for output, value in zip(proto.graph.output, expected):
        mine = found[output.name]
        if mine.shape != value.shape or mine.dtype != value.dtype:
            return f"{output.name} is {mine.dtype}{mine.shape}, not {value.dtype}{value.shape}"
        if not np.allclose(mine.astype(np.float64), value.astype(np.float64), tolerance, tolerance, equal_nan=True):
            return f"{output.name} differs: {mine} {value}"
        zeros = value == 0
        if tolerance == 0 and not np.array_equal(np.signbit(mine[zeros]), np.signbit(value[zeros])):
            return f"{output.name} has zeros of another sign: {mine} {value}"
    return "same"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fusec", required=True)
    parser.add_argument("--fusert", required=True)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    differ = 0
    for name, proto, inputs, expected, tolerance in CASES:
        answers = [run(options, name, proto, inputs, expected, tolerance, target) for target in TARGETS]
        if any(answer != "same" for answer in answers):
            differ += 1
            print(f"{name}: {answers}")
    print(f"{len(CASES)} forms, {differ} differ")


if __name__ == "__main__":
    main()
