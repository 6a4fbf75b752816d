"""Networks for images with batch, height and width symbolic, transformers' and torchvision's, narrow; ResNet-50 in its
real width."""

import torch
from torch import nn

import images
from dynamic import Dynamic, lively
from dynamictexts import BATCH, made
from symbols import normal, symbol

WIDTH, HEADS, PATCH = 32, 4, 16
CLASSES = 10


def transformer(scale):
    return dict(hidden_size=WIDTH, num_hidden_layers=scale.layers, num_attention_heads=HEADS, patch_size=PATCH)


def ofImage(scale, module, function, outputs, least=64):
    """[batch, 3, height, width] of any size within the limits."""
    return Dynamic(module, function,
                   BATCH | {side: symbol(side, least, scale.side) for side in ("height", "width")},
                   {"pixel_values": normal("batch", 3, "height", "width")}, outputs)


def vit(scale):
    module = made("ViTConfig", **transformer(scale), intermediate_size=2 * WIDTH, image_size=64)
    return ofImage(scale, module, lambda m, image: m(image, interpolate_pos_encoding=True).last_hidden_state,
                   {"last_hidden_state": None})


def dinov2(scale):
    module = made("Dinov2Config", **transformer(scale), mlp_ratio=2, image_size=64)
    return ofImage(scale, module, lambda m, image: m(image).last_hidden_state, {"last_hidden_state": None})


def yolos(scale):
    """Detection as a transformer does it: always as many boxes, no suppression."""
    module = made("YolosConfig", "AutoModelForObjectDetection", **transformer(scale), intermediate_size=2 * WIDTH,
                  image_size=[64, 96], num_detection_tokens=10, num_labels=CLASSES)

    def function(module, image):
        result = module(image)
        return result.logits, result.pred_boxes

    return ofImage(scale, module, function, {"logits": ["batch", 10, CLASSES + 1], "pred_boxes": ["batch", 10, 4]})


def segformer(scale):
    module = made("SegformerConfig", "AutoModelForSemanticSegmentation", hidden_sizes=[16, 16, 32, 32],
                  depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 2, 4], mlp_ratios=[2, 2, 2, 2],
                  decoder_hidden_size=WIDTH, num_labels=CLASSES)
    return ofImage(scale, module, lambda m, image: m(image).logits, {"logits": None})


def detr(scale):
    """A convolutional backbone, an encoder over its positions and a decoder with ten queries."""
    import transformers

    backbone = transformers.ResNetConfig(embedding_size=16, hidden_sizes=[16, 16, 32, 32], depths=[1, 1, 1, 1],
                                         layer_type="basic", out_features=["stage4"])
    module = made("DetrConfig", "AutoModelForObjectDetection", backbone_config=backbone, d_model=WIDTH, num_queries=10,
                  num_labels=CLASSES, **scale.twoParts())

    def function(module, image):
        result = module(image)
        return result.logits, result.pred_boxes

    return ofImage(scale, module, function, {"logits": ["batch", 10, CLASSES + 1], "pred_boxes": ["batch", 10, 4]})


def classifier(scale, module, classes):
    return ofImage(scale, module, lambda m, image: m(image), {"logits": ["batch", classes]}, least=32)


class UNet(nn.Module):
    """Three levels down and up. What comes up is brought to the size of what went down beside it: the first time by a
    transposed convolution and padding, then by interpolation."""

    def __init__(self, width):
        super().__init__()
        self.down = nn.ModuleList([self.block(3, width), self.block(width, 2 * width)])
        self.middle = self.block(2 * width, 4 * width)
        self.grow = nn.ConvTranspose2d(4 * width, 2 * width, 2, stride=2)
        self.up = nn.ModuleList([self.block(4 * width, 2 * width), self.block(3 * width, width)])
        self.last = nn.Conv2d(width, 2, 1)

    @staticmethod
    def block(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(),
                             nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())

    def forward(self, x):
        first = self.down[0](x)
        second = self.down[1](nn.functional.max_pool2d(first, 2))
        y = self.grow(self.middle(nn.functional.max_pool2d(second, 2)))
        y = nn.functional.pad(y, [0, second.shape[3] - y.shape[3], 0, second.shape[2] - y.shape[2]])
        y = self.up[0](torch.cat([second, y], 1))
        y = nn.functional.interpolate(y, size=first.shape[2:], mode="bilinear", align_corners=False)
        return self.last(self.up[1](torch.cat([first, y], 1)))


