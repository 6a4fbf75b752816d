"""readme.py PAGE SECTION FOLDER: runs the commands of a section's code blocks, lines that begin with `$`, in FOLDER,
and demands that they print the lines that follow them. Numbers, names of processors and what lies below `...` may
differ."""

import pathlib
import re
import subprocess
import sys

page, section, folder = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]
text = page.read_text(encoding="utf-8").split(f"\n## {section}\n", 1)[1].split("\n## ", 1)[0]
lines = [line[4:] for line in text.splitlines() if line.startswith("    ")]
assert any(line.startswith("$ ") for line in lines), f"{page}: no command in '{section}'"


def shape(line):
    line = re.sub(r"x86-64-v\d", "HOST", line)
    return re.sub(r"-?\d+(\.\d+)?(e-?\d+)?( [numk]?s\b| [KM]?B\b)?", "#", line).rstrip()


failures = 0
for at, line in enumerate(lines):
    if not line.startswith("$ "):
        continue
    expected = []
    for behind in lines[at + 1:]:
        if behind.startswith("$ "):
            break
        expected.append(behind)
    result = subprocess.run(line[2:], shell=True, cwd=folder, capture_output=True, text=True, check=False)
    printed = (result.stdout + result.stderr).splitlines()
    if expected and expected[-1] == "...":
        expected.pop()
        printed = printed[:len(expected)]
    if result.returncode != 0 or list(map(shape, printed)) != list(map(shape, expected)):
        failures += 1
        print(f"{line}\nexit code {result.returncode}, prints:\n" + "\n".join(printed))
        print("the page says:\n" + "\n".join(expected))
print(f"{failures} commands print something else" if failures else "the page says what is so")
sys.exit(1 if failures else 0)
