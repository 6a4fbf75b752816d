"""The networks of scripts/export-models, each in its real size and in a tiny one, with random weights."""

import torch
from torch import nn

import images
import texts
from network import Network


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
    "bert128": lambda tiny: texts.bert(tiny, 16 if tiny else 128),
    "bert-sym": lambda tiny: texts.bert(tiny, 12, symbolic=True),
    "bert384": lambda tiny: texts.bert(tiny, 48 if tiny else 384),
    "gpt2-decode": texts.gpt2Decode,
    "gpt2-128": texts.gpt2,
    "vit_b_16": images.vitB16,
    "swin_b": images.swinB,
    "resnet50": images.resnet50,
    "resnext101": images.resnext101,
    "efficientnet_b0": images.efficientnetB0,
    "mobilenet_v2": images.mobilenetV2,
    "mobilenet_v3": images.mobilenetV3,
    "shufflenet_v2": images.shufflenetV2,
    "lstm10": lstm10,
    "mmoe": mmoe,
    "controlflow": controlFlow,
}
