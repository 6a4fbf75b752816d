"""Models against ONNX Runtime: check_models.py [--models DIR] [--target T] PROGRAMS FOLDER CHECK [MODEL]...
The tiny models with the inputs and outputs beside them; or those of scripts/export-models in DIR, with random inputs.
What runs on the host comes from a bundle for T, such as host,sm_90,gfx942.

  reference  outputs on the host for the committed inputs, relative L2 <= 1e-4; two inputs give outputs over 10 % apart,
             each as ONNX Runtime's (a random network can collapse)
  simulated  the same on two simulated GPUs
  inner      five inner tensors as outputs
  symbolic   twenty pairs of batch and length from one bundle of the symbolic BERT
  resume     going on from the dump of any stage gives the next dump, and at last the bundle, of the direct way"""

import argparse
import os
import random
import shutil
import sys

sys.dont_write_bytecode = True
root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(root, "scripts", "models"))

import numpy
import onnx
import onnxruntime

import bundle

TINY = os.path.join(root, "models", "tiny")
TOLERANCE = 1e-4  # relative L2
LONGEST = 64  # positions that the tiny BERT knows
RANGES = {"bert-sym": ["--dim", "batch=1..8", "--dim", f"seq=1..{LONGEST}"]}
SIZES = {"batch": 2, "seq": 12}  # where no input lies beside the model
SIMULATED = ("sim:sm_90", "sim:gfx90a")
INNER = 5


class Model:
    def __init__(self, programs, folder, models, name, target):
        self.target = target
        self.name, self.folder = name, os.path.join(folder, name)
        self.references = os.path.join(models, name)
        self.fusec, self.fusert = (os.path.join(programs, program) for program in ("fusec", "fusert"))
        self.path = os.path.join(models, f"{name}.onnx")
        self.proto = onnx.load(self.path)
        self.inputs = [value.name for value in self.proto.graph.input]
        self.outputs = [value.name for value in self.proto.graph.output]
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)

    def compile(self, *options, source=None, out="bundle"):
        made = os.path.join(self.folder, out)
        ranges = RANGES.get(self.name, []) if source is None else []
        targets = [] if "--target" in options or source else ["--target", self.target]
        bundle.execute([self.fusec, source or self.path, "-o", made, *ranges, *targets, *options])
        return made

    def dump(self, stage, source):
        """The folder with the dump of this stage that a dump of the one before gives."""
        folder = os.path.join(self.folder, stage)
        bundle.execute([self.fusec, source, "--stop-after", stage, "--dump-dir", folder])
        return folder

    def run(self, made, feeds, *options):
        return bundle.run(self.fusert, made, feeds, os.path.join(self.folder, "run"), *options)

    def reference(self):
        """The feeds, and output -> expected values: what lies beside the model, else random ones and ONNX Runtime's."""
        if not os.path.isdir(self.references):
            feeds = self.freshFeeds(numpy.random.default_rng(3))
            return feeds, expected(self.path, feeds, self.outputs)

        def load(names, prefix):
            return {name: numpy.load(os.path.join(self.references, f"{prefix}{i}.npy")) for i, name in enumerate(names)}

        return load(self.inputs, "in"), load(self.outputs, "out")

    def freshFeeds(self, generator):
        """Random values: token numbers below 200, nothing masked, five rounds of a loop."""
        feeds = {}
        for value in self.proto.graph.input:
            kind = value.type.tensor_type
            shape = [SIZES[dim.dim_param] if dim.dim_param else dim.dim_value for dim in kind.shape.dim]
            if kind.elem_type == onnx.TensorProto.FLOAT:
                feeds[value.name] = generator.standard_normal(shape).astype(numpy.float32)
            elif "ids" in value.name:
                feeds[value.name] = generator.integers(0, 200, shape)
            else:
                feeds[value.name] = numpy.full(shape, 1 if "mask" in value.name else 5, numpy.int64)
        return feeds


def expected(source, feeds, outputs):
    session = onnxruntime.InferenceSession(source, providers=["CPUExecutionProvider"])
    return dict(zip(outputs, session.run(list(outputs), feeds)))


def compare(model, where, got, wanted):
    """The lines that say how far each output is off; a failure where that is too far."""
    for name, value in wanted.items():
        error = bundle.relativeL2(got(name), value)
        if not error <= TOLERANCE:
            raise bundle.Failed(f"{model.name}, {where}: {name} is off by a relative L2 of {error:.2e}")
        print(f"{model.name}, {where}: {name} within {error:.1e}")


def checkReference(model):
    feeds, wanted = model.reference()
    made = model.compile()
    got = model.run(made, feeds)
    compare(model, "host", got, wanted)
    first = {name: got(name) for name in model.outputs}
    other = model.freshFeeds(numpy.random.default_rng(7))
    got = model.run(made, other)
    compare(model, "host, another input", got, expected(model.path, other, model.outputs))
    for name in model.outputs:
        distance = bundle.relativeL2(got(name), first[name])
        print(f"{model.name}: {name} differs by {distance:.0%} between two inputs")
        if not 0.1 < distance < float("inf"):
            raise bundle.Failed(f"{model.name}: {name} hardly depends on the input: {distance:.1%}")


