"""Caches whose input and output share memory: caches.py FUSEC FUSERT LIBRARY FOLDER.

Decodes several tokens with memory shared and without, through the C API, against ONNX Runtime; prints a line a case."""

import ctypes
import json
import pathlib
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import parser

fusec, fusert = sys.argv[1:3]
library = ctypes.CDLL(sys.argv[3])
folder = pathlib.Path(sys.argv[4])
folder.mkdir(parents=True, exist_ok=True)
library.fusert_last_error.restype = ctypes.c_char_p
TARGETS = ("x86-64-v3", "sim:sm_90", "sim:gfx90a")
ROWS = 24  # for which shared caches have room
TYPES = {"float": np.float32, "float16": np.float16}


class LoadOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("target", ctypes.c_char_p),
        ("verify", ctypes.c_int),
        ("weights", ctypes.c_int),
        ("device", ctypes.c_int32),
        ("info_only", ctypes.c_int32),
        ("log", ctypes.c_void_p),
        ("log_user", ctypes.c_void_p),
        ("public_key", ctypes.c_void_p),
    ]


class ContextOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("threads", ctypes.c_int32),
        ("counters", ctypes.c_int32),
        ("pool", ctypes.c_void_p),
        ("memory", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
        ("sim_seed", ctypes.c_uint64),
    ]


class Shape(ctypes.Structure):
    _fields_ = [("rank", ctypes.c_int32), ("dims", ctypes.POINTER(ctypes.c_int64))]


class Buffer(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("bytes", ctypes.c_size_t)]


class Refused(Exception):
    pass


def require(status):
    if status != 0:
        raise Refused(library.fusert_last_error().decode())


class Context:
    def __init__(self, bundle, target, counters=False):
        load = LoadOptions(struct_size=ctypes.sizeof(LoadOptions), target=target.encode())
        self.model, self.context = ctypes.c_uint64(), ctypes.c_uint64()
        require(library.fusert_load_file(str(bundle).encode(), ctypes.byref(load), ctypes.byref(self.model)))
        options = ContextOptions(struct_size=ctypes.sizeof(ContextOptions), threads=2, counters=int(counters))
        require(library.fusert_context_create(self.model, ctypes.byref(options), ctypes.byref(self.context)))

    def __del__(self):
        library.fusert_context_destroy(self.context)
        library.fusert_unload(self.model)

    def share(self, rows):
        require(library.fusert_share_caches(self.context, ctypes.c_int64(rows)))

    def set_shapes(self, shapes):
        arrays = [(ctypes.c_int64 * len(s))(*s) for s in shapes]
        shapes = (Shape * len(shapes))(*[Shape(len(a), a) for a in arrays])
        require(library.fusert_set_shapes(self.context, shapes, ctypes.c_size_t(len(shapes))))

    def output_shape(self, index):
        dims, rank = (ctypes.c_int64 * 8)(), ctypes.c_int32(8)
        require(library.fusert_get_output_shape(self.context, ctypes.c_size_t(index), dims, ctypes.byref(rank)))
        return list(dims[: rank.value])

    def run(self, inputs, outputs):
        """Arrays, or None for the context's own buffers."""

        def buffers(arrays):
            made = [Buffer(None, 0) if a is None else Buffer(a.ctypes.data, a.nbytes) for a in arrays]
            return (Buffer * len(made))(*made)

        require(
            library.fusert_run(
                self.context,
                buffers(inputs),
                ctypes.c_size_t(len(inputs)),
                buffers(outputs),
                ctypes.c_size_t(len(outputs)),
            )
        )

    def own(self, is_input, index):
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        get = library.fusert_input_buffer if is_input else library.fusert_output_buffer
        require(get(self.context, ctypes.c_size_t(index), ctypes.byref(data), ctypes.byref(size)))
        return data.value, size.value

    def counts(self):
        text = ctypes.c_char_p()
        require(library.fusert_counters_json(self.context, ctypes.byref(text)))
        kernels = json.loads(text.value)["kernels"]
        return sum(k["read_bytes"] for k in kernels), sum(k["write_bytes"] for k in kernels)


