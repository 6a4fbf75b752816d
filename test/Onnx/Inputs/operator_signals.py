"""Fourier transforms, grids and regions: see operators.py."""

import numpy as np
from onnx.reference import ReferenceEvaluator
from operator_case import RNG, case, symbolic

# --- signals ---


def transform(x, length, axis, inverse, onesided, dtype):
    """numpy's transform of [..., 1] or [..., 2], as DFT holds complex numbers."""
    wide = x.astype(np.float64)
    numbers = wide[..., 0] + 1j * wide[..., 1] if x.shape[-1] == 2 else wide[..., 0]
    if inverse and onesided:
        return np.fft.irfft(numbers, length, axis)[..., None].astype(dtype)
    y = np.fft.ifft(numbers, length, axis) if inverse else np.fft.fft(numbers, length, axis)
    if onesided:
        y = np.take(y, range(y.shape[axis] // 2 + 1), axis)
    return np.stack((y.real, y.imag), -1).astype(dtype)


def dft(shape, axis, length=None, opset=20, dtype=np.float32, run_time=False, **attributes):
    x = RNG.standard_normal(shape).astype(dtype)
    inverse, onesided = attributes.get("inverse", 0), attributes.get("onesided", 0)
    size = shape[axis]
    full = length or (2 * (size - 1) if inverse and onesided else size)
    y = transform(x, full, axis % len(shape), inverse, onesided, dtype)
    inputs = {"x": x, "length": None if length is None else np.int64(length)}
    if opset >= 20:
        inputs["axis"] = np.int64(axis)
    else:
        attributes["axis"] = axis
    constants = () if run_time else tuple(k for k in ("length", "axis") if inputs.get(k) is not None)
    name = f"DFT-{opset} of {np.dtype(dtype)}{list(shape)} along {axis} to {length}, {attributes}"
    tolerance = {np.float16: 4e-3, np.float32: 2e-5, np.float64: 1e-10}[dtype] * max(1, full / 64) ** 0.5
    return case(name, "DFT", opset, inputs, [y], constants=constants, tolerance=tolerance, declared=run_time,
                **attributes)  # fmt: skip


def stft(batch, size, parts, step, length=None, window=None, dtype=np.float32, run_time=False, **attributes):
    x = RNG.standard_normal((batch, size, parts)).astype(dtype)
    w = None if window is None else RNG.standard_normal(window).astype(dtype)
    onesided = attributes.get("onesided", 1)
    whole = length or window or size
    starts = range(0, size - whole + 1, step)
    framed = np.stack([x[:, s : s + whole] for s in starts], 1) * (1 if w is None else w[:, None])
    y = transform(framed, whole, 2, 0, onesided, dtype)
    inputs = {"x": x, "step": np.int64(step), "window": w, "length": None if length is None else np.int64(length)}
    constants = () if run_time else tuple(k for k in ("step", "length") if inputs[k] is not None)
    name = f"STFT of {np.dtype(dtype)}{list(x.shape)}, step {step}, {window}, {length}, {attributes}"
    return case(name, "STFT", 17, inputs, [y], constants=constants, tolerance=3e-3 if dtype is np.float16 else 3e-5,
                declared=run_time, **attributes)  # fmt: skip


SIGNALS = [
    dft((2, 9, 1), 1),
    dft((2, 9, 2), 1, dtype=np.float64),
    dft((5, 3, 4, 1), 0, dtype=np.float16),
    dft((5, 3, 4, 2), -2, inverse=1),
    dft((8, 3, 1), 0, onesided=1),
    dft((3, 7, 1), 1, onesided=1, dtype=np.float64),
    dft((3, 5, 2), 1, inverse=1, onesided=1),
    dft((3, 5, 2), 1, 9, inverse=1, onesided=1),
    dft((3, 5, 2), 1, 4, inverse=1, onesided=1),
    dft((3, 5, 2), 1, 16, inverse=1, onesided=1),
    dft((3, 5, 1), 1, 8),
    dft((3, 9, 2), 1, 4),
    dft((3, 5, 1), 1, 4, inverse=1),
    dft((2, 6, 2), 1, opset=17),
    dft((2, 6, 3, 1), 2, 7, opset=19, onesided=1),
    dft((2, 6, 2), 1, opset=17, inverse=1, dtype=np.float16),
    dft((2, 1500, 1), 1),
    dft((1, 1500, 2), 1, inverse=1),
    dft((1, 1030, 1), 1, 2050, onesided=1),
    dft((1, 700, 2), 1, 1200, inverse=1, onesided=1, dtype=np.float64),
    dft((1, 1031, 1), 1, onesided=1, dtype=np.float64),
    dft((4, 4, 1), 0, run_time=True),
    dft((3, 4, 4, 2), -2, run_time=True, inverse=1),
    dft((4, 6, 1), 1, 6, run_time=True, onesided=1),
    dft((4, 6, 1), 1, 7, run_time=True, onesided=1),
    dft((4, 6, 2), 0, 6, run_time=True),
    stft(2, 20, 1, 3, 8),
    stft(1, 20, 1, 5, None, 7),
    stft(1, 20, 2, 4, 6, 6, onesided=0),
    stft(2, 12, 1, 1),
    stft(1, 20, 1, 3, 8, 8, dtype=np.float64, onesided=0),
    stft(1, 20, 1, 3, 8, 8, dtype=np.float16),
    stft(1, 20, 1, 3, 9, run_time=True),
    stft(1, 20, 1, 4, 8, run_time=True),
    stft(1, 8, 1, 4, 8, run_time=True),
    stft(1, 20, 2, 4, None, 6, run_time=True, onesided=0),
    symbolic(dft((3, 9, 2, 1), 1), x=("b", None, "c")),
    symbolic(dft((2, 1200, 2), 1, inverse=1), x=("b",)),
    symbolic(stft(2, 21, 1, 3, 8), x=("b", "n")),
    symbolic(stft(2, 21, 1, 4, None, 6), x=("b", "n")),
]


# --- grids and regions ---


def affine_grid(batch, sizes, align, dtype=np.float32, run_time=False):
    rank = len(sizes)
    theta = RNG.standard_normal((batch, rank, rank + 1)).astype(dtype)
    along = [
        np.linspace(-1, 1, s) if align and s > 1 else -np.ones(1) if align else (2 * np.arange(s) + 1) / s - 1
        for s in sizes
    ]
    at = np.stack([*np.meshgrid(*along, indexing="ij")[::-1], np.ones(sizes)], -1)
    y = np.einsum("...j,nkj->n...k", at, theta.astype(np.float64)).astype(dtype)
    size = np.array([batch, 3, *sizes], np.int64)
    return case(f"grid {sizes}, {align}, {np.dtype(dtype)}", "AffineGrid", 20, {"theta": theta, "size": size}, [y],
                constants=() if run_time else ("size",), declared=run_time, align_corners=align,
                tolerance=2e-3 if dtype is np.float16 else 1e-5)  # fmt: skip


def roi_align(opset, image, regions, dtype=np.float32, **attributes):
    x = RNG.standard_normal(image).astype(dtype)
    rois = np.array(regions, dtype)
    which = RNG.integers(0, image[0], len(regions))
    name = f"{len(regions)} regions of {list(image)}, {np.dtype(dtype)}, opset {opset}, {attributes}"
    # The reference takes the later opsets' default where opset 10 has no such attribute.
    attributes = dict(attributes)
    expected = None
    if opset == 10:
        later = case("", "RoiAlign", 16, {"x": x, "rois": rois, "which": which},
                     coordinate_transformation_mode="output_half_pixel", **attributes)  # fmt: skip
        expected = ReferenceEvaluator(later[1]).run(None, later[2])
    return case(name, "RoiAlign", opset, {"x": x, "rois": rois, "which": which}, expected,
                tolerance=2e-2 if dtype is np.float16 else 1e-4, **attributes)  # fmt: skip


def one_bin(length, mode):
    """As many points each way as the bin is long: each of the lowering's branches, up to the last."""
    name, *rest = roi_align(16, (1, 2, 40, 44), [[1, 2, 1 + length, 2 + length]], output_height=1, output_width=1,
                            mode=mode, **HALF)  # fmt: skip
    return f"{name}, one bin of {length}", *rest


INSIDE = [[0, 0, 9, 9], [1.5, 2.25, 7.5, 5], [3, 3, 3.5, 3.25]]
BEYOND = [[-6, -4, 15, 19], [-3, 2, 4, 11.5], [20, 20, 30, 31], [6, 5, 2, 1], [2, 2, 2, 2]]
HALF = {"coordinate_transformation_mode": "half_pixel"}
WHOLE = {"coordinate_transformation_mode": "output_half_pixel"}
GRIDS = [
    affine_grid(2, (3, 5), 0),
    affine_grid(1, (4, 1), 1),
    affine_grid(2, (2, 3, 4), 0, np.float64),
    affine_grid(1, (2, 3, 2), 1, np.float16),
    affine_grid(3, (4, 3), 1, run_time=True),
    roi_align(16, (2, 3, 10, 8), INSIDE, output_height=2, output_width=3, sampling_ratio=2),
    roi_align(16, (2, 1, 10, 8), INSIDE + BEYOND, output_height=3, output_width=2, sampling_ratio=3, **WHOLE),
    roi_align(22, (2, 1, 10, 8), INSIDE + BEYOND, output_height=2, output_width=2, sampling_ratio=2, mode="max"),
    roi_align(22, (2, 2, 10, 8), INSIDE + BEYOND, output_height=3, output_width=2, **HALF),
    roi_align(16, (1, 2, 10, 8), INSIDE + BEYOND, output_height=2, output_width=1, spatial_scale=0.5, **WHOLE),
    roi_align(16, (1, 1, 7, 9), INSIDE + BEYOND, output_height=2, output_width=2, mode="max", **HALF),
    roi_align(22, (1, 1, 7, 9), INSIDE + BEYOND, output_height=1, output_width=3, mode="max", **WHOLE),
    symbolic(
        roi_align(16, (2, 3, 10, 8), INSIDE + BEYOND, output_height=2, output_width=3, sampling_ratio=2),
        x=("b", "c", "h", "w"), rois=("r",), which=("r",),
    ),
    symbolic(
        roi_align(16, (2, 2, 5, 8), INSIDE + BEYOND, output_height=2, output_width=3),
        x=("b", "c", "h", "w"), rois=("r",), which=("r",),
    ),
    symbolic(
        roi_align(16, (2, 2, 5, 8), INSIDE + BEYOND, output_height=2, output_width=3, mode="max"),
        x=("b", None, "h", "w"), rois=("r",), which=("r",),
    ),
    roi_align(10, (2, 2, 6, 6), INSIDE, output_height=2, output_width=2, sampling_ratio=1, mode="avg"),
    roi_align(10, (2, 2, 6, 6), INSIDE + BEYOND, output_height=1, output_width=1, mode="max"),
    roi_align(16, (1, 2, 6, 6), INSIDE, np.float64, output_height=2, output_width=2),
    *(one_bin(length, mode) for length in (2, 3.5, 8, 15, 31, 38) for mode in ("avg", "max")),
    roi_align(22, (1, 2, 6, 6), INSIDE, np.float16, output_height=2, output_width=2, sampling_ratio=2, **HALF),
]
