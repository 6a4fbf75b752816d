"""reads_in_flight.py make FOLDER: models whose kernels wait for memory and little else.
reads_in_flight.py check LEAST OBJECT: disassembles an AMD code object and prints, for each kernel, the most reads of
memory that are on their way at once between two branches, its multiply-adds, and what it has in scratch memory; exit
code 1 where a kernel of more than one read has fewer than LEAST on their way, or any has scratch memory."""

import re
import subprocess
import sys

MEMORY = re.compile(r"\s(global|flat|buffer)_load")
BRANCH = re.compile(r"\ss_c?branch")


def onTheirWay(code):
    """The most reads of which none has been waited for yet."""
    now = most = 0
    for line in code:
        if MEMORY.search(line):
            now += 1
        elif wait := re.search(r"vmcnt\((\d+)\)", line):
            now = min(now, int(wait[1]))
        elif BRANCH.search(line):
            now = 0
        most = max(most, now)
    return most


def make(folder):
    import onnx
    from onnx import TensorProto, helper

    def save(name, op, shapes, result, dtype=TensorProto.FLOAT, axes=None):
        names = ["a", "b"][: len(shapes)]
        inputs = [helper.make_tensor_value_info(n, dtype, s) for n, s in zip(names, shapes)]
        constants = [helper.make_tensor("axes", TensorProto.INT64, [len(axes)], axes)] if axes else []
        node = helper.make_node(op, names + [c.name for c in constants], ["y"])
        graph = helper.make_graph(
            [node], name, inputs, [helper.make_tensor_value_info("y", dtype, result)], constants
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
        model.ir_version = 9
        onnx.save(model, f"{folder}/{name}.onnx")

    half, brain = TensorProto.FLOAT16, TensorProto.BFLOAT16
    save("gemv", "MatMul", [[1, 4096], [4096, 4096]], [1, 4096], half)
    save("rowsum", "ReduceSum", [[4096, 4096]], [4096, 1], axes=[1])
    save("fullsum", "ReduceSum", [[4096, 4096]], [1, 1], axes=[0, 1])
    save("gemm32", "MatMul", [[1024, 1024], [1024, 1024]], [1024, 1024])
    save("gemm16", "MatMul", [[4096, 4096], [4096, 4096]], [4096, 4096], brain)
    save("gemm_k", "MatMul", [[256, "k"], ["k", 256]], [256, 256])
    save("gemv_k", "MatMul", [[1, "k"], ["k", 1024]], [1, 1024])
    save("rowsum_k", "ReduceSum", [["n", "k"]], ["n", 1], axes=[1])


def check(least, path):
    run = subprocess.run(["llvm-objdump", "-d", path], capture_output=True, text=True, check=True)
    kernels, lines = {}, None
    for line in run.stdout.splitlines():
        head = re.match(r"[0-9a-f]+ <(k_\w+)>:", line)
        if head:
            lines = kernels.setdefault(head[1], [])
        elif lines is not None and line.startswith("\t"):
            lines.append(line.split("//")[0])
    wrong = not kernels
    for name, code in kernels.items():
        reads = sum(bool(MEMORY.search(line)) for line in code)
        ahead = onTheirWay(code)
        fma = sum(bool(re.search(r"\sv_(pk_)?fma", line)) for line in code)
        scratch = sum("scratch_" in line for line in code)
        print(f"{name}: {ahead} of {reads} reads, {fma} fma, {scratch} scratch")
        wrong = wrong or scratch > 0 or (reads > 1 and ahead < least)
    return wrong


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    sys.exit(check(int(sys.argv[2]), sys.argv[3]))