def checkSimulated(model):
    feeds, wanted = model.reference()
    made = model.compile("--target", ",".join(SIMULATED))
    for target in SIMULATED:
        compare(model, target, model.run(made, feeds, "--target", target), wanted)


def innerTensors(proto):
    """Float results of nodes that hang on the values of an input and are no outputs."""
    inferred = onnx.shape_inference.infer_shapes(proto)
    floats = {v.name for v in inferred.graph.value_info if v.type.tensor_type.elem_type == onnx.TensorProto.FLOAT}
    live = {value.name for value in proto.graph.input}
    outputs = {value.name for value in proto.graph.output}
    found = []
    for node in proto.graph.node:
        if node.op_type != "Shape" and live.intersection(node.input):
            live.update(node.output)
            found += [name for name in node.output if name in floats and name not in outputs]
    return found


def checkInner(model):
    names = innerTensors(model.proto)
    # Spread over the depth of the network, the same ones each time; a model of few nodes has fewer.
    places = sorted({round(i * (len(names) - 1) / (INNER - 1)) for i in range(INNER)}) if names else []
    chosen = [names[place] for place in places]
    if len(chosen) < min(INNER, len(names)) or not chosen:
        raise bundle.Failed(f"{model.name}: only {len(chosen)} inner tensors")
    marked = onnx.ModelProto()
    marked.CopyFrom(model.proto)
    marked.graph.output.extend(
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None) for name in chosen
    )
    feeds, _ = model.reference()
    made = model.compile(*(word for name in chosen for word in ("--mark-output", name)))
    wanted = expected(marked.SerializeToString(), feeds, model.outputs + chosen)
    compare(model, "host, inner", model.run(made, feeds), wanted)


def checkSymbolic(model):
    made = model.compile()
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    generator = numpy.random.default_rng(seed)
    pairs = {(1, 1), (8, LONGEST)}
    while len(pairs) < 20:
        pairs.add((int(generator.integers(1, 9)), int(generator.integers(1, LONGEST + 1))))
    for batch, length in sorted(pairs):
        mask = (generator.random((batch, length)) < 0.8).astype(numpy.int64)
        mask[:, 0] = 1
        feeds = {"input_ids": generator.integers(0, 200, (batch, length)), "attention_mask": mask}
        compare(model, f"batch {batch}, seq {length}", model.run(made, feeds),
                expected(model.path, feeds, model.outputs))


def checkResume(model):
    targets = ("--target", "x86-64-v3,sm_90,gfx942")
    fast = ("--ptxas", "none")
    dumps = os.path.join(model.folder, "dumps")
    with open(model.compile(*targets, *fast, "--dump-dir", dumps), "rb") as file:
        direct = file.read()
    # Step by step: each dump gives the next one, and the last the bundle. Driver/resume.test goes on to the bundle
    # from all of them.
    stages = ("graph", "expr", "plan", "schedule", "gir")
    for stage, following in zip(stages, stages[1:]):
        made = model.dump(following, source=os.path.join(dumps, f"{stage}.txt"))
        texts = []
        for folder in (dumps, made):
            with open(os.path.join(folder, f"{following}.txt"), "rb") as file:
                texts.append(file.read())
        if texts[0] != texts[1]:
            raise bundle.Failed(f"{model.name}: going on from {stage} gives another {following}")
        print(f"{model.name}: {stage} gives the same {following}")
    with open(model.compile(*fast, source=os.path.join(dumps, "gir.txt"), out="resumed"), "rb") as file:
        if file.read() != direct:
            raise bundle.Failed(f"{model.name}: going on from gir gives another bundle")
    print(f"{model.name}: gir gives the same {len(direct)} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=TINY)
    parser.add_argument("--target", default="host")
    parser.add_argument("programs")
    parser.add_argument("folder")
    actions = {"reference": checkReference, "simulated": checkSimulated, "inner": checkInner,
               "symbolic": checkSymbolic, "resume": checkResume}
    parser.add_argument("check", choices=actions)
    parser.add_argument("name", nargs="*")
    arguments = parser.parse_args()
    present = sorted(name[:-5] for name in os.listdir(arguments.models) if name.endswith(".onnx"))
    if arguments.check == "symbolic":
        present = [name for name in present if name in RANGES]
    if not present:
        sys.exit(f"no models in {arguments.models}")
    failures = 0
    for name in arguments.name or present:
        try:
            actions[arguments.check](Model(arguments.programs, arguments.folder, arguments.models, name,
                                            arguments.target))
        except bundle.Failed as failed:
            print(f"FAILED {failed}", flush=True)
            failures += 1
    sys.exit(1 if failures else 0)


main()
