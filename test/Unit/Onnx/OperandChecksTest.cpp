// Operands whose type or shape the lowering relies on are checked where the model is read.
#include "Models.h"

#include <catch2/catch_test_macros.hpp>

using namespace fusec;
using namespace fusec::test;

namespace {

constexpr int kI32 = onnx::TensorProto::INT32, kI64 = onnx::TensorProto::INT64,
              kU8 = onnx::TensorProto::UINT8;

/// What the diagnostic says behind the operator's name.
std::string complaint(const ModelMaker &m) {
  std::string text = outcome(m.import());
  size_t from = text.find("): "), to = text.find("; the inputs are");
  return from == std::string::npos ? text : text.substr(from + 3, to - from - 3);
}

} // namespace

TEST_CASE("the diagonal of Trilu is an i64") {
  ModelMaker m;
  m.input("x", {3, 5}).input("k", {}, kI32).output("y");
  m.node("Trilu", {"x", "k"}, {"y"});
  CHECK(complaint(m) == "the diagonal must be one number of type i64");
}

TEST_CASE("an empty axis cannot be indexed") {
  ModelMaker m;
  m.input("x", {0, 4}).input("i", {2}, kI64).output("y");
  m.node("Gather", {"x", "i"}, {"y"});
  CHECK(complaint(m) == "the axis that the indices are for is empty");

  ModelMaker none;
  none.input("x", {0, 4}).input("i", {0}, kI64).output("y");
  none.node("Gather", {"x", "i"}, {"y"});
  CHECK(outcome(none.import()) == "f32[0,4]\n");
}

TEST_CASE("indices of single elements stay within the data along the other axes") {
  ModelMaker m;
  m.input("x", {4, 4}).input("i", {5, 2}, kI64).output("y");
  m.node("GatherElements", {"x", "i"}, {"y"}); // axis 0
  CHECK(outcome(m.import()) == "f32[5,2]\n");

  ModelMaker wide;
  wide.input("x", {4, 4}).input("i", {2, 5}, kI64).output("y");
  wide.node("GatherElements", {"x", "i"}, {"y"});
  CHECK(complaint(wide) == "the indices reach beyond the data");

  ModelMaker unknown; // tested when shapes are set
  unknown.input("x", {4, "n"}).input("i", {2, "k"}, kI64).input("u", {2, "k"}).output("y");
  unknown.node("ScatterElements", {"x", "i", "u"}, {"y"});
  auto g = unknown.import();
  REQUIRE(outcome(g) == "f32[4,n]\n");
  REQUIRE(g->sizeRules.rules.size() == 1);
  CHECK(g->sizeRules.rules[0].tested);
  CHECK(g->sizeRules.rules[0].text ==
        "along axis 1 the data must have as many entries as the indices");
}

TEST_CASE("scales and zero points of products fit the product") {
  auto quantised = [](const std::vector<D> &zeroA, const std::vector<D> &zeroB) {
    ModelMaker m(21);
    m.input("a", {2, 4}, kU8).input("as", {1}).input("az", zeroA, kU8);
    m.input("b", {4, 3}, kU8).input("bs", {1}).input("bz", zeroB, kU8);
    m.input("ys", {1}).input("yz", {1}, kU8).output("y");
    m.node("QLinearMatMul", {"a", "as", "az", "b", "bs", "bz", "ys", "yz"}, {"y"});
    return complaint(m);
  };
  CHECK(quantised({1}, {}) == "u8[2,3]\n");
  CHECK(quantised({2}, {3}) == "u8[2,3]\n");
  CHECK(quantised({2, 1}, {1, 3}) == "u8[2,3]\n");
  CHECK(quantised({0}, {1}) == "input 2 must be one number or have the shape [2]");
  CHECK(quantised({3}, {1}) == "input 2 must be one number or have the shape [2]");
  CHECK(quantised({1}, {2}) == "input 5 must be one number or have the shape [3]");
  CHECK(quantised({1, 3}, {1}) == "input 2 must be one number or have the shape [1]");

  ModelMaker conv(10);
  conv.input("x", {1, 1, 3, 3}, kU8).input("w", {1, 1, 2, 2}, kU8);
  conv.input("xz", {}, kU8).input("wz", {1, 1, 2, 2}, kU8).output("y");
  conv.node("ConvInteger", {"x", "w", "xz", "wz"}, {"y"});
  CHECK(complaint(conv) == "input 3 must be one number or have the shape [1]");
}

