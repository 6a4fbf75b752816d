"""Networks with every size symbolic, as people export them, by each of PyTorch's exporters."""

import logging
import re
import warnings
from dataclasses import dataclass, field

import numpy
import onnx
import onnxruntime
import torch
from torch import nn

import symbols
from exported import OPSET, tidy
from network import Picked

EXPORTERS = ("dynamo", "torchscript")
SAMPLE = {"batch": 2, "length": 7, "past": 5, "height": 64, "width": 96}  # sizes that an exporter sees, by kind
TRIALS = 4  # sizes at which a file must give what PyTorch gives
TOLERANCE = 2e-3


@dataclass
class Dynamic:
    """A module of which `function(module, *arguments)` is exported; `inputs` and `symbols` as symbols.py describes."""
    module: nn.Module
    function: callable
    symbols: dict
    inputs: dict
    outputs: dict  # name -> shape as in inputs; None where data decide
    skipped: dict = field(default_factory=dict)  # exporter -> why it is of no use for this network

    def description(self):
        return {"symbols": self.symbols, "inputs": self.inputs}

    def sample(self):
        return {name: SAMPLE[one["kind"]] * one.get("unit", 1) for name, one in self.symbols.items()}


def lively(module, gain=1.5):
    """Weights that let what an input holds reach the outputs; those that an untrained network starts with let sums of
    attention come out alike for all tokens. What decays over time in a Mamba layer stays."""
    for name, parameter in module.named_parameters():
        last = name.split(".")[-1]
        if any(word in name for word in ("A_log", "dt_proj")) or last == "D":
            continue
        if parameter.dim() >= 2:
            nn.init.normal_(parameter, std=gain * max(parameter[0].numel(), 1) ** -0.5)
        elif last == "weight":
            nn.init.uniform_(parameter, 0.5, 1.5)
        else:
            nn.init.normal_(parameter, std=0.2)
    return module.eval()


def axes(shape):
    """Axis -> the name that a user would give its dimension."""
    return {axis: re.sub(r"\W+", "_", entry.replace("+", "plus").replace("*", "times"))
            for axis, entry in enumerate(shape or ()) if isinstance(entry, str)}


def tensors(network, sizes, seed=0):
    return tuple(torch.from_numpy(value) for value in symbols.feeds(network.description(), sizes, seed).values())


def export(network, exporter, path):
    """Writes the file, and gives what stands beside it; raises where the exporter cannot."""
    arguments = tensors(network, network.sample())
    names, results = list(network.inputs), list(network.outputs)
    options = dict(input_names=names, output_names=results, opset_version=OPSET, verbose=False)
    if exporter == "dynamo":
        # forward(*arguments) of Picked: one entry that holds all of them
        options.update(dynamo=True, external_data=False, dynamic_shapes=(tuple(
            {axis: torch.export.Dim.AUTO for axis in axes(value["shape"])} for value in network.inputs.values()
        ),))
    else:
        named = {name: axes(value["shape"]) for name, value in network.inputs.items()}
        named.update((name, axes(shape)) for name, shape in network.outputs.items())
        options.update(dynamo=False, dynamic_axes={name: given for name, given in named.items() if given})
    logging.disable(logging.WARNING)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(Picked(network.module, network.function).eval(), arguments, path, **options)
    logging.disable(logging.NOTSET)
    tidy(path)
    description = {"exporter": exporter, **settled(network.description(), path)}
    compareWithTorch(network, description, path)
    return description


def settled(description, path):
    """The description, where the exporter made a size constant with that constant as the only legal one."""
    found = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim]
             for value in onnx.load(path, load_external_data=False).graph.input}
    if missing := set(description["inputs"]) - set(found):
        raise RuntimeError(f"no input {', '.join(sorted(missing))} in the file")
    fixed = {entry: size for name, value in description["inputs"].items()
             for entry, size in zip(value["shape"], found[name]) if isinstance(entry, str) and size}
    if unknown := set(fixed) - set(description["symbols"]):
        raise RuntimeError(f"a constant for {', '.join(sorted(unknown))}")
    return {**description, "symbols": {
        name: {**one, "least": fixed[name], "most": fixed[name], "fixed": True} if name in fixed else one
        for name, one in description["symbols"].items()
    }}


def compareWithTorch(network, description, path):
    """The file gives at other sizes than those of the export what the module gives."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    for sizes in symbols.draw(description, TRIALS, 1, cap=96):
        given = symbols.feeds(description, sizes, 1)
        try:
            got = session.run(list(network.outputs), given)
        except Exception as error:
            raise RuntimeError(f"ONNX Runtime refuses the file at {symbols.text(sizes)}: {str(error)[:300]}") from None
        with torch.no_grad():
            own = network.function(network.module, *(torch.from_numpy(value) for value in given.values()))
        own = own if isinstance(own, tuple) else (own,)
        for name, value, expected in zip(network.outputs, got, own, strict=True):
            expected = expected.numpy()
            if value.shape != expected.shape:
                raise RuntimeError(f"{name} has shape {value.shape} at {symbols.text(sizes)}, {expected.shape} in "
                                   "PyTorch")
            if not numpy.allclose(value, expected, rtol=TOLERANCE, atol=TOLERANCE):
                raise RuntimeError(f"{name} differs at {symbols.text(sizes)} from PyTorch's by "
                                   f"{numpy.abs(value - expected).max():.1e}")
