"""Files stay small enough to be read in one go: one of over 700 lines needs a reason in long-files.txt. What counts
more, the size of classes and functions, is measured by shapes.py."""

import os

from common import Problem

REASON_FROM = 700
MEDIAN_BELOW = 200
LIST = "scripts/checks/long-files.txt"
SUFFIXES = (".cpp", ".h", ".c", ".cc", ".def", ".fbs", ".py", ".sh", ".cmake", ".ll", ".txt", ".test")


def check(tree):
    problems = []
    listed = {}
    if LIST in tree.files:
        for number, line in tree.lines(LIST):
            words = line.split(None, 2)
            if not words or words[0].startswith("#"):
                continue
            if len(words) < 3 or not words[1].isdigit():
                problems.append(Problem(LIST, number, "expected: path limit reason"))
                continue
            listed[words[0]] = (int(words[1]), number)

    sizes = []
    for path in tree.files:
        folder, name = os.path.split(path)
        if not (name.endswith(SUFFIXES) or (folder == "scripts" and "." not in name)):
            continue
        count = tree.text(path).count("\n")
        if path.startswith("lib/") and path.endswith((".cpp", ".h")):
            sizes.append(count)
        limit, _ = listed.get(path, (0, 0))
        if count > REASON_FROM and not limit:
            problems.append(Problem(path, 0, f"{count} lines: over {REASON_FROM} needs a reason in {LIST}"))
        elif limit and count > limit:
            problems.append(Problem(path, 0, f"{count} lines: grown past the {limit} that {LIST} allows"))
        elif limit and count <= REASON_FROM:
            problems.append(Problem(path, 0, f"{count} lines: needs no entry in {LIST}"))
    for path, (_, number) in listed.items():
        if path not in tree.files:
            problems.append(Problem(LIST, number, f"{path} does not exist"))
    if sizes and sorted(sizes)[len(sizes) // 2] >= MEDIAN_BELOW:
        problems.append(Problem("lib", 0, f"the median file is not below {MEDIAN_BELOW} lines"))
    return problems
