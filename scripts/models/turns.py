"""Bundles of ours and peers on one model, measured in turn and compared with ONNX Runtime's numbers."""

import argparse
import filecmp
import fnmatch
import importlib.util
import os
import sys
from contextlib import ExitStack

import numpy

import bundle
import environment
import products
from timing import Peer, leastMs, outputOf, roofline

TOLERANCE = 1e-4
PACKAGES = {"ort": "onnxruntime", "openvino": "openvino", "inductor": "torch", "blas": "threadpoolctl"}


def installed(peers):
    """Those of the peers that can run here; tells of the others."""
    missing = [who for who in peers if not importlib.util.find_spec(PACKAGES[who])]
    for who in missing:
        print(f"== no {who}: {PACKAGES[who]} is not installed here; scripts/bench-models makes an environment with it",
              file=sys.stderr)
    return [who for who in peers if who not in missing]


def optionParser(description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="names or patterns, such as 'NAME,OTHER-*'")
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement")
    parser.add_argument("--json", help="file for all figures")
    parser.add_argument("--threads", type=lambda text: [int(word) for word in text.split(",")], default=[1, 2],
                        help="numbers of threads to measure with, such as 1,2")
    parser.add_argument("--preset", default="release", help="folder under build/ with fusec and fusert")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    return parser


def chosen(names, only):
    """Those of the names that fit one of the patterns, which commas separate; all without patterns."""
    patterns = only.split(",") if only else ["*"]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            sys.exit(f"--only: nothing is named {pattern}; --list prints the names")
    return [name for name in names if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)]


def benchCommand(made, inputs, threads, seconds):
    return [environment.program("fusert"), "bench", made, "--json", "--threads", threads, "--min-time", seconds,
            *inputs]


class Model:
    """A model of one output in a file of this name in a folder: `save` writes it to a path, and gives the values of its
    inputs and the name of its output; `demands` gives flop and bytes of it (flops.py)."""

    def __init__(self, parent, name, save, demands):
        self.parent, self.folder = parent, os.path.join(parent, name)
        self.path, self.feedsPath = f"{self.folder}.onnx", os.path.join(self.folder, "feeds.npz")
        os.makedirs(self.folder, exist_ok=True)
        self.feeds, self.output = save(self.path)
        self.flop, self.touched = demands(self.path, self.feeds)
        numpy.savez(self.feedsPath, **self.feeds)
        self.inputs = bundle.saveInputs(os.path.join(self.folder, "in"), self.feeds)

    def outputOfPeer(self, who):
        with numpy.load(os.path.join(self.folder, f"{who}.npz")) as values:
            return values["arr_0"]

    def outputOfOurs(self, made, threads):
        run = bundle.run(environment.program("fusert"), made, self.feeds, os.path.join(self.folder, "run"),
                         "--threads", threads)
        return run(self.output)

    def share(self, roof, ms):
        return leastMs(self.flop, self.touched, roof) / ms

    def inTurn(self, plans, peers, threads, arguments):
        """Of each plan (name -> bundle) and of each peer: milliseconds, a list of the repetitions, in each of which all
        run one after the other; and how far its output is from ONNX Runtime's. Then the roofline: the best before and
        behind them, since what else the machine does only takes from it. Equal bundles are measured once."""
        files = {}
        for name, made in plans.items():
            files[name] = next((file for file in files.values() if filecmp.cmp(file, made, shallow=False)), made)
        times = {who: [] for who in (*files.values(), *peers)}
        with ExitStack() as stack:
            started = {who: stack.enter_context(Peer(who, self.path, self.feedsPath, threads, arguments.seconds,
                                                     os.path.join(self.folder, f"{who}.npz"))) for who in peers}
            expected = self.outputOfPeer("ort")
            outputs = {who: self.outputOfPeer(who) for who in peers}
            outputs |= {name: self.outputOfOurs(made, threads) for name, made in plans.items()}
            roofs = [roofline(self.parent, threads, self.touched)]
            for _ in range(arguments.repetitions):
                for made in dict.fromkeys(files.values()):
                    command = benchCommand(made, self.inputs, threads, arguments.seconds)
                    times[made].append(outputOf(command, threads)["median_ms"])
                for who, peer in started.items():
                    times[who].append(peer.measure()["median_ms"])
            roofs.append(roofline(self.parent, threads, self.touched))
        return ({**{name: times[made] for name, made in files.items()}, **{who: times[who] for who in peers}},
                {who: bundle.relativeL2(output, expected) for who, output in outputs.items()},
                {rate: max(roof[rate] for roof in roofs) for rate in roofs[0]})


def productModel(parent, name, shapes, weights=()):
    """A product of operands of these shapes (products.py)."""
    return Model(parent, name, lambda path: products.save(path, shapes, weights), lambda *_: products.demands(shapes))
