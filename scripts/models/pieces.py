"""The pieces of scripts/bench-stitch: what stands between the contractions of networks, bound by memory."""

import torch
from torch import nn
from torch.nn import functional

from network import Network, Picked


class Norm(nn.Module):
    """x + bias + residual, its layer norm, GELU of that: [rows, columns], each step on request."""

    def __init__(self, columns, sums, norm, gelu):
        super().__init__()
        self.bias = nn.Parameter(torch.randn(columns)) if sums else None
        self.norm = nn.LayerNorm(columns) if norm else None
        if norm:
            nn.init.normal_(self.norm.weight)
            nn.init.normal_(self.norm.bias)
        self.gelu = gelu

    def forward(self, x, residual=None):
        if self.bias is not None:
            x = x + self.bias + residual
        if self.norm is not None:
            x = self.norm(x)
        return functional.gelu(x) if self.gelu else x


class SqueezeExcite(nn.Module):
    """The mean of each channel through two 1x1 convolutions scales the channel: [1, channels, height, width]."""

    def __init__(self, channels, reduced):
        super().__init__()
        self.down, self.up = nn.Conv2d(channels, reduced, 1), nn.Conv2d(reduced, channels, 1)

    def forward(self, x):
        return x * torch.sigmoid(self.up(functional.silu(self.down(x.mean((2, 3), keepdim=True)))))


class Chain(nn.Module):
    """Five element-wise operations, with a scale and a shift for each of 1024 columns."""

    def __init__(self):
        super().__init__()
        self.scale, self.shift = nn.Parameter(torch.randn(1024)), nn.Parameter(torch.randn(1024))

    def forward(self, x):
        y = torch.relu(x * self.scale + self.shift)
        return (y - 0.5) * x


def rowWise(module, rows, columns, inputs=1):
    names = ["x", "residual"][:inputs]
    return Network(module.eval(), tuple(torch.randn(rows, columns) for _ in names), names, ["y"])


def pickedLabels(rows, columns):
    """The logarithm of each label's probability, as a loss takes it."""
    picked = Picked(None, lambda _, x, labels: torch.gather(torch.log_softmax(x, -1), 1, labels))
    arguments = (torch.randn(rows, columns), torch.randint(0, columns, (rows, 1)))
    return Network(picked, arguments, ["x", "labels"], ["y"])


def squeezeExcite(height, width, channels, reduced):
    return Network(SqueezeExcite(channels, reduced).eval(), (torch.randn(1, channels, height, width),), ["x"], ["y"])


def softmax(logarithm=False):
    return Picked(None, lambda _, x: (torch.log_softmax if logarithm else torch.softmax)(x, -1))


def rmsNorm(columns):
    module = nn.RMSNorm(columns)
    nn.init.normal_(module.weight)
    return module


SQUEEZE_EXCITE = {  # height, width, channels, reduced: the modules of EfficientNet-B0
    "M0": (112, 112, 32, 8), "M1": (56, 56, 96, 4), "M2": (56, 56, 144, 6), "M3": (28, 28, 144, 6),
    "M4": (28, 28, 240, 10), "M5": (14, 14, 240, 10), "M6": (14, 14, 480, 20), "M7": (14, 14, 672, 28),
    "M8": (7, 7, 672, 28), "M9": (7, 7, 1152, 48),
}
# Elements: 4 KiB in and 4 KiB out for a first-level cache, up to 256 MiB each for the memory.
CHAINS = {"1k": 1 << 10, "16k": 1 << 14, "128k": 1 << 17, "1m": 1 << 20, "4m": 1 << 22, "16m": 1 << 24, "64m": 1 << 26}

PIECES = {}  # name -> what makes it of so many rows, and how many it has
for rows, columns in ((64, 768), (4096, 1024)):
    size = f"{rows}x{columns}"
    PIECES |= {
        f"bias-residual-{size}": (lambda r, c=columns: rowWise(Norm(c, True, False, False), r, c, 2), rows),
        f"layernorm-{size}": (lambda r, c=columns: rowWise(Norm(c, False, True, False), r, c), rows),
        f"gelu-{size}": (lambda r, c=columns: rowWise(Norm(c, False, False, True), r, c), rows),
        f"bias-residual-layernorm-gelu-{size}": (
            lambda r, c=columns: rowWise(Norm(c, True, True, True), r, c, 2), rows),
        f"rmsnorm-{size}": (lambda r, c=columns: rowWise(rmsNorm(c), r, c), rows),
        f"softmax-{size}": (lambda r, c=columns: rowWise(softmax(), r, c), rows),
    }
PIECES["logsoftmax-1024x30522"] = lambda r: rowWise(softmax(True), r, 30522), 1024
PIECES["logsoftmax-gather-1024x30522"] = lambda r: pickedLabels(r, 30522), 1024
PIECES |= {f"se-{name}": (lambda _, s=sizes: squeezeExcite(*s), 1) for name, sizes in SQUEEZE_EXCITE.items()}
PIECES |= {f"chain-{name}": (lambda r: rowWise(Chain(), r, 1024), n // 1024) for name, n in CHAINS.items()}


def make(name, rows=None):
    """The piece with the same weights in every process; with fewer rows, if said."""
    torch.manual_seed(0)
    made, own = PIECES[name]
    return made(rows or own)


def rowsOf(name):
    return PIECES[name][1]
