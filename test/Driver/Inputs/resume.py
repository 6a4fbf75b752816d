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


for model in models:
    path = f"{folder}/{model}.onnx"
    dumps = f"{folder}/{model}"
    direct = bundle([path, "--target", targets, "--threads", "2"], f"{folder}/direct")
    subprocess.run([fusec, path, "--target", targets, "--stop-after=gir", "--dump-dir", dumps], check=True)
    stages = ["graph", "expr", "plan", "schedule", "gir"]
    for stage in stages:
        assert bundle([f"{dumps}/{stage}.txt"], f"{folder}/resumed") == direct, f"{model}: {stage} differs"
    print(f"{model}: {' '.join(stages)} same")
    assert bundle([path, "--target", targets, "--threads", "1"], f"{folder}/one") == direct, "threads"
    shutil.copy(path, f"{folder}/other/{model}.onnx")
    assert bundle([f"{folder}/other/{model}.onnx", "--target", targets], f"{folder}/other/b") == direct, "folder"
    assert bundle([path, "--target", targets], f"{folder}/locale", LC_ALL="de_DE.UTF-8") == direct, "locale"
    print(f"{model}: threads folder locale same")
