"""Brings the CHECK lines of one prefix up to a text that FileCheck reads: what scripts/update-checks is made of.

A prefix's lines come in blocks: PREFIX or PREFIX-LABEL, which may match anywhere behind the block before, and the
PREFIX-NEXT and PREFIX-EMPTY lines that follow. Blocks are aligned with the text at the least cost; between two lines of
a block the text may have lines that the test does not know yet, or lack some that it does. PREFIX-NOT lines stay where
they are."""

import difflib
import re

GONE = 0.7  # cost of a check line without a line of the text; a line that differs costs as much as it differs
NEW = 0.6  # cost of a line of the text, inside a block, without a check line
LEAST_ALIKE = 0.5  # lines that have less in common are not the same line, changed
MOST_GONE = 0.5  # of a prefix's lines: beyond that it is another text
BORDERS = (12, 6, 3)  # so many characters beside a pattern must be the same for it to be found again


class ByHand(Exception):
    """Why a prefix is left to an author."""


class Line:
    """One check line: text before the directive, the directive, white space, pattern."""

    def __init__(self, number, match, exact):
        self.number = number  # of the file's lines, from 0
        self.lead, self.kind = match["lead"], match["kind"] or ""
        self.space = "" if exact else match["space"]
        self.pattern = match["space"] + match["text"] if exact else match["text"]


def litOf(build):
    with open(f"{build}/CMakeCache.txt", encoding="utf-8") as file:
        return re.search(r"^FUSEC_LIT:FILEPATH=(.*)$", file.read(), re.MULTILINE)[1]


def prefixOf(arguments):
    for index, argument in enumerate(arguments):
        match = re.match(r"--?check-prefix(?:es)?(?:=(.*))?$", argument)
        if match:
            return match[1] if match[1] is not None else arguments[index + 1]
    return "CHECK"


def parse(lines, prefix, exact):
    """Its lines in order; `exact`: white space in front of a pattern is part of it."""
    directive = re.compile(
        rf"(?P<lead>(?:.*[^\w-])?){re.escape(prefix)}(?:-(?P<kind>NEXT|EMPTY|LABEL|SAME|NOT|DAG|COUNT-\d+))?:"
        r"(?P<space>[ \t]*)(?P<text>.*)$"
    )
    found = []
    for number, line in enumerate(lines):
        match = directive.match(line)
        if match and not re.search(r"\b(RUN|COM|DEFINE):", match["lead"]):
            found.append(Line(number, match, exact))
    return found


class Matcher:
    """FileCheck's view of patterns and lines under its flags."""

    def __init__(self, arguments):
        self.full = any(a.lstrip("-") == "match-full-lines" for a in arguments)
        self.strict = any(a.lstrip("-") == "strict-whitespace" for a in arguments)

    def spaces(self, text):
        return text if self.strict else re.sub(r"[ \t]+", " ", text)

    def line(self, text):
        return self.spaces(text) if self.strict else self.spaces(text).strip()

    def parts(self, pattern):
        """Literal texts, and between each two of them a pattern as written and as an expression of Python."""
        literals, patterns = [""], []
        for token in re.split(r"(\{\{.*?\}\}+|\[\[.*?\]\]+)", pattern):
            if token.startswith("{{"):
                patterns.append((token, token[2:-2]))
                literals.append("")
            elif token.startswith("[[#"):
                raise ByHand("numeric variables")
            elif token.startswith("[[") and re.match(r"\[\[\w+(:.*)?\]\]$", token):
                patterns.append((token, token[2:-2].split(":", 1)[1] if ":" in token else r"\S+?"))
                literals.append("")
            else:
                literals[-1] += token
        return [self.spaces(literal) for literal in literals], patterns

    def literal(self, text):
        """An expression for `text`, in which white space is of any length unless it counts."""
        return re.escape(text) if self.strict else r"[ \t]+".join(map(re.escape, re.split(r"[ \t]+", text)))

    def matches(self, pattern, line):
        literals, patterns = self.parts(pattern)
        expression = re.escape(literals[0])
        for (_, inner), literal in zip(patterns, literals[1:]):
            expression += f"(?:{inner})" + re.escape(literal)
        try:
            compiled = re.compile(expression if self.strict else expression.strip())
        except re.error:
            raise ByHand(f"a pattern that Python does not read: {pattern}") from None
        return bool((compiled.fullmatch if self.full else compiled.search)(self.line(line)))

    def likeness(self, pattern, line):
        said = "".join(self.parts(pattern)[0]).strip()
        matcher = difflib.SequenceMatcher(None, said, self.line(line).strip(), autojunk=False)
        if matcher.real_quick_ratio() < LEAST_ALIKE or matcher.quick_ratio() < LEAST_ALIKE:
            return 0
        return matcher.ratio()

    def changed(self, pattern, line):
        """`line` with the patterns of `pattern`, each found again by what stands beside it."""
        literals, patterns = self.parts(pattern)
        rest, made = line if self.strict and self.full else line.strip(), ""
        for (written, inner), before, behind in zip(patterns, literals, literals[1:]):
            borders = [(before[-many:], behind[:many]) for many in BORDERS] + [(before, ""), ("", behind)]
            tries = (f"{self.literal(a)}(?P<here>{inner}){self.literal(b)}" for a, b in borders if a or b)
            found = next(filter(None, (re.search(expression, rest) for expression in tries)), None)
            if not found:
                raise ByHand(f"{written} fits nothing in: {line.strip()}")
            made += escaped(rest[:found.start("here")]) + written
            rest = rest[found.end("here"):]
        return made + escaped(rest)


