#pragma once
#include "Graph/Graph.h"
#include "Graph/Passes.h"
#include "Onnx/HostNumbers.h"

#include <optional>

namespace fusec {

/// Integer and bool tensors with at most this many elements are followed element by element.
constexpr int64_t kMaxFollowedElements = 4096;
/// Floats, and what is no expression over the symbols: each element is a program of its own.
constexpr int64_t kMaxComputedElements = 256;

/// Elements of a small integer or bool value that is constant or followed.
std::optional<std::vector<DimExpr>> knownElements(const Value &v);
/// The numbers, where all elements are; nullopt too where there are no elements to look at.
std::optional<std::vector<int64_t>>
allConstants(const std::optional<std::vector<DimExpr>> &elements);

/// A constant of these elements, or nullptr when one depends on a symbol.
ConstantRef constantFromElements(DType type, const Shape &shape,
                                 const std::vector<DimExpr> &elements);

/// Small tensors whose elements follow from constants and from shapes, by the arithmetic that exporters write around
/// Reshape, Expand, Range and Resize.
class KnownValues {
public:
  using Id = HostNumbers::Id;
  using Elements = std::vector<Id>;

  /// Sizes that no expression gives become symbols of the graph and of the solver.
  KnownValues(Graph &graph, SizeSolver &solver) : graph(graph), numbers(graph.symbols, solver) {}

  /// The elements of each output of `node`, whose output types and shapes are set.
  std::vector<std::optional<Elements>> follow(const Node &node);
  /// As expressions, where all are.
  std::optional<std::vector<DimExpr>> expressions(const Elements &elements) const;
  /// Keeps what is no expression for those that ask.
  void remember(ValueId id, Elements elements) { others[id] = std::move(elements); }
  /// Keeps these in place of what was kept of it, which is returned; none where there is nothing to keep.
  std::optional<Elements> exchange(ValueId id, std::optional<Elements> elements);

  /// `result` is `ifTrue` or `ifFalse`, as the bool `condition` says: follows that where all are known. Of what both
  /// hold the condition need not be.
  void choose(ValueId result, ValueId condition, ValueId ifTrue, ValueId ifFalse);
  /// The one of two sizes that the bool `condition` says, for `node`; nothing where it does not follow from sizes.
  std::optional<DimExpr> choose(ValueId condition, const DimExpr &ifTrue, const DimExpr &ifFalse,
                                const std::string &node);

  /// What a constant holds, or a value that has been followed.
  std::optional<Elements> elements(ValueId id);
  /// The elements of an integer or bool value as expressions over the symbols, to which those are added that it
  /// takes. The value then has them: Value::known. `node` asks.
  std::optional<std::vector<DimExpr>> sizes(ValueId id, const std::string &node);
  /// Gives all values known elements that are sizes: of two that are equal a pass may keep either.
  void settle();

  Graph &graph;
  HostNumbers numbers;

  /// Nodes that followLoop has followed again, in all trips of a loop and of those inside it.
  int64_t replayed = 0;
  int loopsAround = 0; // the loop that is followed

private:
  bool mayFollow(const Node &node) const;

  std::unordered_map<ValueId, Elements> others;
};

} // namespace fusec
