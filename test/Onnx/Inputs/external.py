"""Cases of hostile files that need more than one run of the compiler, or a process beside it."""

import argparse
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import threading

import cases_wire
from cases import field, helper, model, save, varint
from hostile import execute
from onnx import TensorProto

GIB = 1 << 30


def add_model(dims):
    t = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims, data_location=TensorProto.EXTERNAL)
    entry = t.external_data.add()
    entry.key, entry.value = "location", "w.bin"
    info = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
    return model([helper.make_node("Add", ["x", "w"], ["y"])], inputs=[info("x")], outputs=[info("y")], initializer=[t])


def packing(compiler, folder):
    """W12: repeated numbers of a field, packed or one by one, are the same model."""
    head = varint(2 << 3) + varint(1) + field(8, b"w") + field(9, bytes(24))
    dims = {"packed": field(1, varint(2) + varint(3)), "plain": b"".join(varint(1 << 3) + varint(v) for v in (2, 3))}
    bundles = []
    for name, text in dims.items():
        (folder / name).mkdir()
        graph = model([helper.make_node("Add", ["x", "w"], ["y"])]).graph.SerializeToString() + field(5, text + head)
        path = save(cases_wire.with_graph(field(7, graph)), folder / name)
        out = folder / name / "bundle"
        subprocess.run([compiler, path, "-o", out, "--target", "x86-64-v3"], check=True)
        bundles.append(out.read_bytes())
    assert bundles[0] == bundles[1]
    print("W12 packed and unpacked dims: same bundle")


def sparse(compiler, folder):
    """E23: the data is read into memory once, and nothing is copied."""
    elements = 3 * GIB // 4
    with open(folder / "w.bin", "wb") as f:
        f.truncate(3 * GIB)
    path = save(add_model((elements,)), folder)
    code, text, seconds, peak = execute([compiler, str(path), "--stop-after=graph"], 600)
    (folder / "w.bin").unlink()
    assert code == 0, f"{code}: {text}"
    assert peak < 1.3 * 3 * GIB, f"{peak >> 20} MiB in {seconds:.1f} s"
    print("E23 3 GiB of sparse external data: imported, memory below 1.3 times the tensor")


def swapped(compiler, folder):
    """E24: while the compiler runs again and again, the file is replaced by a shorter one and by links to files outside
    the folder. What it reads is the model's own file, whole, or it refuses; never the foreign file, never a signal."""
    inside = folder / "model"
    inside.mkdir()
    path = save(add_model((2, 3)), inside)
    own, foreign = struct.pack("6f", *range(1, 7)), struct.pack("6f", *[7777.0] * 6)
    (folder / "foreign.bin").write_bytes(foreign)
    (inside / "good").write_bytes(own)
    compiles, stop = 300, threading.Event()

    def reads():
        run = subprocess.run(
            [compiler, path, "--stop-after=graph", "--dump-ir=graph"], capture_output=True, text=True, check=False
        )
        assert run.returncode in (0, 3), f"{run.returncode}: {run.stderr}"
        if run.returncode:
            assert "error[E3106]" in run.stderr, run.stderr
            return False
        data = re.search(r"constant %w = f32\[2,3\] \{(.*)\}", run.stdout + run.stderr)
        assert data and data[1] == "1.0, 2.0, 3.0, 4.0, 5.0, 6.0", run.stdout
        return True

    (inside / "w.bin").write_bytes(own[:5])
    assert not reads()
    (inside / "w.bin").write_bytes(own)
    assert reads()

    def racer():
        while not stop.is_set():
            for kind in ("short", "symbolic", "good", "hard", "good"):
                temporary = inside / "next"
                temporary.unlink(missing_ok=True)
                if kind == "symbolic":
                    temporary.symlink_to(folder / "foreign.bin")
                elif kind == "hard":
                    os.link(folder / "foreign.bin", temporary)
                else:
                    temporary.write_bytes(own[:5] if kind == "short" else own)
                temporary.rename(inside / "w.bin")

    thread = threading.Thread(target=racer)
    thread.start()
    try:
        for _ in range(compiles):
            reads()
    finally:
        stop.set()
        thread.join()
    print(f"E24 file swapped during {compiles} compilations: always the old bytes or a refusal")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--compiler", required=True)
    parser.add_argument("--work", required=True, type=pathlib.Path)
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    for name, test in (("packing", packing), ("sparse", sparse), ("swapped", swapped)):
        folder = options.work / name
        folder.mkdir(parents=True)
        test(options.compiler, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
