"""thin.py FUSEC FUSERT FOLDER TARGET: products of a few rows with a matrix, compiled from schedule dumps in which the
loops are written by hand, against a host's own schedules; and the barriers and bytes of the units' partial sums."""

import json
import pathlib
import re
import subprocess
import sys

import numpy as np

fusec, fusert, folder, target = sys.argv[1:]
units, lanes = 8, 64 if "gfx" in target else 32


def run(*arguments):
    result = subprocess.run(list(map(str, arguments)), capture_output=True, text=True)
    assert result.returncode == 0, (arguments, result.stdout, result.stderr)
    return result.stdout


def program(rows, columns, terms, kind, turned):
    """relu(x w + b), of integers x w."""
    total = "i32" if kind == "i8" else "f32"
    matrix, at = (f"{columns},{terms}", "j, k") if turned else (f"{terms},{columns}", "k, j")
    cast = lambda read: read if kind == total else f"cast({total}, {read})"
    result, inputs = ("temp", "(%x, %w, %b)") if total == "f32" else ("output", "(%x, %w)")
    text = f"""# fusec dump expr
=== expr
expr thin
tensor %x: {kind}[{rows},{terms}] input
tensor %w: {kind}[{matrix}] input
"""
    if total == "f32":
        text += f"tensor %b: f32[{columns}] input\n"
    text += f"tensor %c: {total}[{rows},{columns}] {result}\n"
    if total == "f32":
        text += f"tensor %y: f32[{rows},{columns}] output\n"
    text += f"""inputs {inputs}
outputs ({"%y" if total == "f32" else "%c"})
reduction c [i:{rows}, j:{columns}; k:{terms}] sum {total} @"product"
  %c = mul({cast("%x[i, k]")}, {cast(f"%w[{at}]")})
"""
    if total == "f32":
        text += f"""map y [i:{rows}, j:{columns}] @"relu"
  %y = max(add(%c[i, j], %b[j]), 0.0)
"""
    return text


def schedule(rows, kind, turned):
    """Axes and tree; accumulators of a thread, and lanes of a unit that have partial sums of their own."""
    both = "e0" if kind == "i8" else "e0, e1"
    beside = {"f32": 4, "f16": 8, "i8": 16}[kind]
    axes = [f"axis n spatial (1) of {both}", "axis k reduction (2) of e0"]
    overRows = lambda text: f"unroll m:1 {{ {text} }}" if rows > 1 else text
    if rows > 1:
        axes.append(f"axis m spatial (0) of {both}")
    end = "store e0" if kind == "i8" else "compute e1"
    if turned:
        step = lanes * beside
        body = [overRows("init e0"),
                f"seq k:{units * step} {{ unit k:{step} {{ " +
                overRows(f"lane k:{beside} {{ unroll k:1 {{ compute e0 }} }}") + " } }",
                overRows("combine e0"), overRows(end)]
        return axes, "block n:1 { " + " ".join(body) + " }", rows, 1
    tile = lambda leaf: overRows(f"lane n:{beside} {{ unroll n:1 {{ {leaf} }} }}")
    body = [tile("init e0"), f"seq k:{units * 2} {{ unit k:2 {{ unroll k:1 {{ {tile('compute e0')} }} }} }}",
            tile("combine e0"), tile(end)]
    return axes, f"block n:{lanes * beside} {{ " + " ".join(body) + " }", rows * beside, lanes


folder = pathlib.Path(folder)
compared = 0
for rows, columns, terms, kind in ((1, 512, 512, "f32"), (3, 130, 515, "f32"), (3, 130, 515, "f16"),
                                   (3, 130, 515, "i8"), (8, 70, 300, "f32")):
    for turned in (False, True):
        what = (target, rows, columns, terms, kind, turned)
        (folder / "x.txt").write_text(program(rows, columns, terms, kind, turned))
        run(fusec, folder / "x.txt", "--target", "x86-64-v3", "-o", folder / "host")
        run(fusert, "run", folder / "host", "--random", "1", "--output-dir", folder / "d")
        run(fusec, folder / "x.txt", "--target", target, "--stop-after=schedule", "--dump-dir", folder)
        text = (folder / "schedule.txt").read_text()
        axes, tree, accumulators, kept = schedule(rows, kind, turned)
        head = re.search(r"schedule (\S+) units \d+ lanes \d+ \{\n.*?\n\}", text, re.S)
        edges = "".join(re.findall(r"  edge .*\n", head.group(0)))
        text = (text[:head.start()] + f"schedule {head.group(1)} units {units} lanes {lanes} {{\n" +
                "".join(f"  {axis}\n" for axis in axes) + edges + f"  tree {{\n{tree}\n  }}\n}}" + text[head.end():])
        (folder / "thin.txt").write_text(text)
        run(fusec, folder / "thin.txt", "-o", folder / "thin")
        name = "c" if kind == "i8" else "y"
        out = run(fusert, "run", folder / "thin", "--random", "1", "--target", target, "--counters", "--output-dir",
                  folder / "out")
        made, expected = np.load(folder / f"out/{name}.npy"), np.load(folder / f"d/{name}.npy")
        assert np.allclose(made, expected, rtol=1e-4, atol=1e-4), what
        kernel, = json.loads(out.splitlines()[-1])["kernels"]
        # Each accumulator's partial sums are written, wait, are read by all, and wait before the next one's.
        barriers = kernel["barriers"] / kernel["blocks"]
        assert barriers == (1 if accumulators == 1 else 2 * accumulators), (what, barriers)
        moved = kernel["blocks"] * accumulators * 4 * units * (kept + units * lanes)
        assert kernel["shared_bytes"] == moved, (what, kernel["shared_bytes"], moved)
        compared += 1
print(f"{target}: {compared} products right")
