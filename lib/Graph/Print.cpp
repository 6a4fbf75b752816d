#include "Graph/ConstantText.h"
#include "Graph/Graph.h"
#include "Support/TypeText.h"

// graph main
// symbol batch = 1..64 opt 8 divisor 1
// inferred and rule: SizeRules.h
// constant %w = f32[2,2] {1.0, 2.0, 3.0, 4.0}
// constant %big = f32[768,768] digest "00112233445566778899aabbccddeeff"
// input %x: f32[batch,2]
// %y: f32[batch,2] = MatMul(%x, %w) @mm
// %n: i64[2] {batch, 2} = Shape(%y) {end = 2, start = 0} @shape from Shape
// %z: f32[] = If(%c) @if1
//   region () captures (%y)
//     ...
//     return %a
//   end
// return %y
//
// "_" stands for an absent input or output, "from" gives the model's operator where it differs.

namespace fusec {
namespace {

class Printer {
public:
  Printer(const Graph &graph, ConstantStore *store) : graph(graph), store(store) {}

  std::string run() {
    out = "graph " + nameToText(graph.name) + "\n";
    out += symbolsText(graph.symbols);
    out += sizeRulesText(graph.sizeRules, graph.symbols);
    for (const Value &v : graph.values)
      if (v.constant)
        out += "constant %" + nameToText(v.name) + " = " + constantText(v.constant) + "\n";
    for (ValueId id : graph.body.inputs) {
      const ConstantRef &c = graph.value(id).defaultValue;
      out += "input " + typed(id) + (c ? " default " + constantDataText(c, store) : "") + "\n";
    }
    regionBody(graph.body, "");
    return std::move(out);
  }

private:
  std::string ref(ValueId id) const {
    return id == kNoValue ? "_" : "%" + nameToText(graph.value(id).name);
  }

  std::string typed(ValueId id) const {
    if (id == kNoValue)
      return "_";
    const Value &v = graph.value(id);
    std::string text = ref(id) + ": " + typeText(v, graph.symbols);
    for (size_t i = 0; i < v.known.size(); ++i)
      text += (i ? ", " : " {") + v.known[i].str(graph.symbols);
    return v.known.empty() ? text : text + "}";
  }

  std::string list(const std::vector<ValueId> &ids, bool withTypes) const {
    std::string text;
    for (size_t i = 0; i < ids.size(); ++i)
      text += (i ? ", " : "") + (withTypes ? typed(ids[i]) : ref(ids[i]));
    return text;
  }

  std::string constantText(const ConstantRef &constant) {
    const Shape shape(constant->dims.begin(), constant->dims.end());
    return typeText(constant->type, shape, graph.symbols) + " " + constantDataText(constant, store);
  }

  std::string attributeText(const Attribute &a) {
    auto join = [](const auto &items, auto toText) {
      std::string text = "[";
      for (size_t i = 0; i < items.size(); ++i)
        text += (i ? ", " : "") + toText(items[i]);
      return text + "]";
    };
    struct Visitor {
      Printer &printer;
      decltype(join) &joinItems;
      std::string operator()(int64_t v) const { return std::to_string(v); }
      std::string operator()(double v) const { return "float " + floatToText(v); }
      std::string operator()(const std::string &v) const { return quoted(v); }
      std::string operator()(const std::vector<int64_t> &v) const {
        return joinItems(v, [](int64_t x) { return std::to_string(x); });
      }
      std::string operator()(const std::vector<double> &v) const {
        return "floats " + joinItems(v, [](double x) { return floatToText(x); });
      }
      std::string operator()(const std::vector<std::string> &v) const {
        return "strings " + joinItems(v, [](const std::string &x) { return quoted(x); });
      }
      std::string operator()(DType v) const { return "type " + std::string(name(v)); }
      std::string operator()(const ConstantRef &v) const {
        return "const " + printer.constantText(v);
      }
    };
    return std::visit(Visitor{*this, join}, a);
  }

  void node(const Node &n, const std::string &indent) {
    out += indent + list(n.outputs, true) + " = " + std::string(info(n.op).name) + "(" +
           list(n.inputs, false) + ")";
    bool first = true;
    for (const auto &[key, value] : n.attributes) {
      out += (first ? " {" : ", ") + key + " = " + attributeText(value);
      first = false;
    }
    if (!first)
      out += "}";
    out += " @" + nameToText(n.name);
    if (n.onnxOp != info(n.op).name)
      out += " from " + nameToText(n.onnxOp);
    out += "\n";
    for (const Region &r : n.regions) {
      out += indent + "  region (" + list(r.inputs, true) + ") captures (" +
             list(r.captures, false) + ")\n";
      regionBody(r, indent + "    ");
      out += indent + "  end\n";
    }
  }

  void regionBody(const Region &r, const std::string &indent) {
    for (const Node &n : r.nodes)
      node(n, indent);
    out += indent + "return " + list(r.outputs, false) + "\n";
  }

  const Graph &graph;
  ConstantStore *store;
  std::string out;
};

} // namespace

std::string print(const Graph &graph, ConstantStore *store) { return Printer(graph, store).run(); }

} // namespace fusec
