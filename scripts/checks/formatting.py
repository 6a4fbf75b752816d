"""C and C++ files are as clang-format-19 writes them; `scripts/format` does it. Tables in .def files are left alone."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor

from common import Problem


def formatter():
    return next((path for path in map(shutil.which, ("clang-format-19", "clang-format")) if path), None)


def check(tree):
    program = formatter()
    if not program:
        return [Problem(".clang-format", 0, "clang-format-19 not found: run scripts/setup")]
    files = [path for path in tree.sources("lib/", "include/", "tools/", "test/") if not path.endswith(".def")]

    def differs(path):
        command = [program, "--dry-run", "--Werror", "--style=file", path]
        return subprocess.run(command, cwd=tree.root, capture_output=True, check=False).returncode != 0

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return [Problem(path, 0, "not formatted: run scripts/format") for path, bad in
                zip(files, pool.map(differs, files)) if bad]
