"""Attention in many forms, compiled, run and compared with its definition (onnx 1.23.2) in numpy; queries that see no
key must give zeros. One line a form and what it was compared on."""

import argparse
import itertools
import pathlib
import shutil
import subprocess

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper, numpy_helper

TYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
# Of the largest element: rounding to the type may differ in the last place after each of a few steps.
TOLERANCE = {"f16": 2e-3, "bf16": 1.6e-2, "f32": 2e-6, "f64": 1e-12}
ONNX = {"f32": TensorProto.FLOAT, "f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "f64": TensorProto.DOUBLE}


class Form:
    """One node: B batch entries, H query heads, G key heads, S queries and T new keys of D and E entries."""

    def __init__(self, name, opset=24, kind="f32", sizes=(2, 4, 2, 3, 5, 8, 6), flat=False, past=0, mask=None,
                 values="bool", constant=False, lengths=None, outputs="Y", symbols=None, first=None, **attributes):
        self.name, self.opset, self.kind, self.sizes = name, opset, kind, sizes
        self.flat, self.past, self.mask, self.values, self.constant = flat, past, mask, values, constant
        self.lengths, self.outputs, self.attributes = lengths, outputs, attributes
        self.symbols, self.first = symbols or {}, first

    def inputs(self, generator):
        """Arrays by operand; None where there is none."""
        b, h, g, s, t, d, e = self.sizes
        draw = lambda *shape: generator.standard_normal(shape).astype(TYPES[self.kind])
        pack = lambda x: x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1) if self.flat else x
        arrays = {"Q": pack(draw(b, h, s, d)), "K": pack(draw(b, g, t, d)), "V": pack(draw(b, g, t, e))}
        if self.first is not None:
            arrays["Q"][:, :, 0] = self.first
        if self.mask is not None:
            allowed = generator.random(self.mask) < 0.6
            allowed.reshape(-1, self.mask[-1])[::2] = False
            if self.values == "bool":
                arrays["mask"] = allowed
            else:
                bias = np.where(allowed, generator.standard_normal(self.mask), -np.inf)
                arrays["mask"] = bias.astype(TYPES[self.values])
        if self.past:
            arrays["past_key"], arrays["past_value"] = draw(b, g, self.past, d), draw(b, g, self.past, e)
        if self.lengths is not None:
            arrays["lengths"] = np.array(self.lengths, np.int64)
        return arrays

    def model(self, arrays):
        shapes = lambda key: [self.symbols.get((key, i), n) for i, n in enumerate(arrays[key].shape)]
        constants = {"mask"} if self.constant else set()
        kinds = {key: helper.np_dtype_to_tensor_dtype(a.dtype) for key, a in arrays.items()}
        infos = [helper.make_tensor_value_info(key, kinds[key], shapes(key)) for key in arrays if key not in constants]
        order = ["Q", "K", "V", "mask", "past_key", "past_value", "lengths"]
        names = [key if key in arrays else "" for key in order]
        while not names[-1]:
            names.pop()
        results = {"Y": ["Y"], "QK": ["Y", "", "", "QK"], "all": ["Y", "PK", "PV", "QK"]}[self.outputs]
        attributes = dict(self.attributes)
        if self.flat:
            attributes.update(q_num_heads=self.sizes[1], kv_num_heads=self.sizes[2])
        node = helper.make_node("Attention", names, results, **attributes)
        data = [numpy_helper.from_array(arrays[key], key) for key in constants]
        outputs = [helper.make_empty_tensor_value_info(name) for name in results if name]
        graph = helper.make_graph([node], "g", infos, outputs, data)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10)

    def expected(self, arrays):
        """Outputs by name and the number of queries that see no key."""
        b, h, g, s, t, d, e = self.sizes
        rounded = lambda x, kind=self.kind: x.astype(TYPES[kind]).astype(np.float64)
        wide = {key: a.astype(np.float64) if a.dtype != bool else a for key, a in arrays.items()}
        unpack = lambda x, heads: (x.reshape(x.shape[0], x.shape[1], heads, -1).transpose(0, 2, 1, 3)
                                   if self.flat else x)
        q, k, v = unpack(wide["Q"], h), unpack(wide["K"], g), unpack(wide["V"], g)
        if self.past:
            k = np.concatenate([wide["past_key"], k], 2)
            v = np.concatenate([wide["past_value"], v], 2)
        total = k.shape[2]
        keys, values = np.repeat(k, h // g, 1), np.repeat(v, h // g, 1)
        root = rounded(np.sqrt(np.float64(self.attributes.get("scale", d**-0.5))))
        with np.errstate(invalid="ignore"):
            scores = rounded(rounded(q * root) @ np.swapaxes(rounded(keys * root), 2, 3))
        stages = [scores]
        if cap := self.attributes.get("softcap", 0):
            scores = rounded(rounded(np.tanh(rounded(scores / cap))) * cap)
        stages.append(scores)
        bias = np.zeros((b, 1, s, total))
        if self.mask is not None:
            mask = wide["mask"]
            missing = [(0, 0)] * (mask.ndim - 1) + [(0, total - mask.shape[-1])]
            if mask.dtype == bool:
                mask = np.where(mask, 0, -np.inf)
            if self.opset > 23 or mask.shape[-1] > 1:
                mask = np.pad(mask, missing, constant_values=-np.inf)
            bias = bias + rounded(mask)
        counts = np.full(b, total) if self.lengths is None else np.array(self.lengths)
        offset = np.full(b, self.past) if self.past or self.lengths is None else counts - s
        own = (np.arange(s) + offset[:, None])[:, None, :, None]
        column = np.arange(total)
        left, right = (self.attributes.get(side, -1) for side in ("left_window_size", "right_window_size"))
        seen = column < counts[:, None, None, None]
        if self.attributes.get("is_causal"):
            seen = seen & (column <= own)
        if left >= 0:
            seen = seen & (column >= own - left)
        if right >= 0:
            seen = seen & (column <= own + right)
        bias = np.broadcast_to(np.where(seen, bias, -np.inf), scores.shape)
        scores = rounded(scores + bias)
        stages.append(scores)
        precision = {v: key for key, v in ONNX.items()}[self.attributes.get("softmax_precision", ONNX[self.kind])]
        scores = rounded(scores, precision)
        blind = (bias == -np.inf).all(-1, keepdims=True)
        with np.errstate(invalid="ignore"):
            powers = np.exp(scores - np.where(blind, 0, scores.max(-1, keepdims=True)))
            weights = np.where(blind, 0, powers / np.where(blind, 1, powers.sum(-1, keepdims=True)))
        weights = rounded(rounded(weights, precision))
        stages.append(weights)
        y = rounded(weights @ values)
        if self.flat:
            y = y.transpose(0, 2, 1, 3).reshape(b, s, -1)
        found = {"Y": y, "PK": k, "PV": v, "QK": stages[self.attributes.get("qk_matmul_output_mode", 0)]}
        return found, int(blind.sum())


LEFT = {"opset": 25, "left_window_size": 1}
FORMS = [
    Form("bool mask [S,T]", mask=(3, 5), outputs="QK", qk_matmul_output_mode=3),
    Form("queries that see nothing and are no numbers", mask=(3, 5), first=np.nan),
    Form("such queries, f32 mask", mask=(3, 5), values="f32", first=np.inf),
    Form("bool mask [B,1,1,T]", mask=(2, 1, 1, 5)),
    Form("bool mask [H,S,T], causal, constant", mask=(4, 3, 5), constant=True, is_causal=1),
    Form("bool mask [T]", opset=25, mask=(5,), left_window_size=2),
    Form("bool mask [S,1] of opset 23", opset=23, mask=(3, 1)),
    Form("bool mask [S,1] of opset 24", mask=(3, 1)),
    Form("f32 mask [B,H,S,T]", mask=(2, 4, 3, 5), values="f32", outputs="QK", qk_matmul_output_mode=2, softcap=2.0),
    Form("f32 mask [S,T], constant", opset=23, mask=(3, 5), values="f32", constant=True, scale=0.3),
    Form("f32 mask of fewer keys", opset=25, mask=(1, 3, 4), values="f32", left_window_size=1, right_window_size=1),
    Form("flat, past, bool mask", flat=True, past=4, mask=(2, 4, 3, 9), is_causal=1, outputs="all", softcap=3.0,
         qk_matmul_output_mode=1),
    Form("cache lengths", lengths=(0, 4)),
    Form("cache lengths, causal", lengths=(2, 5), is_causal=1, outputs="QK", qk_matmul_output_mode=3),
    Form("cache lengths, causal, bool mask of fewer keys", sizes=(3, 2, 2, 2, 6, 8, 5), lengths=(1, 4, 0), is_causal=1,
         mask=(3, 1, 2, 4)),
    Form("cache lengths, past, causal", lengths=(3, 6), past=2, is_causal=1),
    Form("cache lengths, window", **LEFT, lengths=(1, 5), right_window_size=2, outputs="QK", qk_matmul_output_mode=3),
    Form("flat, window, causal, past", **LEFT, flat=True, past=3, is_causal=1),
    Form("window of more queries than keys", **LEFT, sizes=(1, 2, 1, 7, 3, 8, 8)),
    Form("window on the right", opset=25, right_window_size=0, left_window_size=-1),
    Form("f16, bool mask", kind="f16", mask=(3, 5), is_causal=1, outputs="QK", qk_matmul_output_mode=3),
    Form("f16, f16 mask, constant, softmax in f32", kind="f16", mask=(2, 1, 3, 5), values="f16", constant=True,
         softmax_precision=ONNX["f32"], outputs="QK", qk_matmul_output_mode=3, softcap=1.5),
    Form("f16, f32 mask, cache lengths", kind="f16", mask=(3, 5), values="f32", lengths=(2, 0), is_causal=1),
    Form("bf16, bf16 mask, window", **LEFT, kind="bf16", mask=(3, 4), values="bf16", lengths=(2, 4)),
    Form("bf16, causal, cache lengths", kind="bf16", lengths=(2, 5), is_causal=1),
    Form("f64, f64 mask, softmax in f32", kind="f64", mask=(3, 5), values="f64", softmax_precision=ONNX["f32"]),
    Form("f32, softmax in f16", kind="f32", mask=(3, 5), softmax_precision=ONNX["f16"], is_causal=1),
]
AXES = {("Q", 0): "b", ("K", 0): "b", ("V", 0): "b", ("Q", 2): "s", ("K", 2): "t", ("V", 2): "t", ("lengths", 0): "b"}
MASK = {("mask", 0): "s", ("mask", 1): "t"}
PAST = {("past_key", 0): "b", ("past_value", 0): "b", ("past_key", 2): "p", ("past_value", 2): "p"}
SYMBOLIC = [ # the second of each runs the first one's model
    [Form("symbols, bool mask, causal", mask=(s, t), is_causal=1, sizes=(b, 4, 2, s, t, 8, 6), symbols=AXES | MASK)
     for b, s, t in ((2, 3, 5), (1, 4, 7))],
    [Form("symbols, cache lengths, causal", lengths=lengths, is_causal=1, sizes=(2, 4, 2, s, t, 8, 6), symbols=AXES)
     for s, t, lengths in ((3, 5, (2, 5)), (6, 7, (0, 7)))],
    [Form("symbols, past, window", **LEFT, past=p, sizes=(2, 4, 2, s, t, 8, 6), symbols=AXES | PAST)
     for s, t, p in ((3, 3, 2), (6, 2, 1))],
    [Form("symbols, mask of fewer keys", mask=(1, 1, 1, 4), sizes=(b, 4, 2, 3, t, 8, 6), symbols=AXES)
     for b, t in ((2, 4), (3, 9))],
]


def readOutput(path, kind):
    array = np.load(path)
    return array.view(TYPES["bf16"]) if array.dtype == np.dtype("V2") else array


def execute(options, target, folder, proto, names, feeds):
    """The outputs of the model in `folder`, compiled once a target; "reference" interprets its graph."""
    words = [word for key, path in feeds.items() for word in ("--input", f"{key}={path}")]
    out = folder / "out"
    out.mkdir(exist_ok=True)
    if target == "reference":
        command = [options.fusec_opt, folder / "m.onnx", "--interpret", "--round-each-value"]
    else:
        bundle = folder / f"{target.replace(':', '_')}.bundle"
        if not bundle.exists():
            subprocess.run([options.fusec, folder / "m.onnx", "-o", bundle, "--target", target], check=True)
        command = [options.fusert, "run", bundle, "--target", target]
    subprocess.run([*command, *words, "--output-dir", out], check=True, stdout=subprocess.DEVNULL)
    return {name: readOutput(out / f"{name}.npy", proto) for name in names}


def difference(form, found, expected):
    """None, or what is wrong with the output."""
    if found.shape != expected.shape or found.dtype != TYPES[form.kind]:
        return f"{found.dtype}{list(found.shape)}"
    found, expected = found.astype(np.float64), np.where(np.isnan(expected), np.nan, expected)
    finite = np.isfinite(expected)
    limit = TOLERANCE[form.kind] if "softmax_precision" not in form.attributes else max(TOLERANCE[form.kind], 2e-3)
    scale = max(1.0, np.abs(expected[finite]).max(initial=0))
    if not np.array_equal(found[~finite], expected[~finite], equal_nan=True) or not np.all(
            np.abs(found[finite] - expected[finite]) <= limit * scale):
        return f"{found} instead of {expected}"
    return None


def run(options, index, forms):
    """What is to be said of the forms, which share one model."""
    folder = options.work / str(index)
    folder.mkdir(parents=True)
    blind = 0
    for form in forms:
        arrays = form.inputs(np.random.default_rng(index))
        proto = form.model(arrays)
        if form is forms[0]:
            (folder / "m.onnx").write_bytes(proto.SerializeToString())
        feeds = {}
        for value in proto.graph.input:
            feeds[value.name] = folder / f"{value.name}.pb"
            feeds[value.name].write_bytes(numpy_helper.from_array(arrays[value.name]).SerializeToString())
        expected, count = form.expected(arrays)
        blind += count
        for target in ("x86-64-v3", "sim:sm_90", "reference"):
            names = [output.name for output in proto.graph.output]
            for name, found in execute(options, target, folder, form.kind, names, feeds).items():
                if wrong := difference(form, found, expected[name]):
                    return f"{name} on {target}: {wrong}"
    return f"right, {blind} queries without keys"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fusec", required=True)
    parser.add_argument("--fusert", required=True)
    parser.add_argument("--fusec-opt", required=True)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    for index, forms in enumerate(itertools.chain(([form] for form in FORMS), SYMBOLIC)):
        print(f"{forms[0].name}: {run(options, index, forms)}", flush=True)


if __name__ == "__main__":
    main()
