#include "Graph/CheckOperator.h"
#include "Support/Diag.h"
#include "Support/DimProgram.h"
#include "Support/TunedSizes.h"

#include <algorithm>
#include <unordered_set>

// The rules, in the order in which they are checked:
//  1. names of symbols, inferred sizes and values are not empty and unique; symbol ranges are ordered; symbols with a
//     definition come last, and a definition uses symbols in front of its own;
//  2. a constant's type and shape are those of its value; `known` has one entry an element;
//  3. every value is defined once: constant, region input or node output; before its uses;
//  4. a region reads outer values only through its sorted, exact captures;
//  5. checkOperator(): counts of inputs, outputs and regions fit the operator's row; mandatory operands are present;
//     attributes are exactly those of the operator, of the right kind; then the operator's own rule;
//  6. the bound of a symbol that depends on data is over symbols in front of it; one DataSize node gives its value, and
//     what has the symbol in its shape or its known elements stands behind that;
//  7. a symbol that tests the data has the bound 0, no size is on it, and nothing reads what its DataSize gives.

namespace fusec {
namespace {

class Verifier {
public:
  explicit Verifier(const Graph &graph)
      : g(graph), defined(graph.values.size(), false), sized(graph.symbols.size(), false) {}

  Status run() {
    checkSymbols();
    checkValues();
    checkRegion(g.body, {}, {});
    if (errors.empty())
      return success();
    return std::move(errors);
  }

private:
  void fail(const std::string &where, std::string text) {
    if (errors.size() < 20)
      errors.push_back({Diag::BadIr, g.name + ": " + where, std::move(text)});
  }

  void checkSymbols() {
    std::unordered_set<std::string_view> names;
    const size_t given = numGiven(g.symbols);
    for (size_t i = 0; i < g.symbols.size(); ++i) {
      const Symbol &s = g.symbols[i];
      if (s.name.empty() || !names.insert(s.name).second)
        fail("symbol '" + s.name + "'", "names of symbols are unique and not empty");
      const int64_t opt = !isFavoured(s) ? s.min : s.opt;
      if ((s.min < 0 && !s.definition) || s.min > opt || opt > s.max || s.divisor < 1)
        fail("symbol '" + s.name + "'",
             "the range must be 0 <= min <= opt <= max with divisor >= 1");
      if (i >= given && !s.bound && (!s.definition || !s.definition->valid(i)))
        fail("symbol '" + s.name + "'",
             "behind a computed symbol each has a definition, which is made of those in front");
      std::vector<SymbolId> used;
      if (s.bound)
        s.bound->collectSymbols(used);
      if (!used.empty() && used.back() >= static_cast<SymbolId>(i))
        fail("symbol '" + s.name + "'", "its bound uses a symbol that is not in front of it");
    }
    if (std::string fault = faultOf(g.sizeRules, g.symbols); !fault.empty())
      fail("rules of sizes", fault);
    if (std::string fault = faultOfDataTests(g.symbols); !fault.empty())
      fail("symbols", fault);
  }

  void checkValues() {
    std::unordered_set<std::string_view> names;
    const std::unordered_set<ValueId> inputs(g.body.inputs.begin(), g.body.inputs.end());
    for (size_t i = 0; i < g.values.size(); ++i) {
      const Value &v = g.values[i];
      if (v.name.empty() || !names.insert(v.name).second)
        fail("value '" + v.name + "'", "names of values are unique and not empty");
      std::vector<SymbolId> used;
      for (const DimExpr &d : v.shape) {
        d.collectSymbols(used);
        if (d.isConst() && d.constValue() < 0)
          fail("value '" + v.name + "'", "a dimension is negative");
      }
      for (const DimExpr &d : v.known)
        d.collectSymbols(used);
      for (SymbolId s : used)
        if (s < 0 || s >= static_cast<SymbolId>(g.symbols.size()))
          fail("value '" + v.name + "'", "its shape uses a symbol that the graph does not have");
      if (std::string test = dataTestAmong(used, g.symbols); !test.empty())
        fail("value '" + v.name + "'", "its shape or its elements use " + test);
      if (!v.known.empty() && !numElements(v.shape).isConst(static_cast<int64_t>(v.known.size())))
        fail("value '" + v.name + "'", "known elements do not fit the shape");
      if (v.defaultValue &&
          (v.constant || v.defaultValue->type != v.type || !isStatic(v.shape) ||
           staticDims(v.shape) != v.defaultValue->dims || !inputs.count(static_cast<ValueId>(i))))
        fail("value '" + v.name + "'", "only an input has a default value, of its type and shape");
      if (v.constant) {
        defined[i] = true;
        if (v.constant->type != v.type || !isStatic(v.shape) ||
            staticDims(v.shape) != v.constant->dims)
          fail("value '" + v.name + "'", "type or shape differ from those of its constant");
      }
    }
  }

