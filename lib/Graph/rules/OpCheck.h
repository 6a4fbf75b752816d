#pragma once
#include "Graph/Graph.h"
#include "Graph/SizeCheck.h"

#include <array>
#include <initializer_list>
#include <optional>

namespace fusec::rules {

/// Classes of element types that operators take.
enum class Kind { Any, Number, Float, Integer, Bool };

/// The types of a node's outputs, also of those that it leaves out.
using Types = std::vector<TypedShape>;

/// What the rule of an operator sees of a node, and the checks that rules are made of. Counts of operands and the
/// presence and kind of attributes are right when a rule runs. A failed check is a Misfit; the caller says where.
class OpCheck {
public:
  /// `outShapes`: of the node's outputs, for rules that do not derive them.
  OpCheck(const Graph &graph, const Node &node, const std::vector<Shape> &outShapes,
          const SizeCheck &sizes)
      : graph(graph), node(node), sizes(sizes), outShapes(outShapes) {}
  const Graph &graph;
  const Node &node;
  const SizeCheck &sizes;

  bool has(size_t i) const { return node.hasInput(i); }
  const Value &in(size_t i) const { return graph.value(node.inputs[i]); }
  const Shape &shape(size_t i) const { return in(i).shape; }
  DType type(size_t i) const { return in(i).type; }
  int64_t rank(size_t i) const { return static_cast<int64_t>(shape(i).size()); }
  ConstantRef constant(size_t i) const { return has(i) ? in(i).constant : nullptr; }
  const std::vector<int64_t> &list(const char *key) const { return node.intsAttr(key); }
  int64_t number(const char *key) const { return node.intAttr(key); }
  DType typeAttr(const char *key) const { return std::get<DType>(node.attributes.at(key)); }
  /// How many outputs have a shape, and the shape that output `i` is said to have. For operators whose operands do not
  /// decide it.
  size_t numOutputs() const { return outShapes.size(); }
  const Shape &outShape(size_t i = 0) const { return outShapes.at(i); }
  /// Elements of a constant integer operand.
  std::optional<std::vector<int64_t>> ints(size_t i) const;

  Diagnostic fail(std::string text, Misfit::Kind kind = Misfit::Kind::Operands) const;
  Diagnostic badAttribute(std::string text) const;
  Diagnostic badValue(std::string text) const; // of a constant operand
  Status expect(bool holds, std::string text) const;
  Status expectAttribute(bool holds, std::string text) const;
  /// A size that must be known.
  Status fixed(const DimExpr &size, std::string text) const;

  /// "the operand must ..." of operand 0.
  Status operand(Kind kind) const;
  /// "the operands must be ...", all of one type.
  Status operands(Kind kind) const;
  Status kind(size_t i, Kind kind) const;
  Status sameTypes(std::initializer_list<size_t> inputs) const; // absent ones are skipped
  /// Operand `i` has one of these ranks; nothing to check when absent, here and below.
  Status minRank(size_t i, int64_t rank, std::string text) const;
  Status exactRank(size_t i, int64_t rank) const;
  /// Operand `i` has an element along the axis, in all runs; `text` says that it has none.
  Status hasElements(size_t i, size_t axis, const std::string &text) const;
  Status oneNumber(size_t i) const;
  Status shapeIs(size_t i, const Shape &expected, const std::string &text) const;
  /// Operand `i` is a scale or a zero point: one number, or one for each of `count`.
  Status quantParameter(size_t i, const DimExpr &count) const;
  Status atLeast(const char *key, int64_t least) const;

  /// The attribute as an index into 0..rank-1.
  Result<size_t> axis(const char *key, int64_t rank) const;
  /// Every entry of the attribute lies in 0..rank-1 and stands there once.
  Status axes(const char *key, int64_t rank) const;

  // Sizes
  bool sameInRuns(const Shape &a, const Shape &b) const { return sizes.sameInRuns(a, b); }
  Status sameDim(const DimExpr &a, const DimExpr &b, const std::string &what) const {
    return sizes.sameDim(a, b, what);
  }

private:
  const std::vector<Shape> &outShapes;
};

/// What an operator's outputs are.
inline Types one(DType type, Shape shape) { return {{type, std::move(shape)}}; }
/// The type of operand 0 throughout.
inline Types like(const OpCheck &c) { return one(c.type(0), c.shape(0)); }

/// The shape that operands give the output has no negative size.
inline Status notNegative(const OpCheck &c) {
  for (const DimExpr &d : c.outShape())
    FUSEC_CHECK(c.sizes.atLeast(d, 0, "a size of the output"));
  return success();
}

using Rule = Result<Types> (*)(const OpCheck &);
using RuleTable = std::array<Rule, kNumOpKinds>;
inline Rule &entry(RuleTable &table, OpKind op) { return table[static_cast<size_t>(op)]; }
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

} // namespace fusec::rules
