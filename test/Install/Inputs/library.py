"""library.py <folder of libfusert>: what the runtime library needs and shows."""

import re
import subprocess
import sys

folder = sys.argv[1]


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


shared = f"{folder}/libfusert.so"
dynamic = output("readelf", "-dW", shared)
print("needed:", " ".join(sorted(re.findall(r"NEEDED.*\[(.+?)\]", dynamic))))
print("soname:", re.search(r"SONAME.*\[(.+?)\]", dynamic)[1])

symbols = output("nm", "-D", shared)
versions = {tuple(map(int, v.split("."))) for v in re.findall(r"@GLIBC_([\d.]+)", symbols)}
print("lowest glibc:", ".".join(map(str, max(versions))))
shown = re.findall(r"^[0-9a-f]+ [A-Z] (\w+)", symbols, re.MULTILINE)
foreign = [name for name in shown if not name.startswith(("fusert_", "FUSERT_"))]
print("foreign in the shared library:", " ".join(foreign) or "none")

archive = output("nm", "-g", "--defined-only", f"{folder}/libfusert.a")
shown = re.findall(r"^[0-9a-f]+ \S (\S+)", archive, re.MULTILINE)
foreign = [name for name in shown if not name.startswith("fusert_")]
print("foreign in the archive:", " ".join(foreign) or "none")

with open(shared, "rb") as file:
    size = len(file.read())
print("under 2 MB:", "yes" if size < 2_000_000 else size)
