"""Times one peer on one model, in a process of its own, and prints one line of JSON:
  peer.py ort|openvino|inductor|blas MODEL FEEDS.npz THREADS SECONDS [OUTPUTS.npz] [--again]
OUTPUTS takes what the peer computes, by position. inductor: torch.compile of the piece (pieces.py, operators.py) that
MODEL was made of, or of its products of matrices (products.py). blas: those by numpy. --again: measures once more for
each line on standard input."""

import functools
import json
import os
import statistics
import sys
import time

import numpy

import products

WARM_UP = 2
LEAST_RUNS = 5

# Each peer gives a function for one run, which gives one for the outputs of that run.


def onnxRuntime(model, feeds, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    # A few microseconds less than with arrays at each run.
    binding = session.io_binding()
    for name, value in feeds.items():
        binding.bind_cpu_input(name, value)
    for output in session.get_outputs():
        binding.bind_output(output.name)

    def run():
        session.run_with_iobinding(binding)
        return binding.copy_outputs_to_cpu

    def runWithArrays():
        outputs = session.run(None, feeds)
        return lambda: outputs

    try:
        run()
        run()
    except RuntimeError as error:
        if "Invalid rank for output" not in str(error):
            raise
        return runWithArrays  # the second run of a binding refuses an output whose rank is not the declared one
    return run


def openVino(model, feeds, threads):
    import openvino

    core = openvino.Core()
    network = core.read_model(model)
    network.reshape({name: value.shape for name, value in feeds.items()})
    compiled = core.compile_model(network, "CPU", {
        "INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32",
        "NUM_STREAMS": 1,
    })
    request = compiled.create_infer_request()
    values = {compiled.input(name): value for name, value in feeds.items()}

    def run():
        request.infer(values, share_inputs=True)
        return lambda: [request.get_output_tensor(i).data for i in range(len(compiled.outputs))]

    return run


def keepMemory():
    """Tensors that a peer makes for each run come from memory that is there already: large ones would be mapped, and
    their pages cleared, again and again."""
    import ctypes

    trimThreshold, mmapMax = -1, -4  # M_TRIM_THRESHOLD, M_MMAP_MAX of malloc.h
    libc = ctypes.CDLL(None)
    if not libc.mallopt(trimThreshold, 2**31 - 1) or not libc.mallopt(mmapMax, 0):
        sys.exit("malloc does not take the settings")


def productModule(model):
    """The products of matrices in the model as a module of PyTorch."""
    import torch

    names, constants = products.operands(model)

    areConstant = [name in constants for name in names]

    class Product(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = torch.nn.ParameterList(torch.tensor(constants[name]) for name in names if name in constants)

        def forward(self, *inputs):
            weights, rest = iter(self.weights), iter(inputs)
            return functools.reduce(torch.matmul, [next(weights if isConstant else rest) for isConstant in areConstant])

    return Product().eval()


def inductor(model, feeds, threads):
    os.environ["OMP_NUM_THREADS"] = str(threads)
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    os.environ.setdefault("TORCHINDUCTOR_CACHE_DIR", os.path.join(os.path.dirname(os.path.abspath(model)), "inductor"))
    import torch
    import torch._inductor.config

    import pieces
    import operators

    torch.set_num_threads(threads)
    torch._inductor.config.freezing = True  # weights are constants, as they are to the others
    name = os.path.basename(model).removesuffix(".onnx")
    if made := next((kind for kind in (pieces, operators) if name in kind.PIECES), None):
        network = made.make(name)
        module, inputs = network.module, network.inputs
    else:
        module, inputs = productModule(model), [name for name in products.operands(model)[0] if name in feeds]
    compiled = torch.compile(module, dynamic=False)
    arguments = [torch.from_numpy(feeds[name]) for name in inputs]

    def run():
        with torch.no_grad():
            output = compiled(*arguments)
        return lambda: [output.numpy()]

    return run


def blas(model, feeds, threads):
    import threadpoolctl

    threadpoolctl.threadpool_limits(threads, user_api="blas")
    names, constants = products.operands(model)
    first, *factors = [constants[name] if name in constants else feeds[name] for name in names]
    results, shape = [], first.shape
    for factor in factors:
        shape = (*shape[:-1], factor.shape[-1])
        results.append(numpy.empty(shape, numpy.float32))

    def run():
        left = first
        for factor, result in zip(factors, results):
            left = numpy.matmul(left, factor, out=result)
        return lambda: results[-1:]

    return run


def measured(run, seconds):
    times = []
    while len(times) < LEAST_RUNS or sum(times) < seconds:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return json.dumps(dict(median_ms=statistics.median(times) * 1e3, runs=len(times)))


def main():
    words = [word for word in sys.argv[1:] if word != "--again"]
    peer, model, feedsPath, threads, seconds, *rest = words
    keepMemory()
    feeds = dict(numpy.load(feedsPath))
    start = {"ort": onnxRuntime, "openvino": openVino, "inductor": inductor, "blas": blas}[peer]
    run = start(model, feeds, int(threads))
    for _ in range(WARM_UP):
        outputs = run()
    if rest:
        numpy.savez(rest[0], *outputs())
    print(measured(run, float(seconds)), flush=True)
    if "--again" in sys.argv:
        for _ in sys.stdin:
            # What another program left in the caches is not this one's, and its threads are awake.
            run()
            print(measured(run, float(seconds)), flush=True)


main()