def compile(name, text, opset=18, options=(), targets=TARGETS):
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> {text}')
    rng = np.random.default_rng(1)
    for value in list(model.graph.input):
        if value.name.startswith("w"):  # weights
            dims = [d.dim_value for d in value.type.tensor_type.shape.dim]
            data = (rng.standard_normal(dims) / 4).astype(
                onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            )
            model.graph.initializer.append(onnx.numpy_helper.from_array(data, value.name))
            model.graph.input.remove(value)
    path, bundle = folder / f"{name}.onnx", folder / f"{name}.bundle"
    onnx.save(model, path)
    subprocess.run(
        [fusec, path, "-o", bundle, "--target", ",".join(targets), *options], check=True, capture_output=True
    )
    return path, bundle


ATTENTION = """
    shape = Constant<value_ints = [0, 0, 2, 8]>()
    flat = Constant<value_ints = [0, 0, 16]>()
    i{0}q0 = MatMul({1}, w{0}q)
    i{0}k0 = MatMul({1}, w{0}k)
    i{0}v0 = MatMul({1}, w{0}v)
    i{0}q1 = Reshape(i{0}q0, shape)
    i{0}k1 = Reshape(i{0}k0, shape)
    i{0}v1 = Reshape(i{0}v0, shape)
    i{0}q = Transpose<perm = [0, 2, 1, 3]>(i{0}q1)
    i{0}k = Transpose<perm = [0, 2, 1, 3]>(i{0}k1)
    i{0}v = Transpose<perm = [0, 2, 1, 3]>(i{0}v1)
    keys{0} = Concat<axis = 2>(past_keys{0}, i{0}k)
    values{0} = Concat<axis = 2>(past_values{0}, i{0}v)
    i{0}t = Transpose<perm = [0, 1, 3, 2]>(keys{0})
    i{0}s = MatMul(i{0}q, i{0}t)
    i{0}p = Softmax<axis = -1>(i{0}s)
    i{0}a = MatMul(i{0}p, values{0})
    i{0}b = Transpose<perm = [0, 2, 1, 3]>(i{0}a)
    i{0}c = Reshape(i{0}b, flat)
    {2} = Add(i{0}c, {1})"""
CACHES = ", ".join(f"{{0}}[batch,2,past,8] past_{k}{i}" for i in (0, 1) for k in ("keys", "values"))
WEIGHTS = ", ".join(f"{{0}}[16,16] w{i}{k}" for i in (0, 1) for k in "qkv")


def decoder(kind):
    first, second = ATTENTION.format(0, "x", "h"), ATTENTION.format(1, "h", "y")
    second = "\n".join(line for line in second.splitlines() if "Constant" not in line)
    return f"""g ({kind}[batch,length,16] x, {CACHES.format(kind)}, {WEIGHTS.format(kind)})
        => ({kind}[batch,length,16] y, {kind}[batch,2,total,8] keys0, {kind}[batch,2,total,8] values0,
            {kind}[batch,2,total,8] keys1, {kind}[batch,2,total,8] values1) {{{first}{second}}}"""


def rows_of(buffer, dims, axis):
    """The values of a cache in memory with room."""
    index = [slice(0, d) for d in dims]
    return buffer[tuple(index)].copy()


