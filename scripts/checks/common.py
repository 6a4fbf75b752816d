"""What the checks share: the list of the project's files, and how a problem is reported."""

import os
from dataclasses import dataclass
from functools import cached_property

# In data-flow order, as in the project's CMakeLists.txt.
STAGES = (
    "Support Target Graph Onnx Expr Search Cost Gir Tiling Fusion Codegen Bundle Runtime Reference Driver"
).split()

CPP_SUFFIXES = (".cpp", ".h", ".c", ".cc", ".hpp", ".def")
LONGEST_LINE = 120  # columns
BINARY_SUFFIXES = (".onnx", ".npy", ".npz", ".pb", ".bin", ".bundle", ".gz", ".xz", ".png", ".ptx", ".cubin")


@dataclass(frozen=True)
class Problem:
    path: str
    line: int  # 0 where the whole file is meant
    text: str

    def __str__(self):
        return f"{self.path}:{self.line}: {self.text}" if self.line else f"{self.path}: {self.text}"


class Tree:
    """The files of a checkout without build results; paths are relative to its root and use `/`."""

    def __init__(self, root):
        self.root = root
        self.contents = {}

    @cached_property
    def files(self):
        found = []
        for folder, folders, names in os.walk(self.root):
            relative = os.path.relpath(folder, self.root)
            folders[:] = sorted(
                f for f in folders if f not in (".git", "__pycache__", ".cache") and (relative, f) != (".", "build")
            )
            found += (os.path.normpath(os.path.join(relative, name)) for name in sorted(names))
        return [path for path in found if not os.path.islink(os.path.join(self.root, path))]

    def text(self, path):
        if path not in self.contents:
            with open(os.path.join(self.root, path), encoding="utf-8", errors="replace", newline="") as file:
                self.contents[path] = file.read()
        return self.contents[path]

    def lines(self, path):
        return enumerate(self.text(path).split("\n"), 1)

    def textFiles(self):
        return [path for path in self.files if not path.endswith(BINARY_SUFFIXES)]

    def sources(self, *folders):
        return [
            path for path in self.files
            if path.endswith(CPP_SUFFIXES) and (not folders or path.startswith(folders))
        ]
