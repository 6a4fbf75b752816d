#pragma once
#include "Graph/Graph.h"
#include "Reference/TensorValue.h"

#include <optional>
#include <string>

namespace fusec {

struct RandomGraphOptions {
  int minNodes = 6;
  int maxNodes = 26;
  int64_t maxElements = 2048; // of one tensor, at the symbols' largest values
  bool symbols = true;        // some graphs get one or two symbolic dims
  /// Every graph has symbols, over a range that kernels are tuned at several places of, and nodes compute from shapes
  /// what Reshape, Expand, Slice and others ask for, as in models that exporters write. To be written as a model: the
  /// importer knows what such operands are, the stages behind it do not.
  bool openSizes = false;
};

/// A graph that verifies, with a bound for what the declared types' rounding may do to each output: an
/// implementation that rounds after every operation stays within `tolerance[i]` of the float64 interpreter;
/// 0 asks for equality.
struct RandomGraph {
  Graph graph;
  std::vector<double> tolerance; // absolute, one an output
  /// A symbol that is 1 or what the other one is, as the sizes of operands that broadcast are.
  struct OneOr {
    SymbolId symbol, other;
  };
  std::optional<OneOr> oneOr = std::nullopt;
};

/// Makes a random graph. Equal seeds and options give equal graphs on every machine.
RandomGraph makeRandomGraph(uint64_t seed, const RandomGraphOptions &options = {});

/// A legal value of every symbol.
std::vector<int64_t> randomSymbolValues(const Graph &graph, uint64_t seed);
std::vector<int64_t> randomSymbolValues(const RandomGraph &random, uint64_t seed);

/// Inputs for these symbol values, within the ranges that the tolerances rely on.
std::vector<TensorValue> randomInputs(const Graph &graph, const std::vector<int64_t> &symbols,
                                      uint64_t seed);

/// Empty when all types, dims and values agree within the tolerances, else the first difference.
std::string compareOutputs(const RandomGraph &random, const std::vector<TensorValue> &expected,
                           const std::vector<TensorValue> &actual);

} // namespace fusec
