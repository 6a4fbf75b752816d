"""Edits decisions of small models and replays them: what the compiler takes must give the model's results, on
simulators with their checks and in an order of threads drawn at random too; what it does not take is refused with coded
lines.

Options: mutants.py."""

import functools
import pathlib
import random
import re
import shutil
import sys

sys.dont_write_bytecode = True

import numpy as np

import mutants

MODELS = ("mlp", "conv", "attention", "lstm", "rows")
TARGETS = ("x86-64-v3", "sim:sm_90", "sim:gfx90a")
LOOPS = ("block", "unit", "lane", "seq", "unroll")
LEVELS = ("register", "shared", "global")
STATEMENTS = ("init", "compute", "combine", "store", "stage", "correct", "sort")
NUMBERS = (0, 1, 2, 3, 4, 5, 7, 8, 16, 32, 64, 100, 128, 256, 1024, 1 << 31, 1 << 62)
LEAST = 120
CODES = {3: "error[E3205]", 5: "error[E5001]"}


execute = functools.partial(mutants.execute, 30, 8)


class Case:
    """A model's decisions for a target, and the outputs that every replay of them must give."""

    def __init__(self, options, model, target):
        self.options, self.model, self.target = options, model, target
        self.name = f"{model.stem}-{target.replace(':', '-')}"
        self.base = options.work / f"{self.name}.txt"
        bundle = self.base.with_suffix(".bundle")
        made = execute(options.fusec, model, f"--target={target}", f"--emit-decisions={self.base}", "-o", bundle)
        if made.returncode:
            sys.exit(f"{self.name}: {made.stderr}")
        self.text, self.bytes = self.base.read_text(), bundle.read_bytes()
        self.expected, problem = self.outputs(bundle)
        if problem:
            sys.exit(f"{self.name}: {problem}")

    def outputs(self, bundle, *extra):
        folder = bundle.with_suffix(".out")
        command = [self.options.fusert, "run", bundle, "--target", self.target, "--random", "3", "--threads", "2"]
        ran = execute(*command, "--output-dir", folder, *extra)
        values = {f.name: np.load(f) for f in sorted(folder.glob("*.npy"))} if folder.exists() else {}
        shutil.rmtree(folder, ignore_errors=True)
        return values, f"run ended with {ran.returncode}: {ran.stderr[-400:]}" if ran.returncode else None

    def problem(self, mutant):
        """What is wrong with the answer to the mutant's text, and what the answer was."""
        bundle = mutant.with_suffix(".bundle")
        command = [self.options.fusec, self.model, f"--target={self.target}", f"--decisions={mutant}", "-o", bundle]
        done = execute(*command)
        lines = done.stderr.splitlines()
        if done.returncode:
            code = CODES.get(done.returncode)
            if not code or bundle.exists() or not lines or not all(l.startswith(code) for l in lines):
                return f"exit code {done.returncode}: {done.stderr[-600:]}", "refused"
            return None, "refused"
        if not all(l.startswith("warning[W0001]") for l in lines):
            return f"said {done.stderr[-600:]}", "taken"
        same = bundle.read_bytes() == self.bytes
        orders = [[], ["--sim-seed", "5"]] if self.target.startswith("sim") else [[]]
        for extra in [] if same else orders:
            values, found = self.outputs(bundle, *extra)
            for name, value in self.expected.items():
                if not found and not np.allclose(values[name], value, rtol=1e-3, atol=1e-4, equal_nan=True):
                    found = f"{name} differs by up to {np.nanmax(abs(values[name] - value))}"
            if found:
                return " ".join([found, *extra]), "taken"
        bundle.unlink()
        return None, "the same" if same else "taken"


def tree_lines(lines):
    """Lines of schedules: axes, operands, edges, kept reads, loops and statements."""
    words = ("axis", "operand", "edge", "keep", "via", "barrier", "counters", "carry", *LOOPS, *STATEMENTS)
    return [i for i, line in enumerate(lines) if line.split()[:1] and line.split()[0] in words]


