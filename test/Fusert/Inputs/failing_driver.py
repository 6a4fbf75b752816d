"""failing_driver.py GPU_API.cpp FOLDER: a libcuda.so.1 with all functions that the runtime looks up; each gives 999."""

import re
import subprocess
import sys

source, folder = sys.argv[1:]
with open(source, encoding="utf-8") as file:
    names = sorted(set(re.findall(r'"(cu[A-Z]\w+)"', file.read())))
assert "cuInit" in names, names
with open(f"{folder}/driver.c", "w", encoding="utf-8") as file:
    file.write("".join(f"int {name}(void) {{ return 999; }}\n" for name in names))
subprocess.run(["cc", "-shared", "-fPIC", f"{folder}/driver.c", "-o", f"{folder}/libcuda.so.1"], check=True)
