"""resume.py FUSEC FOLDER MODEL...: bundles made from each stage's dump, and under other circumstances, are equal."""

import os
import shutil
import subprocess
import sys

fusec, folder, *models = sys.argv[1:]
targets = "x86-64-v3,sm_90,gfx942"


def bundle(arguments, out, **environment):
    subprocess.run([fusec, "-o", out, "--ptxas", "none"] + arguments, check=True, stderr=subprocess.DEVNULL,
                   env={**os.environ, **environment})
    return open(out, "rb").read()


# A locale with a decimal comma, made here since a machine may have none. It is active in programs that ask for the
# environment's locale: Python shows that. fusec does not ask; the day that it does, this test looks at what follows.
subprocess.run(["localedef", "-i", "de_DE", "-f", "UTF-8", f"{folder}/de_DE.UTF-8"], check=True)
german = {"LOCPATH": folder, "LC_ALL": "de_DE.UTF-8"}
control = "import locale; locale.setlocale(locale.LC_ALL, ''); print(locale.str(1.5))"
shown = subprocess.run([sys.executable, "-c", control], env={**os.environ, **german}, check=True, capture_output=True)
assert shown.stdout.strip() == b"1,5", shown.stdout

for model in models:
    path = f"{folder}/{model}.onnx"
    dumps = f"{folder}/{model}"
    direct = bundle([path, "--target", targets, "--threads", "2", "--dump-dir", dumps], f"{folder}/direct")
    stages = ["graph", "expr", "plan", "schedule", "gir"]
    for stage in stages:
        assert bundle([f"{dumps}/{stage}.txt"], f"{folder}/resumed") == direct, f"{model}: {stage} differs"
    print(f"{model}: {' '.join(stages)} same")
    shutil.copy(path, f"{folder}/other/{model}.onnx")
    other = [f"{folder}/other/{model}.onnx", "--target", targets, "--threads", "1"]
    assert bundle(other, f"{folder}/other/b", **german) == direct, "threads, folder or locale"
    print(f"{model}: threads folder locale same")
