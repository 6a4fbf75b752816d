"""Times one peer on one model, in a process of its own, and prints one line of JSON:
  peer.py ort|openvino MODEL FEEDS.npz THREADS SECONDS [OUTPUTS.npz]
OUTPUTS takes what the peer computes, by position."""

import json
import statistics
import sys
import time

import numpy

WARM_UP = 2
LEAST_RUNS = 5


def onnxRuntime(model, feeds, threads):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, feeds)


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
        return [request.get_output_tensor(i).data for i in range(len(compiled.outputs))]

    return run


def main():
    peer, model, feedsPath, threads, seconds, *rest = sys.argv[1:]
    feeds = dict(numpy.load(feedsPath))
    run = {"ort": onnxRuntime, "openvino": openVino}[peer](model, feeds, int(threads))
    for _ in range(WARM_UP):
        outputs = run()
    if rest:
        numpy.savez(rest[0], *outputs)
    times = []
    while len(times) < LEAST_RUNS or sum(times) < float(seconds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    print(json.dumps(dict(median_ms=statistics.median(times) * 1e3, runs=len(times))))


main()
