"""C and C++ files are as clang-format-19 writes them; `scripts/format` does it. Tables in .def files are left alone."""

import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from common import Problem

GROUP = 24


def formatter():
    return next((path for path in map(shutil.which, ("clang-format-19", "clang-format")) if path), None)


def check(tree):
    program = formatter()
    if not program:
        return [Problem(".clang-format", 0, "clang-format-19 not found: run scripts/setup")]
    files = [path for path in tree.sources("lib/", "include/", "tools/", "test/") if not path.endswith(".def")]

    # Starting the program costs more than a file: several at a time.
    def badOnes(some):
        command = [program, "--dry-run", "--Werror", "--style=file", *some]
        result = subprocess.run(command, cwd=tree.root, capture_output=True, text=True, check=False)
        named = set(re.findall(r"^(.+?):\d+:\d+: error", result.stderr, re.MULTILINE))
        return sorted(named) or (some if result.returncode else [])

    groups = [files[i:i + GROUP] for i in range(0, len(files), GROUP)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        bad = [path for paths in pool.map(badOnes, groups) for path in paths]
    return [Problem(path, 0, "not formatted: run scripts/format") for path in bad]
