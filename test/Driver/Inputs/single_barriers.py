"""single_barriers.py FUSEC FUSERT FOLDER (MODEL TARGET)...: takes each barrier of a compiled network's text away, one
at a time, and each wait for a counter. The simulator, or the verifier that reads the text, has to name the kernel and
the two accesses that are left without."""

import pathlib
import re
import subprocess
import sys

fusec, fusert, folder, *rest = sys.argv[1:]
# A read that comes too early, in a block and from block to block, and what a counter's count says.
CAUGHT = re.compile(r"error\[E\d+\].*kernel '\w+'.*(read of shared memory that this block has not written yet|"
                    r"race on (shared memory|element \d+ of parameter \d+).* no (barrier|counter) between them)")


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def faultOf(text, target):
    """What is said of a program's text; empty where it compiles and runs."""
    changed = pathlib.Path(folder, "changed.txt")
    changed.write_text(text, encoding="utf-8")
    compiled = run(fusec, changed, "-o", f"{folder}/changed")
    if compiled.returncode:
        return compiled.stderr
    done = run(fusert, "run", f"{folder}/changed", "--target", target, "--random", "1")
    return done.stderr if done.returncode else ""


for model, target in zip(rest[::2], rest[1::2]):
    name = pathlib.Path(model).stem
    # Without trees: rows of theirs that are shorter than a unit have a barrier between the unit's own store and read.
    made = run(fusec, model, "--target", target, "--search-mode=souffle", "--stop-after=gir", "--dump-dir", folder)
    assert made.returncode == 0, made.stderr
    program = pathlib.Path(folder, "gir.txt").read_text(encoding="utf-8")
    whole = faultOf(program, target)
    assert whole == "", (name, whole)
    missed = {"sync": 0, "wait": 0}
    for line in re.finditer(r"^ *(sync|wait) .*\n", program, re.MULTILINE):
        fault = faultOf(program[:line.start()] + program[line.end():], target)
        assert CAUGHT.search(fault), (name, target, program.count("\n", 0, line.start()) + 1, line[0].strip(), fault)
        missed[line[1]] += 1
    print(f"{name} {target}: {missed['sync']} barriers and {missed['wait']} waits, each missed")
