"""What scripts/export-models exports: a module with what it is called with."""

from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class Network:
    module: nn.Module
    arguments: tuple
    inputs: list
    outputs: list
    symbols: dict = field(default_factory=dict)  # input -> {axis: name of the symbolic dimension}
    scripted: bool = False  # through the exporter of TorchScript, which keeps If, Loop and LSTM


class Picked(nn.Module):
    """A module of which one function's result counts."""

    def __init__(self, module, function):
        super().__init__()
        self.module, self.function = module, function

    def forward(self, *arguments):
        return self.function(self.module, *arguments)
