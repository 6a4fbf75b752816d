// What Attention becomes, and which forms of it are refused.
#include "Models.h"

#include <catch2/catch_test_macros.hpp>

using namespace fusec;
using namespace fusec::test;

namespace {

constexpr int kI64 = onnx::TensorProto::INT64, kBool = onnx::TensorProto::BOOL;

/// A model with Q [2,4,s,8], K and V [2,2,t,8] behind which the caller adds what it needs.
ModelMaker attentionModel(int opset, const D &s = 3, const D &t = 5) {
  ModelMaker m(opset);
  m.input("q", {2, 4, s, 8}).input("k", {2, 2, t, 8}).input("v", {2, 2, t, 8}).output("y");
  return m;
}

std::string complaint(const ModelMaker &m) {
  std::string text = outcome(m.import());
  size_t from = text.find("): "), to = text.find("; the inputs are");
  return from == std::string::npos ? text : text.substr(from + 3, to - from - 3);
}

/// Whether the softmax makes zeros of masked lines.
bool guards(const ModelMaker &m) {
  Result<Graph> g = m.import();
  INFO(outcome(g));
  REQUIRE(g.ok());
  for (const Node &node : g->body.nodes)
    if (node.op == OpKind::Softmax)
      return node.hasAttr("zero_masked") && node.intAttr("zero_masked") == 1;
  FAIL("no softmax");
  return false;
}

} // namespace

TEST_CASE("only what may mask a whole line changes the softmax") {
  ModelMaker plain = attentionModel(25);
  plain.node("Attention", {"q", "k", "v"}, {"y"});
  CHECK(!guards(plain));

  ModelMaker causal = attentionModel(25);
  attribute(causal.node("Attention", {"q", "k", "v"}, {"y"}), "is_causal", 1);
  CHECK(!guards(causal));

  ModelMaker masked = attentionModel(25);
  masked.input("m", {3, 5}, kBool).node("Attention", {"q", "k", "v", "m"}, {"y"});
  CHECK(guards(masked));

  ModelMaker cached = attentionModel(25);
  cached.input("n", {2}, kI64).node("Attention", {"q", "k", "v", "", "", "", "n"}, {"y"});
  CHECK(guards(cached));

  auto window = [](const D &s, const D &t, int64_t left) {
    ModelMaker m = attentionModel(25, s, t);
    attribute(m.node("Attention", {"q", "k", "v"}, {"y"}), "left_window_size", left);
    return guards(m);
  };
  CHECK(!window("n", "n", 0)); // its own key
  CHECK(!window(5, 3, 2));
  CHECK(window(6, 3, 2)); // the last query is three keys behind the end
  CHECK(window("s", "t", 2));
}

TEST_CASE("forms of Attention that are refused") {
  ModelMaker window = attentionModel(25);
  attribute(window.node("Attention", {"q", "k", "v"}, {"y"}), "left_window_size", -2);
  CHECK(complaint(window) ==
        "left_window_size and right_window_size must be -1 (no bound), 0 or more\n");

  ModelMaker older = attentionModel(24);
  attribute(older.node("Attention", {"q", "k", "v"}, {"y"}), "left_window_size", 1);
  CHECK(complaint(older).starts_with("attribute 'left_window_size'"));

  ModelMaker mode = attentionModel(24);
  attribute(mode.node("Attention", {"q", "k", "v"}, {"y"}), "qk_matmul_output_mode", 4);
  CHECK(complaint(mode) == "qk_matmul_output_mode must be 0, 1, 2 or 3\n");

  ModelMaker precision = attentionModel(24);
  attribute(precision.node("Attention", {"q", "k", "v"}, {"y"}), "softmax_precision", 6);
  CHECK(complaint(precision) == "softmax_precision must be 1 (float), 10 (float16), 11 (double) or "
                                "16 (bfloat16)\n");

  ModelMaker both = attentionModel(25);
  both.input("p", {2, 2, 4, 8}).input("n", {2}, kI64);
  both.node("Attention", {"q", "k", "v", "", "p", "p", "n"}, {"y"});
  CHECK(complaint(both) == "nonpad_kv_seqlen is for a cache that is kept outside of the operator, "
                           "without past_key, past_value, present_key and present_value\n");

  ModelMaker large = attentionModel(24);
  large.input("m", {2, 1, 2, 3, 5}, kBool).node("Attention", {"q", "k", "v", "m"}, {"y"});
  CHECK(complaint(large) == "the mask must have at most 4 axes");

  ModelMaker wide = attentionModel(24);
  wide.input("m", {3, 6}, kBool).node("Attention", {"q", "k", "v", "m"}, {"y"});
  CHECK(complaint(wide) == "the number of keys, with a mask, must be at least 6; it is 5");

  ModelMaker tall(24);
  tall.input("q", {1, 4, 3, 8}).input("k", {1, 2, 5, 8}).input("v", {1, 2, 5, 8}).output("y");
  tall.input("m", {2, 1, 3, 5}, kBool).node("Attention", {"q", "k", "v", "m"}, {"y"});
  CHECK(complaint(tall) == "the mask must broadcast to f32[1,4,3,5]");
}

