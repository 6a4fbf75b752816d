"""How the benchmarks time programs: a process for each, on the same cores, and what this machine can do at most."""

import json
import os
import statistics
import subprocess
import sys
import tempfile

import bundle
import environment

HERE = os.path.dirname(os.path.abspath(__file__))
PEER = [sys.executable, os.path.join(HERE, "peer.py")]


def onCores(threads):
    """One thread stays on one core, in all processes the same one."""
    cores = sorted(os.sched_getaffinity(0))
    return (lambda: os.sched_setaffinity(0, {cores[-1]})) if threads == 1 else None


def outputOf(command, threads):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, preexec_fn=onCores(threads))
    if done.returncode:
        raise bundle.Failed(f"exit code {done.returncode} from: {' '.join(map(str, command))}\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.strip().splitlines()[-1])


class Peer:
    """A process of peer.py that stays and measures again whenever it is asked."""

    def __init__(self, who, model, feeds, threads, seconds, *outputs):
        command = [*PEER, who, model, feeds, threads, seconds, *outputs, "--again"]
        self.command = [str(word) for word in command]
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True, preexec_fn=onCores(threads))
        self.line()  # the first measurement, in which all is warmed up

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.communicate()
        self.errors.close()

    def line(self):
        """What it prints next, as JSON. The rest of its standard output is warnings of libraries."""
        for text in self.process.stdout:
            if text.startswith("{"):
                return json.loads(text)
        code = self.process.wait()
        self.errors.seek(0)
        said = self.errors.read()
        raise bundle.Failed(f"exit code {code} from: {' '.join(self.command)}\n{said[-2000:]}")

    def measure(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.line()


# A process that starts another passes its own peak of memory on to it: this small one stands between.
TIMED = """import resource, subprocess, sys, time
started = time.time()
status = subprocess.run(sys.argv[1:]).returncode
print(time.time() - started, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)"""


def compileModel(path, made, options):
    """Seconds, the most memory the compiler had in use, and what it says of the program: kernels of the first target,
    the steps that launch them, the predicted time of a run; seconds of each stage, kernels priced for each target."""
    command = [environment.program("fusec"), path, "-o", made, "--log-format=json", *options]
    done = subprocess.run([sys.executable, "-S", "-c", TIMED, *command], capture_output=True, text=True)
    if done.returncode:
        raise bundle.Failed(f"{path}: fusec ended with {done.returncode}\n{done.stderr[:2000]}")
    report, used = done.stdout.splitlines()
    seconds, kibibytes = used.split()
    report = json.loads(report)
    target = report["targets"][0]
    return {"compile_s": float(seconds), "compile_mib": int(kibibytes) / 1024, "kernels": target["kernels"],
            "steps": target["steps"], "predicted_ms": target["predicted_s"] * 1e3, "seconds": report["seconds"],
            "evaluations": [each["evaluations"] for each in report["targets"]]}


def roofline(folder, threads, workingSet, *what):
    """Gflop/s, and GB/s of reading and of copying a working set of so many bytes; what: "copy" for that alone."""
    program, source = os.path.join(folder, "roofline"), os.path.join(HERE, "roofline.c")
    if not os.path.exists(program) or os.path.getmtime(program) < os.path.getmtime(source):
        subprocess.run(["cc", "-O3", "-march=native", source, "-o", program, "-lpthread"], check=True)
    return outputOf([program, threads, max(workingSet, 1 << 16), *what], threads)


def leastMs(flop, touched, roof):
    """Milliseconds that the measured roofline leaves for so many flop and bytes."""
    return max(flop / roof["gflops"], touched / max(roof["read_gbs"], roof["copy_gbs"])) * 1e-6


def summary(values):
    middle = statistics.median(values)
    return {"ms": middle, "spread": (max(values) - min(values)) / middle}
