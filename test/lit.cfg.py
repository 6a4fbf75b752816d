# Text tests: a file with RUN lines beside what it tests, named after the behaviour. `%s` is the file, `%t` a scratch
# path. The values of `fusec` come from lit.site.cfg.py, which CMake writes.
import os
import shutil

import lit.formats

site = config.fusec

config.name = "fusec"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".test", ".graph", ".expr", ".plan", ".schedule", ".gir", ".ll"]
config.excludes = ["Unit", "Inputs", "CMakeLists.txt"]
if not site["modelTests"]:  # these make their models with Python's onnx
    config.excludes += ["Diagnostics", "Driver", "Explain", "Fusert", "Fusion", "Graph", "Onnx", "Tiling"]
    config.excludes += ["onnx-suite.test", "schemas-current.test"]
config.test_source_root = os.path.join(site["source"], "test")
config.test_exec_root = os.path.join(site["build"], "test", "lit")

# One locale and a fixed PATH: a test sees the same world wherever it runs.
# scripts/update-checks puts a FileCheck of its own in front.
path = [lit_config.params["first-on-path"]] if "first-on-path" in lit_config.params else []
path += [site["bin"], site["llvmTools"], os.path.dirname(site["python"]), config.environment["PATH"]]
config.environment["PATH"] = os.pathsep.join(path)
config.environment["LC_ALL"] = "C"
for name in ("CUDA_HOME", "HOME", "ASAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

for name in ("fusec-opt", "fusec-reduce", "fusec", "fusert"):
    config.substitutions.append((r"%" + name + r"(?![\w-])", os.path.join(site["bin"], name)))
config.substitutions += [
    ("%python", site["python"]),
    ("%source", site["source"]),
    ("%build", site["build"]),
    ("%models", os.path.join(site["source"], "models")),
]

# REQUIRES: and UNSUPPORTED: may name these.
for name in ("fusec", "fusert", "fusec-opt", "fusec-reduce"):
    if os.path.exists(os.path.join(site["bin"], name)):
        config.available_features.add(name)
if shutil.which("ptxas", path=config.environment["PATH"]) or os.path.exists(
    os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin", "ptxas")
):
    config.available_features.add("ptxas")
browsers = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
browser = next(filter(None, map(shutil.which, browsers)), None)
if browser:
    config.available_features.add("browser")
    config.substitutions.append(("%browser", browser))
if os.path.exists("/dev/nvidiactl"):
    config.available_features.add("cuda")
if shutil.which("strace"):
    config.available_features.add("strace")
with open("/proc/cpuinfo", encoding="utf-8") as file:
    if {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"} <= set(file.read().split()):
        config.available_features.add("x86-64-v4")  # code for it runs on this processor
if site["sanitize"]:
    config.available_features.add("asan")
else:
    config.available_features.add("not-asan")
