"""The maps against the tree: stage READMEs, the project README, and the file lists of CMake."""

import os
import re

from common import LONGEST_LINE, STAGES, Problem

MOST_WORDS = 900  # of a stage, without the bars of tables
TOP_LEVEL = set("CMakeLists.txt CMakePresets.json LICENSE README.md include lib models scripts test tools".split())
# A link of a page, or a path that it quotes.
POINTER = re.compile(r"\]\((?!https?:|#)([^)#]+)\)|`((?:lib|scripts|include|tools)/[\w./-]+)`")
PAGE = re.compile(r"((lib(/\w+)*|scripts|models|tools/\w+)/)?[A-Z]+\.md")
# A source by its name or the end of its path.
SOURCE = re.compile(r"`([\w./-]*\w\.(?:h|cpp|def|fbs))`")


def check(tree):
    problems = []
    for path in sorted({path.split("/")[0] for path in tree.files}):
        if path not in TOP_LEVEL and not path.startswith("."):
            problems.append(Problem(path, 0, "not one of the top-level entries"))

    folders = sorted({path.split("/")[1] for path in tree.files if path.startswith("lib/") and path.count("/") > 1})
    for folder in folders:
        if folder not in STAGES:
            problems.append(Problem(f"lib/{folder}", 0, "not a stage"))
    for stage in STAGES:
        problems += stageProblems(tree, stage)

    cmake = tree.text("CMakeLists.txt") if "CMakeLists.txt" in tree.files else ""
    if not re.search(r"\s+".join(STAGES), cmake):
        problems.append(Problem("CMakeLists.txt", 0, "FUSEC_STAGES is not the list of stages in data-flow order"))

    stages = tree.text("lib/README.md") if "lib/README.md" in tree.files else ""
    for stage in STAGES:
        if not re.search(rf"\blib/{stage}\b", stages):
            problems.append(Problem("lib/README.md", 0, f"does not name lib/{stage}"))
    for page in tree.files:
        if PAGE.fullmatch(page):
            problems += pointerProblems(tree, page)
    return problems


def pointerProblems(tree, page):
    """What a page points at must be there: links by its own folder, quoted paths by the project's, sources by name."""
    for number, line in tree.lines(page):
        for match in POINTER.finditer(line):
            target = os.path.join(os.path.dirname(page), match[1]) if match[1] else match[2]
            target = os.path.normpath(target)
            if not any(path == target or path.startswith(target + "/") for path in tree.files):
                yield Problem(page, number, f"names {target}, which does not exist")
        for name in SOURCE.findall(POINTER.sub("", line)):
            if not any(f"/{path}".endswith(f"/{name}") for path in tree.files):
                yield Problem(page, number, f"names {name}, which does not exist")


def stageProblems(tree, stage):
    path = f"lib/{stage}/README.md"
    if path not in tree.files:
        yield Problem(path, 0, "missing")
    else:
        text = tree.text(path)
        words = sum(1 for word in text.split() if word.strip("|-"))
        if words > MOST_WORDS:
            yield Problem(path, 0, f"{words} words: over {MOST_WORDS}")
        # Rows of tables included, which other pages may have wider.
        for number, line in tree.lines(path):
            if line.startswith("|") and len(line) > LONGEST_LINE:
                yield Problem(path, number, f"a row over {LONGEST_LINE} columns")

    lists = f"lib/{stage}/CMakeLists.txt"
    if lists not in tree.files:
        yield Problem(lists, 0, "missing")
        return
    listed = re.findall(r"^\s+([\w./-]+\.cpp)\)?\s*$", tree.text(lists), re.MULTILINE)
    if listed != sorted(listed):
        yield Problem(lists, 0, "sources are not sorted")
    present = {p[len(f"lib/{stage}/"):] for p in tree.files if p.startswith(f"lib/{stage}/") and p.endswith(".cpp")}
    for name in sorted(present - set(listed)):
        yield Problem(lists, 0, f"does not list {name}")
    for name in sorted(set(listed) - present):
        yield Problem(lists, 0, f"lists {name}, which does not exist")
