"""The second half of scripts/demo, in build/venv: compile, run, compare with ONNX Runtime. Arguments: the folder of our
programs and one for the files made."""

import os
import re
import sys
import time

sys.dont_write_bytecode = True

import numpy
import onnxruntime

import bundle
import digits

TARGETS = ("host", "sm_90", "gfx942", "sim:sm_90", "sim:gfx90a")
LOWEST_ACCURACY = 0.97
# The same numbers in another order of summation: far below what could change a prediction by more than a tie.
LARGEST_DIFFERENCE = 1e-4

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def kernelsOf(dump):
    """Target -> lines about its kernels, from the dump of the last IR."""
    kernels, variants = {}, set()
    with open(dump, encoding="utf-8") as file:
        for line in file:
            if line.startswith("=== gir "):
                target = line.split()[2]
            match = re.match(r'kernel @(\S+) units (\d+) lanes (\d+) shared (\d+) for \((.*)\)', line)
            if match and re.search(r"_v\d+$", match[1]):
                variants.add((target, re.sub(r"_v\d+$", "", match[1])))
            elif match:
                nodes = match[5].replace('"', "").split(", ")
                shown = ", ".join(nodes[:3]) + (f" and {len(nodes) - 3} more" if len(nodes) > 3 else "")
                several = "guarded variants" if (target, match[1]) in variants else ""
                kernels.setdefault(target, []).append(
                    f"{match[1]:<18} {int(match[2]) * int(match[3]):>4} lanes {match[4]:>6} B shared "
                    f"{several:<16} {shown}"
                )
    return kernels


def demonstrate(name, programs, folder):
    fusec, fusert = (os.path.join(programs, program) for program in ("fusec", "fusert"))
    model = os.path.join(root, "models", f"digits-{name}.onnx")
    made = os.path.join(folder, f"digits-{name}.bundle")
    dump = os.path.join(folder, f"dump-{name}")
    print(f"\n=== digits-{name}: {' '.join(TARGETS)}")
    started = time.time()
    compile = [fusec, model, "--target", ",".join(TARGETS), "--dim", "batch=1..512:1"]
    bundle.execute([*compile, "-o", made])
    print(f"compiled in {time.time() - started:.1f} s: {os.path.getsize(made) >> 10} KiB for all targets")
    bundle.execute([*compile, "--stop-after", "gir", "--dump-dir", dump])

    for target, kernels in kernelsOf(os.path.join(dump, "gir.txt")).items():
        print(f"{target}: {len(kernels)} kernels")
        for line in kernels:
            print(f"    {line}")

    _, _, images, labels = digits.split()
    reference = onnxruntime.InferenceSession(model).run(None, {"image": images})[0]
    failures = []
    for target in ("host", "sim:sm_90", "sim:gfx90a"):
        options = [] if target == "host" else ["--target", target]
        started = time.time()
        output = bundle.run(fusert, made, {"image": images}, os.path.join(folder, "run"), *options)("logits")
        seconds = time.time() - started
        if target == "host":
            one = bundle.saveInputs(os.path.join(folder, "one"), {"image": images[:1]})
            times = bundle.bench(fusert, made, [*one, "--threads", 1, "--min-time", 0.5])
            speed = f"{times['median_ms']:.3f} ms an image (one thread, median of {times['runs']} runs)"
        else:
            speed = f"{seconds * 1e3 / len(images):.0f} ms an image (a checked simulation, not a GPU's time)"
        accuracy = (output.argmax(1) == labels).mean()
        same = int((output.argmax(1) == reference.argmax(1)).sum())
        difference = bundle.relativeL2(output, reference)
        print(f"{target}: {accuracy:.2%} of {len(images)} held-out digits right; {same} predictions as ONNX Runtime's, "
              f"logits within {difference:.1e}; {speed}", flush=True)
        if accuracy < LOWEST_ACCURACY:
            failures.append(f"digits-{name} on {target}: accuracy below {LOWEST_ACCURACY:.0%}")
        if same != len(images) or not difference <= LARGEST_DIFFERENCE:
            failures.append(f"digits-{name} on {target}: not what ONNX Runtime gives")
    return failures


def main():
    programs, folder = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    failures = []
    for name in ("cnn", "transformer"):
        failures += demonstrate(name, programs, folder)
    for failure in failures:
        print(failure, file=sys.stderr)
    if failures:
        sys.exit(1)
    print("\nscripts/demo: all predictions are ONNX Runtime's")


try:
    main()
except bundle.Failed as failed:
    sys.exit(str(failed))
