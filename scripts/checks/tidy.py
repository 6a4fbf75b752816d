"""clang-tidy-19 over files that differ from what was there before, by `.clang-tidy`: `scripts/check --tidy [file]...`.

The compiler's options are those of build/release. A header is looked at through a source that includes it, its own one
where it has one. Headers hand on what they include, so of misc-include-cleaner only unused includes count."""

import collections
import json
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

import shapes
from common import Problem

COMMANDS = "build/release/compile_commands.json"
FOLDERS = ("lib/", "include/", "tools/", "test/")
FINDING = re.compile(r"^(/[^:\n]*):(\d+):\d+: (?:warning|error): (.*) \[([\w.,-]+)\]$", re.MULTILINE)
SIZE = re.compile(r"^function '(?:.*::)?([^':]+)' exceeds")


class Impossible(Exception):
    """Why nothing can be said of the files."""


def changed(root):
    """Files that are not as they were where this branch left origin/main, or as they are in HEAD."""
    def git(*words):
        run = subprocess.run(["git", "-C", root, *words], capture_output=True, text=True, check=False)
        return run.stdout.splitlines() if run.returncode == 0 else None

    if git("rev-parse", "--git-dir") is None:
        raise Impossible("no git checkout: name the files")
    base = git("merge-base", "origin/main", "HEAD") or ["HEAD"]
    top = ["--relative", "--diff-filter=d", "--name-only"]
    return (git("diff", *top, base[0]) or []) + (git("ls-files", "--others", "--exclude-standard") or [])


def compiled(root):
    path = os.path.join(root, COMMANDS)
    if not os.path.exists(path):
        raise Impossible(f"no {COMMANDS}: cmake --preset release")
    with open(path, encoding="utf-8") as commands:
        files = (os.path.join(entry["directory"], entry["file"]) for entry in json.load(commands))
        return {os.path.relpath(os.path.realpath(file), root) for file in files}


def includers(tree):
    """Files by the last part of what they include, with the whole of it."""
    found = collections.defaultdict(list)
    for path in tree.sources(*FOLDERS):
        for name in re.findall(r'^#include "([^"]+)"', tree.text(path), re.MULTILINE):
            found[os.path.basename(name)].append((name, path))
    return found


def unitOf(file, built, known):
    """The source that has a file's text: itself, of a header its own one or the nearest that includes it; else None."""
    own = os.path.splitext(file)[0] + ".cpp"
    if file in built or own in built:
        return file if file in built else own
    seen, waiting = {file}, [file]
    for header in waiting:
        for name, path in known[os.path.basename(header)]:
            if path not in seen and ("/" + header).endswith("/" + name):
                if path in built:
                    return path
                seen.add(path)
                waiting.append(path)
    return None


def largeFunctions(tree):
    """(path, name) of the functions that may be large, wherever they are declared."""
    if shapes.LIST not in tree.files:
        return set()
    rows = [line.split() for _, line in tree.lines(shapes.LIST) if not line.startswith("#")]
    listed = {row[0] for row in rows if len(row) > 1 and row[1] in ("function", "parameters")}
    return {(tag["path"], tag["name"]) for tag in shapes.read_tags(tree) if shapes.full_name(tag) in listed}


def check(tree, files):
    program = shutil.which("clang-tidy-19")
    if not program:
        raise Impossible("clang-tidy-19 not found: scripts/setup --tidy")
    root = os.path.realpath(tree.root)
    if files:
        files = [os.path.relpath(os.path.realpath(file), root) for file in files]
    else:
        files = changed(root)
    files = {file for file in files if file.startswith(FOLDERS) and file.endswith((".cpp", ".h"))}
    built, known, large = compiled(root), includers(tree), largeFunctions(tree)
    units = {file: unitOf(file, built, known) for file in files}
    for file in sorted(file for file, unit in units.items() if not unit):
        print(f"{file}: not looked at, since {COMMANDS} has no source with it")

    def findings(unit):
        command = [program, "-p", os.path.dirname(COMMANDS), "--quiet", f"--header-filter=^{re.escape(root)}/",
                   "--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-error", unit]
        run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
        found = []
        for path, line, text, name in FINDING.findall(run.stdout):
            where = os.path.relpath(path, root)
            size = SIZE.match(text)
            isAllowed = text.startswith("no header providing") or (size and (where, size[1]) in large)
            if "clang-diagnostic-error" in name:
                found.append(Problem(where, int(line), f"clang cannot compile it: {text} [{name}]"))
            elif where in files and not isAllowed:
                found.append(Problem(where, int(line), f"{text} [{name}]"))
        if run.returncode and not found:
            told = run.stderr.strip().splitlines() or ["nothing said"]
            found.append(Problem(unit, 0, f"clang-tidy ended with {run.returncode}: {told[-1]}"))
        return found

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        found = {problem for some in pool.map(findings, {*units.values()} - {None}) for problem in some}
    return sorted(found, key=lambda problem: (problem.path, problem.line, problem.text))
