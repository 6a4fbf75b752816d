"""Changes dumps of small models and checks that the compiler answers each mutant properly: exit code 0, 2, 3, 4 or 5
within 4 GiB and without a hang, and coded lines where it refuses. Options: mutants.py."""

import functools
import pathlib
import random
import re
import sys

sys.dont_write_bytecode = True
sys.path.append(str(pathlib.Path(__file__).parents[2] / "Driver" / "Inputs"))

import mutants
import mutation_models

STAGES = ("graph", "expr", "plan", "schedule", "gir")
TARGETS = {"recurrent": "sim:sm_90"}  # the others: the CPU
NUMBERS = (0, 1, -1, 2, 3, 5, 64, 1 << 31, 1 << 32, 1 << 40, (1 << 63) - 1, -(1 << 63))


execute = functools.partial(mutants.execute, 20, 4)


def mutate(text, rng):
    """One to three changes of a text."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        text = rng.choice((number, number, number, number, word, word, line, characters))(text, rng)
    return text


def number(text, rng):
    places = list(re.finditer(r"-?\b\d+\b", text))
    if not places:
        return text
    place = rng.choice(places)
    old = int(place.group())
    new = rng.choice((*NUMBERS, old + 1, old - 1, old * 2, -old))
    return text[: place.start()] + str(new) + text[place.end() :]


def word(text, rng):
    places = list(re.finditer(r"[%@]?[A-Za-z_][\w.]*", text))
    if not places:
        return text
    place, other = rng.choice(places), rng.choice(places)
    return text[: place.start()] + other.group() + text[place.end() :]


def line(text, rng):
    lines = text.split("\n")
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(4)
    if kind == 0:
        del lines[a]
    elif kind == 1:
        lines.insert(b, lines[a])
    elif kind == 2:
        lines[a], lines[b] = lines[b], lines[a]
    else:
        del lines[max(a, 1) :]
    return "\n".join(lines)


def characters(text, rng):
    at = rng.randrange(len(text))
    if rng.random() < 0.5:
        return text[:at] + text[at + rng.randrange(1, 6) :]
    return text[:at] + rng.choice("()[]{},:='\"`-0\0\xff") + text[at:]


def problem(result, output):
    text = result.stderr
    if result.returncode not in (0, 2, 3, 4, 5):
        return f"exit code {result.returncode}: {text.strip()[-600:]}"
    if result.returncode and not all(l.startswith(("error[E", "note:")) for l in text.splitlines()):
        return f"not only coded lines: {text[:600]!r}"
    if result.returncode and not text:
        return "refused without a word"
    if result.returncode and output.exists():
        return "an output file was left"
    return None


class Mutants:
    def __init__(self, options):
        self.options = options
        self.dumps = []
        for name, build in sorted(mutation_models.MODELS.items()):
            folder = options.work / name
            folder.mkdir(parents=True)
            model = folder / "model.onnx"
            model.write_bytes(build().SerializeToString())
            command = [options.compiler, model, "--stop-after=gir", "--dump-dir", folder]
            made = execute(*command, "--target", TARGETS.get(name, "x86-64-v3"))
            if made.returncode:
                sys.exit(f"{name}: {made.stderr}")
            self.dumps += [folder / f"{stage}.txt" for stage in STAGES]

    def run(self, index):
        # Round robin over models and stages; graphs, which are small and the richest in rules, come twice as often.
        rng = random.Random(f"{self.options.seed} {index}")
        source = self.dumps[index % len(self.dumps)] if index % 3 else rng.choice(self.dumps[:: len(STAGES)])
        mutant = source.with_name(f"{index}.{source.name}")
        mutant.write_bytes(mutate(source.read_text(), rng).encode("latin-1", "replace"))
        output = mutant.with_suffix(".bundle")
        found = problem(execute(self.options.compiler, mutant, "-o", output), output)
        if not found and self.options.only is None:
            mutant.unlink()
        output.unlink(missing_ok=True)
        return f"{index} ({mutant.relative_to(self.options.work)}): {found}" if found else None


if __name__ == "__main__":
    sys.exit(mutants.try_all(Mutants(mutants.options(["compiler"], count=300))))
