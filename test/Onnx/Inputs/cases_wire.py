"""Groups W (wire format) and H (header)."""

import os
import random
import stat

from cases import BAD, LIMIT, OK, UNSUPPORTED, Case, field, helper, model, of, relu, save, value, varint


def valid():
    return model([relu()]).SerializeToString()


def cut(length):
    return lambda folder: save(valid()[:length], folder)


def with_graph(graph_bytes):
    head = model([relu()])
    head.ClearField("graph")
    return head.SerializeToString() + graph_bytes


def two_graphs():
    g = field(7, model([relu()]).graph.SerializeToString())
    return with_graph(g + g)


def packed_dims():
    m = model([helper.make_node("Add", ["x", "w"], ["y"])])
    tensor = field(1, varint(2) + varint(3)) + varint(2 << 3) + varint(1) + field(8, b"w") + field(9, bytes(24))
    graph = m.graph.SerializeToString() + field(5, tensor)
    return with_graph(field(7, graph))


def many_nodes(count):
    node = field(1, b"")
    return with_graph(field(7, node * count))


def many_valid_nodes(count):
    node = field(1, field(4, b"Relu"))
    return with_graph(field(7, node * count))


def sparse_file(folder):
    path = folder / "m.onnx"
    with open(path, "wb") as f:
        f.truncate(3 << 30)
    return path


def special(kind):
    def make(folder):
        path = folder / "m.onnx"
        if kind == "directory":
            path.mkdir()
        elif kind == "fifo":
            os.mkfifo(path)
        elif kind == "loop":
            path.symlink_to(path)
        return path

    return make


def unreadable(folder):
    """Nobody but root may open the one, nobody at all the other."""
    path = folder / "m.onnx"
    if os.geteuid():
        save(valid(), folder).chmod(0)
    else:
        os.mknod(path, 0o600 | stat.S_IFSOCK)
    return path


def noise():
    return random.Random(7).randbytes(4096)


def nested_if(depth):
    """An If inside the branch of an If, encoded by hand: helper would recurse."""
    leaf = field(1, field(1, b"x") + field(2, b"y") + field(4, b"Relu")) + field(2, b"b") + field(12, field(1, b"y"))
    graph = leaf
    for level in range(depth):
        branch = lambda key: field(5, field(1, key) + field(6, graph) + varint(20 << 3) + varint(5))
        node = field(1, b"c") + field(2, b"y" if level == depth - 1 else b"y%d" % level) + field(4, b"If")
        out = b"y" if level == depth - 1 else b"y%d" % level
        graph = field(1, node + branch(b"then_branch")) + field(2, b"b") + field(12, field(1, out))
    return with_graph(field(7, graph))


def opsets(*pairs):
    m = model([relu()])
    del m.opset_import[:]
    m.opset_import.extend(helper.make_opsetid(d, v) for d, v in pairs)
    return m


def ir(version):
    m = model([relu()])
    m.ir_version = version
    return m


def without_graph():
    m = model([relu()])
    m.ClearField("graph")
    return m


def in_domain(op, domain, imported=True):
    m = model([helper.make_node(op, ["x"], ["y"], name="n1", domain=domain)])
    if imported and domain:
        m.opset_import.append(helper.make_opsetid(domain, 1))
    return m


def legacy(op, opset, operands=(), dims=(1, 2, 4, 4), **attributes):
    node = helper.make_node(op, ["x", *operands], ["y"], name="n", **attributes)
    infos = [value("x", dims)] + [value(name, (2,)) for name in operands]
    return of(lambda: model([node], inputs=infos, outputs=[value("y", None)], opset=opset))


def scan_8():
    """The first form of Scan has a batch and the sequences' lengths as its first operand."""
    step = helper.make_graph(
        [helper.make_node("Add", ["h", "v"], ["h2"]), helper.make_node("Identity", ["h2"], ["o"])],
        "step",
        [value("h", (2,)), value("v", (2,))],
        [value("h2", (2,)), value("o", (2,))],
    )
    node = helper.make_node("Scan", ["", "h0", "x"], ["y", "z"], name="n", body=step, num_scan_inputs=1)
    infos = [value("h0", (1, 2)), value("x", (1, 3, 2))]
    return model([node], inputs=infos, outputs=[value("y", (1, 2)), value("z", (1, 3, 2))], opset=8)


def training():
    m = model([relu()])
    m.training_info.add().algorithm.name = "a"
    return m


def two_unsupported():
    return model(
        [helper.make_node("Foo", ["x"], ["t"], name="n1"), helper.make_node("Bar", ["t"], ["y"], name="n2")]
    )


def many_unsupported():
    """Foo of several types, two of them behind others; a Bar for each of two reasons."""
    nodes = [helper.make_node("Foo", ["x"], [f"t{i}"], name=f"n{i}") for i in range(5)]
    nodes += [helper.make_node("Foo", ["t0"], ["u"], name="behind")]
    nodes += [helper.make_node("Gelu", ["x"], [f"v{i}"], name=f"g{i}", approximate="?") for i in range(2)]
    nodes += [helper.make_node("Relu", ["x"], ["y"], name="r", slope=1.0)]
    return model(nodes, opset=20)