  bool inRange(ValueId id) const { return id >= 0 && id < static_cast<ValueId>(g.values.size()); }

  void define(ValueId id, const std::string &where, std::unordered_set<ValueId> &own) {
    if (!inRange(id))
      return fail(where, "defines a value that the graph does not have");
    if (defined[id])
      fail(where, "defines %" + g.value(id).name + ", which is defined already");
    for (SymbolId s : symbolsIn(g.value(id)))
      if (s < static_cast<SymbolId>(sized.size()) && g.symbols[s].isDataDependent() && !sized[s])
        fail(where, "%" + g.value(id).name + " has the size '" + g.symbols[s].name +
                        "', which no node in front of it gives a value");
    defined[id] = true;
    own.insert(id);
  }

  /// `taken`: 0 where a run leaves the region out.
  void checkRegion(const Region &r, const std::vector<ValueId> &captures, const Shape &taken) {
    std::unordered_set<ValueId> visible(captures.begin(), captures.end());
    std::unordered_set<ValueId> captureUse;
    auto use = [&](ValueId id, const std::string &where) {
      if (!inRange(id))
        return fail(where, "reads a value that the graph does not have");
      if (g.value(id).constant)
        return;
      if (!visible.count(id))
        fail(where, "reads %" + g.value(id).name + ", which is not defined here or not captured");
      if (tests.count(id))
        fail(where, "reads %" + g.value(id).name + ", which tests the data and is no size");
      captureUse.insert(id);
    };
    for (ValueId id : r.inputs)
      define(id, "region input", visible);
    for (const Node &n : r.nodes) {
      const std::string where = "node '" + n.name + "' (" + std::string(info(n.op).name) + ")";
      for (ValueId id : n.inputs)
        if (id != kNoValue)
          use(id, where);
      for (const Region &inner : n.regions) {
        if (!std::is_sorted(inner.captures.begin(), inner.captures.end()))
          fail(where, "captures must be sorted");
        for (ValueId id : inner.captures)
          use(id, where);
        const std::vector<bool> before = sized;
        Shape innerTaken = taken;
        if (n.op == OpKind::If && !n.inputs.empty() && inRange(n.inputs[0]) &&
            g.value(n.inputs[0]).known.size() == 1) {
          const DimExpr &condition = g.value(n.inputs[0]).known[0];
          innerTaken.push_back(&inner == &n.regions[0] ? condition : DimExpr(1) - condition);
        }
        checkRegion(inner, inner.captures, innerTaken);
        sized = before; // a body's sizes are its own
      }
      if (n.op == OpKind::DataSize)
        size(n, where);
      for (ValueId id : n.outputs)
        if (id != kNoValue)
          define(id, where, visible);
      checkNode(n, where, taken);
    }
    for (ValueId id : r.outputs)
      use(id, "return");
    for (ValueId id : captures)
      if (!captureUse.count(id))
        fail("captures", "%" + g.value(id).name + " is captured and not used");
  }

  void size(const Node &n, const std::string &where) {
    if (!n.hasAttr("symbol"))
      return; // checkNode says so
    const std::optional<SymbolId> symbol = sizedSymbol(g, n);
    if (!symbol)
      return fail(where,
                  "there is no symbol '" + n.stringAttr("symbol") + "' that depends on data");
    if (!given.insert(*symbol).second)
      fail(where, "symbol '" + n.stringAttr("symbol") + "' has a value already");
    sized[*symbol] = true;
    if (g.symbols[static_cast<size_t>(*symbol)].testsData())
      tests.insert(n.outputs.begin(), n.outputs.end());
  }

  void checkNode(const Node &n, const std::string &where, const Shape &taken) {
    auto exist = [this](const std::vector<ValueId> &ids) {
      return std::all_of(ids.begin(), ids.end(),
                         [this](ValueId id) { return id == kNoValue || inRange(id); });
    };
    auto present = [this](const std::vector<ValueId> &ids) {
      return std::all_of(ids.begin(), ids.end(), [this](ValueId id) { return inRange(id); });
    };
    if (!exist(n.inputs) || !exist(n.outputs))
      return; // said already
    for (const Region &r : n.regions)
      if (!present(r.inputs) || !present(r.outputs))
        return;
    if (Status status = checkOperator(g, n, taken); !status.ok())
      for (const Diagnostic &d : status.errors())
        fail(where, d.text);
  }

  const Graph &g;
  std::vector<bool> defined;
  std::vector<bool> sized;            // by symbol: has a value here
  std::unordered_set<SymbolId> given; // anywhere
  std::unordered_set<ValueId> tests;  // of indices: what their nodes give
  Diagnostics errors;
};

} // namespace

Status verify(const Graph &graph) { return Verifier(graph).run(); }

} // namespace fusec
