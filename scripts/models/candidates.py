"""Schedules of a chain of two products as one kernel on a CPU, drawn by lot, each in a decisions file that is followed:
blocks of rows in which the first product is made as a whole before the second one reads it."""

import math
import os
import random
import re
import sys

import bundle
import environment
from launches import inOneLaunch
from timing import compileModel

FUSEC = ("--target=host",)
DRAWS = 20  # for each schedule that is wanted: of few rows and columns there are not more


class Candidates:
    """Of one chain (products.CHAINS) without a batch, whose model is in the file."""

    def __init__(self, path, folder, sizes):
        self.path, self.folder = path, folder
        _, self.rows, self.inner, _, self.columns = sizes
        self.text = self.oneKernel()
        self.head, _ = self.text.split("  tree {\n", 1)
        self.lanes = int(re.search(r" lanes (\d+) \{$", self.head, re.MULTILINE)[1])
        self.registers = 2 * self.lanes  # of vectors: 16 of AVX2, 32 of AVX-512
        self.row, self.between, self.reduced, self.column = map(self.axis, (
            r"spatial \(\d+\) of e0, e1", r"spatial \(\d+\) of e0 and reduction \(\d+\) of e1",
            r"reduction \(\d+\) of e0", r"spatial \(\d+\) of e1"))
        self.random, self.refused = random.Random(0), []

    def axis(self, what):
        return re.search(rf"^  axis (\w+) {what} #", self.head, re.MULTILINE)[1]

    def oneKernel(self):
        """The decisions of the search for trees where it may not make two kernels."""
        fusec, decisions = environment.program("fusec"), os.path.join(self.folder, "own.txt")
        plan = inOneLaunch(fusec, self.path, "host", self.folder)
        bundle.execute([fusec, plan, "--search-mode=mcfuser", f"--emit-decisions={decisions}"])
        with open(decisions, encoding="utf-8") as file:
            return file.read()

    def tile(self, columns):
        """Rows and columns of results in registers, with a vector of what is read along the lanes and one number beside
        them; large ones more often, since few of the small ones are worth a thought."""
        tiles = [(rows, vectors) for rows in range(1, self.registers) for vectors in range(1, self.registers)
                 if rows * vectors + vectors + 1 <= self.registers and vectors * self.lanes <= columns]
        rows, vectors = self.random.choices(tiles, [rows * vectors for rows, vectors in tiles])[0]
        return rows, vectors * self.lanes

    def nest(self, columns):
        rows, width = self.tile(columns)
        panels = [0] + [width << i for i in range(1, 16) if width << i < columns]
        return {"rows": rows, "columns": width, "panel": self.random.choice(panels),
                "rows_outside": self.random.random() < 0.5}

    def draw(self):
        nests = [self.nest(self.inner), self.nest(self.columns)]
        step = math.lcm(*(nest["rows"] for nest in nests))
        parts = 2 ** self.random.randrange(int(math.log2(self.rows)))
        return {"block": -(-self.rows // parts // step) * step, "nests": nests}

    def product(self, equation, nest, column, reduced):
        """The loops of one product inside of a block."""
        loops = [f"seq {column}:{nest['columns']}", f"seq {self.row}:{nest['rows']}"]
        if nest["rows_outside"]:
            loops.reverse()
        if nest["panel"]:
            loops.insert(0, f"seq {column}:{nest['panel']}")

        def everywhere(statement):
            return (f"unroll {self.row}:1 {{ unroll {column}:{self.lanes} {{ lane {column}:1 {{ {statement} {equation} "
                    "} } }")

        body = [everywhere("init"), f"seq {reduced}:1 {{", everywhere("compute"), "}", everywhere("store")]
        return [*(f"{loop} {{" for loop in loops), *body, "}" * len(loops)]

    def written(self, schedule):
        """The decisions with this schedule instead of the search's own."""
        first, second = schedule["nests"]
        lines = ["  tree {", f"block {self.row}:{schedule['block']} {{",
                 *self.product("e0", first, self.between, self.reduced),
                 *self.product("e1", second, self.column, self.between), "} }", "}", ""]
        return self.head + "\n".join(lines)

    def compiled(self, wanted):
        """The search's own schedule and others, `wanted` together, each with its bundle and predicted time."""
        rows, seen = [self.compile("own", self.text, 0)], set()
        for _ in range(DRAWS * wanted):
            if len(rows) >= wanted:
                break
            schedule = self.draw()
            if str(schedule) in seen:
                continue
            seen.add(str(schedule))
            try:
                rows.append(self.compile(schedule, self.written(schedule), len(seen)))
            except bundle.Failed as failure:
                self.refused.append(f"{schedule}: {failure}")
        if self.refused:
            print(f"== {self.path}: {len(self.refused)} of {len(seen)} schedules are refused: {self.refused[0]}",
                  file=sys.stderr)
        return rows

    def compile(self, schedule, text, number):
        name = os.path.join(self.folder, f"candidate-{number}")
        with open(f"{name}.txt", "w", encoding="utf-8") as file:
            file.write(text)
        options = [*FUSEC, f"--decisions={name}.txt"]
        return {"schedule": schedule, "bundle": f"{name}.bundle",
                "predicted_ms": compileModel(self.path, f"{name}.bundle", options)["predicted_ms"]}