def decode(
    name, path, bundle, kind, cached, axis, start, new, lengths=(5, 1, 1, 3, 1), tolerance=1e-4, targets=TARGETS
):
    """`cached` pairs of input and output numbers grow along `axis` from `start`; `new(length)` makes the other inputs,
    which come first."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    out_names = [o.name for o in session.get_outputs()]
    for target in targets:
        shared, dense = Context(bundle, target), Context(bundle, target)
        shared.share(ROWS)
        room = list(start)
        room[axis] = ROWS
        memory = {i: np.full(room, 7, TYPES[kind]) for i, _ in cached}
        caches = {i: np.zeros(start, TYPES[kind]) for i, _ in cached}
        worst = 0
        for length in lengths:
            inputs = new(length)
            feeds = inputs + [caches[i] for i, _ in cached]
            wanted = session.run(out_names, dict(zip(names, feeds)))
            for context in (shared, dense):
                context.set_shapes([f.shape for f in feeds])
            made = [np.empty(w.shape, w.dtype) for w in wanted]
            dense.run(feeds, made)
            together = [None] * len(wanted)
            for o in range(len(wanted)):
                if all(o != c for _, c in cached):
                    together[o] = np.empty_like(wanted[o])
            for i, o in cached:
                together[o] = memory[i]
                assert shared.output_shape(o) == list(wanted[o].shape)
            shared.run(inputs + [memory[i] for i, _ in cached], together)
            for o, value in enumerate(together):
                if any(o == c for _, c in cached):
                    value = rows_of(value, wanted[o].shape, axis)
                assert np.array_equal(value, made[o]), (name, target, length, out_names[o])
                worst = max(worst, np.abs(value.astype(np.float64) - wanted[o]).max(initial=0))
            for i, o in cached:
                caches[i] = made[o]
        end = caches[cached[0][0]].shape[axis]
        for m in memory.values():  # what is behind the last row is not touched
            assert (np.moveaxis(m, axis, 0)[end:] == 7).all(), (name, target)
        print(f"{name} on {target}: {'right' if worst <= tolerance else f'off by {worst}'}")


def moved(bundle, past, rows, share, inputs):
    """Bytes read and written in one run of a sim target; `inputs` makes all inputs in memory with `rows`, or dense."""
    context = Context(bundle, "sim:sm_90", counters=True)
    if share:
        context.share(rows)
    shapes, arrays, outputs = inputs(past, rows if share else 0)
    context.set_shapes(shapes)
    context.run(arrays, outputs)
    return context.counts()


def refusal(label, call):
    try:
        call()
        print(f"{label}: taken")
    except Refused as e:
        print(f"{label}: {e}")


rng = np.random.default_rng(3)
for kind, tolerance, targets in (("float", 1e-4, TARGETS[:2]), ("float16", 1e-2, TARGETS[:1])):
    path, bundle = compile(f"decoder-{kind}", decoder(kind), targets=targets)

    def tokens(length):
        return [rng.standard_normal((2, length, 16)).astype(TYPES[kind])]

    decode(
        f"decoder of {kind}",
        path,
        bundle,
        kind,
        [(1, 1), (2, 2), (3, 3), (4, 4)],
        2,
        (2, 2, 0, 8),
        tokens,
        tolerance=tolerance,
        targets=targets,
    )
decoder_bundle = folder / "decoder-float.bundle"

# Rows along other dimensions, outputs that nothing else reads, several parts behind the cache.
for axis, dims in ((0, "[past,3,4]"), (1, "[3,past,4]"), (2, "[3,4,past]")):
    new = dims.replace("past", "length")
    path, bundle = compile(
        f"rows-{axis}",
        f"""g (float{new} x, float{dims} old) => (float{dims.replace("past", "total")} all) {{
        minus = Neg(x)
        all = Concat<axis = {axis}>(old, x, minus) }}""",
    )
    start = [3, 4]
    start.insert(axis, 0)

    def part(length):
        shape = [3, 4]
        shape.insert(axis, length)
        return [rng.standard_normal(shape).astype(np.float32)]

    decode(f"rows of dimension {axis}", path, bundle, "float", [(1, 0)], axis, tuple(start), part, (2, 1, 3))

# No row that is in place is moved: the counts do not know the past.
path, append = compile(
    "append",
    """g (float[batch,2,length,8] x, float[batch,2,past,8] old) => (float[batch,2,total,8] all) {
    all = Concat<axis = 2>(old, x) }""",
    options=("--dim", "batch=3", "--dim", "length=2"),
)


def append_inputs(past, rows):
    x = np.ones((3, 2, 2, 8), np.float32)
    old = np.ones((3, 2, rows or past, 8), np.float32)
    return [x.shape, (3, 2, past, 8)], [x, old], [old if rows else np.empty((3, 2, past + 2, 8), np.float32)]


new_bytes = 3 * 2 * 2 * 8 * 4
for past in (0, 16, 200):
    together, apart = (moved(append, past, 256, share, append_inputs) for share in (True, False))
    assert together == (new_bytes, new_bytes), together
    old_bytes = 3 * 2 * past * 8 * 4
    assert apart == (new_bytes + old_bytes, new_bytes + old_bytes), apart
    print(f"append to {past} rows: {sum(together)} bytes moved, {sum(apart)} apart")
for past in (8, 64, 200):
    sizes = [f"--dim={name}" for name in (f"past=0..4096:{past}", "batch=3", "length=2")]
    told = subprocess.run([fusec, "explain", path, "--json", *sizes], check=True, capture_output=True, text=True)
    explained = json.loads(told.stdout)
    saved = sum(c["saved_bytes"] for c in explained["caches"])
    together, apart = (moved(append, past, 256, share, append_inputs) for share in (True, False))
    assert saved == sum(apart) - sum(together), (saved, together, apart)
print("explain says what is saved: right")


def decoder_inputs(past, rows):
    x = np.ones((2, 1, 16), np.float32)
    caches = [np.ones((2, 2, rows or past, 8), np.float32) for _ in range(4)]
    outputs = [np.empty((2, 2, past + 1, 8), np.float32) for _ in range(4)]
    return [x.shape] + [(2, 2, past, 8)] * 4, [x] + caches, [np.empty_like(x)] + (caches if rows else outputs)


written = [moved(decoder_bundle, past, 256, True, decoder_inputs)[1] for past in (16, 17, 200)]
apart = [moved(decoder_bundle, past, 256, False, decoder_inputs)[1] for past in (16, 17, 200)]
row = 4 * 2 * 2 * 8 * 4  # of all caches
print(f"a row more of the past writes {apart[1] - apart[0] - (written[1] - written[0])} bytes less: {row}")

# TensorScatter and other scatters keep the cache's size.
for mode in ("linear", "circular"):
    path, bundle = compile(
        f"scatter-{mode}",
        f"""g (float[batch,2,length,8] x, int64[batch] at, float[batch,2,12,8] old)
            => (float[batch,2,12,8] all, float[batch,2,1,8] sum) {{
        all = TensorScatter<axis = 2, mode = "{mode}">(old, x, at)
        axes = Constant<value_ints = [2]>()
        sum = ReduceSum(all, axes) }}""",
        24,
    )
    for target in TARGETS:
        shared, dense = Context(bundle, target), Context(bundle, target)
        shared.share(1)
        old = rng.standard_normal((2, 2, 12, 8)).astype(np.float32)
        memory = old.copy()
        place = np.array([0, 3], np.int64)
        for length in (4, 1, 2):
            x = rng.standard_normal((2, 2, length, 8)).astype(np.float32)
            wanted = old.copy()
            for b in range(2):
                for r in range(length):
                    wanted[b, :, (place[b] + r) % 12] = x[b, :, r]
            shapes = [x.shape, place.shape, old.shape]
            sums = [np.empty((2, 2, 1, 8), np.float32) for _ in range(2)]
            made = np.empty_like(old)
            dense.set_shapes(shapes)
            dense.run([x, place, old], [made, sums[0]])
            shared.set_shapes(shapes)
            shared.run([x, place, memory], [memory, sums[1]])
            assert np.array_equal(made, wanted) and np.array_equal(memory, wanted), (mode, target, length)
            assert np.array_equal(*sums)
            old, place = wanted, place + length
            if mode == "circular":
                place = place + 5
        print(f"scatter, {mode}, on {target}: right")
path, bundle = compile(
    "scatter-alone",
    """g (float[1,2,length,8] x, int64[1] at, float[1,2,size,8] old) => (float[1,2,size,8] all) {
    all = TensorScatter<axis = 2>(old, x, at) }""",
    24,
)


def scatter_inputs(size, rows):
    x, at = np.ones((1, 2, 2, 8), np.float32), np.zeros(1, np.int64)
    old = np.ones((1, 2, size, 8), np.float32)
    return [x.shape, at.shape, old.shape], [x, at, old], [old if rows else np.empty_like(old)]


counts = [moved(bundle, size, 1, True, scatter_inputs) for size in (16, 512)]
assert counts[0] == counts[1], counts
apart = [moved(bundle, size, 1, False, scatter_inputs) for size in (16, 512)]
print(f"scatter into 512 rows moves {sum(apart[1]) - sum(counts[1])} bytes less: {2 * 512 * 2 * 8 * 4}")

# Other forms are no caches.
for label, text in (
    ("behind the new rows", "minus = Neg(x) all = Concat<axis = 0>(minus, old)"),
    ("of an input that changes", "minus = Neg(old) all = Concat<axis = 0>(minus, x)"),
):
    _, bundle = compile("other", f"g (float[n,4] x, float[past,4] old) => (float[total,4] all) {{ {text} }}")
    refusal(f"a cache {label}", lambda: Context(bundle, "x86-64-v3").share(8))
_, bundle = compile(
    "read",
    """g (float[2,2,4] x, float[2,8,4] old) => (float[2,8,4] all, float[2,8,4] minus) {
    all = TensorScatter<axis = 1>(old, x)
    minus = Neg(old) }""",
    24,
)
refusal("a cache that is read while it changes", lambda: Context(bundle, "x86-64-v3").share(8))

# What is refused, and leaves all as it was.
context = Context(append, "x86-64-v3")
refusal("room for -1", lambda: context.share(-1))
context.share(16)
x, memory = np.full((3, 2, 2, 8), 5, np.float32), np.zeros((3, 2, 16, 8), np.float32)
refusal("more rows than there is room", lambda: context.set_shapes([x.shape, (3, 2, 15, 8)]))
context.set_shapes([x.shape, (3, 2, 14, 8)])
refusal("another buffer", lambda: context.run([x, memory], [memory.copy()]))
refusal("a buffer without room", lambda: context.run([x, memory[:, :, :14].copy()], [None]))
refusal("less room than rows", lambda: context.share(15))
context.run([x, memory], [None])
assert (memory[:, :, :14] == 0).all() and (memory[:, :, 14:] == 5).all()
context.share(0)
flat = np.zeros(memory.size, np.float32)
old = flat[: 3 * 2 * 14 * 8].reshape(3, 2, 14, 8)
refusal("an overlap where none is shared", lambda: context.run([x, old], [flat.reshape(memory.shape)]))
context.share(16)
assert context.own(True, 1) == context.own(False, 0)
address, size = context.own(True, 1)
assert size == memory.nbytes
ctypes.memset(address, 0, size)
context.run([x, None], [None])
context.set_shapes([x.shape, (3, 2, 12, 8)])
assert context.own(True, 1) == (address, size)
values = np.ctypeslib.as_array((ctypes.c_float * (size // 4)).from_address(address)).reshape(memory.shape)
assert (values[:, :, :14] == 0).all() and (values[:, :, 14:] == 5).all()
print("own buffers: kept")

# The tool takes dense files, and writes such.
old = rng.standard_normal((3, 2, 5, 8)).astype(np.float32)
np.save(folder / "x.npy", x)
np.save(folder / "old.npy", old)
out = folder / "out"
subprocess.run(
    [fusert, "run", append, "--input", f"x={folder}/x.npy", "--input", f"old={folder}/old.npy", "--share-caches", "9",
     "--output-dir", out], check=True, capture_output=True)  # fmt: skip
assert np.array_equal(np.load(out / "all.npy"), np.concatenate([old, x], 2))
print("fusert run: right")