def unet(scale):
    return ofImage(scale, images.settled(UNet(4 * scale.layers), 32), lambda m, image: m(image),
                   {"mask": ["batch", 2, "height", "width"]}, least=16)


class Detector(nn.Module):
    """A single-shot detector: boxes around the points of two grids, each image's best ones with a score above a half,
    less those that overlap a better one of their class and image. Gives as many as data decide: boxes, scores, classes,
    images."""

    CANDIDATES, THRESHOLD, OVERLAP = 20, 0.5, 0.3
    SHAPES = ((1.0, 1.0), (1.4, 0.7), (0.7, 1.4))  # height and width of boxes, in steps of a grid
    STEPS = (8.0, 16.0)  # of the grids, in pixels

    def __init__(self, width, classes):
        super().__init__()
        self.classes = classes
        steps = [nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride=2, padding=1), nn.BatchNorm2d(outputs), nn.ReLU())
                 for inputs, outputs in ((3, width), (width, width), (width, width), (width, 2 * width))]
        self.fine, self.coarse = nn.Sequential(*steps[:3]), steps[3]
        self.heads = nn.ModuleList(nn.Conv2d(inputs, len(self.SHAPES) * (4 + classes), 3, padding=1)
                                   for inputs in (width, 2 * width))
        self.register_buffer("shapes", torch.tensor(self.SHAPES))

    def grid(self, level, step, head):
        """What a head says of all boxes of its grid: [batch, boxes, 4] corners and [batch, boxes, classes]."""
        batch, _, rows, columns = level.shape
        y, x = torch.arange(rows) + 0.5, torch.arange(columns) + 0.5
        points = torch.stack([y[:, None].expand(rows, columns), x[None, :].expand(rows, columns)], -1)
        said = head(level).permute(0, 2, 3, 1).reshape(batch, rows * columns, len(self.SHAPES), 4 + self.classes)
        middles = (points.reshape(1, rows * columns, 1, 2) + torch.tanh(said[..., :2])) * step
        halves = self.shapes * torch.exp(0.5 * torch.tanh(said[..., 2:4])) * step
        corners = torch.cat([middles - halves, middles + halves], -1)
        return corners.reshape(batch, -1, 4), torch.sigmoid(said[..., 4:]).reshape(batch, -1, self.classes)

    def forward(self, image):
        from torchvision.ops import nms

        fine = self.fine(image)
        found = [self.grid(*level) for level in zip((fine, self.coarse(fine)), self.STEPS, self.heads)]
        corners, scores = (torch.cat(parts, 1) for parts in zip(*found))
        best, where = torch.topk(scores.flatten(1), self.CANDIDATES)
        pictures, ranks = torch.nonzero(best > self.THRESHOLD).unbind(1)
        scores, chosen = best[pictures, ranks], where[pictures, ranks]
        boxes, labels = chosen // self.classes, chosen % self.classes
        corners = corners[pictures, boxes]
        # Boxes of other classes and images are moved out of the way.
        apart = (pictures * self.classes + labels)[:, None] * 4.0 * (image.shape[2] + image.shape[3])
        kept = nms(corners + apart, scores, self.OVERLAP)
        return corners[kept], scores[kept], labels[kept], pictures[kept]


def detector(scale):
    module = images.settled(Detector(16, 3).train(), 64)
    for head in module.heads:
        nn.init.normal_(head.weight, std=0.7 * head.weight[0].numel() ** -0.5)
        nn.init.constant_(head.bias, -0.5)
    return ofImage(scale, module, lambda m, image: m(image),
                   {name: None for name in ("boxes", "scores", "labels", "pictures")}, least=32)


NETWORKS = {  # name -> function of the scale
    "vit": vit,
    "dinov2": dinov2,
    "yolos": yolos,
    "segformer": segformer,
    "detr": detr,
    "mobilenet_v2": lambda scale: classifier(scale, images.mobilenetV2(tiny=True).module, 10),
    "unet": unet,
    "detector": detector,
    "resnet50": lambda scale: classifier(scale, images.resnet50(tiny=False).module, 1000),
}
