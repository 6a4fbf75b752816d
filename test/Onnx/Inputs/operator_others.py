"""Element-wise operators, text, normalisations and operands that are run-time values: see operators.py."""

import numpy as np
from onnx import helper
from onnx.reference import ReferenceEvaluator
from operator_case import RNG, case, symbolic

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


def bit_casts():
    """Each type to and from each of its width, special values among them."""
    values = {
        np.float16: [0.0, -0.0, 1.5, np.inf, -np.inf, 6e-8, 65504],
        np.float32: [0.0, -0.0, 1.5, np.inf, -np.inf, 1e-45, 3.4e38],
        np.float64: [0.0, -0.0, 1.5, np.inf, -np.inf, 5e-324, 1.7e308],
        np.int8: [0, 1, -1, -128, 127, 77, -2], np.uint8: [0, 1, 255, 128, 127, 77, 2],
        np.int16: [0, 1, -1, -32768, 32767, 77, -2], np.uint16: [0, 1, 65535, 32768, 15360, 77, 2],
        np.int32: [0, 1, -1, -(1 << 31), (1 << 31) - 1, 77, -2], np.uint32: [0, 1, (1 << 32) - 1, 1 << 31, 77, 3, 2],
        np.int64: [0, 1, -1, -(1 << 63), (1 << 63) - 1, 77, -2], np.uint64: [0, 1, (1 << 64) - 1, 1 << 63, 77, 3, 2],
        np.bool_: [False, True, True, False, True, False, True],
    }  # fmt: skip
    for source, list_of_values in values.items():
        x = np.array(list_of_values, source)
        for target in values:
            if np.dtype(target).itemsize != x.itemsize:
                continue
            y = x.view(np.uint8).astype(np.bool_) if target is np.bool_ else x.view(target)
            yield case(f"bits of {x.dtype} as {y.dtype}", "BitCast", 26, {"x": x}, [y], tolerance=0,
                       to=helper.np_dtype_to_tensor_dtype(np.dtype(target)))  # fmt: skip


ELEMENTS = [
    *(floor_remainder(t) for t in (np.float16, np.float32, np.float64)),
    *(shifts(t, d) for t in (np.int8, np.int16, np.int32, np.int64) for d in ("LEFT", "RIGHT")),
    *bit_casts(),
    symbolic(floor_remainder(np.float32), a=("n",), b=("n",)),
    *(in_blocks(m, b, t) for m, b, t in (("DCR", 2, np.float32), ("CRD", 2, np.int8), ("CRD", 3, np.float16))),
]


# --- text ---


def n_grams(x, pool, starts, places, shortest, longest, skips, mode="TF", weights=None):
    x = np.array(x)
    name = f"n-grams of {x.dtype}{list(x.shape)}, {shortest} to {longest}, {skips} skipped, {mode}, {weights}, {places}"
    words = dict(pool_int64s=pool, ngram_counts=starts, ngram_indexes=places, min_gram_length=shortest,
                 max_gram_length=longest, max_skip_count=skips, mode=mode)  # fmt: skip
    # The reference cannot do without weights, which are 1 by default.
    weighted = case(name, "TfIdfVectorizer", 9, {"x": x}, weights=weights or [1.0] * (max(places) + 1), **words)
    expected = ReferenceEvaluator(weighted[1]).run(None, weighted[2])
    return weighted if weights else case(name, "TfIdfVectorizer", 9, {"x": x}, expected, **words)


POOL = ([2, 3, 5, 4, 5, 6, 7, 8, 6, 7, 1, 2, 3], [0, 4, 10], [0, 1, 2, 3, 4, 5, 6, 7])
ROWS = np.array([[1, 1, 3, 3, 3, 7, 1, 2, 3], [8, 6, 7, 5, 6, 8, 1, 2, 3]], np.int32)
WORDS = [
    n_grams(ROWS, *POOL, 1, 3, 0),
    n_grams(ROWS.astype(np.int64), *POOL, 1, 2, 3, "IDF", [0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]),
    n_grams(ROWS[1], *POOL, 2, 3, 5, "TFIDF", [0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]),
    n_grams(ROWS[0], *POOL, 3, 3, 1, "IDF"),
    n_grams(ROWS[:, :2], *POOL, 3, 3, 0),
    n_grams(ROWS, POOL[0], POOL[1], [9, 3, 3, 0, 7, 6, 1, 11], 1, 3, 1),
    symbolic(n_grams(ROWS, *POOL, 1, 2, 1), x=("b",)),
    symbolic(n_grams(ROWS, *POOL, 1, 3, 4), x=("b", "n")),
    symbolic(n_grams(ROWS[0, :2], *POOL, 1, 3, 4), x=("n",)),
    n_grams([[3, 3, 4, 3]], [3, 4, 3, 3, 4, 3, 4], [0, 3], [0, 1, 2, 3, 4], 1, 2, 0, "TFIDF"),
]


