#pragma once
// Random programs over small tensors, as exporters write them around shapes: each ends in a size, of which an operator
// makes a tensor of that length.
#include "Models.h"

#include <algorithm>
#include <random>

namespace fusec::test {

/// `programs` of them over the inputs x [n,m,3] and w [k], all f32. Output "y<i>" is the tensor, and where `withSizes`
/// output "t<i>" behind it is the size itself, as nodes make it: a vector of one number.
class RandomSizes {
public:
  RandomSizes(uint64_t seed, int programs, bool withSizes) : random(seed), withSizes(withSizes) {
    m.input("x", {"n", "m", 3}).input("w", {"k"});
    for (int64_t v : {-7, -1, 0, 1, 2, 3, 5, 10})
      m.ints("c" + std::to_string(v), {v}, true);
    m.ints("low", {-10000}, true).ints("high", {10000}, true).ints("most", {24}, true);
    m.ints("axis", {0}).ints("list", {2, 0}).ints("one", {1}).ints("two", {2}).ints("any", {-1});
    m.ints("place", {1}).ints("column", {-1, 1}).ints("far", {1000}).ints("behind", {-1000});
    for (double v : {0.5, 2.0, 3.0, 0.7, -1.25})
      floats("f" + std::to_string(floatNames.size()), v);
    real("flow", -10000);
    real("fhigh", 10000);
    m.node("Shape", {"x"}, {"sx"});
    m.node("Shape", {"w"}, {"sw"});
    for (int i = 0; i < programs; ++i)
      program(i);
  }

  ModelMaker m;

private:
  using Names = std::vector<std::string>;

  size_t below(size_t n) { return static_cast<size_t>(random() % n); }
  const std::string &of(const Names &names) { return names[below(names.size())]; }
  std::string fresh() { return "v" + std::to_string(values++); }
  std::string make(const std::string &op, const Names &in) {
    std::string name = fresh();
    m.node(op, in, {name});
    return name;
  }
  std::string with(const std::string &op, const Names &in, const std::string &key, int64_t v) {
    std::string name = fresh();
    attribute(m.node(op, in, {name}), key, v);
    return name;
  }
  void real(const std::string &name, double v) {
    auto *t = m.model.mutable_graph()->add_initializer();
    t->set_name(name);
    t->set_data_type(onnx::TensorProto::FLOAT);
    t->add_float_data(static_cast<float>(v));
  }
  void floats(const std::string &name, double v) {
    real(name, v);
    floatNames.push_back(name);
  }

  /// Within +-10000, so that products stay exact.
  std::string clipped(const std::string &x) { return make("Clip", {x, "low", "high"}); }
  std::string atLeastOne(const std::string &x) { return make("Max", {make("Abs", {x}), "c1"}); }

  std::string vector(const Names &parts) {
    Names columns;
    for (const std::string &p : parts)
      columns.push_back(make("Unsqueeze", {p, "axis"}));
    return with("Concat", columns, "axis", 0);
  }
  std::string scalar(const std::string &vector) { return make("Squeeze", {vector, "axis"}); }

