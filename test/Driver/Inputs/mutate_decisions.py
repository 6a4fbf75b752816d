"""Edits decisions and plans of small models and replays them: what the compiler takes must give the model's results, at
all sizes, on simulators with their checks and in an order of threads drawn at random too; what it does not take is
refused with coded lines.

Options: mutants.py."""

import functools
import pathlib
import random
import re
import shutil
import sys

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).parents[2] / "Graph" / "Inputs"))

import numpy as np

import mutants
import mutation_models

MODELS = ("mlp", "conv", "attention", "lstm", "rows")  # of small_models.py
MORE = ("control", "dense", "indexed")  # of mutation_models.py
SIZES = {"dense": (["--dim", "n=1"], ["--dim", "n=37"])}
TARGETS = ("x86-64-v3", "sim:sm_90", "sim:gfx90a")
LOOPS = ("block", "unit", "lane", "seq", "unroll")
LEVELS = ("register", "shared", "global")
STATEMENTS = ("init", "compute", "combine", "store", "stage", "correct", "sort")
NUMBERS = (0, 1, 2, 3, 4, 5, 7, 8, 16, 32, 64, 100, 128, 256, 1024, 1 << 31, 1 << 62)
CODES = {  # by what was edited: a file of decisions, or the dump of a plan
    "decisions": {3: "error[E3205]", 5: "error[E5001]"},
    "plan": {3: ("error[E3002]", "error[E3003]"), 5: "error[E5001]"},
}

execute = functools.partial(mutants.execute, 30, 8)


class Case:
    """A model's decisions and plan for a target, and the outputs that every replay of them must give."""

    def __init__(self, options, model, target):
        self.options, self.model, self.target = options, model, target
        self.name = f"{model.stem}-{target.replace(':', '-')}"
        self.folder = options.work / self.name
        bundle = self.folder / "bundle"
        dumps = [f"--emit-decisions={self.folder / 'decisions.txt'}", "--dump-dir", self.folder]
        made = execute(options.fusec, model, f"--target={target}", *dumps, "-o", bundle)
        if made.returncode:
            sys.exit(f"{self.name}: {made.stderr}")
        self.texts = {kind: (self.folder / f"{kind}.txt").read_text() for kind in CODES}
        self.bytes = bundle.read_bytes()
        self.sizes = SIZES.get(model.stem, ([],))
        orders = ([], ["--sim-seed", "5"]) if target.startswith("sim") else ([],)
        self.runs = [(size, order) for size in range(len(self.sizes)) for order in orders]
        self.expected = []
        for size in self.sizes:
            values, problem = self.outputs(bundle, *size)
            if problem:
                sys.exit(f"{self.name}: {problem}")
            self.expected.append(values)

    def outputs(self, bundle, *extra):
        folder = bundle.with_suffix(".out")
        command = [self.options.fusert, "run", bundle, "--target", self.target, "--random", "3", "--threads", "2"]
        ran = execute(*command, "--output-dir", folder, *extra)
        values = {f.name: np.load(f) for f in sorted(folder.glob("*.npy"))} if folder.exists() else {}
        shutil.rmtree(folder, ignore_errors=True)
        return values, f"run ended with {ran.returncode}: {ran.stderr[-400:]}" if ran.returncode else None

    def problem(self, mutant, kind):
        """What is wrong with the answer to the mutant's text, and what the answer was."""
        bundle = mutant.with_suffix(".bundle")
        replay = [self.model, f"--target={self.target}", f"--decisions={mutant}"] if kind == "decisions" else [mutant]
        done = execute(self.options.fusec, *replay, "-o", bundle)
        lines = done.stderr.splitlines()
        if done.returncode:
            code = CODES[kind].get(done.returncode)
            if not code or bundle.exists() or not lines or not all(l.startswith(code) for l in lines):
                return f"exit code {done.returncode}: {done.stderr[-600:]}", "refused"
            return None, "refused"
        if not all(l.startswith("warning[W0001]") for l in lines):
            return f"said {done.stderr[-600:]}", "taken"
        same = bundle.read_bytes() == self.bytes
        for size, order in [] if same else self.runs:
            values, found = self.outputs(bundle, *self.sizes[size], *order)
            for name, value in self.expected[size].items():
                if not found and not np.allclose(values[name], value, rtol=1e-3, atol=1e-4, equal_nan=True):
                    found = f"{name} differs by up to {np.nanmax(abs(values[name] - value))}"
            if found:
                return " ".join([found, *self.sizes[size], *order]), "taken"
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


def mutate_plan(text, rng):
    """Equations, and the bars between phases, go to other places; launches change theirs, join or fall apart."""
    lines = text.split("\n")
    launches = [i for i, line in enumerate(lines) if line.strip().startswith("launch {")]
    words = {i: lines[i].split("#")[0].split()[2:-1] for i in launches}
    at, other = rng.choice(launches), rng.choice(launches)
    place = rng.randrange(len(words[at]))
    kind = rng.randrange(7)
    if kind < 2:
        word = words[at].pop(place)
        words[other].insert(rng.randint(0, len(words[other])), word)
    elif kind == 2:
        words[at].insert(place, "|")
    elif kind == 3 and at != other:
        words[at] += words.pop(other)
    elif kind == 4:
        words[at][place:place] = ["}", "launch", "{"]
    elif kind == 5:
        words[at], words[other] = words[other], words[at]
    else:
        words[at] = rng.choice((words[at] * 2, []))
    for i in launches:
        lines[i] = f"launch {{ {' '.join(words[i])} }}" if words.get(i) else ""
    return "\n".join(lines)


class Mutants:
    def __init__(self, options):
        self.options, self.answers = options, {}
        tool = pathlib.Path(__file__).with_name("small_models.py")
        self.cases = []
        for name in (*MODELS, *MORE):
            model = options.work / f"{name}.onnx"
            if name in MORE:
                model.write_bytes(mutation_models.MODELS[name]().SerializeToString())
            else:
                made = execute(sys.executable, tool, name, model, "--seed", str(options.model_seed))
                if made.returncode:
                    sys.exit(made.stderr)
            self.cases += [Case(options, model, target) for target in TARGETS]

    def run(self, index):
        rng = random.Random(f"{self.options.seed} {index}")
        case = self.cases[index % len(self.cases)]
        kind = rng.choice(("decisions", "decisions", "decisions", "plan"))
        change = mutate_plan if kind == "plan" or rng.random() < 0.1 else mutate
        text = case.texts[kind]
        while text == case.texts[kind]:
            text = change(text, rng)
        mutant = case.folder / f"{index}.{kind}"
        mutant.write_text(text)
        found, answer = case.problem(mutant, kind)
        self.answers[answer] = self.answers.get(answer, 0) + 1
        if not found and self.options.only is None:
            mutant.unlink()
        return f"{mutant}: {found}" if found else None


if __name__ == "__main__":
    tried = Mutants(mutants.options(["fusec", "fusert"], count=450, model_seed=5))
    code = mutants.try_all(tried)
    print(", ".join(f"{count} {answer}" for answer, count in sorted(tried.answers.items())))
    sys.exit(code)
