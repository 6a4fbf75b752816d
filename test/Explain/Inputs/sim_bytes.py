"""sim_bytes.py FUSEC FUSERT FOLDER TARGET MODEL.onnx...: the bytes that `fusec explain` predicts against the sectors
that a simulated GPU counts. A block's different sectors hold at least what it must move; where one block does a launch,
they hold no more than that and the ends of rows that share a sector with something else. A block's barriers are those
that are predicted, and between uses of buffers that share bytes some more. The two share no code."""

import json
import pathlib
import subprocess
import sys

fusec, fusert, folder, target, *models = sys.argv[1:]
SECTOR = 32


def run(*arguments):
    return subprocess.run(list(map(str, arguments)), check=True, capture_output=True, text=True).stdout


for model in models:
    bundle = f"{folder}/bundle"
    # FusionStitching's plans: no kernel has several phases, so that each is compared by itself.
    options = ["--target", target, "--search-mode=fs"]
    run(fusec, model, *options, "-o", bundle)
    out = run(fusert, "run", bundle, "--target", target, "--random", "1", "--counters", "--output-dir", f"{folder}/out")
    counted = {k["name"]: k for k in json.loads(out.splitlines()[-1])["kernels"]}
    kernels = {k["name"]: k for k in json.loads(run(fusec, "explain", model, *options, "--json"))["kernels"]}
    compared = exact = waiting = same = 0
    for name, sim in counted.items():
        k = kernels[name]
        barriers, taken = k["barriers"]["of_block"], sim["barriers"] / sim["blocks"]
        assert barriers <= taken, (model, name, barriers, taken)
        waiting += taken > 0
        same += 0 < taken == barriers
        if any("embedding" in node or "Gather" in node for node in k["nodes"]):
            continue  # how many different rows a gather reads is in the data
        predicted = (k["bytes_read"] + k["bytes_written"]) * sim["launches"]
        touched = sim["tile_sectors"] * SECTOR
        assert predicted <= touched, (model, name, predicted, touched)
        compared += 1
        if sim["blocks"] != sim["launches"]:
            continue
        tensors = len(k["inputs"]) + len(k["outputs"])
        assert touched - predicted <= tensors * 2 * SECTOR * sim["launches"], (model, name, predicted, touched)
        exact += 1
    assert compared > 2 and exact > 1 and 0 < 0.9 * waiting <= same, (model, compared, exact, waiting, same)
    print(f"{pathlib.Path(model).stem} on {target}: {compared} kernels move no less, {exact} of one block no more, "
          f"{same} of {waiting} wait as often as predicted")
