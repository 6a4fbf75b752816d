"""Groups G (graph) and T (tensors)."""

import numpy as np
from cases import BAD, LIMIT, OK, UNSUPPORTED, Case, field, helper, model, of, relu, value, varint
from onnx import TensorProto, numpy_helper


def node(op, inputs, outputs=("y",), **attributes):
    return helper.make_node(op, list(inputs), list(outputs), name="n", **attributes)


def one(op, inputs=("x",), **attributes):
    return of(lambda: model([node(op, inputs, **attributes)]))


def nodes(*list_of_nodes, **extra):
    return of(lambda: model(list_of_nodes, **extra))


def function(name, body, inputs=("a",), outputs=("b",)):
    imports = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
    return helper.make_function("own", name, list(inputs), list(outputs), body, imports)


def call(name, x="x", y="y"):
    return helper.make_node(name, [x], [y], domain="own")


def recursive():
    return model([call("f")], functions=[function("f", [call("f", "a", "b")])])


def mutual():
    return model(
        [call("f")], functions=[function("f", [call("g", "a", "b")]), function("g", [call("f", "a", "b")])]
    )


def doubling():
    fs = [function("f0", [relu("a", "b")])]
    for i in range(1, 31):
        fs.append(function(f"f{i}", [call(f"f{i - 1}", "a", "t"), call(f"f{i - 1}", "t", "b")]))
    return model([call("f30")], functions=fs)


def chain_of_functions(count):
    fs = [function("f0", [relu("a", "b")])]
    fs += [function(f"f{i}", [call(f"f{i - 1}", "a", "b")]) for i in range(1, count)]
    return model([call(f"f{count - 1}")], functions=fs)


def long_chain(count):
    list_of_nodes = [relu("x" if i == 0 else f"t{i}", "y" if i == count - 1 else f"t{i + 1}") for i in range(count)]
    return model(list_of_nodes)


def newer_attribute():
    n = node("SpaceToDepth", ["x"], blocksize=2, mode="CRD")
    return model([n], [value("x", (1, 1, 2, 2))], [value("y", (1, 4, 1, 1))], opset=27)


def attribute_of_pools():
    n = node("MaxUnpool", ["x", "i"], kernel_shape=[2, 2], auto_pad="VALID")
    places = helper.make_tensor_value_info("i", TensorProto.INT64, (1, 1, 2, 2))
    return model([n], [value("x", (1, 1, 2, 2)), places], [value("y", None)])


def twice_an_attribute():
    n = node("LeakyRelu", ["x"], alpha=0.5)
    n.attribute.append(n.attribute[0])
    return model([n])


def referring_attribute():
    n = node("LeakyRelu", ["x"], alpha=0.5)
    n.attribute[0].ref_attr_name = "outer"
    return model([n])


def subgraph_on_relu():
    inner = helper.make_graph([relu("x", "z")], "inner", [], [value("z")])
    return model([node("Relu", ["x"], body=inner)])


def shadowing():
    inner = helper.make_graph([relu("c2", "x")], "inner", [], [value("x")])
    n = node("If", ["c"], then_branch=inner, else_branch=inner)
    return model([n], inputs=["x", value("c", (), TensorProto.BOOL), value("c2")])


def tensor(dims, kind=TensorProto.FLOAT, name="w", **fields):
    t = TensorProto()
    t.name = name
    t.data_type = kind
    t.dims.extend(dims)
    for key, v in fields.items():
        if key == "raw":
            t.raw_data = v
        else:
            getattr(t, key).extend(v)
    return t


def with_tensor(t, op="Add"):
    return of(lambda: model([node(op, ["x", "w"])], initializer=[t]))


def with_value(t):
    """The tensor feeds nothing but an output."""
    return of(lambda: model([relu(), node("Identity", ["w"], ["z"])], outputs=["y"], initializer=[t]))


def wrap_dims():
    t = field(1, varint(1 << 62) + varint(4)) + varint(2 << 3) + varint(1) + field(8, b"w")
    m = model([node("Add", ["x", "w"])])
    graph = m.graph.SerializeToString() + field(5, t)
    m.ClearField("graph")
    return m.SerializeToString() + field(7, graph)


def segment():
    t = tensor([2, 3], raw=bytes(24))
    t.segment.begin = 0
    return t


def sparse(indices, values=(1.0,), dims=(2, 3)):
    v = tensor([len(values)], float_data=values)
    i = tensor([len(indices)], TensorProto.INT64, "", int64_data=indices)
    s = helper.make_sparse_tensor(v, i, list(dims))
    return of(lambda: model([node("Add", ["x", "w"])], sparse_initializer=[s]))


