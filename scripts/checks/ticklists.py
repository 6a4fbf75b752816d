"""The tick lists of lib/README.md are those of the examples in their headings: what they name exists, each place that
begins an item names the example (of a folder, some file there), and no other source under lib/ does but in comments.
The glossary is short, and what it quotes is a word of the sources or the name of one."""

import os
import re

from common import Problem

PAGE = "lib/README.md"
MOST_WORDS = 40  # of the glossary
COMMENT = re.compile(r"//.*")
SECTION = re.compile(r"^### (.*)$")
ITEM = re.compile(r"^- \[ \] (?:`([^`]+)`)?")
WORD = re.compile(r"`([^`]+)`")
PATH = re.compile(r"`((?:lib|scripts|include|tools|test|models)/[\w./-]+|README\.md)`")


def check(tree):
    if PAGE not in tree.files:
        return [Problem(PAGE, 0, "missing")]
    problems = []
    heading, examples, places = 0, [], set()

    def close():
        """What a list lacks shows at its end."""
        for path in tree.sources("lib/") if examples else ():
            if path not in places and names(COMMENT.sub("", tree.text(path)), examples):
                problems.append(Problem(PAGE, heading, f"{path} names {examples[0]}, and the list lacks it"))

    for number, line in tree.lines(PAGE):
        section = SECTION.match(line)
        if section or line.startswith("## "):
            close()
            heading, examples, places = number, WORD.findall(section[1]) if section else [], set()
        if not examples:
            continue
        for path in PATH.findall(line):
            if not below(tree, path):
                problems.append(Problem(PAGE, number, f"{path} does not exist"))
        item = ITEM.match(line)
        if item and item[1] and (files := below(tree, item[1])):
            for path in PATH.findall(line.split(":")[0]):
                places.update(below(tree, path))
            if not any(names(tree.text(file), examples) for file in files):
                problems.append(Problem(PAGE, number, f"{item[1]} does not name {' or '.join(examples)}"))
    close()
    glossary = re.search(r"^## Words\n(.*?)^## ", tree.text(PAGE), re.DOTALL | re.MULTILINE)
    count = len(re.findall(r"^\| (?!word \|)", glossary[1], re.MULTILINE)) if glossary else 0
    if count > MOST_WORDS:
        problems.append(Problem(PAGE, 0, f"{count} words: more than {MOST_WORDS} nobody learns"))
    sources = tree.sources("lib/")
    stems = {os.path.basename(path).split(".")[0] for path in sources}
    for cell in re.findall(r"^\|([^|]*)\|", glossary[1], re.MULTILINE) if glossary else ():
        for word in WORD.findall(cell):
            if word not in stems and not any(names(tree.text(path), [word]) for path in sources):
                problems.append(Problem(PAGE, 0, f"the glossary has {word}, which no source under lib/ names"))
    return problems


def below(tree, path):
    """The file, or all files of the folder."""
    return [file for file in tree.files if file == path or file.startswith(path.rstrip("/") + "/")]


def names(text, examples):
    return any(re.search(rf"\b{re.escape(example)}\b", text) for example in examples)
