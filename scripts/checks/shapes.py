"""Classes, functions and parameter lists stay small enough to be held in the head. What is over a limit stands in
large-code.txt with a limit of its own and the reason; an entry that is no longer needed is a problem too.

A class is measured over all its files: its own body, its member functions elsewhere, and free functions that take it
by a reference through which they can change it; the functions of its bases count too, an override once. ctags says
where each begins and ends."""

import collections
import json
import os
import re
import shutil
import subprocess

from common import Problem

METHODS, LINES, FUNCTION, PARAMETERS = 25, 800, 80, 6
LIST = "scripts/checks/large-code.txt"
MEASURES = {"methods": METHODS, "lines": LINES, "function": FUNCTION, "parameters": PARAMETERS}
SLACK = 0.9  # of a limit in the list is there at least
FOLDERS = ("lib", "include", "tools")


def read_tags(tree):
    folders = [folder for folder in FOLDERS if os.path.isdir(os.path.join(tree.root, folder))]
    if not folders:
        return []
    command = ["ctags", "-R", "--languages=C++", "--langmap=C++:.cpp.h", "--kinds-C++=fpcs", "--fields=+neSsi",
 "--output-format=json", "-f", "-", *folders]
    run = subprocess.run(command, cwd=tree.root, capture_output=True, text=True, check=True)
    return [tag for tag in map(json.loads, run.stdout.splitlines()) if tag["_type"] == "tag"]


def parameters(signature):
    """Of "(int a, std::map<int, int> b)": its two parts."""
    parts, depth = [""], 0
    for c in signature[1:signature.rindex(")")]:
        depth += (c in "<([{") - (c in ">)]}")
        if c == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts if part.strip()]


def type_of(parameter):
    """Of "const Loops &loops = {}": constLoops&, as where the parameter has no name."""
    return re.sub(r"\s", "", re.sub(r"(?<=[\s&*>])\w+$", "", re.sub(r"\s*=.*", "", parameter)))


def scope_of(tag):
    """What ctags calls __anon and a number, a namespace without a name, is the file's own."""
    return re.sub(r"__anon\w+", f"({tag['path']})", tag.get("scope", ""))


def full_name(tag):
    return "::".join(filter(None, (scope_of(tag), tag["name"])))


def measure(tags):
    """(measure, name) -> (how many, path, line), of everything there is."""
    classes, by_name = collections.defaultdict(list), collections.defaultdict(set)
    for tag in tags:
        if tag["kind"] in ("class", "struct") and "end" in tag:
            full = full_name(tag)
            classes[full].append(tag)
            by_name[tag["name"]].add(full)
    methods, lines = collections.defaultdict(set), collections.Counter()
    for full, bodies in classes.items():
        lines[full] = sum(body["end"] - body["line"] + 1 for body in bodies)
    found = {}

    def note(kind, name, count, tag):
        key = (kind, name)
        if count > found.get(key, (0,))[0]:
            found[key] = (count, tag["path"], tag["line"])

    for tag in tags:
        if tag["kind"] not in ("function", "prototype"):
            continue
        scope, given = scope_of(tag), parameters(tag.get("signature", "()"))
        isDefinition = tag["kind"] == "function" and "end" in tag
        length = tag["end"] - tag["line"] + 1 if isDefinition else 0
        name = full_name(tag)
        note("function", name, length, tag)
        note("parameters", name, len(given), tag)
        owners = set()
        if scope in classes:
            owners.add(scope)
        else:
            for part in given:
                reference = re.match(r"(?:\w+::)*(\w+) ?&(?!&)", part)
                known = by_name[reference[1]] if reference else set()
                own = {full for full in known if any(body["path"] == tag["path"] for body in classes[full])}
                if len(own or known) == 1:
                    owners |= own or known
        for owner in owners:
            types = tuple(map(type_of, given))
            methods[owner].add((tag["name"], types))
            isInside = any(body["path"] == tag["path"] and body["line"] <= tag["line"] <= body["end"]
                           for body in classes[owner])
            lines[owner] += 0 if isInside else length
    def all_methods(owner):
        """What a reader of the class meets: those of its bases too, each once however often it is overridden."""
        found = set(methods[owner])
        for body in classes[owner]:
            for base in re.findall(r"[\w:]+", body.get("inherits", "")):
                near = by_name[base.split("::")[-1]]
                own = {full for full in near if full.rpartition("::")[0] == owner.rpartition("::")[0]} or near
                if len(own) == 1 and owner not in own:
                    found |= all_methods(*own)
        return found

    for owner, bodies in classes.items():
        note("methods", owner, len(all_methods(owner)), bodies[0])
        note("lines", owner, lines[owner], bodies[0])
    return found


WORDS = {
    "methods": "functions of the class or that change it",
    "lines": "lines of the class over all its files",
    "function": "lines of the function",
    "parameters": "parameters",
}


def check(tree):
    if not shutil.which("ctags"):
        return [Problem("scripts/checks/shapes.py", 0, "ctags is missing; scripts/setup installs it")]
    problems, listed = [], {}
    for number, line in tree.lines(LIST) if LIST in tree.files else []:
        words = line.split(None, 3)
        if not words or words[0].startswith("#"):
            continue
        if len(words) < 4 or words[1] not in MEASURES or not words[2].isdigit():
            problems.append(Problem(LIST, number, "expected: name methods|lines|function|parameters limit reason"))
            continue
        listed[words[1], words[0]] = (int(words[2]), number)
    found = measure(read_tags(tree))
    for (kind, name), (count, path, line) in sorted(found.items()):
        limit = MEASURES[kind]
        allowed, number = listed.get((kind, name), (limit, 0))
        if count > allowed:
            problems.append(Problem(path, line, f"{name} has {count} {WORDS[kind]}: over {allowed}" +
                                    (f", which {LIST} allows" if number else f" needs a reason in {LIST}")))
        elif number and count <= limit:
            problems.append(Problem(LIST, number, f"{name}: {count} {WORDS[kind]} no longer need the entry"))
        elif number and count < SLACK * allowed:
            problems.append(Problem(LIST, number, f"{name}: {count} {WORDS[kind]}; {allowed} lets it grow unseen"))
    for (kind, name), (_, number) in listed.items():
        if (kind, name) not in found:
            problems.append(Problem(LIST, number, f"{name} does not exist"))
    return problems
