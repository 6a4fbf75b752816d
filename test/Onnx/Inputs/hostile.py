"""Makes damaged and hostile models and checks what the compiler says about each.

Contract for a refusal: exit code 3 (bad input), 4 (unsupported) or 5 (limit), one line on stderr that begins with
"error[E....] ", within 5 seconds and 512 MiB, no output file and no temporary file left. Accepted models are imported
(--stop-after=graph). Groups: W wire, H header, G graph, T tensors, E external data.
"""

import argparse
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import time

import cases_graph
import cases_files
import cases_wire

ACCEPT = {0}


def limits():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def judge(case, result, seconds, folder, output):
    """What is wrong with the answer, or None."""
    text = result.stderr.decode("utf-8", "replace")
    if result.returncode not in case.codes:
        return f"exit code {result.returncode}, expected {sorted(case.codes)}: {text.strip()[:300]}"
    if seconds > 5:
        return f"took {seconds:.1f} s"
    if result.returncode == 0:
        return None
    lines = text.splitlines()
    if any(not line.startswith("error[E") for line in lines) or not lines:
        return f"not only coded lines: {text[:300]!r}"
    if case.several is False and len(lines) != 1:
        return f"{len(lines)} lines: {text[:300]!r}"
    if case.text not in text:
        return f"'{case.text}' is not in: {text[:300]!r}"
    if any(ord(c) < 32 and c != "\n" for c in text):
        return "control bytes in the message"
    if os.path.exists(output):
        return "an output file was left"
    left = [f for f in os.listdir(folder) if f not in case.files]
    if left:
        return f"files were left: {left}"
    return None


def run(case, compiler, root):
    folder = root / case.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    model = case.make(folder)
    case.files = set(os.listdir(folder))
    output = folder / "out.bundle"
    command = [compiler, str(model), "-o", str(output), "--stop-after=graph"]
    start = time.monotonic()
    try:
        result = subprocess.run(command, capture_output=True, timeout=20, preexec_fn=limits, check=False)
    except subprocess.TimeoutExpired:
        return "hangs"
    seconds = time.monotonic() - start
    problem = judge(case, result, seconds, folder, output)
    shutil.rmtree(folder, ignore_errors=True)
    return problem


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--work", required=True)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    root = pathlib.Path(options.work)
    all_cases = cases_wire.CASES + cases_graph.CASES + cases_files.CASES
    chosen = [c for c in all_cases if c.name.startswith(options.only)]
    failed = 0
    for case in chosen:
        problem = run(case, options.compiler, root)
        if problem:
            failed += 1
            print(f"{case.name}: {problem}")
    print(f"{len(chosen) - failed} cases as expected, {failed} not")
    return 1 if failed or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
