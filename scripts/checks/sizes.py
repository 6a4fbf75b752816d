"""Files stay small enough to be read in one go. Over 400 lines a file needs a reason, over 700 an exemption; both stand
in long-files.txt."""

import os

from common import Problem

REASON_FROM = 400
EXEMPTION_FROM = 700
MEDIAN_BELOW = 200
LIST = "scripts/checks/long-files.txt"
SUFFIXES = (".cpp", ".h", ".c", ".cc", ".def", ".fbs", ".py", ".sh", ".cmake", ".ll", ".txt", ".test")


def check(tree):
    problems = []
    listed = {}
    if LIST in tree.files:
        for number, line in tree.lines(LIST):
            words = line.split(None, 3)
            if not words or words[0].startswith("#"):
                continue
            if len(words) < 4 or words[1] not in ("reason", "exemption") or not words[2].isdigit():
                problems.append(Problem(LIST, number, "expected: path reason|exemption limit text"))
                continue
            listed[words[0]] = (words[1], int(words[2]), number)

    sizes = []
    for path in tree.files:
        folder, name = os.path.split(path)
        if not (name.endswith(SUFFIXES) or (folder == "scripts" and "." not in name)):
            continue
        count = tree.text(path).count("\n")
        if path.startswith("lib/") and path.endswith((".cpp", ".h")):
            sizes.append(count)
        kind, limit, _ = listed.get(path, ("", 0, 0))
        if count > EXEMPTION_FROM and kind != "exemption":
            problems.append(Problem(path, 0, f"{count} lines: over {EXEMPTION_FROM} needs an exemption in {LIST}"))
        elif count > REASON_FROM and not kind:
            problems.append(Problem(path, 0, f"{count} lines: over {REASON_FROM} needs a reason in {LIST}"))
        elif kind and count > limit:
            problems.append(Problem(path, 0, f"{count} lines: grown past the {limit} that {LIST} allows"))
        elif kind and count <= REASON_FROM:
            problems.append(Problem(path, 0, f"{count} lines: no longer needs its entry in {LIST}"))
    for path, (_, _, number) in listed.items():
        if path not in tree.files:
            problems.append(Problem(LIST, number, f"{path} does not exist"))
    if sizes and sorted(sizes)[len(sizes) // 2] >= MEDIAN_BELOW:
        problems.append(Problem("lib", 0, f"the median file is not below {MEDIAN_BELOW} lines"))
    return problems