def half(values):
    t = tensor([2, 3], TensorProto.FLOAT16, int32_data=values)
    out = value("y", (2, 3), TensorProto.FLOAT16)
    return of(lambda: model([node("Identity", ["w"])], outputs=[out], initializer=[t]))


def declared(dims, out=None, out_type=TensorProto.FLOAT):
    """A Relu over an input of these dims, with the output declared as `out`."""
    return of(lambda: model([relu()], inputs=[value("x", dims)], outputs=[value("y", out, out_type)]))


def gather(index):
    indices = numpy_helper.from_array(np.array([index], np.int64), "i")
    return of(lambda: model([node("Gather", ["x", "i"])], outputs=[value("y", None)], initializer=[indices]))


def reshape_at_run_time():
    infos = [value("x", (2, 3)), value("s", ("k",), TensorProto.INT64)]
    return model([node("Reshape", ["x", "s"])], inputs=infos, outputs=[value("y", None)])


def reshape_to(*target):
    shape = numpy_helper.from_array(np.array(target, np.int64), "s")
    return of(lambda: model([node("Reshape", ["x", "s"])], outputs=[value("y", None)], initializer=[shape]))


def sliced(start, end, step):
    operands = [numpy_helper.from_array(np.array([v], np.int64), k) for k, v in zip("seap", (start, end, 0, step))]
    return of(
        lambda: model([node("Slice", ["x", "s", "e", "a", "p"])], outputs=[value("y", None)], initializer=operands)
    )


def expanded(*dims):
    shape = numpy_helper.from_array(np.array(dims, np.int64), "s")
    infos, outs = [value("x", (1,))], [value("y", None)]
    return of(lambda: model([node("Expand", ["x", "s"])], inputs=infos, outputs=outs, initializer=[shape]))


def tiled(*counts):
    repeats = numpy_helper.from_array(np.array(counts, np.int64), "r")
    return of(lambda: model([node("Tile", ["x", "r"])], outputs=[value("y", None)], initializer=[repeats]))


def resized(size):
    sizes = numpy_helper.from_array(np.array([1, 1, 2, size], np.int64), "s")
    infos = [value("x", (1, 1, 2, 3))]
    return of(
        lambda: model(
            [node("Resize", ["x", "", "", "s"], mode="linear")],
            inputs=infos,
            outputs=[value("y", None)],
            initializer=[sizes],
        )
    )


def conv(x=(1, 4, 8, 8), w=(4, 4, 3, 3), **attributes):
    infos = [value("x", x), value("w", w)]
    return of(lambda: model([node("Conv", ["x", "w"], **attributes)], inputs=infos, outputs=[value("y", None)]))


def pool(**attributes):
    infos = [value("x", (1, 4, 8, 8))]
    return of(lambda: model([node("MaxPool", ["x"], **attributes)], inputs=infos, outputs=[value("y", None)]))


ENDLESS = "f32[1099511627776,1099511627776]"
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
ONES = numpy_helper.from_array(np.ones((2, 3), np.float32), "w")