def escaped(text):
    return re.sub(r"\{\{+|\[\[+", lambda match: "{{" + "".join("\\" + c for c in match[0]) + "}}", text)


def aligned(checks, lines, matcher):
    """For each check line the number of its line, or None, and whether that line fits as it is."""
    wanted = []
    for check in checks:
        row = []
        for line in lines:
            if check.kind == "EMPTY":
                row.append(0 if not line.strip() else None)
            elif matcher.matches(check.pattern, line):
                row.append(0)
            else:
                alike = matcher.likeness(check.pattern, line) if line.strip() else 0
                row.append(1 - alike if alike >= LEAST_ALIKE else None)
        wanted.append(row)

    # best[inside][j]: the least cost of the check lines from i on and the text's lines from j on, where a line of i's
    # block has been found before (inside) or not; choice tells the first step.
    count = len(lines)
    best = [[0.0] * (count + 1), [0.0] * (count + 1)]
    choices = []
    for i in range(len(checks) - 1, -1, -1):
        here, choice = [[0.0] * (count + 1), [0.0] * (count + 1)], [[""] * (count + 1), [""] * (count + 1)]
        isFirst = checks[i].kind in ("", "LABEL")
        for j in range(count, -1, -1):
            for inside in (0, 1):
                found = inside and not isFirst  # a line of this block stands before
                options = [(best[1 if found else 0][j] + GONE, "gone")]
                if j < count:
                    if wanted[i][j] is not None:
                        options.insert(0, (best[1][j + 1] + wanted[i][j], "here"))
                    options.append((here[inside][j + 1] + (NEW if found else 0), "later"))
                here[inside][j], choice[inside][j] = min(options, key=lambda option: option[0])
        best = here
        choices.append(choice)
    choices.reverse()

    places, i, j, inside = [], 0, 0, 0
    while i < len(checks):
        step = choices[i][inside][j]
        if step == "later":
            j += 1
            continue
        if step == "here":
            places.append((j, wanted[i][j] == 0))
            inside, j = 1, j + 1
        else:
            places.append((None, False))
            if checks[i].kind in ("", "LABEL"):
                inside = 0
        i += 1
    return places


def indented(line, before, printed, matcher):
    """`line` as a pattern, behind the check line `before` that `printed` fits: indented, if that is."""
    if matcher.strict and matcher.full:
        return escaped(line)
    extra = len(before.space) - (len(printed) - len(printed.lstrip()))
    return " " * extra + escaped(line.rstrip()) if extra > 0 else before.space + escaped(line.strip())


def rewritten(text, prefix, output, arguments):
    """`text`, a test file, with the lines of `prefix` as `output` wants them."""
    lines = text.split("\n")
    matcher = Matcher(arguments)
    found = parse(lines, prefix, matcher.strict and matcher.full)
    for check in found:
        if check.kind in ("SAME", "DAG") or check.kind.startswith("COUNT"):
            raise ByHand(f"a line {prefix}-{check.kind}")
    checks = [check for check in found if check.kind != "NOT"]
    printed = output.split("\n")
    if printed and not printed[-1]:
        printed.pop()
    if not checks or not printed:
        raise ByHand("nothing is printed" if checks else "it has no lines to align")
    places = aligned(checks, printed, matcher)
    if sum(place is None for place, _ in places) > MOST_GONE * len(checks):
        raise ByHand("most of its lines are gone")

    replaced = {}  # line number of the file -> its new lines
    last = None  # of the text, in this block
    for check, (place, fits) in zip(checks, places):
        isFirst = check.kind in ("", "LABEL")
        if isFirst:
            last = None
        if place is None:
            replaced[check.number] = []
            continue
        new = []
        if last is not None:
            for line in printed[last + 1:place]:
                isEmpty = not line.strip()
                shown = "" if isEmpty else indented(line, before, printed[last], matcher)
                new.append(f"{check.lead}{prefix}-{'EMPTY' if isEmpty else 'NEXT'}:{shown}")
        # The first line of a block is gone: the next one takes its part.
        kind = "" if last is None and not isFirst else f"-{check.kind}" if check.kind else ""
        if kind == "" and not isFirst and check.kind == "EMPTY":
            raise ByHand("a block would begin with an empty line")
        pattern = check.pattern if fits else matcher.changed(check.pattern, printed[place])
        new.append(f"{check.lead}{prefix}{kind}:{check.space}{pattern}")
        replaced[check.number] = new
        last, before = place, check
    return "\n".join(out for number, line in enumerate(lines) for out in replaced.get(number, [line]))
