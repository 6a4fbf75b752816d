"""check_info.py symbolic|fixed: compares the JSON of `fusert info` on standard input with what info.test compiled."""

import json
import sys

info = json.load(sys.stdin)
x, y = info["inputs"][0], info["outputs"][0]
first = "batch" if sys.argv[1] == "symbolic" else 4
assert (x["name"], x["type"], x["shape"]) == ("x", "f32", [first, 2]), x
assert (y["name"], y["type"], y["shape"]) == ("y", "f32", [first, 2]), y
targets = {program["target"]: program for program in info["programs"]}
if first == "batch":
    assert list(targets) == ["sm_90", "gfx90a"], targets
    assert info["symbols"] == [{"name": "batch", "min": 1, "opt": 8, "tuned": [8], "max": 64, "divisor": 1}], info
    assert targets["sm_90"]["min_driver"] >= 11000, targets
else:
    assert list(targets) == ["x86-64-v3", "sim:sm_90", "sm_80", "gfx942"], targets
    assert info["symbols"] == [], info
    assert targets["x86-64-v3"]["min_driver"] == 0, targets
    image = targets["sm_80"]["images"]
    assert [i["format"] for i in image] == ["ptx"] and image[0]["min_driver"] == targets["sm_80"]["min_driver"], image
for program in targets.values():
    assert program["kernels"] >= 1 and program["steps"] >= 1, program
    assert program["code_bytes"] == sum(image["bytes"] for image in program["images"]) > 0, program
