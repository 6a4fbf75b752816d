"""The Python environment build/venv-models: made on first use, shared by the scripts that make and time models."""

import os
import subprocess
import sys

root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
venv = os.path.join(root, "build", "venv-models")
preset = "release"  # the folder under build/ with our programs


def enter():
    """Goes on in build/venv-models, made or brought up to date as scripts/requirements-models.txt says."""
    requirements = os.path.join(root, "scripts", "requirements-models.txt")
    done = os.path.join(venv, "requirements.done")
    with open(requirements, encoding="utf-8") as file:
        wanted = file.read()
    have = None
    if os.path.exists(done):
        with open(done, encoding="utf-8") as file:
            have = file.read()
    python = os.path.join(venv, "bin", "python3")
    if have != wanted:
        print("== python environment build/venv-models", file=sys.stderr, flush=True)
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r", requirements], check=True
        )
        with open(done, "w", encoding="utf-8") as file:
            file.write(wanted)
    if os.path.abspath(sys.prefix) != venv:
        os.execv(python, [python] + sys.argv)


def enterThere():
    """Goes on in build/venv-models where that is there, else in build/venv, which has ONNX Runtime alone."""
    for folder in (venv, os.path.join(root, "build", "venv")):
        python = os.path.join(folder, "bin", "python3")
        if os.path.exists(python):
            if os.path.abspath(sys.prefix) != folder:
                os.execv(python, [python] + sys.argv)
            return
    sys.exit("no Python environment: scripts/setup makes build/venv")


def built(*names):
    """The path of what a build has made; scripts/test and scripts/demo build."""
    path = os.path.join(root, "build", preset, *names)
    if not os.path.exists(path):
        sys.exit(f"{path} is missing: build it with cmake --preset {preset} && cmake --build build/{preset}")
    return path


def program(name):
    """The path of one of our own programs."""
    return built("bin", name)


def library():
    """The path of the runtime, for fusert.py."""
    return built("libfusert", "libfusert.so")
