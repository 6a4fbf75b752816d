"""Scikit-learn's 1797 images of handwritten digits, 8 x 8 pixels of 0..16, and the split that all scripts use: every
fifth image is held out."""

import numpy
from sklearn.datasets import load_digits


def split():
    """Training images [n, 1, 8, 8] and labels [n], held-out images and labels; float32 and int64."""
    data = load_digits()
    images = data.images.astype(numpy.float32)[:, None]
    labels = data.target.astype(numpy.int64)
    held = numpy.arange(len(labels)) % 5 == 0
    return images[~held], labels[~held], images[held], labels[held]
