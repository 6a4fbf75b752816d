"""Group E: external data."""

import os

from cases import BAD, OK, Case, helper, model, save
from onnx import TensorProto


def external(entries, files=None, dims=(2, 3), kind=TensorProto.FLOAT, name="w"):
    """A maker for a model whose second operand lies in a file; `files(folder)` puts files there."""

    def make(folder):
        t = TensorProto()
        t.name = name
        t.data_type = kind
        t.dims.extend(dims)
        t.data_location = TensorProto.EXTERNAL
        for key, v in entries:
            e = t.external_data.add()
            e.key, e.value = key, v
        if files:
            files(folder)
        return save(model([helper.make_node("Add", ["x", "w"], ["y"], name="n")], initializer=[t]), folder)

    return make


def data(size=24, name="w.bin"):
    return lambda folder: (folder / name).write_bytes(bytes(size))


def at(location, files=None):
    return external([("location", location)], files)


def offset(text, files=None):
    return external([("location", "w.bin"), ("offset", text)], files or data())


def length(text, files=None):
    return external([("location", "w.bin"), ("length", text)], files or data())


def linked(folder):
    data(name="real.bin")(folder)
    (folder / "w.bin").symlink_to("real.bin")


def linked_folder(folder):
    (folder / "real").mkdir()
    (folder / "real" / "w.bin").write_bytes(bytes(24))
    (folder / "sub").symlink_to("real")


def hard_linked(folder):
    data(name="real.bin")(folder)
    os.link(folder / "real.bin", folder / "w.bin")


def nested(folder):
    (folder / "sub").mkdir()
    (folder / "sub" / "w.bin").write_bytes(bytes(24))


def overlapping(folder):
    """Two tensors share bytes 8 to 23 of one file."""
    data(32)(folder)
    tensors = []
    for name, begin in (("w", 0), ("v", 8)):
        t = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=(2, 3), data_location=TensorProto.EXTERNAL)
        for key, text in (("location", "w.bin"), ("offset", str(begin)), ("length", "24")):
            entry = t.external_data.add()
            entry.key, entry.value = key, text
        tensors.append(t)
    nodes = [helper.make_node("Add", ["x", "w"], ["t"]), helper.make_node("Add", ["t", "v"], ["y"])]
    return save(model(nodes, initializer=tensors), folder)


def in_branch(folder):
    """External data inside a subgraph is checked in the same way."""
    t = TensorProto()
    t.name, t.data_type, t.data_location = "w", TensorProto.FLOAT, TensorProto.EXTERNAL
    t.dims.extend((2, 3))
    e = t.external_data.add()
    e.key, e.value = "location", "../w.bin"
    out = helper.make_tensor_value_info("z", TensorProto.FLOAT, (2, 3))
    branch = helper.make_graph([helper.make_node("Add", ["x", "w"], ["z"])], "b", [], [out], [t])
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, ())
    return save(model([node], inputs=["x", condition]), folder)


def in_attribute(folder):
    t = TensorProto()
    t.data_type, t.data_location = TensorProto.FLOAT, TensorProto.EXTERNAL
    t.dims.extend((2, 3))
    e = t.external_data.add()
    e.key, e.value = "location", "/etc/passwd"
    nodes = [helper.make_node("Constant", [], ["w"], value=t), helper.make_node("Add", ["x", "w"], ["y"])]
    return save(model(nodes), folder)


CASES = [
    Case("E1-plain", at("w.bin", data()), OK),
    Case("E1-folder", at("sub/w.bin", nested), OK),
    Case("E2-parent", at("../w.bin"), BAD, "'..'"),
    Case("E3-parent", at("sub/../../w.bin", nested), BAD, "'..'"),
    Case("E4-absolute", at("/etc/passwd"), BAD, "absolute"),
    Case("E5-link", at("w.bin", linked), BAD, "symbolic link"),
    Case("E6-linked-folder", at("sub/w.bin", linked_folder), BAD, "symbolic link"),
    Case("E7-hard-link", at("w.bin", hard_linked), BAD, "hard links"),
    Case("E8-fifo", at("w.bin", lambda f: os.mkfifo(f / "w.bin")), BAD, "FIFO"),
    Case("E9-directory", at("w.bin", lambda f: (f / "w.bin").mkdir()), BAD, "directory"),
    Case("E10-zero", at("w.bin", lambda f: (f / "w.bin").symlink_to("/dev/zero")), BAD, "symbolic link"),
    Case("E11-missing", at("w.bin"), BAD, "No such file"),
    Case("E12-empty", at(""), BAD, "the location is empty"),
    Case("E12-none", external([("offset", "0")]), BAD, "no location"),
    Case("E13-model", at("m.onnx"), BAD, "the model itself"),
    Case("E14-nul", at("w.bin\0x", data()), BAD, "NUL"),
    Case("E15-backslash", at("sub\\w.bin"), BAD, "backslash"),
    Case("E15-drive", at("C:w.bin"), BAD, "drive letter"),
    Case("E16-twice", external([("location", "w.bin"), ("location", "w.bin")], data()), BAD, "given twice"),
    Case("E17-unknown", external([("location", "w.bin"), ("colour", "red")], data()), BAD, "unknown key 'colour'"),
    Case("E18-memory", at("*/_ORT_MEM_ADDR_/*"), BAD, "cannot open"),
    Case("E19-negative", offset("-4"), BAD, "'-4'"),
    Case("E19-past", offset("100"), BAD, "past the end"),
    Case("E19-hex", offset("0x10"), BAD, "'0x10'"),
    Case("E19-space", offset(" 4"), BAD, "' 4'"),
    Case("E19-word", offset("four"), BAD, "'four'"),
    Case("E19-overflow", offset(str(2**63 - 8)), BAD, "past the end"),
    Case("E19-wider", offset(str(2**64)), BAD, "decimal"),
    Case("E20-huge", length(str(10**12)), BAD, "length 1000000000000 is not the tensor's size"),
    Case("E20-other", length("20"), BAD, "length 20 is not"),
    Case("E21-unaligned", offset("3", data(27)), OK),
    Case("E20-short", at("w.bin", data(20)), BAD, "reach past the end"),
    Case("E22-overlapping", overlapping, OK),
    Case("E25-subgraph", in_branch, BAD, "'..'", several=True),
    Case("E25-attribute", in_attribute, BAD, "absolute"),
]
