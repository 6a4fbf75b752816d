"""Who may include whom. A stage sees only what lies before it in the flow of data, foreign headers stay with the one
stage that wraps them, and nothing hand-tuned by a vendor comes in."""

import re

from common import STAGES, Problem

MAY_INCLUDE = {
    "Support": "",
    "Target": "Support",
    "Graph": "Support Target",
    "Onnx": "Support Target Graph",
    "Expr": "Support Target Graph",
    "Search": "Support",
    "Cost": "Support Target",
    "Gir": "Support Target Graph Expr Search Cost",
    "Tiling": "Support Target Graph Expr Search Cost Gir",
    "Fusion": "Support Target Graph Expr Search Cost",  # Tiling only through the ScheduleOracle
    "Codegen": "Support Target Graph Expr Cost Gir",
    "Bundle": "Support",
    "Runtime": "Support Bundle",
    "Reference": "Support Target Graph Expr Gir",
    "Driver": " ".join(STAGES),
}
# The rooms of a stage: what each sees besides itself.
ROOMS = {
    "Tiling": {
        "schedule": "",  # what can be asked of a schedule; who decides one stands above
        "lower": "schedule",
        "counts": "schedule",
        "verify": "schedule counts",
        "candidates": "schedule counts verify",
        "space": "schedule counts verify candidates",
        "search": "schedule lower counts verify candidates space",
    }
}
# The public headers stand alone; fusec and fusert prove that compiler.h and the runtime library are enough.
OTHERS_MAY_INCLUDE = {"include/": "", "tools/fusec/": "", "tools/fusert/": "Support Onnx"}

# Foreign header -> the folders that may include it.
OWNERS = [
    (r"(llvm|lld)(-c)?/", ("lib/Codegen/", "test/Unit/Codegen/")),
    (r"google/protobuf/|.*\.pb\.h$", ("lib/Onnx/", "tools/fusert/", "test/Unit/Onnx/")),
    (r"flatbuffers/|Manifest_generated\.h$", ("lib/Bundle/", "test/Unit/Bundle/")),
    (r"sodium", ("lib/Bundle/", "test/Unit/Bundle/")),
    (r"CLI/", ("tools/",)),
    (r"cuda\.h$|hip/", ("test/",)),  # the runtime has its own declarations; a test compares them
    (r"dlfcn\.h$", ("lib/Runtime/", "test/")),
    (r"fmt/", tuple(f"lib/{stage}/" for stage in STAGES if stage not in ("Bundle", "Runtime")) + ("tools/", "test/")),
]
VENDOR_LIBRARY = re.compile(
    r"\b(lib)?(cblas|openblas|blas\b|mkl(_\w+)?\.h|mkl_|dnnl|onednn|cublas\w*|cudnn\w*|cutlass|rocblas|hipblas\w*"
    r"|miopen|xnnpack|Eigen/)",
    re.IGNORECASE,
)
INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^>"]+)[>"]')
# Stages that ask what a target can do, by fields of Target, not what kind of device it is.
KNOW_NO_KINDS = {"Tiling"}
TARGET_KIND = re.compile(r"\bTargetKind\b|\btarget(\.|->)((kind|sim|triple)\b|name\s*[!=]=)")
ENVIRONMENT = re.compile(r"\b(secure_getenv|getenv|environ)\b")
COMMENT = re.compile(r"//.*")
DEPS = re.compile(r"DEPS\s+((?:[A-Z]\w+\s*)+?)(?=\)|LIBS|SOURCES|PRIVATE_LIBS)")


def check(tree):
    problems = []
    for path in tree.sources("lib/", "include/", "tools/", "test/"):
        for number, line in tree.lines(path):
            code = COMMENT.sub("", line)
            match = INCLUDE.match(line)
            if match:
                problems += (Problem(path, number, text) for text in includeProblems(path, match[1]))
            if VENDOR_LIBRARY.search(code):
                problems.append(Problem(path, number, "vendor or BLAS library: kernels are our own"))
            if stageOf(path) in KNOW_NO_KINDS and TARGET_KIND.search(code):
                problems.append(Problem(path, number, "a kind of target: Target has fields that say what differs"))
            if ENVIRONMENT.search(code) and not path.startswith(("tools/", "test/")):
                problems.append(Problem(path, number, "the environment is read only in tools/"))
    for path in tree.sources("lib/"):
        stage = stageOf(path)
        if stage in ROOMS and roomOf(stage, path[len("lib/"):]) is None:
            problems.append(Problem(path, 0, f"stands in no room of {stage}: {', '.join(ROOMS[stage])}"))
    for path in tree.files:
        if path.endswith(("CMakeLists.txt", ".cmake")):
            problems += cmakeProblems(tree, path)
    return problems


def allowedFor(path):
    stage = stageOf(path)
    if stage:
        return MAY_INCLUDE[stage].split() + [stage]
    for prefix, allowed in OTHERS_MAY_INCLUDE.items():
        if path.startswith(prefix):
            return allowed.split()
    return STAGES


def stageOf(path):
    parts = path.split("/")
    return parts[1] if parts[0] == "lib" and len(parts) > 2 and parts[1] in MAY_INCLUDE else None


def roomOf(stage, header):
    parts = header.split("/")
    return parts[1] if parts[0] == stage and len(parts) == 3 and parts[1] in ROOMS[stage] else None


def includeProblems(path, header):
    target = header.split("/")[0]
    if target == stageOf(path) and target in ROOMS:
        room, other = roomOf(target, path[len("lib/"):]), roomOf(target, header)
        if room and other and other != room and other not in ROOMS[target][room].split():
            yield f"{target}/{room} may not include {target}/{other} ({header})"
    if target in MAY_INCLUDE and "/" in header and target not in allowedFor(path):
        yield f"{stageOf(path) or path.rsplit('/', 1)[0]} may not include {target} ({header})"
    for pattern, owners in OWNERS:
        if re.match(pattern, header) and not path.startswith(owners):
            yield f"{header} belongs to {', '.join(owners)}"


def cmakeProblems(tree, path):
    text = re.sub(r"#.*", "", tree.text(path))
    for match in VENDOR_LIBRARY.finditer(text):
        yield Problem(path, 0, f"vendor or BLAS library: {match[0]}")
    stage = stageOf(path)
    if not stage or path.count("/") != 2:
        return
    included = {match[1].split("/")[0] for source in tree.sources(f"lib/{stage}/") for _, line in tree.lines(source)
                if (match := INCLUDE.match(line))}
    for match in DEPS.finditer(text):
        for name in match[1].split():
            if name not in MAY_INCLUDE[stage].split():
                yield Problem(path, 0, f"{stage} may not depend on {name}")
            elif name not in included:
                yield Problem(path, 0, f"{stage} depends on {name} and includes nothing of it")