TEST_CASE("a written cache and its indices fit each other") {
  auto written = [](const std::vector<D> &update, const std::vector<D> &indices) {
    ModelMaker m(24);
    m.input("cache", {3, 4, 5}).input("u", update).input("i", indices, kI64).output("y");
    m.node("TensorScatter", {"cache", "u", "i"}, {"y"});
    return complaint(m);
  };
  CHECK(written({3, 2, 5}, {3}) == "f32[3,4,5]\n");
  CHECK(written({3, 2, 5}, {3, 1}) == "the write indices must be i64, one for each batch entry");
  CHECK(written({3, 2, 6}, {3}) == "the sizes of cache and update must be equal: 5 and 6");
}

TEST_CASE("a window that would take for ever is refused") {
  ModelMaker m;
  m.input("x", {1, 1, 5, 5}).output("y");
  auto &n = m.node("MaxPool", {"x"}, {"y"});
  attribute(n, "kernel_shape", std::vector<int64_t>{int64_t(1) << 31, 2});
  auto *a = n.add_attribute();
  a->set_name("auto_pad");
  a->set_type(onnx::AttributeProto::STRING);
  a->set_s("SAME_UPPER");
  CHECK(complaint(m) == "the window has more than 2^24 elements\n");
}

TEST_CASE("a slice has at most one start an axis") {
  ModelMaker m; // whose names nobody counts one by one
  m.input("x", {2, 3}).input("s", {2000000000}, kI64).input("e", {1}, kI64).output("y");
  m.node("Slice", {"x", "s", "e"}, {"y"});
  CHECK(complaint(m) == "starts and ends must have one length, of at most one entry an axis");
}

TEST_CASE("a crop at run time needs scales or sizes") {
  ModelMaker m;
  m.input("x", {2, 3}).input("roi", {4});
  setType(*m.model.mutable_graph()->add_output(), "y", onnx::TensorProto::FLOAT, {2, 3});
  onnx::AttributeProto &mode = *m.node("Resize", {"x", "roi", ""}, {"y"}).add_attribute();
  mode.set_name("coordinate_transformation_mode");
  mode.set_type(onnx::AttributeProto::STRING);
  mode.set_s("tf_crop_and_resize");
  CHECK(outcome(m.import()).find("the scales are missing") != std::string::npos);
}

TEST_CASE("quantised products of vectors have no rows, no columns or neither") {
  auto product = [](const std::vector<D> &a, const std::vector<D> &b) {
    ModelMaker m;
    auto *domain = m.model.add_opset_import();
    domain->set_domain("com.microsoft");
    domain->set_version(1);
    m.input("a", a).input("b", b, kU8).input("s", {}).output("y");
    m.node("DynamicQuantizeMatMul", {"a", "b", "s"}, {"y"}).set_domain("com.microsoft");
    return outcome(m.import());
  };
  CHECK(product({4}, {4}) == "f32[]\n");
  CHECK(product({2, 4}, {4}) == "f32[2]\n");
  CHECK(product({4}, {4, 3}) == "f32[3]\n");
  CHECK(product({4}, {5, 4, 3}) == "f32[5,3]\n");
}

