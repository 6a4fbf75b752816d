"""Makes damaged and hostile models and checks what the compiler says about each.

Contract for a refusal: exit code 3 (bad input), 4 (unsupported) or 5 (limit), one line on stderr that begins with
"error[E....] ", within 5 seconds of processor time and max(512 MiB, 4 times the input), no output file and no
temporary file left. Accepted models are imported (--stop-after=graph). Groups: W wire, H header, G graph, O operators,
T tensors, E external data.
"""

import argparse
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import threading

import cases_graph
import cases_files
import cases_wire

# Each number of these groups has a case; what needs more than one run of the compiler has a test of its own.
NUMBERS = {"W": 15, "H": 8, "E": 25}
ELSEWHERE = {"E23": "external.py", "E24": "external.py"}


def execute(command, patience=60):
    """Runs a command: exit code (negative: a signal), stderr, processor seconds, peak bytes. It is killed after
    `patience` seconds."""
    with tempfile.TemporaryFile() as errors, open(os.devnull, "wb") as nothing:
        pid = os.posix_spawn(
            command[0],
            command,
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, nothing.fileno(), 1),
                (os.POSIX_SPAWN_DUP2, errors.fileno(), 2),
            ],
        )
        watchdog = threading.Timer(patience, os.kill, (pid, signal.SIGKILL))
        watchdog.start()
        _, status, usage = os.wait4(pid, 0)
        watchdog.cancel()
        errors.seek(0)
        text = errors.read().decode("utf-8", "replace")
    return os.waitstatus_to_exitcode(status), text, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def judge(case, model, answer, folder, output):
    """What is wrong with the answer, or None."""
    code, text, seconds, peak = answer
    if code not in case.codes:
        return f"exit code {code}, expected {sorted(case.codes)}: {text.strip()[:300]}"
    if seconds > 5:
        return f"took {seconds:.1f} s"
    size = os.path.getsize(model) if model.is_file() else 0
    if peak > max(512 << 20, 4 * size) and code:
        return f"took {peak >> 20} MiB"
    if code == 0:
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
    command = [compiler, str(model)] + (["--stop-after=graph"] if 0 in case.codes else ["-o", str(output)])
    problem = judge(case, model, execute(command), folder, output)
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
    named = {c.name.split("-")[0] for c in all_cases} | set(ELSEWHERE)
    missing = [f"{g}{i}" for g, last in NUMBERS.items() for i in range(1, last + 1) if f"{g}{i}" not in named]
    if missing:
        print(f"no case for {', '.join(missing)}")
        return 1
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
