"""Advice names options that exist: each --option in a C++ string of lib/ and tools/ is one that a tool registers."""

import re

from common import Problem

STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
OPTION = re.compile(r"(?<![\w-])--([a-z][a-z0-9-]*[a-z0-9])")
# As CLI11 takes it: names alone, separated by commas.
REGISTERED = re.compile(r"^(?:-\w,)?--[a-z][a-z0-9-]*(?:,--?[\w-]+)*$")
BUILT_IN = {"help", "version"}
# Of the programs that fusec runs: ptxas and lld.
FOREIGN = {"build-id", "hash-style", "no-undefined", "split-compile", "temp-dir"}


def check(tree):
    sources = [path for path in tree.files if path.endswith((".cpp", ".h")) and path.startswith(("lib/", "tools/"))]
    known = BUILT_IN | FOREIGN
    for path in sources:
        if path.startswith("tools/"):
            for text in STRING.findall(tree.text(path)):
                if REGISTERED.match(text):
                    known.update(OPTION.findall(text.replace(",", " ")))
    return [
        Problem(path, number, f"no tool has the option --{name}")
        for path in sources
        for number, line in tree.lines(path)
        for text in STRING.findall(line)
        for name in OPTION.findall(text)
        if name not in known
    ]
