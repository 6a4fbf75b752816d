#include "Graph/ConstantText.h"
#include "Graph/Graph.h"
#include "Support/TypeText.h"

#include <map>

// Reads the form that Print.cpp describes. Values are numbered in the order of their definitions.

namespace fusec {
namespace {

class Parser {
public:
  Parser(std::string_view text, const std::string &fileName, const ConstantStore &store)
      : in(text, fileName), store(store) {}

  Result<Graph> run() {
    FUSEC_CHECK(in.expect("graph"));
    FUSEC_TRY(graph.name, in.nameText());
    FUSEC_TRY(graph.symbols, parseSymbols(in));
    FUSEC_TRY(graph.sizeRules, parseSizeRules(in, graph.symbols));
    while (in.accept("constant"))
      FUSEC_CHECK(constant());
    while (in.accept("input")) {
      FUSEC_TRY(ValueId id, definition());
      graph.body.inputs.push_back(id);
      if (in.accept("default")) {
        Value &v = graph.value(id);
        FUSEC_TRY(v.defaultValue, parseConstantData(in, v.type, v.shape, store, "a default value"));
      }
    }
    FUSEC_CHECK(regionBody(graph.body, 0));
    if (!in.atEnd())
      return in.error("expected the end of the file after the graph's return");
    return std::move(graph);
  }

private:
  static constexpr int kMaxDepth = 64;

  Result<ConstantRef> constantBody() {
    TypedShape t;
    FUSEC_CHECK(parseType(in, graph.symbols, t.type, t.shape));
    return parseConstantData(in, t.type, t.shape, store);
  }

  Result<ValueId> define(Value v) {
    if (byName.count(v.name))
      return in.error("%" + v.name + " is defined twice");
    std::string key = v.name;
    ValueId id = graph.addValue(std::move(v));
    byName.emplace(std::move(key), id);
    return id;
  }

  Status constant() {
    Value v;
    FUSEC_TRY(v.name, in.nameAfter("%"));
    FUSEC_CHECK(in.expect("="));
    FUSEC_TRY(v.constant, constantBody());
    v.type = v.constant->type;
    v.shape.assign(v.constant->dims.begin(), v.constant->dims.end());
    FUSEC_TRY([[maybe_unused]] ValueId id, define(std::move(v)));
    return success();
  }

  /// "%name: type {known}".
  Result<ValueId> definition() {
    Value v;
    FUSEC_TRY(v.name, in.nameAfter("%"));
    FUSEC_CHECK(in.expect(":"));
    FUSEC_CHECK(parseType(in, graph.symbols, v.type, v.shape));
    if (in.accept("{")) {
      FUSEC_TRY(v.known, parseDims(in, "}", graph.symbols));
    }
    return define(std::move(v));
  }

  Result<ValueId> use() {
    if (in.accept("_"))
      return kNoValue;
    FUSEC_TRY(std::string name, in.nameAfter("%"));
    auto it = byName.find(name);
    if (it == byName.end())
      return in.error("%" + name + " is not defined before its use");
    return it->second;
  }

  Result<std::vector<ValueId>> uses() {
    FUSEC_CHECK(in.expect("("));
    return in.list(")", [&] { return use(); });
  }

  template <typename F> Result<Attribute> items(F read) {
    FUSEC_CHECK(in.expect("["));
    FUSEC_TRY(auto list, in.list("]", read));
    return Attribute(std::move(list));
  }

  Result<Attribute> attributeValue() {
    if (in.peek().kind == TextReader::Kind::String) {
      FUSEC_TRY(std::string s, in.string());
      return Attribute(std::move(s));
    }
    if (in.accept("float")) {
      FUSEC_TRY(double v, in.floating());
      return Attribute(v);
    }
    if (in.accept("floats"))
      return items([&] { return in.floating(); });
    if (in.accept("strings"))
      return items([&] { return in.string(); });
    if (in.peekIs("["))
      return items([&] { return in.integer(); });
    if (in.accept("type")) {
      FUSEC_TRY(DType t, parseElementType(in));
      return Attribute(t);
    }
    if (in.accept("const")) {
      FUSEC_TRY(ConstantRef c, constantBody());
      return Attribute(std::move(c));
    }
    FUSEC_TRY(int64_t v, in.integer());
    return Attribute(v);
  }

  Result<Node> node(int depth) {
    Node n;
    do {
      if (in.accept("_")) {
        n.outputs.push_back(kNoValue);
        continue;
      }
      FUSEC_TRY(ValueId id, definition());
      n.outputs.push_back(id);
    } while (in.accept(","));
    FUSEC_CHECK(in.expect("="));
    FUSEC_TRY(std::string opName, in.identifier());
    auto op = parseOpKind(opName);
    if (!op)
      return in.error("'" + opName + "' is no operator of the graph");
    n.op = *op;
    n.onnxOp = opName;
    FUSEC_TRY(n.inputs, uses());
    if (in.accept("{")) {
      do {
        FUSEC_TRY(std::string key, in.identifier());
        FUSEC_CHECK(in.expect("="));
        FUSEC_TRY(Attribute value, attributeValue());
        if (!n.attributes.emplace(key, std::move(value)).second)
          return in.error("attribute '" + key + "' is given twice");
      } while (in.accept(","));
      FUSEC_CHECK(in.expect("}"));
    }
    FUSEC_TRY(n.name, in.nameAfter("@"));
    if (in.accept("from")) {
      FUSEC_TRY(n.onnxOp, in.nameText());
    }
    while (in.accept("region")) {
      Region r;
      FUSEC_CHECK(in.expect("("));
      FUSEC_TRY(r.inputs, in.list(")", [&] { return definition(); }));
      FUSEC_CHECK(in.expect("captures"));
      FUSEC_TRY(r.captures, uses());
      FUSEC_CHECK(regionBody(r, depth + 1));
      FUSEC_CHECK(in.expect("end"));
      n.regions.push_back(std::move(r));
    }
    return n;
  }

  Status regionBody(Region &r, int depth) {
    if (depth > kMaxDepth)
      return in.error("regions are nested more than " + std::to_string(kMaxDepth) + " deep");
    while (!in.accept("return")) {
      if (in.atEnd())
        return in.error("expected 'return' before the end of the file");
      FUSEC_TRY(Node n, node(depth));
      r.nodes.push_back(std::move(n));
    }
    if (!in.peekIs("%"))
      return success();
    do {
      FUSEC_TRY(ValueId id, use());
      r.outputs.push_back(id);
    } while (in.accept(","));
    return success();
  }

  TextReader in;
  const ConstantStore &store;
  Graph graph;
  std::map<std::string, ValueId> byName;
};

} // namespace

Result<Graph> parseGraph(std::string_view text, const std::string &fileName,
                         const ConstantStore &store) {
  FUSEC_TRY(Graph graph, Parser(text, fileName, store).run());
  FUSEC_CHECK(verify(graph));
  return graph;
}

} // namespace fusec