TEST_CASE("a fused convolution without an output has no sum and no activation") {
  ModelMaker m;
  auto *domain = m.model.add_opset_import();
  domain->set_domain("com.microsoft");
  domain->set_version(1);
  m.input("x", {1, 2, 5, 5}).input("w", {3, 2, 1, 1}).input("z", {1, 3, 5, 5}).output("x");
  for (const std::vector<std::string> &outputs : {std::vector<std::string>{}, {""}}) {
    onnx::NodeProto &node = m.node("FusedConv", {"x", "w", "", "z"}, outputs);
    node.set_domain("com.microsoft");
    auto *activation = node.add_attribute();
    activation->set_name("activation");
    activation->set_type(onnx::AttributeProto::STRING);
    activation->set_s("Relu");
  }
  CHECK(outcome(m.import()) == "f32[1,2,5,5]\n");
}

namespace {

/// A Loop of `operands` whose body passes on what it carries, and collects it.
ModelMaker loopOf(const std::vector<std::string> &operands, const D &width = 3) {
  ModelMaker m;
  m.input("x", {width}).output("y").output("z").ints("zero", {0}, true);
  m.ints("one", {1}, true).ints("ones", {1, 1}).ints("none", {});
  onnx::NodeProto &n = m.node("Loop", operands, {"y", "z"});
  auto *a = n.add_attribute();
  a->set_name("body");
  a->set_type(onnx::AttributeProto::GRAPH);
  for (const char *name : {"i", "go", "v"})
    a->mutable_g()->add_input()->set_name(name);
  for (const char *name : {"go", "v", "v"})
    a->mutable_g()->add_output()->set_name(name);
  return m;
}

} // namespace

TEST_CASE("the operands of a loop are there, and one number each decides how often it runs") {
  const std::string numbers = "trip count and condition must be one number each";
  CHECK(complaint(loopOf({"one", "", "x"})) == "f32[3]\nf32[1,3]\n");
  CHECK(complaint(loopOf({"ones", "", "x"})) == numbers);
  CHECK(complaint(loopOf({"none", "", "x"})) == numbers);
  CHECK(complaint(loopOf({"one", "", ""})) == "carried value 0 is missing\n");
}

TEST_CASE("a loop that never runs makes its initial values") {
  CHECK(complaint(loopOf({"zero", "", "x"})) == "f32[3]\nf32[0,3]\n");
  CHECK(complaint(loopOf({"zero", "", "x"}, "n")) == "f32[n]\nf32[0,n]\n");
}

TEST_CASE(
    "what a loop carries grows where it has elements, and where it has none its sizes agree") {
  auto carried = [](const std::string &op) {
    ModelMaker m;
    m.input("x", {"n"}).input("w", {"m"}).output("y").ints("trips", {4}, true);
    auto *a = m.node("Loop", {"trips", "", "x"}, {"y"}).add_attribute();
    a->set_name("body");
    a->set_type(onnx::AttributeProto::GRAPH);
    for (const char *name : {"i", "go", "v"})
      a->mutable_g()->add_input()->set_name(name);
    for (const char *name : {"go", "next"})
      a->mutable_g()->add_output()->set_name(name);
    onnx::NodeProto &n = *a->mutable_g()->add_node();
    n.set_op_type(op);
    for (const char *name : {"v", "w"})
      n.add_input(name);
    n.add_output("next");
    if (op == "Concat")
      attribute(n, "axis", 0);
    return complaint(m);
  };
  CHECK(carried("Concat") == "f32[y_d0]\n");
  CHECK(carried("Add") == "f32[n]\n");
}

TEST_CASE("no option is named that does not suffice") {
  ModelMaker m;
  m.input("x", {3}, kI64).input("from", {}, kI64).ints("step", {1}, true).output("y");
  attribute(m.node("ReduceMax", {"x"}, {"to"}), "keepdims", 0);
  m.node("Range", {"from", "to", "step"}, {"y"});
  CHECK(complaint(m) ==
        "the length of the range must follow from constants and input shapes, or have an upper "
        "bound: --dim y_d0=0..N\n");
}