# --- normalisations ---


def batch_norm(shape, dtype, opset=15, outputs=("y", "mean2", "var2"), **attributes):
    channels = shape[1] if len(shape) > 1 else 1
    x = RNG.standard_normal(shape).astype(dtype)
    inputs = {"x": x, **{k: RNG.uniform(0.5, 2, channels).astype(dtype) for k in ("s", "b", "mean", "var")}}
    return case(f"batch normalisation of {np.dtype(dtype)}{list(shape)} in training, {len(outputs)} outputs",
                "BatchNormalization", opset, inputs, outputs=outputs, training_mode=1,
                tolerance=4e-3 if dtype is np.float16 else 1e-5, **attributes)  # fmt: skip


def dropped(opset, share, training, mask_type=np.bool_, outputs=("y", "mask"), **attributes):
    """What drops nothing: inference, or a ratio of 0."""
    x = RNG.standard_normal((2, 3)).astype(np.float32)
    inputs = {"x": x, "ratio": None if share is None else np.float32(share)}
    inputs["training"] = None if training is None else np.bool_(training)
    while list(inputs.values())[-1] is None:
        inputs.popitem()
    name = f"Dropout-{opset}, {share}, {training}, {len(outputs)} outputs"
    return case(name, "Dropout", opset, inputs, [x, np.ones_like(x, mask_type)][: len(outputs)], outputs=outputs,
                constants=tuple(k for k in inputs if k != "x"), **attributes)  # fmt: skip


NORMS = [
    dropped(6, None, None, np.float32, is_test=1, ratio=0.3),
    dropped(7, None, None, np.float32, ratio=0.3),
    dropped(10, None, None, ratio=0.3),
    dropped(12, 0.3, None, outputs=("y",)),
    dropped(13, 0.3, False),
    dropped(22, 0.0, True),
    batch_norm((2, 3, 4, 5), np.float32, epsilon=0.01, momentum=0.75),
    batch_norm((4, 3), np.float64, 14),
    batch_norm((2, 3, 7), np.float32, outputs=("y",)),
    batch_norm((2, 3, 7), np.float16, outputs=("y", "mean2")),
    symbolic(batch_norm((2, 3, 7), np.float32), x=("b", None, "n")),
    symbolic(batch_norm((2, 3, 5), np.float32), x="bcn", s="k", b="l", mean="m", var="v"),
]


# --- operands that are run-time values, with a declared output ---


def at_run_time(op, opset, inputs, constants=(), expected=None, **attributes):
    """The output's shape is declared where all operands are run-time values."""
    undeclared = case("", op, opset, inputs, **attributes)
    expected = expected or ReferenceEvaluator(undeclared[1]).run(None, undeclared[2])
    said = ", ".join(f"{k} {v.tolist()}" for k, v in list(inputs.items())[1:] if v is not None)
    name = f"{op} of {inputs['x'].dtype}{list(inputs['x'].shape)}, {said}, {list(attributes.values())}"
    name += "".join(f", constant {key}" for key in constants)
    return case(name, op, opset, inputs, expected, constants=constants, declared=not constants, **attributes)


def sliced(shape, starts, ends, axes=None, steps=None, integer=np.int64, dtype=np.float32):
    given = {"starts": starts, "ends": ends, "axes": axes, "steps": steps}
    inputs = {"x": RNG.integers(-9, 9, shape).astype(dtype)}
    inputs |= {k: None if v is None else np.array(v, integer) for k, v in given.items()}
    return at_run_time("Slice", 13, inputs)


def sliced_from_far_below():
    """The first row: ONNX Runtime brings both ends back inside, where NumPy, and with it the reference, finds none."""
    x, least = RNG.integers(-9, 9, (6, 5)).astype(np.float32), np.array([-(1 << 63)])
    inputs = {"x": x, "starts": least, "ends": least, "axes": np.array([0]), "steps": np.array([-1])}
    return at_run_time("Slice", 13, inputs, expected=[x[:1]])


def resized(shape, scales=None, sizes=None, roi=None, opset=19, dtype=np.float32, **attributes):
    given = {"roi": (roi, dtype), "scales": (scales, np.float32), "sizes": (sizes, np.int64)}
    inputs = {"x": RNG.standard_normal(shape).astype(dtype)}
    inputs |= {k: None if v is None else np.array(v, t) for k, (v, t) in given.items()}
    while list(inputs.values())[-1] is None:
        inputs.popitem()
    return at_run_time("Resize", opset, inputs, **attributes)