def unknown_field():
    return valid() + varint(1007 << 3) + varint(5)


def wrong_graph_type():
    head = model([relu()])
    head.ClearField("graph")
    return head.SerializeToString() + varint(7 << 3) + varint(5)


CASES = [
    Case("W1-empty", of(lambda: b""), BAD, "the file is empty"),
    Case("W2-noise", of(noise), BAD),
    *(Case(f"W3-cut-{n}", cut(n), {BAD, UNSUPPORTED, LIMIT}) for n in range(1, len(valid()))),
    Case("W4-tail", of(lambda: valid() + b"\xff" * 64), BAD),
    Case("W5-unknown-field", of(unknown_field), OK),
    Case("W6-length", of(lambda: varint(7 << 3 | 2) + varint(1 << 63)), BAD, "runs past the end"),
    Case("W7-groups", of(lambda: varint(7 << 3 | 3) * 2000), BAD, "groups"),
    Case("W8-varint", of(lambda: b"\x08" + b"\xff" * 10 + b"\x01"), BAD, "64 bits"),
    Case("W9-field-0", of(lambda: b"\x00\x01"), BAD, "field number 0"),
    Case("W10-wire-type", of(wrong_graph_type), BAD, "field 'graph' of ModelProto has the wrong wire type"),
    Case("W11-two-graphs", of(two_graphs), BAD, "field 'graph' of ModelProto is given twice"),
    Case("W12-packed", of(packed_dims), OK),
    Case("W13-empty-nodes", of(lambda: many_nodes(10_000_000)), {BAD, LIMIT}),
    Case("W13-nodes", of(lambda: many_valid_nodes(5_000_001)), LIMIT, "more than 5000000 nodes"),
    Case("W14-3-gib", sparse_file, LIMIT, "> 2 GiB"),
    Case("W15-directory", special("directory"), BAD, "it is a directory"),
    Case("W15-fifo", special("fifo"), BAD, "it is a FIFO"),
    Case("W15-unreadable", unreadable, BAD, "cannot open the model"),
    Case("W15-loop", special("loop"), BAD, "cannot open"),
    Case("W15-missing", special("missing"), BAD, "No such file"),
    Case("H1-no-opset", of(lambda: opsets()), BAD, "opset_import"),
    Case("H2-opset-0", of(lambda: opsets(("", 0))), BAD, "opset 0"),
    Case("H2-opset-negative", of(lambda: opsets(("", -1))), BAD, "opset -1"),
    Case("H2-opset-999", of(lambda: opsets(("", 999))), BAD, "opset 999"),
    Case("H3-twice", of(lambda: opsets(("", 17), ("", 18))), BAD, "imported twice"),
    Case("H3-again", of(lambda: opsets(("", 18), ("ai.onnx", 18), ("", 18))), OK),
    Case("H3-alias", of(lambda: opsets(("", 17), ("ai.onnx", 18))), BAD, "imported twice"),
    Case("H4-ir-0", of(lambda: ir(0)), BAD, "IR version 0"),
    Case("H4-ir-2-40", of(lambda: ir(1 << 40)), BAD, "IR version"),
    Case("H5-no-graph", of(without_graph), BAD, "no graph"),
    Case("H6-unknown-op", of(lambda: in_domain("Foo", "")), UNSUPPORTED, "node 'n1' (Foo, opset 18)"),
    Case("H6-unknown-domain", of(lambda: in_domain("Foo", "acme")), UNSUPPORTED, "acme::Foo"),
    Case("H6-domain-not-imported", of(lambda: in_domain("Foo", "acme", False)), BAD, "acme"),
    Case("H6-all-at-once", of(two_unsupported), UNSUPPORTED, "node 'n2' (Bar, opset 18)", several=True),
    Case("H6-grouped", of(many_unsupported), UNSUPPORTED, "6 nodes (Foo, opset 20)", several=True),
    Case("H7-upsample", legacy("Upsample", 7, mode="nearest", scales=[1.0, 1.0, 2.0, 2.0]), OK),
    Case("H7-upsample-scales", legacy("Upsample", 7, scales=[1.0, 2.0]), BAD, "one scale for each axis"),
    Case("H7-scan-8", of(scan_8), UNSUPPORTED, "(Scan, opset 8)"),
    Case("H7-batchnorm", legacy("BatchNormalization", 7, "sbmv"), OK),
    Case("H7-batchnorm-spatial", legacy("BatchNormalization", 7, "sbmv", spatial=0), UNSUPPORTED, "spatial = 0"),
    Case("H7-batchnorm-training", legacy("BatchNormalization", 6, "sbmv", is_test=0), UNSUPPORTED, "training mode"),
    Case("H7-add-axis", legacy("Add", 6, "b", broadcast=1, axis=1), OK),
    Case("H8-training", of(training), OK),
    Case("G17-if-40", of(lambda: nested_if(40)), LIMIT, "nested more than 32 deep"),
    Case("G17-if-10000", of(lambda: nested_if(3000)), LIMIT, "nested more than 32 deep"),
]
assert value