def replace_word(line, choices, rng):
    places = list(re.finditer(r"\b(" + "|".join(choices) + r")\b", line))
    if not places:
        return line
    place = rng.choice(places)
    return line[: place.start()] + rng.choice(choices) + line[place.end() :]


def replace_number(line, rng):
    places = list(re.finditer(r"(?<![\w.])\d+(?![\w.])|(?<=[er])\d+\b", line.split("#")[0]))
    if not places:
        return line
    place = rng.choice(places)
    number = rng.choice((*NUMBERS, int(place.group()) + 1, int(place.group()) * 2))
    return line[: place.start()] + str(number) + line[place.end() :]


def mutate(text, rng):
    lines = text.split("\n")
    places = tree_lines(lines)
    leaves = [i for i in places if not lines[i].endswith("{")]
    loops = [i for i in places if lines[i].endswith("{")]
    kind = rng.randrange(9)
    if kind == 0:
        del lines[rng.choice(leaves)]
    elif kind == 1:
        at = rng.choice(loops)
        lines[at] = replace_word(lines[at], LOOPS, rng)
    elif kind == 2:
        at = rng.choice([i for i in leaves if lines[i].split()[0] in ("operand", "edge", "keep")] or leaves)
        lines[at] = replace_word(lines[at], LEVELS, rng)
    elif kind == 3:
        at = rng.choice(places)
        lines[at] = replace_number(lines[at], rng)
    elif kind == 4:  # a statement goes over a few lines, in or out of loops
        at = rng.choice(leaves)
        line = lines.pop(at)
        lines.insert(max(0, at + rng.choice((-4, -3, -2, -1, 1, 2, 3, 4))), line)
    elif kind == 5:
        at = rng.choice([i for i, line in enumerate(lines) if line.startswith("pattern ")])
        lines[at] = re.sub(rng.choice((r"(?<=units )\d+", r"(?<=lanes )\d+")), str(rng.choice(NUMBERS)), lines[at])
    elif kind == 6:
        at = rng.choice([i for i in leaves if lines[i].split()[0] in STATEMENTS] or leaves)
        lines[at] = replace_word(lines[at], STATEMENTS, rng)
    elif kind == 7:
        at, other = rng.choice(places), rng.choice(places)
        lines[at], lines[other] = lines[other], lines[at]
    else:  # a loop goes with its braces: what it held is done once
        at = rng.choice(loops)
        indent = len(lines[at]) - len(lines[at].lstrip())
        end = next(i for i in range(at + 1, len(lines)) if lines[i] == " " * indent + "}")
        del lines[end], lines[at]
    return "\n".join(lines)


class Mutants:
    def __init__(self, options):
        self.options, self.answers = options, {}
        tool = pathlib.Path(__file__).with_name("small_models.py")
        self.cases = []
        for name in MODELS:
            model = options.work / f"{name}.onnx"
            made = execute(sys.executable, tool, name, model, "--seed", str(options.model_seed))
            if made.returncode:
                sys.exit(made.stderr)
            self.cases += [Case(options, model, target) for target in TARGETS]

    def run(self, index):
        rng = random.Random(f"{self.options.seed} {index}")
        case = self.cases[index % len(self.cases)]
        text = case.text
        while text == case.text:
            text = mutate(text, rng)
        mutant = self.options.work / f"{index}.{case.name}.txt"
        mutant.write_text(text)
        found, answer = case.problem(mutant)
        self.answers[answer] = self.answers.get(answer, 0) + 1
        if not found and self.options.only is None:
            mutant.unlink()
        return f"{mutant}: {found}" if found else None


if __name__ == "__main__":
    tried = Mutants(mutants.options(["fusec", "fusert"], seconds=30, model_seed=5))
    code = mutants.try_all(tried, LEAST)
    print(", ".join(f"{count} {answer}" for answer, count in sorted(tried.answers.items())))
    sys.exit(code)
