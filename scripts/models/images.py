"""Networks for images, torchvision's, in their real sizes and in tiny ones."""

from functools import partial

import torch
from torch import nn

from network import Network


def settled(module, size, quiet=()):
    """Batch normalisations get the mean and variance of random images, as after training; without them the signal of a
    random network vanishes. Those in `quiet` scale less: the last ones of many residual branches, each of which would
    let rounding errors grow."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.momentum = None  # plain average
            nn.init.uniform_(part.weight, 0.5, 1.5)
            nn.init.normal_(part.bias, std=0.2)
    for part in quiet:
        part.weight.data *= 0.3
    module.train()
    with torch.no_grad():
        module(torch.randn(8, 3, size, size))
    return module.eval()


def stirred(module):
    """Products get weights that let the signal grow; those that an untrained transformer starts with would leave of an
    image hardly more than its mean, and its head gives zeros."""
    for part in module.modules():
        if isinstance(part, nn.MultiheadAttention):
            nn.init.normal_(part.in_proj_weight, std=2 * part.embed_dim ** -0.5)
            nn.init.normal_(part.in_proj_bias, std=0.2)
        elif isinstance(part, nn.Linear):
            nn.init.normal_(part.weight, std=2 * part.in_features ** -0.5)
            if part.bias is not None:
                nn.init.normal_(part.bias, std=0.2)
        elif isinstance(part, nn.LayerNorm):
            nn.init.uniform_(part.weight, 0.5, 1.5)
            nn.init.normal_(part.bias, std=0.2)
    return module.eval()


def ofImage(module, size):
    return Network(module, (torch.randn(1, 3, size, size),), ["image"], ["logits"])


def narrowResNet(divisor, classes, **options):
    """torchvision's ResNet with one bottleneck a stage and `divisor` times fewer channels."""
    from torchvision.models import resnet

    class Narrow(resnet.ResNet):
        def _make_layer(self, block, planes, *arguments, **options):
            if planes == 64:
                self.inplanes = 64 // divisor
            return super()._make_layer(block, planes // divisor, *arguments, **options)

    module = Narrow(resnet.Bottleneck, [1, 1, 1, 1], **options)
    module.conv1 = nn.Conv2d(3, 64 // divisor, 7, stride=2, padding=3, bias=False)
    module.bn1 = nn.BatchNorm2d(64 // divisor)
    module.fc = nn.Linear(2048 // divisor, classes)
    return module


def resnet50(tiny):
    from torchvision import models

    module, size = (narrowResNet(16, 10), 64) if tiny else (models.resnet50(weights=None), 224)
    return ofImage(settled(module, size), size)


def resnext101(tiny):
    """ResNeXt-101 32x8d; the tiny one has convolutions of four groups of 2 to 16 channels."""
    from torchvision import models
    from torchvision.models import resnet

    if tiny:
        module, size = narrowResNet(16, 10, groups=4, width_per_group=32), 64
    else:
        module, size = models.resnext101_32x8d(weights=None), 224
    quiet = [part.bn3 for part in module.modules() if isinstance(part, resnet.Bottleneck)]
    return ofImage(settled(module, size, quiet), size)


def mobilenetV2(tiny):
    from torchvision import models

    if tiny:
        stages = [[1, 16, 1, 1], [6, 24, 2, 2], [6, 32, 2, 2], [6, 64, 1, 2]]
        module = models.MobileNetV2(num_classes=10, width_mult=0.25, inverted_residual_setting=stages, round_nearest=4)
    else:
        module = models.mobilenet_v2(weights=None)
    size = 32 if tiny else 224
    return ofImage(settled(module, size), size)


def mobilenetV3(tiny):
    """The large one. Tiny: with and without squeeze-excite, windows of 3 and 5, both activations."""
    from torchvision import models
    from torchvision.models.mobilenetv3 import InvertedResidualConfig

    if tiny:
        block = partial(InvertedResidualConfig, width_mult=1.0, dilation=1)
        stages = [
            block(8, 3, 8, 8, False, "RE", 1), block(8, 3, 24, 16, False, "RE", 2),
            block(16, 5, 32, 16, True, "RE", 2), block(16, 5, 48, 16, True, "HS", 1),
        ]
        module = models.MobileNetV3(stages, last_channel=32, num_classes=10)
    else:
        module = models.mobilenet_v3_large(weights=None)
    size = 32 if tiny else 224
    return ofImage(settled(module, size), size)


def efficientnetB0(tiny):
    from torchvision import models
    from torchvision.models.efficientnet import MBConvConfig

    if tiny:
        stages = [MBConvConfig(1, 3, 1, 8, 8, 1), MBConvConfig(4, 3, 2, 8, 16, 2), MBConvConfig(4, 5, 2, 16, 24, 2)]
        module = models.EfficientNet(stages, 0.2, stochastic_depth_prob=0.0, num_classes=10, last_channel=64)
    else:
        module = models.efficientnet_b0(weights=None, stochastic_depth_prob=0.0)
    size = 32 if tiny else 224
    return ofImage(settled(module, size), size)


def shufflenetV2(tiny):
    from torchvision import models

    if tiny:
        module, size = models.ShuffleNetV2([2, 3, 2], [8, 16, 32, 64, 64], num_classes=10), 64
    else:
        module, size = models.shufflenet_v2_x1_0(weights=None), 224
    return ofImage(settled(module, size), size)


def vitB16(tiny):
    from torchvision import models

    if tiny:
        module = models.VisionTransformer(32, 8, num_layers=2, num_heads=2, hidden_dim=32, mlp_dim=64, num_classes=10)
    else:
        module = models.vit_b_16(weights=None)
    nn.init.normal_(module.class_token)
    return ofImage(stirred(module), 32 if tiny else 224)


def swinB(tiny):
    """Tiny: a stage of 2 x 2 windows, shifted in its second block, and one of a single window."""
    from torchvision import models

    if tiny:
        module = models.SwinTransformer([4, 4], 16, depths=[2, 2], num_heads=[1, 2], window_size=[4, 4], mlp_ratio=2.0,
                                        num_classes=10)
    else:
        module = models.swin_b(weights=None)
    return ofImage(stirred(module), 32 if tiny else 224)
