"""Prints what the compiler says about one of the hostile cases, and its exit code:
say.py COMPILER WORK CASE [argument of the compiler]..."""

import pathlib
import shutil
import subprocess
import sys

import cases_files
import cases_graph
import cases_wire


def main():
    compiler, work, name = sys.argv[1:4]
    folder = pathlib.Path(work) / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (case,) = [c for c in cases_wire.CASES + cases_graph.CASES + cases_files.CASES if c.name == name]
    case.make(folder)
    command = [compiler, "m.onnx", "-o", "out.bundle", *sys.argv[4:]]
    result = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    print(result.stderr.decode("utf-8", "backslashreplace"), end="")
    print(f"exit code {result.returncode}")


if __name__ == "__main__":
    main()
