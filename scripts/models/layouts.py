"""Networks that change between channels-last and channels-first inside their blocks, timm's and transformers', in their
real sizes: which of both a convolution reads decides their speed."""

import torch

from images import ofImage, stirred
from network import Network, Picked


def timms(name, size=224):
    def make():
        import timm

        return ofImage(stirred(timm.create_model(name, pretrained=False)), size)

    return make


def segformer():
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    module = stirred(SegformerForSemanticSegmentation(SegformerConfig()))
    picked = Picked(module, lambda module, image: module(image).logits)
    return Network(picked, (torch.randn(1, 3, 512, 512),), ["image"], ["logits"])


NETWORKS = {
    "mambaout_femto": timms("mambaout_femto"),
    "pvt_v2_b0": timms("pvt_v2_b0"),
    "convnext_atto": timms("convnext_atto"),
    "tiny_vit_5m": timms("tiny_vit_5m_224"),
    "segformer_b0": segformer,
}