CASES = [
    Case("G1-cycle", nodes(relu("b", "a"), relu("a", "b"), relu("a", "y")), BAD, "not defined before", several=True),
    Case("G2-self-loop", nodes(relu("y", "y")), BAD, "not defined before"),
    Case("G3-duplicate", nodes(relu("x", "y"), relu("x", "y")), BAD, "defined a second time"),
    Case("G3-shadowing", of(shadowing), BAD, "defined a second time", several=True),
    Case("G4-undefined", nodes(relu("nothing", "y")), BAD, "input 'nothing' is not defined"),
    Case("G5-no-producer", nodes(relu("x", "z")), BAD, "no node makes it"),
    Case("G6-unsorted", nodes(relu("t", "y"), relu("x", "t")), BAD, "must be sorted"),
    Case("G7-no-nodes", of(lambda: model([], outputs=["x"])), OK),
    Case("G8-output-twice", of(lambda: model([relu()], outputs=["y", "y"])), BAD, "'y': is listed twice"),
    Case("G9-initialiser-output", of(lambda: model([], outputs=["w"], initializer=[ONES])), OK),
    Case("G10-default", of(lambda: model([node("Add", ["x", "w"])], inputs=["x", "w"], initializer=[ONES])), OK),
    Case("G11-empty-mandatory", one("Add", ["x", ""]), BAD, "mandatory"),
    Case("G11-empty-optional", one("Clip", ["x", "", ""]), OK),
    Case("G12-many-inputs", one("Relu", ["x"] * 50), BAD, "50 inputs"),
    Case("G13-no-inputs", one("Add", []), BAD, "0 inputs"),
    Case("G14-attribute-type", one("LeakyRelu", alpha=1), BAD, "must be of type float, not int"),
    Case("G14-attribute-twice", of(twice_an_attribute), BAD, "given twice"),
    Case("G14-attribute-unknown", one("Relu", foo=1), BAD, "no attribute 'foo'"),
    Case("G14-attribute-of-pools", of(attribute_of_pools), BAD, "no attribute 'auto_pad'"),
    Case("G14-attribute-newer", of(newer_attribute), UNSUPPORTED, "not supported before opset 28"),
    Case("G14-attribute-gone", one("Dropout", is_test=1), BAD, "no attribute 'is_test' since opset 7"),
    Case("G15-reference", of(referring_attribute), BAD, "outside a function"),
    Case("G16-subgraph", of(subgraph_on_relu), BAD, "no attribute 'body'"),
    Case("G19-recursive", of(recursive), BAD, "recursive"),
    Case("G19-mutual", of(mutual), BAD, "recursive"),
    Case("G20-doubling", of(doubling), LIMIT, "nodes after functions are inlined"),
    Case("G21-chain", of(lambda: chain_of_functions(5000)), LIMIT, "nested more than 100 deep"),
    Case("G21-short-chain", of(lambda: chain_of_functions(90)), OK),
    Case("G22-long", of(lambda: long_chain(100_000)), OK),
    Case("G23-wide", of(lambda: model([node("Sum", ["x"] * 20_000)])), OK),
    Case("G25-dead-bad", nodes(relu(), node("LeakyRelu", ["x"], ["z"], alpha="a")), BAD, "alpha"),
    Case("G26-names", nodes(helper.make_node("Foo", ["x"], ["y"], name='a"\n*/\x1b[31m')), UNSUPPORTED, "\\x1b"),
    Case("G28-names", nodes(relu("x", 't"\n*/ system("'), relu('t"\n*/ system("', "y")), OK),
    Case("G29-name", nodes(relu("x", "n" * (1 << 20)), relu("n" * (1 << 20), "y")), LIMIT, "names have at most"),
    Case("G30-case", nodes(relu("x", "A"), relu("A", "a"), relu("a", "y")), OK),
    Case("G31-negative", declared((-5,)), BAD, "dimension -5"),
    Case("G31-zero", declared((0,), (0,)), OK),
    Case("G31-huge", declared((1 << 62,)), BAD),
    Case("G31-product", declared((1 << 40, 1 << 40)), LIMIT, f"input 'x': {ENDLESS} has more than"),
    Case("O4-expand", expanded(1 << 40, 1 << 40), LIMIT, f"output 'y': {ENDLESS} has more than"),
    Case("O4-tile", tiled(1 << 39, 1 << 39), LIMIT, "output 'y'"),
    Case("O4-resize", resized(1 << 27), LIMIT, "the table of weights would be larger than 2^26 entries"),
    Case("G32-shape", declared((2, 3), (4, 4)), OK),
    Case("G32-rank", declared((2, "n"), (4,)), OK),
    Case("G32-type", declared((2, 3), (2, 3), TensorProto.INT8), BAD, "declares i8, its nodes make f32[2,3]"),
    Case("O1-gather-99", gather(99), BAD, "index 99 is out of range"),
    Case("O1-gather-lowest", gather(LOWEST), BAD, "out of range"),
    Case("O2-step-0", sliced(0, 2, 0), BAD, "a step is 0"),
    Case("O2-lowest", sliced(LOWEST, HIGHEST, LOWEST), OK),
    Case("O2-backwards", sliced(HIGHEST, LOWEST, LOWEST), OK),
    Case("O2-forward", sliced(LOWEST, 1, 1), OK),
    Case("O3-two-rests", reshape_to(-1, -1), BAD, "two -1"),
    Case("O3-overflow", reshape_to(1 << 62, 4), BAD),
    Case("O3-negative", reshape_to(-2, -3), BAD, "the size -2"),
    Case("O3-rest-of-zero", reshape_to(0, 0, 0), BAD),
    Case("O3-run-time", of(reshape_at_run_time), UNSUPPORTED, "run-time value"),
    Case("O8-group-0", conv(group=0), BAD, "group is 0"),
    Case("O8-group-3", conv(group=3), BAD, "group is 3"),
    Case("O8-stride-0", conv(strides=[0, 1]), BAD, "between 1 and 2^31"),
    Case("O8-dilation", conv(dilations=[HIGHEST, 1]), BAD, "between 1 and 2^31"),
    Case("O8-pads", conv(pads=[-99, 0, 0, 0]), BAD, "pads must be"),
    Case("O8-kernel-rank", conv(w=(4, 4, 3, 3, 3)), BAD, "one rank"),
    Case("O8-kernel-shape", conv(kernel_shape=[5, 5]), BAD, "does not agree"),
    Case("O8-no-channels", conv(w=(4, 0, 3, 3)), BAD, "channels"),
    Case("O9-kernel-0", pool(kernel_shape=[0, 2]), BAD, "between 1 and 2^31"),
    Case("O9-kernel-huge", pool(kernel_shape=[1 << 40, 2]), BAD, "between 1 and 2^31"),
    Case("O9-pads", pool(kernel_shape=[2, 2], pads=[2, 0, 0, 0]), BAD, "smaller than the window"),
    Case("O13-perm-twice", one("Transpose", perm=[0, 0]), BAD, "each axis"),
    Case("O13-perm-range", one("Transpose", perm=[0, 9]), BAD, "each axis"),
    Case("O14-softmax", one("Softmax", axis=9), BAD, "axis 9 is out of range"),
    Case("O14-softmax-lowest", one("Softmax", axis=LOWEST), BAD, "out of range"),
    Case("O14-concat", one("Concat", ["x", "x"], axis=LOWEST), BAD, "out of range"),
    Case("O14-flatten", one("Flatten", axis=LOWEST), BAD, "out of range"),
    Case("O16-einsum", one("Einsum", equation="i->"), BAD, "does not fit an operand of rank 2"),
    Case("O16-long", one("Einsum", equation="a" * 100_000), BAD, "longer than 4096"),
    Case("O16-repeated", one("Einsum", equation="ij->ii"), BAD, "repeated"),
    Case("T1-negative", with_tensor(tensor([-1])), BAD, "negative"),
    Case("T2-overflow", with_tensor(tensor([1 << 32, 1 << 32, 2])), LIMIT),
    Case("T3-wrap", of(wrap_dims), LIMIT),
    Case("T4-empty", with_value(tensor([0, (1 << 63) - 1, (1 << 63) - 1])), OK),
    Case("T5-no-data", with_tensor(tensor([10**11])), BAD, "0 are given"),
    Case("T6-short", with_tensor(tensor([100], raw=bytes(4))), BAD, "need 400 bytes, 4 are given"),
    Case("T6-long", with_tensor(tensor([1], raw=bytes(400))), BAD, "need 4 bytes, 400 are given"),
    Case("T6-odd", with_tensor(tensor([2], raw=bytes(7))), BAD, "need 8 bytes, 7 are given"),
    Case("T7-two-fields", with_tensor(tensor([2, 3], raw=bytes(24), float_data=[0] * 6)), BAD, "more than one field"),
    Case("T8-type-0", with_tensor(tensor([1], 0, raw=bytes(4))), BAD, "element type 0"),
    Case("T8-type-999", with_tensor(tensor([1], 999, raw=bytes(4))), BAD, "element type 999"),
    Case("T9-string", with_tensor(tensor([1], TensorProto.STRING, string_data=[b"a"])), UNSUPPORTED, "string"),
    Case("T11-bool", with_tensor(tensor([1], TensorProto.BOOL, raw=b"\x07")), BAD, "bool element is 7"),
    Case("T12-half", half([70_000] * 6), BAD, "no 16-bit pattern"),
    Case("T12-half-good", half([15360] * 6), OK),
    Case("T13-rank", with_tensor(tensor([1] * 10_000, raw=bytes(4))), LIMIT, "rank 10000"),
    Case("T14-segment", with_tensor(segment()), BAD, "segmented"),
    Case("T15-sparse", sparse([1]), OK),
    Case("T15-range", sparse([6]), BAD, "out of range"),
    Case("T15-order", sparse([3, 1], (1.0, 2.0)), BAD, "sorted"),
    Case("T15-twice", sparse([1, 1], (1.0, 2.0)), BAD, "sorted and unique"),
    Case("T15-count", sparse([1, 2], (1.0,)), BAD, "shape"),
    Case("T15-huge", sparse([1], dims=(1 << 20, 1 << 20)), LIMIT, "256 MiB"),
    Case("T17-twice", of(lambda: model([relu()], initializer=[ONES, ONES])), BAD, "second time"),
]
