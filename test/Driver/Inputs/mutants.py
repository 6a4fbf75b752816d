"""Tries --count mutants of texts. They follow from --seed alone. --only N repeats one and keeps its files."""

import argparse
import concurrent.futures
import pathlib
import resource
import shutil
import subprocess


def execute(seconds, gib, *command):
    """The command under a limit of memory, and one of processor time that guards against hangs."""

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


def try_all(mutants):
    """The exit code. `mutants.run(N)`: what is wrong with the answer to mutant N, if anything."""
    given = mutants.options
    tried = range(given.count) if given.only is None else [given.only]
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        failed = [found for found in pool.map(mutants.run, tried) if found]
    print("\n".join(failed))
    print(f"{len(tried) - len(failed)} mutants answered as they should, {len(failed)} not")
    return 1 if failed else 0