def padded(mode, pads):
    x = RNG.standard_normal((5, 3, 4)).astype(np.float32)
    whole = [[pads[0], pads[2]], [0, 0], [pads[1], pads[3]]]
    cut = x[max(0, -pads[0]) : 5 - max(0, -pads[2]), :, max(0, -pads[1]) : 4 - max(0, -pads[3])]
    y = np.pad(cut, np.maximum(whole, 0), mode)
    inputs = {"x": x, "pads": np.array(pads), "value": None, "axes": np.array([0, -1])}
    return case(f"Pad by {pads} along some axes, {mode}", "Pad", 19, inputs, [y], declared=True, mode=mode)


CROP = {"coordinate_transformation_mode": "tf_crop_and_resize"}
AT_RUN_TIME = [
    sliced((6, 5), [1, 0], [4, 3]),
    sliced((6, 5), [-2], [-9], [1], [-1]),
    sliced((6, 5, 4), [1, -99], [99, 3], [-1, 0], [2, 1], np.int32, np.int8),
    sliced((6, 5), [5], [-(1 << 62)], [0], [-2]),
    sliced_from_far_below(),
    *(padded(mode, pads) for mode in ("constant", "reflect", "edge", "wrap") for pads in ([1, 2, -1, 1], [0, 0, 2, 1])),
    resized((1, 2, 4, 5), [1, 1, 0.6, 1.5], mode="linear"),
    resized((1, 2, 4, 5), [1, 1, 2, 0.7], mode="nearest", nearest_mode="ceil"),
    resized((1, 2, 4, 5), [1, 1, 2.5, 0.7], mode="nearest", nearest_mode="round_prefer_ceil", dtype=np.float64),
    resized((1, 2, 4, 5), [2, 0.8], axes=[3, 2], mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5),
    resized((1, 1, 4, 5), [1, 1, 0.4, 1.7], mode="cubic", coordinate_transformation_mode="align_corners"),
    resized((1, 1, 4, 5), [1, 1, 0.3, 1.9], mode="linear", coordinate_transformation_mode="half_pixel_symmetric"),
    resized((1, 1, 4, 5), [1, 1, 0.6, 1.9], mode="linear", coordinate_transformation_mode="pytorch_half_pixel"),
    resized((1, 1, 4, 5), [1, 1, 1.3, 1.9], mode="linear", coordinate_transformation_mode="asymmetric"),
    resized((1, 1, 4, 5), None, [7, 9], axes=[2, 3], keep_aspect_ratio_policy="not_larger"),
    resized((1, 1, 4, 5), None, [7, 9], axes=[2, 3], mode="linear", keep_aspect_ratio_policy="not_smaller"),
    resized((1, 1, 4, 5), None, [3, 3], [0.4, 0.6, 0.6, 0.8], axes=[2, 3], mode="linear", **CROP),
    resized((1, 1, 4, 5), None, [1, 1, 3, 3], [0, 0, 0.4, 0.6, 1, 1, 1.2, 1.7], mode="linear",
            extrapolation_value=10.0, **CROP),  # fmt: skip
    resized((1, 1, 4, 5), None, [3, 3], [0.4, 0.6, 0.6, 0.8], axes=[2, 3], mode="linear", constants=("sizes",), **CROP),
    resized((2, 4, 5), None, [2, 3, 7], [0, 0, 0.4, 1, 1, 1.2], dtype=np.float64, constants=("sizes",), **CROP),
    resized((1, 1, 4, 5), None, [7, 9], [0.1, 0.2, 0.9, 0.7], axes=[2, 3], mode="cubic", constants=("sizes",),
            keep_aspect_ratio_policy="not_larger", **CROP),  # fmt: skip
    symbolic(resized((2, 4, 5), None, [3, 3], [0.4, 0.6, 0.6, 0.8], axes=[1, 2], mode="linear", constants=("sizes",),
                     **CROP), x=("n",)),  # fmt: skip
    case("positions of TensorFlow's nearest neighbours", "Resize", 11,
         {"x": np.arange(5, dtype=np.float32).reshape(1, 1, 5), "roi": np.zeros(0, np.float32),
          "scales": np.array([1, 1, 2], np.float32)},
         [np.array([0, 1, 1, 2, 2, 3, 3, 4, 4, 4], np.float32).reshape(1, 1, 10)], constants=("roi", "scales"),
         coordinate_transformation_mode="tf_half_pixel_for_nn"),  # fmt: skip
]
