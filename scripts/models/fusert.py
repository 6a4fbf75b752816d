"""The runtime's C API (include/fusec/runtime.h) from Python, as far as the scripts need it: models, contexts, caches,
runs with arrays or with addresses of device memory."""

import ctypes as c
import functools
import json

import numpy

BFLOAT16 = "bfloat16"  # no type of numpy's own
TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", BFLOAT16,
         "float32", "float64")


class Failed(Exception):
    """A call's status and words."""

    def __init__(self, status, said):
        super().__init__(f"{status}: {said}")
        self.status = status


class LoadOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("target", c.c_char_p), ("verify", c.c_int), ("weights", c.c_int),
                ("device", c.c_int32), ("info_only", c.c_int32), ("log", c.c_void_p), ("log_user", c.c_void_p),
                ("public_key", c.c_void_p)]


class ContextOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("threads", c.c_int32), ("counters", c.c_int32), ("pool", c.c_void_p),
                ("memory", c.c_void_p), ("stream", c.c_void_p), ("sim_seed", c.c_uint64)]


class ModelInfo(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("name", c.c_char_p), ("producer", c.c_char_p), ("target", c.c_char_p),
                ("inputs", c.c_size_t), ("outputs", c.c_size_t), ("symbols", c.c_size_t), ("kernels", c.c_size_t),
                ("steps", c.c_size_t), ("weight_bytes", c.c_uint64), ("code_bytes", c.c_uint64),
                ("programs", c.c_size_t), ("inferred", c.c_size_t), ("size_rules", c.c_size_t),
                ("computed", c.c_size_t), ("caches", c.c_size_t)]


class CacheInfo(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("input", c.c_size_t), ("output", c.c_size_t), ("axis", c.c_int32),
                ("grows", c.c_int32)]


class ValueInfo(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("name", c.c_char_p), ("type", c.c_int), ("rank", c.c_int32),
                ("dims", c.c_void_p)]


class Shape(c.Structure):
    _fields_ = [("rank", c.c_int32), ("dims", c.POINTER(c.c_int64))]


class Buffer(c.Structure):
    _fields_ = [("data", c.c_void_p), ("bytes", c.c_size_t)]


def sized(struct, **members):
    return struct(struct_size=c.sizeof(struct), **members)


class Library:
    def __init__(self, path):
        self.calls = c.CDLL(path)
        self.calls.fusert_last_error.restype = self.calls.fusert_status_name.restype = c.c_char_p

    def call(self, name, *arguments):
        status = getattr(self.calls, "fusert_" + name)(*arguments)
        if status:
            raise Failed(self.calls.fusert_status_name(status).decode(), self.calls.fusert_last_error().decode())


class Model:
    """A program of a bundle. target: of fusert_load_options."""

    def __init__(self, library, path, target=None):
        self.library, self.handle = library, c.c_uint64()
        options = sized(LoadOptions, target=target.encode() if target else None)
        library.call("load_file", path.encode(), c.byref(options), c.byref(self.handle))
        info = sized(ModelInfo)
        library.call("get_model_info", self.handle, c.byref(info))
        self.target = info.target.decode()
        self.inputs = [self.value("input", i) for i in range(info.inputs)]
        self.outputs = [self.value("output", i) for i in range(info.outputs)]
        self.caches = [self.cache(i) for i in range(info.caches)]

    def value(self, which, index):
        """Name and element type."""
        info = sized(ValueInfo)
        self.library.call(f"get_{which}_info", self.handle, c.c_size_t(index), c.byref(info))
        return info.name.decode(), TYPES[info.type]

    def cache(self, index):
        """Names of an input and of the output that continues it, the axis of rows, whether there are more of them."""
        info = sized(CacheInfo)
        self.library.call("get_cache_info", self.handle, c.c_size_t(index), c.byref(info))
        return self.inputs[info.input][0], self.outputs[info.output][0], info.axis, bool(info.grows)

    def unload(self):
        self.library.call("unload", self.handle)


class Context:
    """stream: of the GPU's driver, as a number. counters: of simulated GPUs."""

    def __init__(self, model, stream=None, threads=1, counters=False):
        self.model, self.library, self.handle = model, model.library, c.c_uint64()
        options = sized(ContextOptions, stream=stream, threads=threads, counters=int(counters))
        self.library.call("context_create", model.handle, c.byref(options), c.byref(self.handle))

    def setShapes(self, shapes):
        """One a model's input."""
        self.library.call("set_shapes", *self.shapeArguments(shapes))

    def shapeArguments(self, shapes):
        dims = [(c.c_int64 * max(len(shape), 1))(*shape) for shape in shapes]
        array = (Shape * len(shapes))(*(Shape(len(shape), values) for shape, values in zip(shapes, dims)))
        return self.handle, array, c.c_size_t(len(shapes))

    def preparedShapes(self, shapes, call="set_shapes"):
        """The same as a function that does no more than call the runtime, and gives the status. call: another of its
        functions."""
        return functools.partial(getattr(self.library.calls, "fusert_" + call), *self.shapeArguments(shapes))

    def shareCaches(self, rows):
        self.library.call("share_caches", self.handle, c.c_int64(rows))

    def counters(self):
        """What each kernel has done so far: a dictionary for each."""
        text = c.c_char_p()
        self.library.call("counters_json", self.handle, c.byref(text))
        return json.loads(text.value)["kernels"]

    def outputShape(self, index):
        dims, rank = (c.c_int64 * 64)(), c.c_int32(64)
        self.library.call("get_output_shape", self.handle, c.c_size_t(index), dims, c.byref(rank))
        return list(dims[:rank.value])

    def runAt(self, inputs, outputs):
        """Addresses and bytes of all inputs and outputs."""
        given, taken = (Buffer * len(inputs))(*inputs), (Buffer * len(outputs))(*outputs)
        self.library.call("run", self.handle, given, c.c_size_t(len(inputs)), taken, c.c_size_t(len(outputs)))

    def prepared(self, inputs, outputs):
        """The same as a function that does no more than call the runtime."""
        given, taken = (Buffer * len(inputs))(*inputs), (Buffer * len(outputs))(*outputs)
        run, counts = self.library.calls.fusert_run, (c.c_size_t(len(inputs)), c.c_size_t(len(outputs)))

        def again():
            if run(self.handle, given, counts[0], taken, counts[1]):
                raise Failed("run", self.library.calls.fusert_last_error().decode())

        return again

    def run(self, feeds):
        """Values of all inputs by name; gives those of the outputs by name. bfloat16 comes as its 16 bits."""
        values = [numpy.ascontiguousarray(feeds[name]) for name, _ in self.model.inputs]
        inputs = (Buffer * len(values))(*((value.ctypes.data, value.nbytes) for value in values))
        self.library.call("run", self.handle, inputs, c.c_size_t(len(values)), None, c.c_size_t(0))
        results = {}
        for index, (name, kind) in enumerate(self.model.outputs):
            data, size = c.c_void_p(), c.c_size_t()
            self.library.call("output_buffer", self.handle, c.c_size_t(index), c.byref(data), c.byref(size))
            kind = numpy.dtype("uint16" if kind == BFLOAT16 else kind)
            shape = self.outputShape(index)
            count = int(numpy.prod(shape))
            values = (c.c_uint8 * (count * kind.itemsize)).from_address(data.value) if count else b""
            results[name] = numpy.frombuffer(values, kind, count).reshape(shape).copy()
        return results

    def destroy(self):
        self.library.call("context_destroy", self.handle)