TEST_CASE("forms of LinearAttention that are refused") {
  auto linear = [](const char *rule, int last, const std::vector<std::string> &in) {
    ModelMaker m(27);
    m.input("q", {2, 3, 16}).input("k", {2, 3, 8}).input("v", {2, 3, last}).output("y").output("s");
    m.input("g", {2, 3, 3});
    onnx::NodeProto &n = m.node("LinearAttention", in, {"y", "s"});
    attribute(n, "q_num_heads", 4);
    attribute(n, "kv_num_heads", 2);
    auto *a = n.add_attribute();
    a->set_name("update_rule");
    a->set_type(onnx::AttributeProto::STRING);
    a->set_s(rule);
    return complaint(m);
  };
  CHECK(linear("linear", 6, {"q", "k", "v"}) == "f32[2,3,12]\nf32[2,2,4,3]\n");
  CHECK(linear("fast", 6, {"q", "k", "v"}) ==
        "update_rule must be linear, gated, delta or gated_delta, not 'fast'\n");
  CHECK(linear("delta", 6, {"q", "k", "v"}) == "update_rule 'delta' needs input 'beta'\n");
  CHECK(linear("delta", 6, {"q", "k", "v", "", "g"}) ==
        "update_rule 'delta' has no input 'decay'\n");
  CHECK(linear("linear", 7, {"q", "k", "v"}) == "the heads must divide the last axis of input 2");
  CHECK(linear("gated", 6, {"q", "k", "v", "", "g"}) ==
        "the heads must divide the last axis of input 4");
  CHECK(linear("linear", 6, {"q", "k", "v", "k"}) ==
        "past_state must be like f32[2,2,4,3], of any float type");
}

TEST_CASE("the graphs of FlexAttention keep shape and type") {
  ModelMaker m(26);
  auto *preview = m.model.add_opset_import();
  preview->set_domain("ai.onnx.preview");
  preview->set_version(1);
  m.input("q", {2, 4, 3, 8}).input("k", {2, 2, 5, 8}).input("v", {2, 2, 5, 6}).output("y");
  onnx::NodeProto &n = m.node("FlexAttention", {"q", "k", "v"}, {"y"});
  n.set_domain("ai.onnx.preview");
  CHECK(outcome(m.import()) == "f32[2,4,3,6]\n");
  auto *a = n.add_attribute();
  a->set_name("score_mod");
  a->set_type(onnx::AttributeProto::GRAPH);
  onnx::GraphProto &g = *a->mutable_g();
  g.add_input()->set_name("in");
  g.add_output()->set_name("out");
  auto *inner = g.add_node();
  inner->set_op_type("Shape");
  inner->add_input("in");
  inner->add_output("out");
  CHECK(complaint(m) == "score_mod must make one tensor f32[2,4,3,5], of the type and shape of its "
                        "input; it makes i64[4]\n");
  g.clear_input();
  CHECK(outcome(m.import()).find("it has 0 inputs; the operator passes 1") != std::string::npos);
}
