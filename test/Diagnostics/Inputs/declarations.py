"""Writes models whose declarations their nodes contradict: declarations.py FOLDER"""

import pathlib
import sys

from onnx import TensorProto, helper

FLOAT, BOOL, INT64 = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64
info = helper.make_tensor_value_info


def relu(a, b):
    return helper.make_node("Relu", [a], [b])


def write(name, nodes, inputs, outputs, inner=()):
    graph = helper.make_graph(nodes, "g", inputs, outputs, value_info=list(inner))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    (folder / f"{name}.onnx").write_bytes(model.SerializeToString())


folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
inner = [info("t", FLOAT, (2, 4)), info("u", INT64, (2, 3)), info("absent", FLOAT, (7,))]
nodes = [relu("x", "t"), relu("t", "u"), relu("u", "y")]
write("shapes", nodes, [info("x", FLOAT, (2, 3))], [info("y", FLOAT, (6,))], inner)
blocks = helper.make_node("DepthToSpace", ["r"], ["w"], name="blocks", blocksize=5)
to = helper.make_node("Constant", [], ["to"], value_ints=[1, -1, 1, 1])
nodes = [relu("x", "y"), relu("x", "z"), to, helper.make_node("Reshape", ["x", "to"], ["r"]), blocks]
outputs = [info("y", FLOAT, (4, "k")), info("z", FLOAT, ("n", 3)), info("w", FLOAT, None)]
write("together", nodes, [info("x", FLOAT, ("n", "k"))], outputs)
write("range", [relu("x", "y")], [info("x", FLOAT, ("n", 3))], [info("y", FLOAT, (4, 3))])
branches = {
    f"{side}_branch": helper.make_graph(
        [relu("x", "inner"), relu("inner", f"{side}_out")],
        side,
        [],
        [info(f"{side}_out", FLOAT, None)],
        value_info=[info("inner", FLOAT, (9,) if side == "then" else (2, 3))],
    )
    for side in ("then", "else")
}
chain = [relu(f"v{i}", f"v{i + 1}") for i in range(30)]
wrong = [info(f"v{i}", FLOAT, (9,)) for i in range(1, 31)]
write("many", chain, [info("v0", FLOAT, (2, 3))], [info("v30", FLOAT, (2, 3))], wrong[:-1])
choice = helper.make_node("If", ["c"], ["y"], name="i", **branches)
write("branch", [choice], [info("x", FLOAT, (2, 3)), info("c", BOOL, ())], [info("y", FLOAT, (2, 3))])
