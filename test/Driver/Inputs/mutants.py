"""Tries mutants of texts. Their order follows from --seed alone; --seconds bounds how many of them are tried, but a
fixed number always is. --only N repeats one and keeps its files."""

import argparse
import concurrent.futures
import pathlib
import resource
import shutil
import subprocess
import time


def execute(seconds, gib, *command):
    """The command under limits of processor time and memory."""

    def limits():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (gib << 30, gib << 30))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, preexec_fn=limits)


def options(programs, **numbers):
    """Those of the command line, with the folder for the work made anew."""
    parser = argparse.ArgumentParser()
    for program in programs:
        parser.add_argument(f"--{program}", required=True)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    parser.add_argument("--only", type=int)
    for name, number in {"seed": 1, "jobs": 2, **numbers}.items():
        parser.add_argument("--" + name.replace("_", "-"), type=int, default=number)
    made = parser.parse_args()
    shutil.rmtree(made.work, ignore_errors=True)
    made.work.mkdir(parents=True)
    return made


def try_all(mutants, least, step=30):
    """The exit code. `mutants.run(N)`: what is wrong with the answer to mutant N, if anything."""
    given = mutants.options
    end, done, failed = time.monotonic() + given.seconds, 0, []
    if given.only is not None:
        failed, done = [f for f in [mutants.run(given.only)] if f], 1
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        while given.only is None and (done < least or time.monotonic() < end):
            failed += [f for f in pool.map(mutants.run, range(done, done + step)) if f]
            done += step
    print("\n".join(failed))
    print(f"{done - len(failed)} mutants answered as they should, {len(failed)} not")
    return 1 if failed else 0
