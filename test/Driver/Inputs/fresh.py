"""fresh.py SMALL_MODELS AGAINST_ORT FUSEC FUSERT SEED_FILE: each kind of model from one seed, on host and sims."""

import subprocess
import sys
import tempfile

maker, checker, fusec, fusert, seedFile = sys.argv[1:]
seed = open(seedFile).read().strip()
print("seed", seed, flush=True)
for kind in ("mlp", "conv", "attention", "lstm"):
    with tempfile.NamedTemporaryFile(suffix=".onnx") as model:
        subprocess.run([sys.executable, maker, kind, model.name, "--seed", seed], check=True)
        subprocess.run([sys.executable, checker, fusec, fusert, "host,sim:sm_90,sim:gfx90a", model.name], check=True)
