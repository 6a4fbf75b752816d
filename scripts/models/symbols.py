"""What the files NAME.json beside exported networks with symbolic sizes say, and inputs made after them:

  {"exporter": "dynamo", "symbols": {"batch": {"kind": "batch", "least": 1, "most": 8}, ...},
   "inputs": {"input_ids": {"type": "int64", "shape": ["batch", "past + length"], "values": "tokens", "below": 128}}}

A shape's entries are numbers or sums and products of symbols; these names are our own, an exporter calls its dimensions
as it likes. A symbol's kind is batch, length, past (tokens in a cache), height or width; sizes from least to most are
legal. unit: how many elements one step of a length stands for, such as samples of sound for each frame."""

import json
import math

import numpy

KINDS = ("batch", "length", "past", "height", "width")

VALUES = {
    "normal": lambda random, shape, given: random.standard_normal(shape),
    "tokens": lambda random, shape, given: random.integers(2, given["below"], shape),
    "mask": lambda random, shape, given: masks(random, shape),
}


def masks(random, shape):
    """Four of five positions are seen, the first of each row always: a row that sees nothing has no result."""
    seen = random.random(shape) < 0.8
    seen[..., :1] = True
    return seen


def given(kind, values, *shape, **more):
    """An input's entry."""
    return {"type": kind, "shape": list(shape), "values": values, **more}


def tokens(*shape, below=128):
    return given("int64", "tokens", *shape, below=below)


def mask(*shape):
    return given("int64", "mask", *shape)


def normal(*shape):
    return given("float32", "normal", *shape)


def symbol(kind, least, most, **more):
    return {"kind": kind, "least": least, "most": most, **more}


def extent(entry, sizes):
    return entry if isinstance(entry, int) else eval(entry, {"__builtins__": {}}, dict(sizes))


def shapes(description, sizes):
    return {name: [extent(entry, sizes) for entry in value["shape"]] for name, value in description["inputs"].items()}


def caches(description):
    """Inputs that have a row for each token of the past."""
    past = {name for name, one in description["symbols"].items() if one["kind"] == "past"}
    return [name for name, value in description["inputs"].items() if past & set(value["shape"])]


def feeds(description, sizes, seed=0):
    """Random inputs of these sizes: symbol -> size."""
    return feedsOf(description, shapes(description, sizes), seed)


def feedsOf(description, shapes, seed=0):
    random = numpy.random.default_rng(seed)
    return {name: numpy.asarray(VALUES[value["values"]](random, shapes[name], value)).astype(value["type"])
            for name, value in description["inputs"].items()}


def isPrime(number):
    return number > 1 and all(number % i for i in range(2, math.isqrt(number) + 1))


def drawOne(random, low, high):
    """The least, the most, a prime, a power of two, or any by its logarithm."""
    primes = [n for n in range(low, high + 1) if isPrime(n)]
    powers = [1 << i for i in range(high.bit_length()) if low <= 1 << i <= high]
    spread = int(round(math.exp(random.uniform(math.log(max(low, 1)), math.log(high)))))
    choices = [low, high, min(max(spread, low), high), min(max(spread, low), high)]
    choices += [int(random.choice(some)) for some in (primes, primes, powers) if some]
    return choices[random.integers(len(choices))]


def draw(description, count, seed, cap=None):
    """Assignments symbol -> size: all least, all most, then random ones, no two alike where the ranges have as many.
    No size is over `cap`, where a symbol's least one is not."""
    random = numpy.random.default_rng(seed)
    ranges = {}
    for name, one in description["symbols"].items():
        most = min(one["most"], cap * one.get("unit", 1)) if cap else one["most"]
        ranges[name] = (one["least"], max(one["least"], most))
    found = [{name: low for name, (low, _) in ranges.items()}, {name: high for name, (_, high) in ranges.items()}]
    for _ in range(50 * count):
        if len(found) >= count:
            break
        drawn = {name: drawOne(random, low, high) for name, (low, high) in ranges.items()}
        if drawn not in found:
            found.append(drawn)
    return [sizes for i, sizes in enumerate(found[:count]) if sizes not in found[:i]]


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def save(description, path):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(description, file, indent=1)
        file.write("\n")


def text(sizes):
    return " ".join(f"{name}={size}" for name, size in sizes.items()) or "its only size"


def oddities(description):
    """(what is odd, shapes) of inputs that no user should give: what ONNX Runtime refuses of them must be refused."""
    sizes = {name: max(one["least"], 3) if not one.get("fixed") else one["least"]
             for name, one in description["symbols"].items()}
    found, usual = [], shapes(description, sizes)
    for name, one in description["symbols"].items():
        if one.get("fixed"):
            continue
        for what, size in (("none", 0), ("too many", 4 * one["most"])):
            if one["kind"] != "batch" or not size:
                found.append((f"{what} of {name}", shapes(description, {**sizes, name: size})))
        users = [each for each, value in description["inputs"].items()
                 if any(isinstance(entry, str) and name in entry.split() for entry in value["shape"])]
        for user in users[1:2] + users[-1:] * (len(users) > 2):
            other = shapes(description, {**sizes, name: sizes[name] + 1})[user]
            found.append((f"another {name} in {user}", {**usual, user: other}))
    return found


BATCHES, LENGTHS, IMAGES = (1, 2, 8), (1, 7, 37, 128, 384), ((64, 96), (224, 224), (320, 200))


def benchSizes(description, batches=BATCHES):
    """The sizes at which networks are timed: batches with all lengths or images. With a cache the length is that of
    the cache, and one token is added."""
    kinds = {name: one["kind"] for name, one in description["symbols"].items()}

    def assigned(batch, length, image):
        by = {"batch": batch, "length": 1 if "past" in kinds.values() else length, "past": length,
              "height": image[0], "width": image[1]}
        return {name: max(by[kind] * description["symbols"][name].get("unit", 1), description["symbols"][name]["least"])
                for name, kind in kinds.items()}

    found = []
    for batch in batches:
        for length, image in [(1, image) for image in IMAGES] if "height" in kinds.values() else \
                [(length, IMAGES[0]) for length in LENGTHS]:
            sizes = assigned(batch, length, image)
            if sizes not in found and all(sizes[name] <= one["most"] for name, one in description["symbols"].items()):
                found.append(sizes)
    return found
