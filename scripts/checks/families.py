"""The files of operators are called after one list of families, whatever the stage: the family's name, and behind it
the part of the family where it has several files. An operator is found under the same word everywhere."""

from common import Problem

FAMILIES = (
    "Contractions ControlFlow Elementwise Gathers Generators Images Misc Movement Normalisations Quantisation "
    "Recurrent Reductions Slices Windows"
).split()

# Folder -> what stands there besides: compositions of other operators, and what several families share.
FOLDERS = {
    "lib/Onnx/ops/": "Activations Attention FlexAttention Fused LinearAttention Quantised QuantisedAttention "
                     "QuantisedLstm QuantisedMatMul QuantisedOps Signal Text Transformers",
    "lib/Graph/rules/": "OpCheck",
    "lib/Expr/lower/": "EquationBuilder Lowering Rounded ScanBuilder SortedRuns Val",
    "lib/Reference/GraphOps/": "Quantise",
}


def check(tree):
    problems = []
    for folder, others in FOLDERS.items():
        stems = {path[len(folder):].split(".")[0]: path for path in tree.sources(folder)}
        for stem, path in stems.items():
            if stem not in others.split() and not any(isPart(stem, family) for family in FAMILIES):
                problems.append(Problem(path, 0, f"not called after a family: {', '.join(FAMILIES)}"))
        for other in others.split():
            if stems and other not in stems:
                problems.append(Problem("scripts/checks/families.py", 0, f"{folder}{other} does not exist"))
    return problems


def isPart(stem, family):
    """`stem` is the family or the family and a word that begins with a capital."""
    return stem == family or (stem.startswith(family) and stem[len(family)].isupper())
