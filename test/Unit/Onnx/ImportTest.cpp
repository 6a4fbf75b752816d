// Names, functions, old operator forms and diagnostics of the importer.
#include "Models.h"

#include <catch2/catch_test_macros.hpp>

using namespace fusec;
using namespace fusec::test;

TEST_CASE("every unsupported node is reported in one run") {
  ModelMaker m;
  m.input("x", {2, 3}).output("y");
  m.node("Foo", {"x"}, {"a"});
  m.node("Relu", {"a"}, {"b"});
  m.node("Bar", {"b", "x"}, {"y"});
  CHECK(outcome(m.import()) == "error[E4001] model-under-test.onnx: node 'Foo_a' (Foo, opset 18): "
                               "the operator is not supported; its inputs "
                               "are (f32[2,3])\n"
                               "error[E4001] model-under-test.onnx: node 'Bar_y' (Bar, opset 18): "
                               "the operator is not supported; its inputs "
                               "are (unknown, f32[2,3])\n");
}

TEST_CASE("functions are inlined, attributes are bound and defaulted, inner names are prefixed") {
  ModelMaker m;
  m.model.add_opset_import()->set_domain("own");
  m.model.mutable_opset_import(1)->set_version(1);
  m.input("x", {2, 3}).output("y");
  auto *f = m.model.add_functions();
  f->set_name("Act");
  f->set_domain("own");
  f->add_input("a");
  f->add_output("r");
  f->add_attribute("alpha");
  auto *imported = f->add_opset_import();
  imported->set_version(18);
  auto *first = f->add_node();
  first->set_op_type("LeakyRelu");
  first->set_name("leaky");
  first->add_input("a");
  first->add_output("t");
  auto *a = first->add_attribute();
  a->set_name("alpha");
  a->set_ref_attr_name("alpha");
  a->set_type(onnx::AttributeProto::FLOAT);
  auto *second = f->add_node();
  second->set_op_type("Neg");
  second->set_name("neg");
  second->add_input("t");
  second->add_output("r");
  auto &one = m.node("Act", {"x"}, {"h"});
  one.set_domain("own");
  auto *alpha = one.add_attribute();
  alpha->set_name("alpha");
  alpha->set_type(onnx::AttributeProto::FLOAT);
  alpha->set_f(0.5f);
  m.node("Act", {"h"}, {"y"}).set_domain("own");
  auto g = m.import();
  REQUIRE(outcome(g) == "f32[2,3]\n");
  REQUIRE(g->body.nodes.size() == 4);
  CHECK(g->body.nodes[0].floatAttr("alpha") == 0.5);
  CHECK(g->body.nodes[2].floatAttr("alpha") == static_cast<double>(0.01f));
  CHECK(g->body.nodes[0].name == "Act_h/leaky");
  CHECK(g->value(g->body.nodes[0].outputs[0]).name == "Act_h/t");
  CHECK(g->value(g->body.outputs[0]).name == "y");
}

TEST_CASE("older forms become the newest one") {
  SECTION("softmax before opset 13 works on a matrix") {
    ModelMaker m(11);
    m.input("x", {2, 3, 4}).output("y");
    m.node("Softmax", {"x"}, {"y"});
    auto g = m.import();
    REQUIRE(outcome(g) == "f32[2,3,4]\n");
    REQUIRE(g->body.nodes.size() == 3);
    CHECK(g->body.nodes[1].op == OpKind::Softmax);
    CHECK(g->body.nodes[1].intAttr("axis") == 1);
    CHECK(typeText(g->value(g->body.nodes[1].outputs[0]), {}) == "f32[2,12]");
  }
  SECTION("clip with attributes gets operands") {
    ModelMaker m(6);
    m.input("x", {2}).output("y");
    auto &n = m.node("Clip", {"x"}, {"y"});
    auto *a = n.add_attribute();
    a->set_name("max");
    a->set_type(onnx::AttributeProto::FLOAT);
    a->set_f(6);
    auto g = m.import();
    REQUIRE(g.ok());
    const Node &clip = g->body.nodes[0];
    REQUIRE(clip.inputs.size() == 3);
    CHECK_FALSE(clip.hasInput(1));
    CHECK(g->value(clip.inputs[2]).constant->floatAt(0) == 6);
  }
  SECTION("broadcast before opset 7 is aligned at an axis") {
    ModelMaker m(6);
    m.input("x", {2, 3, 4}).input("b", {3}).output("y");
    auto &n = m.node("Add", {"x", "b"}, {"y"});
    attribute(n, "broadcast", 1);
    attribute(n, "axis", 1);
    auto g = m.import();
    REQUIRE(outcome(g) == "f32[2,3,4]\n");
    CHECK(g->body.nodes[0].op == OpKind::Reshape);
    CHECK(typeText(g->value(g->body.nodes[0].outputs[0]), {}) == "f32[3,1]");
  }
}

TEST_CASE("auto_pad is resolved") {
  ModelMaker m;
  m.input("x", {1, 1, 5, 5}).output("y");
  auto &n = m.node("MaxPool", {"x"}, {"y"});
  attribute(n, "kernel_shape", std::vector<int64_t>{2, 2});
  attribute(n, "strides", std::vector<int64_t>{2, 2});
  auto *a = n.add_attribute();
  a->set_name("auto_pad");
  a->set_type(onnx::AttributeProto::STRING);
  a->set_s("SAME_LOWER");
  auto g = m.import();
  REQUIRE(outcome(g) == "f32[1,1,3,3]\n");
  CHECK(g->body.nodes[0].intsAttr("pads") == std::vector<int64_t>{1, 1, 0, 0});
}

TEST_CASE("inner tensors become outputs on request") {
  ModelMaker m;
  m.input("x", {2}).output("y");
  m.node("Relu", {"x"}, {"h"});
  m.node("Neg", {"h"}, {"y"});
  ImportOptions options;
  options.markOutputs = {"h"};
  auto g = m.import(options);
  REQUIRE(outcome(g) == "f32[2]\nf32[2]\n");
  CHECK(g->value(g->body.outputs[1]).name == "h");
  options.markOutputs = {"q"};
  CHECK(outcome(m.import(options)) ==
        "error[E2001] --mark-output q: no node of the main graph computes a tensor of this name\n");
}

TEST_CASE("a dump of an imported graph parses to the same graph") {
  ModelMaker m;
  m.input("x", {"batch", 4}).output("y").ints("i", {1, 0});
  attribute(m.node("Gather", {"x", "i"}, {"h"}), "axis", 1);
  m.node("Relu", {"h"}, {"y"});
  auto g = m.import();
  REQUIRE(g.ok());
  ConstantStore store;
  std::string text = print(*g, &store);
  auto again = parseGraph(text, "dump", store);
  REQUIRE(again.ok());
  CHECK(print(*again, &store) == text);
}

TEST_CASE("the operator list names what the table serves") {
  std::string text = supportedOperatorsMarkdown();
  CHECK(text.find("| Convolutions | Conv | 1-28 |") != std::string::npos);
  CHECK(text.find("| Recurrent | LSTM |") != std::string::npos);
}
