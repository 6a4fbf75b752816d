"""Every row of Diagnostics.def has a test that compares a whole line of its text."""

import re

from common import Problem

TABLE = "lib/Support/Diagnostics.def"
ROW = re.compile(r'^FUSEC_DIAG\(\w+, "([EW]\d{4})"')
# In a text test: PREFIX: error[E1234] text, or warning[W1234] text, where FileCheck matches full lines.
LINE = re.compile(r"^([\w-]+?)(?:-NEXT|-SAME)?:\s*(?:error|warning)\[([EW]\d{4})\] (.*)$", re.MULTILINE)
# In a unit test: == "error[E1234] text
EQUAL = re.compile(r'==\s*"(?:error|warning)\[([EW]\d{4})\] ([^"]{8,})')
LEAST_TEXT = 12  # characters outside FileCheck's patterns


def covered(tree):
    codes = set()
    for path in tree.files:
        if not path.startswith("test/"):
            continue
        if path.endswith(".cpp"):
            codes.update(code for code, _ in EQUAL.findall(tree.text(path)))
        elif path.endswith(".test"):
            text = tree.text(path)
            # The flag may stand in a command that a DEFINE line names.
            named = re.findall(r"^DEFINE: (%\{\w+\}) =.*--match-full-lines", text, re.MULTILINE)
            marks = ["--match-full-lines", *named]
            full = [run for run in re.findall(r"^RUN:.*$", text, re.MULTILINE) if any(mark in run for mark in marks)]
            prefixes = {p for run in full for p in re.findall(r"--check-prefix(?:es)?[= ](\S+)", run) or ["CHECK"]}
            for prefix, code, said in LINE.findall(text):
                if prefix in prefixes and len(re.sub(r"\{\{.*?\}\}", "", said)) >= LEAST_TEXT:
                    codes.add(code)
    return codes


def check(tree):
    if TABLE not in tree.files:
        return []
    codes = covered(tree)
    return [
        Problem(TABLE, number, f"{match[1]} has no test under test/ with its full text")
        for number, line in tree.lines(TABLE)
        if (match := ROW.match(line)) and match[1] not in codes
    ]
