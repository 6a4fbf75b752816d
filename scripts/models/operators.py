"""The pieces of scripts/bench-convs: attention, convolutions by themselves and in chains of two, and other operators
that stand alone in networks."""

import torch
from torch import nn
from torch.nn import functional

import chains
from network import Network, Picked

CONVOLUTIONS = {  # shape of the input -> channels, window and the rest of a convolution
    "3x3-512x7x7": ((1, 512, 7, 7), (512, 3), dict(padding=1)),
    "3x3-256x14x14": ((1, 256, 14, 14), (256, 3), dict(padding=1)),
    "3x3-128x28x28": ((1, 128, 28, 28), (128, 3), dict(padding=1)),
    "3x3-64x56x56": ((1, 64, 56, 56), (64, 3), dict(padding=1)),
    "stem-7x7": ((1, 3, 224, 224), (64, 7), dict(padding=3, stride=2)),
    "depthwise-5x5-240x28x28": ((1, 240, 28, 28), (240, 5), dict(padding=2, groups=240)),
    "depthwise-7x7-96x56x56": ((1, 96, 56, 56), (96, 7), dict(padding=3, groups=96)),
    "1d-512x3199-k3-s2": ((1, 512, 3199), (512, 3), dict(stride=2)),
    "1d-128x3199-k3-s2": ((1, 128, 3199), (128, 3), dict(stride=2)),
    "1d-768x149-16-groups-k128": ((1, 768, 149), (768, 128), dict(padding=64, groups=16)),
}
TRANSPOSED = {
    "transposed-2x2-s2": ((1, 128, 56, 56), (64, 2), dict(stride=2)),
    "transposed-4x4-s2": ((1, 128, 56, 56), (64, 4), dict(stride=2, padding=1)),
}


def attention(heads, rows, length, columns, values, masked=False):
    def compute(_, query, key, value, mask=0):
        return torch.softmax(query @ key.transpose(-1, -2) / columns**0.5 + mask, -1) @ value

    arguments = [torch.randn(1, heads, *shape) for shape in ((rows, columns), (length, columns), (length, values))]
    if masked:
        arguments.append(torch.zeros(1, 1, 1, length).masked_fill_(torch.arange(length) >= length - 100, -1e4))
    return Network(Picked(None, compute), tuple(arguments), ["query", "key", "value", "mask"][:len(arguments)], ["y"])


def of(module, *shape):
    return Network(module.eval(), (torch.randn(shape),), ["x"], ["y"])


def convolutions(shape, first, second, relu):
    """Both as wide and high as they are with padding; strides are the first one's and the second one's."""
    layers, channels = [], shape[0]
    for out, stride, window in (first, second):
        layers += [nn.Conv2d(channels, out, window, stride, window // 2), *([nn.ReLU()] if relu else [])]
        channels = out
    return of(nn.Sequential(*layers), 1, *shape)


def convolution(shape, channels, window, isTransposed=False, **options):
    kind = nn.Conv1d if len(shape) == 3 else nn.ConvTranspose2d if isTransposed else nn.Conv2d
    return of(kind(shape[1], channels, window, **options), *shape)


def called(function, *shape):
    return of(Picked(None, lambda _, x: function(x)), *shape)


def lstm(batch, hidden, steps):
    module = Picked(nn.LSTM(hidden, hidden), lambda module, x: module(x)[0])
    return Network(module.eval(), (torch.randn(steps, batch, hidden),), ["x"], ["y"], scripted=True)


def gridSample(channels, size):
    steps = torch.linspace(-1, 1, size)
    grid = torch.stack(torch.meshgrid(steps, steps, indexing="xy"), -1)[None] + 0.1 * torch.randn(1, size, size, 2)
    sample = Picked(None, lambda _, x, grid: functional.grid_sample(x, grid, align_corners=False))
    return Network(sample, (torch.randn(1, channels, size, size), grid), ["x", "grid"], ["y"])


PIECES = {f"attention-{name}": (lambda s=sizes: attention(*s)) for name, sizes in chains.ATTENTION.items()}
PIECES["attention-bert"] = lambda: attention(*chains.BERT, True)
PIECES |= {f"chain-{name}": (lambda s=sizes: convolutions(*s, False)) for name, sizes in chains.CONVOLUTIONS.items()}
PIECES |= {f"chain-{name}-relu": (lambda s=sizes: convolutions(*s, True))
           for name, sizes in chains.CONVOLUTIONS.items()}
PIECES |= {f"conv-{name}": (lambda s=shape, w=weights, o=options: convolution(s, *w, **o))
           for name, (shape, weights, options) in CONVOLUTIONS.items()}
PIECES |= {f"conv-{name}": (lambda s=shape, w=weights, o=options: convolution(s, *w, True, **o))
           for name, (shape, weights, options) in TRANSPOSED.items()}
PIECES |= {
    "lstm-16x96": lambda: lstm(16, 96, 50),
    "topk-10-of-5000": lambda: called(lambda x: torch.topk(x, 10)[0], 1, 5000),
    "transpose-2048x2048": lambda: called(lambda x: x.transpose(0, 1).contiguous(), 2048, 2048),
    "transpose-to-channels-last": lambda: called(lambda x: x.permute(0, 2, 3, 1).contiguous(), 8, 64, 56, 56),
    "gridsample-32x64x64": lambda: gridSample(32, 64),
    "cumsum-512x1024": lambda: called(lambda x: torch.cumsum(x, -1), 512, 1024),
    "maxpool-3x3-s2": lambda: called(lambda x: functional.max_pool2d(x, 3, 2, 1), 1, 64, 112, 112),
}


def make(name):
    """The piece with the same weights in every process."""
    torch.manual_seed(0)
    return PIECES[name]()
