#pragma once
#include "Graph/Graph.h"

#include <array>
#include <initializer_list>

namespace fusec::rules {

/// Classes of element types that operators take.
enum class Kind { Any, Number, Float, Integer, Bool };

/// Values of all symbols within their ranges: the smallest, the likely and some others.
std::vector<std::vector<int64_t>> sampleSymbols(const std::vector<Symbol> &symbols);

/// What the rule of an operator sees of a node, and the checks that rules are made of. Counts of operands and the
/// presence and kind of attributes are right when a rule runs. A failed check is a BadIr diagnostic, or
/// UnsupportedShape where symbolic sizes might agree at run time; the caller says where.
class OpCheck {
public:
  OpCheck(const Graph &graph, const Node &node) : graph(graph), node(node) {}
  const Graph &graph;
  const Node &node;

  bool has(size_t i) const { return node.hasInput(i); }
  bool wants(size_t i) const { return node.hasOutput(i); }
  const Value &in(size_t i) const { return graph.value(node.inputs[i]); }
  const Shape &shape(size_t i) const { return in(i).shape; }
  DType type(size_t i) const { return in(i).type; }
  int64_t rank(size_t i) const { return static_cast<int64_t>(shape(i).size()); }
  ConstantRef constant(size_t i) const { return has(i) ? in(i).constant : nullptr; }
  const Shape &outShape(size_t i = 0) const { return graph.value(node.outputs[i]).shape; }
  DType outType(size_t i = 0) const { return graph.value(node.outputs[i]).type; }
  /// Elements of a constant integer operand.
  std::optional<std::vector<int64_t>> ints(size_t i) const;

  Diagnostic fail(std::string text) const { return {Diag::BadIr, "", std::move(text)}; }
  Status expect(bool holds, std::string text) const;
  Status kind(size_t i, Kind kind) const;
  Status sameTypes(std::initializer_list<size_t> inputs) const; // absent ones are skipped
  Status allSameTypes() const;
  Status minRank(size_t i, int64_t rank) const;
  Status exactRank(size_t i, int64_t rank) const;
  Status oneNumber(size_t i) const;                      // nothing to check when absent
  Status vectorOf(size_t i, const DimExpr &size) const;  // likewise
  Status shapeIs(size_t i, const Shape &expected) const; // likewise
  Status atLeast(const char *key, int64_t least) const;

  /// The attribute as an index into 0..rank-1.
  Result<size_t> axis(const char *key, int64_t rank) const;
  /// Every entry of the attribute lies in 0..rank-1 and stands there once.
  Status axes(const char *key, int64_t rank) const;

  /// Equal, as expressions or for sampled values of the symbols where the normal form does not decide.
  bool same(const DimExpr &a, const DimExpr &b) const;
  bool same(const Shape &a, const Shape &b) const;
  Status sameDim(const DimExpr &a, const DimExpr &b, const std::string &what) const;
  /// a <= b for all values of the symbols.
  Status atMost(const DimExpr &a, const DimExpr &b, const std::string &what) const;
  Result<Shape> broadcast(const std::vector<const Shape *> &shapes) const;
  Status broadcastsTo(const Shape &from, const Shape &to, const std::string &what) const;
  /// numpy's rule for a product of matrices: the result's shape.
  Result<Shape> matMulShape(const Shape &a, const Shape &b) const;

  /// The output, where it is wanted, has this type and shape.
  Status output(size_t i, DType type, const Shape &shape) const;
  Status output(DType type, const Shape &shape) const { return output(0, type, shape); }

  /// Calls `f` with sampled values of all symbols. False when one call gives false; nullopt counts for nothing, and
  /// only nullopts are false.
  template <typename F> bool forSamples(F f) const {
    bool any = false;
    for (const std::vector<int64_t> &symbols : sampleSymbols(graph.symbols)) {
      std::optional<bool> holds = f(symbols);
      if (holds && !*holds)
        return false;
      any = any || holds;
    }
    return any;
  }

private:
  Diagnostic differ(const DimExpr &a, const DimExpr &b, const std::string &what) const;
};

using Rule = Status (*)(const OpCheck &);
struct RuleTable {
  std::array<Rule, kNumOpKinds> rules{};
  Rule &operator[](OpKind op) { return rules[static_cast<size_t>(op)]; }
};
// One function a family, in <Family>.cpp: enters the rules of its operators.
void addElementwise(RuleTable &table);
void addReductions(RuleTable &table);
void addContractions(RuleTable &table);
void addWindows(RuleTable &table);
void addNormalisations(RuleTable &table);
void addMovement(RuleTable &table);
void addSlices(RuleTable &table);
void addGathers(RuleTable &table);
void addImages(RuleTable &table);
void addGenerators(RuleTable &table);
void addQuantisation(RuleTable &table);
void addRecurrent(RuleTable &table);
void addControlFlow(RuleTable &table);
void addMisc(RuleTable &table);

/// Product of dims [from, to).
DimExpr product(const Shape &shape, size_t from, size_t to);

} // namespace fusec::rules
