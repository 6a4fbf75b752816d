"""What text files may not hold: paths of one machine, registry hosts, unfinished business, stray white space, and in
lib/ comments that begin with a phrase whose head is missing."""

import re

from common import LONGEST_LINE, Problem

# Spelled in pieces, so that this file passes its own check.
MACHINE_PATH = re.compile(r"(?<![\w.<%$}*-])/(?:wo" r"rk|ho" r"me|Us" r"ers|ro" r"ot|workspa" r"ce)/\w")
REGISTRY = re.compile(
    r"py" r"pi\.org|pythonho" r"sted\.org|deb\.debi" r"an\.org|archive\.ubun" r"tu\.com|index-" r"url"
)
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
# A comment says what a thing does or returns. A genitive or "the same" in front leaves that to guess.
COMMENT = re.compile(r"\s*(///?)(?: |$)")
HEADLESS = re.compile(r"\s*///? (Of|The same|Else|Those|Which|Whose|And|Such|So many|As many|(In|By|To|From) which)\b")
MAY_BE_WIDE = tuple(".def .txt .ll .json .graph .expr .plan .schedule .gir .test .proto".split())


def headlessComments(tree, path):
    """Problems of comments on lines of their own: // and /// begin one each."""
    problems, before = [], None
    for number, line in tree.lines(path):
        comment = COMMENT.match(line)
        mark = comment[1] if comment else None
        if mark and mark != before and (headless := HEADLESS.match(line)):
            text = f"a comment begins with '{headless[1]}': begin with what the thing does or returns"
            problems.append(Problem(path, number, text))
        before = mark
    return problems


def check(tree):
    problems = []
    for path in tree.textFiles():
        text = tree.text(path)
        if "\0" in text:
            continue
        if path.startswith("lib/") and path.endswith((".h", ".cpp")):
            problems += headlessComments(tree, path)
        if text and not text.endswith("\n"):
            problems.append(Problem(path, 0, "no newline at the end"))
        for number, line in tree.lines(path):
            if MACHINE_PATH.search(line):
                problems.append(Problem(path, number, "a path of one machine"))
            if REGISTRY.search(line):
                problems.append(Problem(path, number, "a registry's host: the user's own configuration decides"))
            if UNFINISHED.search(line):
                problems.append(Problem(path, number, "unfinished: do it, or refuse with a diagnostic"))
            if line != line.rstrip() and not path.endswith(".md"):
                problems.append(Problem(path, number, "white space at the end"))
            # Rows of tables cannot be broken, and what a program printed is shown as it is.
            isShown = path.endswith(".md") and line.startswith(("|", "    "))
            if len(line) > LONGEST_LINE and not isShown and not path.endswith(MAY_BE_WIDE):
                problems.append(Problem(path, number, f"over {LONGEST_LINE} columns"))
    return problems
