// Names of tensors and sizes that a model gives twice, and diagnostics that do not hide each other.
#include "Models.h"

#include <catch2/catch_test_macros.hpp>

using namespace fusec;
using namespace fusec::test;

namespace {

/// Gives a node a subgraph: one operator that makes `name` of `from`.
void branch(onnx::NodeProto &node, const std::string &attribute, const std::string &op,
            const std::string &from, const std::string &name) {
  auto *a = node.add_attribute();
  a->set_name(attribute);
  a->set_type(onnx::AttributeProto::GRAPH);
  a->mutable_g()->set_name(attribute);
  a->mutable_g()->add_output()->set_name(name);
  auto *n = a->mutable_g()->add_node();
  n->set_op_type(op);
  n->set_name(op + "_" + attribute);
  n->add_input(from);
  n->add_output(name);
}

std::string names(const Graph &g) {
  std::string text;
  for (const auto *list : {&g.body.inputs, &g.body.outputs})
    for (ValueId id : *list)
      text += g.value(id).name + " ";
  return text;
}

/// The quoted places of each diagnostic, those of one joined by +.
std::string refusals(const Result<Graph> &g) {
  std::string text;
  if (!g.ok())
    for (const Diagnostic &d : g.errors())
      for (size_t from = d.where.find('\''); from != std::string::npos;) {
        size_t end = d.where.find('\'', from + 1);
        text += d.where.substr(from + 1, end - from - 1);
        from = d.where.find('\'', end + 1);
        text += from == std::string::npos ? " " : "+";
      }
  return text;
}

} // namespace

TEST_CASE("inputs and outputs keep their names where a subgraph has the same") {
  SECTION("a branch before the output") {
    ModelMaker m;
    m.input("x", {3}).input("c", {}, onnx::TensorProto::BOOL).output("y").output("t");
    auto &n = m.node("If", {"c"}, {"t"});
    branch(n, "then_branch", "Neg", "x", "y");
    branch(n, "else_branch", "Abs", "x", "t");
    m.node("Relu", {"t"}, {"y"});
    auto g = m.import();
    REQUIRE(g.ok());
    CHECK(names(*g) == "x c y t ");
  }
  SECTION("an input of a loop's body") {
    ModelMaker m;
    m.input("x", {3}).output("y").ints("trips", {2}, true);
    auto &n = m.node("Loop", {"trips", "", "x"}, {"y"});
    branch(n, "body", "Neg", "y", "v");
    auto *body = n.mutable_attribute(0)->mutable_g();
    for (const char *input : {"i", "go", "y"})
      body->add_input()->set_name(input);
    body->mutable_output(0)->set_name("go");
    body->add_output()->set_name("v");
    auto g = m.import();
    REQUIRE(g.ok());
    CHECK(names(*g) == "x y ");
  }
  SECTION("the taken branch, in place") {
    ModelMaker m;
    m.input("x", {3}).output("y").ints("one", {1}, true);
    attribute(m.node("Cast", {"one"}, {"c"}), "to", onnx::TensorProto::BOOL);
    auto &n = m.node("If", {"c"}, {"h"});
    branch(n, "then_branch", "Neg", "x", "y");
    branch(n, "else_branch", "Abs", "x", "y");
    m.node("Relu", {"h"}, {"y"});
    auto g = m.import();
    REQUIRE(g.ok());
    CHECK(names(*g) == "x y ");
  }
  SECTION("names that the importer makes up") {
    ModelMaker m;
    m.input("x", {3}, onnx::TensorProto::INT64).output("const").ints("one", {1});
    m.node("Shape", {"x"}, {"s"});
    m.node("Add", {"x", "s"}, {"h"});
    m.node("Add", {"h", "one"}, {"const"});
    auto g = m.import();
    REQUIRE(g.ok());
    CHECK(names(*g) == "x const ");
  }
  SECTION("an initialiser is an output") {
    ModelMaker m;
    m.input("x", {3}).output("y").output("k").ints("k", {1, 2});
    m.node("Relu", {"x"}, {"y"});
    auto g = m.import();
    REQUIRE(g.ok());
    CHECK(names(*g) == "x y k ");
  }
}

