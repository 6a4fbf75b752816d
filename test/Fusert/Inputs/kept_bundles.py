"""kept_bundles.py FUSERT FUSEC FOLDER: every bundle of FOLDER loads and computes what lies beside it."""

import json
import pathlib
import subprocess
import sys

fusert, fusec, folder = sys.argv[1:]


def execute(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def options(option, place, names, size):
    return [word for name in names for word in (option, f"{name}={place / name}{size}.npy")]


kept = sorted(pathlib.Path(folder).iterdir())
assert [place.name for place in kept] == [f"format-{n + 1}" for n in range(len(kept))]
for number, place in enumerate(kept, 1):
    bundle = place / "kept.bundle"
    version = bundle.read_bytes()[8:12]  # behind the magic
    assert int.from_bytes(version, "little") == number, (place, version)
    key = ["--public-key", place / "key.pub"]
    info = json.loads(execute(fusert, "info", bundle, "--json", *key))
    inputs, outputs = ([value["name"] for value in info[side]] for side in ("inputs", "outputs"))
    formats = {image["format"] for program in info["programs"] for image in program["images"]}
    assert {"elf", "ptx", "code object"} <= formats, formats
    assert info["symbols"] and info["weight_bytes"], info
    sizes = [path.stem.removeprefix(inputs[0]) for path in sorted(place.glob(inputs[0] + "*.npy"))]
    for size in sizes:
        feeds = [*options("--input", place, inputs, size), *options("--expect", place, outputs, size)]
        execute(fusert, "check", bundle, "--target", "x86-64-v3", *key, *feeds)
    assert "equal" in execute(fusec, "diff", bundle, bundle)
    print(f"{place.name}: {len(sizes)} sizes, {bundle.stat().st_size // 1024} KiB")