  std::string ofVector() {
    const std::string v = vector({of(ints), of(ints), of(ints)});
    switch (below(19)) {
    case 0: return with("ReduceSum", {v}, "keepdims", 0);
    case 1: return with("ReduceMax", {v}, "keepdims", 0);
    case 2: return with("ReduceMin", {v}, "keepdims", 0);
    case 3: return clipped(with("ReduceProd", {v}, "keepdims", 0));
    case 4: return with("Gather", {v, "c1"}, "axis", 0);
    case 5: return scalar(make("Slice", {v, "one", "two", "axis"}));
    case 6:
      return scalar(make("Slice", {make("ScatterElements", {v, "place", "two"}), "one", "two"}));
    case 7: return with("Gather", {make("CumSum", {v, "c0"}), "c2"}, "axis", 0);
    case 8: return clipped(make("MatMul", {v, vector({of(ints), of(ints), of(ints)})}));
    case 9: return with("ReduceMean", {v}, "keepdims", 0);
    case 10: return place("ArgMax", v);
    case 11: return place("ArgMin", v);
    case 12: {
      const std::string a = fresh(), b = fresh();
      auto &top = m.node("TopK", {v, "two"}, {a, b});
      attribute(top, "axis", 0);
      attribute(top, "largest", static_cast<int64_t>(below(2)));
      return with("Gather", {below(2) ? a : b, "c1"}, "axis", 0);
    }
    case 13: return with("Gather", {v, placeOfThree()}, "axis", 0);
    case 14: {
      const std::string at = make("Unsqueeze", {placeOfThree(), "axis"});
      return with("Gather", {make("ScatterElements", {v, at, "two"}), placeOfThree()}, "axis", 0);
    }
    case 15: {
      const std::string from = make("Mod", {of(ints), "c3"}), to = make("Add", {from, "c1"});
      return scalar(make("Slice", {v, make("Unsqueeze", {from, "axis"}),
                                   make("Unsqueeze", {to, "axis"}), "axis"}));
    }
    case 16:
      return clipped(make("Pow", {make("Mod", {of(ints), "c10"}), make("Mod", {of(ints), "c5"})}));
    case 17: {
      const std::string name = fresh();
      attribute(m.node("Einsum", {v, vector({of(ints), of(ints), of(ints)})}, {name}), "equation",
                "i,i->");
      return clipped(name);
    }
    default: {
      const std::string a = fresh(), b = fresh(), c = fresh();
      auto &split = m.node("Split", {v}, {a, b, c});
      attribute(split, "axis", 0);
      attribute(split, "num_outputs", 3);
      return scalar(b);
    }
    }
  }

  /// One of three elements, counted from the front or from the end.
  std::string placeOfThree() {
    return make("Sub", {make("Mod", {of(ints), "c3"}), of({"c0", "c3"})});
  }

  std::string place(const std::string &op, const std::string &vector) {
    const std::string name = fresh();
    auto &node = m.node(op, {vector}, {name});
    attribute(node, "axis", 0);
    attribute(node, "keepdims", 0);
    attribute(node, "select_last_index", static_cast<int64_t>(below(2)));
    return name;
  }

  onnx::GraphProto *graph(onnx::NodeProto &node, const std::string &key) {
    auto *a = node.add_attribute();
    a->set_name(key);
    a->set_type(onnx::AttributeProto::GRAPH);
    a->mutable_g()->set_name(key);
    return a->mutable_g();
  }

  std::string choice() {
    const std::string name = fresh();
    auto &node = m.node("If", {of(bools)}, {name});
    for (const char *branch : {"then_branch", "else_branch"}) {
      auto *g = graph(node, branch);
      auto *add = g->add_node();
      add->set_op_type("Add");
      add->set_name(name + branch);
      add->add_input(of(ints));
      add->add_input(of(ints));
      const std::string out = fresh();
      add->add_output(out);
      g->add_output()->set_name(out);
    }
    return name;
  }

