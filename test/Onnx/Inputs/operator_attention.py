"""LinearAttention, CausalConvWithState and FlexAttention: see operators.py."""

import numpy as np
from onnx import helper, numpy_helper
from operator_case import RNG, case, symbolic


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


def causal_conv(tokens, kernel):
    draw = lambda *shape: RNG.standard_normal(shape).astype(np.float32)
    inputs = {"x": draw(2, 3, tokens), "w": draw(3, 1, kernel), "bias": None, "past": draw(2, 3, kernel - 1)}
    whole = np.concatenate([inputs["past"], inputs["x"]], 2)
    y = sum(whole[:, :, k:k + tokens] * inputs["w"][:, :, k] for k in range(kernel))
    return case(f"CausalConvWithState of {tokens} tokens, {kernel}", "CausalConvWithState", 27, inputs,
                [y, whole[:, :, tokens:]], outputs=("y", "state"), constants=("w",))


def modifier(name, nodes, data=()):
    """A graph that makes `out` of `in`, f32 [B,H,S,T]."""
    infos = [helper.make_tensor_value_info(f"{name}_{end}", 1, ["B", "H", "S", "T"]) for end in ("in", "out")]
    return helper.make_graph(nodes, name, infos[:1], infos[1:], list(data))


def flex_attention(name, kind=np.float32, heads=4, **attributes):
    draw = lambda *shape: RNG.standard_normal(shape).astype(kind)
    inputs = {"q": draw(2, heads, 3, 8), "k": draw(2, 2, 5, 8), "v": draw(2, 2, 5, 6)}
    tolerance = 1e-5 if kind != np.float16 else 2e-3
    return case(f"FlexAttention, {name}", "FlexAttention", 26, inputs, tolerance=tolerance, domain="ai.onnx.preview",
                **attributes)


def capped():
    cap = numpy_helper.from_array(np.float32(1.5), "cap")
    nodes = [helper.make_node("Div", ["cap_in", "cap"], ["cap_a"]), helper.make_node("Tanh", ["cap_a"], ["cap_b"]),
             helper.make_node("Mul", ["cap_b", "cap"], ["cap_out"])]
    return modifier("cap", nodes, [cap])


def squared():
    return modifier("two", [helper.make_node("Mul", ["two_in", "two_in"], ["two_out"])])


ROWS = ("b", "t")
ATTENTION = [
    linear_attention("linear", 4),
    linear_attention("linear", 1, 2, past=np.float32),
    linear_attention("gated", 3, 3),
    linear_attention("gated", 3, per_entry=False, past=np.float16, scale=0.25),
    linear_attention("delta", 4, 2, shared_beta=True, chunk_size=2),
    linear_attention("gated_delta", 4, 2, past=np.float32, kind=np.float16),
    linear_attention("gated_delta", 1, 1, False, True, np.float32),
    symbolic(linear_attention("gated_delta", 5, 2, False), q=ROWS, k=ROWS, v=ROWS, decay=ROWS, beta=ROWS),
    *(symbolic(causal_conv(t, k), x=("b", None, "n"), past=("b",)) for t, k in ((1, 4), (6, 3))),
    symbolic(causal_conv(2, 3), x="bcn", past="dek"),
    flex_attention("both graphs", score_mod=capped(), prob_mod=squared()),
    symbolic(flex_attention("symbols", score_mod=capped()), q=("b", None, "s"), k=("b", None, "t"), v=("b", None, "t")),
    symbolic(flex_attention("any heads"), q="bhsd", k="cgte", v="fiuw"),
    flex_attention("f16", np.float16, prob_mod=squared()),
    flex_attention("f64 in f32", np.float64, softmax_precision=1, scale=0.2),
]
