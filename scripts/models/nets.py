"""The networks of scripts/export-models, each in its real size and in a tiny one, with random weights."""

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


def bert(tiny, symbolic):
    """transformers' BertModel: [batch, seq] token numbers and mask -> [batch, seq, width]."""
    import transformers

    sizes = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, vocab_size=200,
                 max_position_embeddings=64) if tiny else {}
    config = transformers.BertConfig(**sizes)
    config._attn_implementation = "eager"
    module = transformers.BertModel(config, add_pooling_layer=False).eval()
    batch, length = (2, 12) if symbolic else (1, 16 if tiny else 128)
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[-1, length * 3 // 4:] = 0
    arguments = (torch.randint(0, config.vocab_size, (batch, length)), mask)
    names = ["input_ids", "attention_mask"]
    symbols = {name: {0: "batch", 1: "seq"} for name in names} if symbolic else {}
    picked = Picked(module, lambda m, ids, mask: m(input_ids=ids, attention_mask=mask).last_hidden_state)
    return Network(picked, arguments, names, ["last_hidden_state"], symbols)


class Gpt2Decode(nn.Module):
    """One more token with a cache of keys and values, GPT-2's layers. The caches, [layers, batch, heads, past, width of
    a head], come out one longer."""

    def __init__(self, layers, width, heads, vocabulary, positions):
        super().__init__()
        self.heads = heads
        self.token, self.position = nn.Embedding(vocabulary, width), nn.Embedding(positions, width)
        self.layers = nn.ModuleList(
            nn.ModuleDict(dict(
                ln1=nn.LayerNorm(width), qkv=nn.Linear(width, 3 * width), out=nn.Linear(width, width),
                ln2=nn.LayerNorm(width), up=nn.Linear(width, 4 * width), down=nn.Linear(4 * width, width),
            ))
            for _ in range(layers)
        )
        self.last = nn.LayerNorm(width)

    def forward(self, ids, position, pastK, pastV):
        x = self.token(ids) + self.position(position)
        batch, length, width = x.shape
        keys, values = [], []
        for index, layer in enumerate(self.layers):
            q, k, v = (
                part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                for part in layer["qkv"](layer["ln1"](x)).split(width, 2)
            )
            keys.append(torch.cat([pastK[index], k], 2))
            values.append(torch.cat([pastV[index], v], 2))
            weights = torch.softmax(q @ keys[-1].transpose(2, 3) * (width // self.heads) ** -0.5, -1)
            x = x + layer["out"]((weights @ values[-1]).transpose(1, 2).reshape(batch, length, width))
            x = x + layer["down"](nn.functional.gelu(layer["up"](layer["ln2"](x)), approximate="tanh"))
        return self.last(x) @ self.token.weight.T, torch.stack(keys), torch.stack(values)


def gpt2Decode(tiny):
    layers, width, heads, vocabulary, past = (2, 32, 2, 200, 24) if tiny else (12, 768, 12, 50257, 512)
    module = Gpt2Decode(layers, width, heads, vocabulary, 2 * past)
    cache = [torch.randn(layers, 1, heads, past, width // heads) for _ in range(2)]
    arguments = (torch.randint(0, vocabulary, (1, 1)), torch.tensor([[past]]), *cache)
    return Network(module.eval(), arguments, ["ids", "position", "past_k", "past_v"],
                   ["logits", "present_k", "present_v"])


def settled(module, size):
    """Batch normalisations get the mean and variance of random images, as after training; without them the signal of a
    random network vanishes."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.momentum = None  # plain average
            nn.init.uniform_(part.weight, 0.5, 1.5)
            nn.init.normal_(part.bias, std=0.2)
    module.train()
    with torch.no_grad():
        module(torch.randn(8, 3, size, size))
    return module.eval()


def narrowResNet(divisor, classes):
    """torchvision's ResNet with one bottleneck a stage and `divisor` times fewer channels."""
    from torchvision.models import resnet

    class Narrow(resnet.ResNet):
        def _make_layer(self, block, planes, *arguments, **options):
            if planes == 64:
                self.inplanes = 64 // divisor
            return super()._make_layer(block, planes // divisor, *arguments, **options)

    module = Narrow(resnet.Bottleneck, [1, 1, 1, 1])
    module.conv1 = nn.Conv2d(3, 64 // divisor, 7, stride=2, padding=3, bias=False)
    module.bn1 = nn.BatchNorm2d(64 // divisor)
    module.fc = nn.Linear(2048 // divisor, classes)
    return module


def resnet50(tiny):
    from torchvision import models

    module, size = (narrowResNet(16, 10), 64) if tiny else (models.resnet50(weights=None), 224)
    return Network(settled(module, size), (torch.randn(1, 3, size, size),), ["image"], ["logits"])


def mobilenetV2(tiny):
    from torchvision import models

    if tiny:
        stages = [[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 2, 2], [6, 64, 1, 2]]
        module = models.MobileNetV2(num_classes=10, width_mult=0.25, inverted_residual_setting=stages, round_nearest=4)
    else:
        module = models.mobilenet_v2(weights=None)
    size = 32 if tiny else 224
    return Network(settled(module, size), (torch.randn(1, 3, size, size),), ["image"], ["logits"])


class Lstm(nn.Module):
    """Layers of LSTM over [steps, batch, width]; weights large enough that the signal reaches the last one."""

    def __init__(self, width, layers):
        super().__init__()
        self.lstm = nn.LSTM(width, width, layers)
        for name, parameter in self.lstm.named_parameters():
            if "weight" in name:
                nn.init.normal_(parameter, std=1.5 * width ** -0.5)

    def forward(self, x):
        return self.lstm(x)[0]


def lstm10(tiny):
    width, layers, steps = (16, 3, 10) if tiny else (256, 10, 100)
    return Network(Lstm(width, layers).eval(), (torch.randn(steps, 1, width),), ["x"], ["y"], scripted=True)


class Mmoe(nn.Module):
    """Mixture of experts with a gate and a tower a task: [batch, inputs] -> [batch, 2] a task."""

    def __init__(self, inputs, experts, width, tasks):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(inputs, width) for _ in range(experts))
        self.gates = nn.ModuleList(nn.Linear(inputs, experts) for _ in range(tasks))
        self.towers = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 8), nn.ReLU(), nn.Linear(8, 2)) for _ in range(tasks)
        )
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=1.5 * parameter.shape[1] ** -0.5)
        # What all inputs have in common after a ReLU would drown what sets them apart.
        for parameter in self.towers.parameters():
            if parameter.dim() == 2:
                parameter.data -= parameter.data.mean(1, keepdim=True)

    def forward(self, x):
        experts = torch.stack([torch.relu(expert(x)) for expert in self.experts], 2)
        return tuple(
            tower((experts * torch.softmax(gate(x), -1).unsqueeze(1)).sum(2)).softmax(-1)
            for gate, tower in zip(self.gates, self.towers)
        )


def mmoe(tiny):
    inputs, experts = (49, 4) if tiny else (499, 8)
    return Network(Mmoe(inputs, experts, 16, 2).eval(), (torch.randn(1, inputs),), ["x"], ["task0", "task1"])


class ControlFlow(nn.Module):
    """An If on a computed value, then a Loop whose number of rounds is an input."""

    def __init__(self, width: int):
        super().__init__()
        self.first, self.second, self.round = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x, rounds):
        if bool(x.mean() > 0):
            y = torch.relu(self.first(x))
        else:
            y = torch.tanh(self.second(x)) * 2.0
        for index in range(int(rounds)):
            y = y + torch.sin(self.round(y) + float(index))
        return y


def controlFlow(tiny):
    rows, width = (6, 16) if tiny else (128, 256)
    module = torch.jit.script(ControlFlow(width).eval())
    return Network(module, (torch.randn(rows, width) + 0.1, torch.tensor(5)), ["x", "rounds"], ["y"], scripted=True)


NETWORKS = {
    "bert128": lambda tiny: bert(tiny, False),
    "bert-sym": lambda tiny: bert(tiny, True),
    "gpt2-decode": gpt2Decode,
    "resnet50": resnet50,
    "mobilenet_v2": mobilenetV2,
    "lstm10": lstm10,
    "mmoe": mmoe,
    "controlflow": controlFlow,
}