  void step() {
    switch (below(22)) {
    case 0:
    case 1: return ints.push_back(clipped(make("Add", {of(ints), of(ints)})));
    case 2: return ints.push_back(clipped(make("Sub", {of(ints), of(ints)})));
    case 3: return ints.push_back(clipped(make("Mul", {of(ints), of(ints)})));
    case 4: return ints.push_back(make("Div", {of(ints), atLeastOne(of(ints))}));
    case 5: return ints.push_back(make("Div", {of(ints), of({"c2", "c3", "c-7"})}));
    case 6: return ints.push_back(make("Mod", {of(ints), atLeastOne(of(ints))}));
    case 7: return ints.push_back(make(below(2) ? "Min" : "Max", {of(ints), of(ints)}));
    case 8: {
      const char *ops[] = {"Neg", "Abs", "Sign"};
      return ints.push_back(make(ops[below(3)], {of(ints)}));
    }
    case 9: return ints.push_back(make("Where", {of(bools), of(ints), of(ints)}));
    case 10: return ints.push_back(ofVector());
    case 11: return ints.push_back(choice());
    case 12:
      return ints.push_back(with("Cast", {make("Clip", {of(reals), "flow", "fhigh"})}, "to",
                                 onnx::TensorProto::INT64));
    case 13: return ints.push_back(with("Cast", {of(bools)}, "to", onnx::TensorProto::INT64));
    case 14: {
      const char *ops[] = {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"};
      return bools.push_back(make(ops[below(5)], {of(ints), of(ints)}));
    }
    case 15: return bools.push_back(make(below(2) ? "Less" : "Greater", {of(reals), of(reals)}));
    case 16: {
      const char *ops[] = {"And", "Or", "Xor"};
      return bools.push_back(make(ops[below(3)], {of(bools), of(bools)}));
    }
    case 17: return bools.push_back(make("Not", {of(bools)}));
    case 18: return reals.push_back(with("Cast", {of(ints)}, "to", onnx::TensorProto::FLOAT));
    case 19: {
      const char *ops[] = {"Add", "Sub", "Mul", "Div", "Min", "Max"};
      return reals.push_back(
          make("Clip", {make(ops[below(6)], {of(reals), of(floatNames)}), "flow", "fhigh"}));
    }
    case 20: {
      const char *ops[] = {"Floor", "Ceil", "Round", "Abs", "Neg"};
      return reals.push_back(make(ops[below(5)], {of(reals)}));
    }
    default: return reals.push_back(make("Sqrt", {make("Abs", {of(reals)})}));
    }
  }

  /// An output of an operator whose own operand says how large it is: "s<i>", where t holds `size`.
  void sized(const std::string &size, const std::string &t, const std::string &number) {
    const std::string s = "s" + number;
    switch (below(6)) {
    case 0: m.node("Tile", {"w", t}, {s}); break;
    case 1: { // in front and behind; an edge needs an element
      const std::string behind = make("Unsqueeze", {make("Mod", {of(ints), "c5"}), "axis"});
      const std::string pads =
          with("Concat", below(2) ? Names{t, behind} : Names{behind, t}, "axis", 0);
      const bool edge = below(2) != 0;
      const std::string data =
          edge ? with("Concat", {"w", make("Unsqueeze", {"f1", "axis"})}, "axis", 0) : "w";
      attribute(m.node("Pad", {data, pads}, {s}), "mode", edge ? "edge" : "constant");
      break;
    }
    case 2: { // the last axis of x alone
      const std::string last = make("Unsqueeze", {atLeastOne(size), "axis"});
      const std::string sizes =
          with("Concat", {make("Slice", {"sx", "axis", "two"}), last}, "axis", 0);
      attribute(m.node("Resize", {"x", "", "", sizes}, {s}), "mode",
                below(2) ? "linear" : "nearest");
      break;
    }
    case 3: { // by halves
      const std::string halves =
          make("Mul", {with("Cast", {atLeastOne(size)}, "to", onnx::TensorProto::FLOAT), "f0"});
      attribute(m.node("Resize", {"w", "", make("Unsqueeze", {halves, "axis"})}, {s}), "mode",
                "nearest");
      break;
    }
    case 4: { // every so many elements, backwards as well
      const std::string stride = make("Unsqueeze", {atLeastOne(size), "axis"});
      if (below(2))
        m.node("Slice", {"w", "axis", "far", "axis", stride}, {s});
      else
        m.node("Slice", {"w", "any", "behind", "axis", make("Neg", {stride})}, {s});
      break;
    }
    default: loop(size, s);
    }
    m.output(s);
  }

  /// So many trips, of which each adds a row of two.
  void loop(const std::string &trips, const std::string &rows) {
    auto &node = m.node("Loop", {trips, "", "f1"}, {fresh(), rows});
    auto *g = graph(node, "body");
    const std::string trip = fresh(), going = fresh(), before = fresh(), after = fresh(),
                      row = fresh(), same = fresh();
    const auto operand = [g](const std::string &name, int type) {
      auto *in = g->add_input();
      in->set_name(name);
      in->mutable_type()->mutable_tensor_type()->set_elem_type(type);
      in->mutable_type()->mutable_tensor_type()->mutable_shape();
    };
    operand(trip, onnx::TensorProto::INT64);
    operand(going, onnx::TensorProto::BOOL);
    operand(before, onnx::TensorProto::FLOAT);
    const auto makes = [g](const std::string &op, const Names &in, const std::string &out) {
      auto *n = g->add_node();
      n->set_op_type(op);
      n->set_name(out);
      for (const std::string &name : in)
        n->add_input(name);
      n->add_output(out);
      g->add_output()->set_name(out);
    };
    makes("Identity", {going}, same);
    makes("Add", {before, "f2"}, after);
    makes("Expand", {before, "two"}, row);
  }

  void broadcast(const char *op, const std::string &a, const std::string &b,
                 const std::string &number) {
    m.output("b" + number);
    m.node(op, {a, b}, {"b" + number});
  }

  void program(int index) {
    ints = {"c-1", "c1", "c2", "c3", "c5"};
    for (const char *place : {"c0", "c1"})
      ints.push_back(with("Gather", {"sx", place}, "axis", 0));
    ints.push_back(make("Size", {"w"}));
    ints.push_back(scalar("sw"));
    reals = {with("Cast", {ints[5]}, "to", onnx::TensorProto::FLOAT),
             with("Cast", {ints[7]}, "to", onnx::TensorProto::FLOAT)};
    bools = {make("Less", {ints[5], ints[7]}), make("Equal", {ints[6], "c3"})};
    for (size_t steps = 4 + below(12); steps > 0; --steps)
      step();
    // The last results first, or steps would not matter.
    const std::string a = ints.back(), b = of(ints);
    const std::string size = make("Max", {make("Min", {a, "most"}), "c0"});
    const std::string number = std::to_string(index), y = "y" + number, t = "t" + number;
    m.node("Unsqueeze", {size, "axis"}, {t});
    switch (below(10)) {
    case 0: m.node("ConstantOfShape", {t}, {y}); break;
    case 1: m.node("Range", {"c0", size, "c1"}, {y}); break;
    case 2: m.node("Expand", {"f0", t}, {y}); break;
    case 3: { // a column beside w, which both broadcast
      const std::string column = with("Concat", {t, "one"}, "axis", 0);
      broadcast("Add", make("Expand", {"f1", column}), "w", number);
      m.node("ConstantOfShape", {t}, {y});
      break;
    }
    case 4: { // a product of w and a row
      const std::string row = with("Concat", {"one", t}, "axis", 0);
      broadcast("MatMul", make("Reshape", {"w", "column"}), make("Expand", {"f1", row}), number);
      m.node("ConstantOfShape", {t}, {y});
      break;
    }
    case 5: { // what is joined to w, over all of x
      const std::string both = with("Concat", {"w", make("Expand", {"f0", t})}, "axis", 0);
      const std::string sum = with("ReduceSum", {both}, "keepdims", 1);
      broadcast("Mul", "x", sum, number);
      m.node("ConstantOfShape", {t}, {y});
      break;
    }
    case 6:
    case 7:
    case 8:
      m.node("ConstantOfShape", {t}, {y});
      sized(size, t, number);
      break;
    default: { // any start, to the end that is `size` elements behind it where there are as many
      const std::string start = make("Unsqueeze", {b, "axis"});
      const std::string from = make("Slice", {"w", start, "any"});
      m.node("ConstantOfShape", {t}, {y});
      m.output("s" + number);
      m.node("Slice", {from, "axis", t}, {"s" + number});
    }
    }
    m.output(y);
    if (withSizes)
      m.output(t);
  }

  std::mt19937_64 random;
  bool withSizes;
  Names ints, reals, bools, floatNames;
  int values = 0;
};

} // namespace fusec::test
