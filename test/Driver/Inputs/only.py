"""only.py FUSEC MODEL PART: the dump of the kernel that PART, the dump of a node, names has the same stages, and of
each what belongs to all nodes of that kernel."""

import re
import subprocess
import sys

fusec, model, part = sys.argv[1:]
with open(part, encoding="utf-8") as file:
    ofNode = file.read()
kernel = re.search(r"^# kernel (k_\w+)$", ofNode, re.MULTILINE)[1]
command = [fusec, model, "--target=x86-64-v3", f"--only={kernel}", "--dump-ir=graph,expr,plan,gir"]
ofKernel = subprocess.run(command, check=True, capture_output=True, text=True).stdout
heads = re.findall(r"^# part of a fusec dump of (\w+): '(.*)'$", ofKernel, re.MULTILINE)
assert heads == [(stage, kernel) for stage in ("graph", "expr", "plan", "gir")], heads
computed = set(re.findall(r'"(node_\w+)"', re.search(r"^kernel @.* for \((.*)\)", ofKernel, re.MULTILINE)[1]))
assert "node_linear" in computed
graph, rest = ofKernel.split("=== expr")
assert set(re.findall(r"@(node_\w+)", graph)) <= computed
assert set(re.findall(r'@"(node_\w+)"', rest.split("=== plan")[0])) == computed