TEST_CASE("a size without a name is not the one that has its made-up name") {
  ModelMaker m;
  m.input("x", {"", "x_d0"}).input("w", {"x_d0_"}).output("y");
  auto *type = m.model.mutable_graph()->mutable_input(0)->mutable_type()->mutable_tensor_type();
  type->mutable_shape()->mutable_dim(0)->clear_dim_value();
  m.node("Relu", {"x"}, {"y"});
  CHECK(outcome(m.import()) == "f32[x_d0__,x_d0]\n");
}

TEST_CASE("--shape takes sizes and names") {
  ModelMaker m;
  m.input("x", {"batch size", 3}).output("y");
  m.node("Relu", {"x"}, {"y"});
  auto with = [&](const char *shape) {
    ImportOptions options;
    Status parsed = parseShapeOption(shape, options);
    return parsed.ok() ? outcome(m.import(options)) : format(parsed.errors()[0]);
  };
  CHECK(with("x:[n_1, 3]") == "f32[n_1,3]\n");
  CHECK(with("x:[batch size,3]") == "f32[`batch size`,3]\n");
  for (std::string text : {"1..4", "b2*2", "[2]", "-1", "2b", "other size"})
    CHECK(with(("x:[" + text + ",3]").c_str()) ==
          "error[E2001] --shape x: '" + text +
              "' is neither a size nor a name (letters, digits, _); a range is given to a name: "
              "--shape x:[b,...] --dim b=1..4\n");
  for (const char *text : {"x:2x3x", "x:[2,3,]", "x:[2,,3]", "x:x2", "x:[,2]"})
    CHECK(with(text) == "error[E2001] --shape " + std::string(text) +
                            ": expected NAME:1x3x224x224 or NAME:[batch,3,224,224]");
}

TEST_CASE("one run lists what is refused of inputs, initialisers, branches, functions and nodes") {
  ModelMaker m;
  m.model.add_opset_import()->set_domain("own");
  m.model.mutable_opset_import(1)->set_version(1);
  auto *f = m.model.add_functions();
  f->set_name("F");
  f->set_domain("own");
  f->add_input("a");
  f->add_output("r");
  auto *inner = f->add_node();
  inner->set_op_type("Foo");
  inner->set_name("inner");
  inner->add_input("a");
  inner->add_output("r");
  m.input("x", {3}).input("text", {1}, onnx::TensorProto::STRING);
  m.input("c", {}, onnx::TensorProto::BOOL).output("y");
  for (const char *name : {"k1", "k2"}) {
    auto *t = m.model.mutable_graph()->add_initializer();
    t->set_name(name);
    t->set_data_type(onnx::TensorProto::STRING);
  }
  m.node("Foo", {"k1"}, {"a"});
  auto &known = m.node("If", {"c"}, {"b"});
  branch(known, "then_branch", "Bar", "x", "t");
  branch(known, "else_branch", "Baz", "x", "e");
  auto &unknown = m.node("If", {"a"}, {"d"});
  branch(unknown, "then_branch", "Bar", "x", "t2");
  branch(unknown, "else_branch", "Relu", "x", "e2");
  auto &unserved = m.node("SequenceMap", {"x"}, {"e3"});
  branch(unserved, "body", "Bar", "x", "t3");
  m.node("F", {"a"}, {"g"}).set_domain("own");
  m.node("Relu", {"text"}, {"h"});
  m.node("Foo", {"h"}, {"y"});
  CHECK(refusals(m.import()) ==
        "k1 k2 text Foo_a+F_g/inner+Foo_y Bar_then_branch+Bar_then_branch+Bar_body "
        "Baz_else_branch SequenceMap_e3 ");
}

TEST_CASE("a sparse initialiser is there again where sizes imply a second import") {
  ModelMaker m;
  m.input("x", {"n", 6}).output("y").output("z").ints("to", {-1, 12});
  auto *sparse = m.model.mutable_graph()->add_sparse_initializer();
  sparse->add_dims(6);
  auto *values = sparse->mutable_values(), *indices = sparse->mutable_indices();
  values->set_name("s");
  values->set_data_type(onnx::TensorProto::FLOAT);
  values->add_dims(1);
  values->set_raw_data(std::string(4, '\1'));
  indices->set_data_type(onnx::TensorProto::INT64);
  indices->add_dims(1);
  indices->add_int64_data(2);
  m.node("Add", {"x", "s"}, {"z"});
  m.node("Reshape", {"z", "to"}, {"y"});
  CHECK(outcome(m.import()) == "f32[floordiv(n, 2),12]\nf32[n,6]\n");
}
