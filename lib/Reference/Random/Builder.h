#pragma once
#include "Reference/RandomGraph.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace fusec::random {

using SymbolicDims = Shape; // where OpKind::Shape hides the name

/// splitmix64; the standard library's distributions differ between implementations.
class Rng {
public:
  explicit Rng(uint64_t seed) : state(seed) {}
  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }
  int64_t between(int64_t low, int64_t high) { return low + below(high - low + 1); } // inclusive
  bool chance(int percent) { return below(100) < percent; }
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  template <typename T> const T &pick(const std::vector<T> &list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }

private:
  uint64_t state;
};

/// What is known of a float value: bounds of its elements, and how far an implementation in the declared types may
/// be off. Integers are exact and their bounds unused.
struct Facts {
  double low = 0, high = 0, error = 0;
  double largest() const { return std::max(std::fabs(low), std::fabs(high)); }
  bool exact() const { return error == 0; }
};

/// Relative rounding error of one operation, and the largest magnitude that values of the type may reach here.
double unitRoundoff(DType t);
double magnitudeLimit(DType t);

class Builder {
public:
  Builder(uint64_t seed, const RandomGraphOptions &options) : rng(seed), options(options) {}

  Rng rng;
  Graph graph;
  std::vector<Facts> facts;   // by ValueId
  std::vector<ValueId> pool;  // values that nodes may read
  std::vector<bool> consumed; // by ValueId
  std::optional<RandomGraph::OneOr> oneOr;
  const RandomGraphOptions &options;
  int nodes = 0;

  const Value &value(ValueId v) const { return graph.value(v); }
  const Shape &shape(ValueId v) const { return graph.value(v).shape; }
  DType type(ValueId v) const { return graph.value(v).type; }
  int64_t rank(ValueId v) const { return static_cast<int64_t>(shape(v).size()); }

  /// A value of the pool for which `wanted` holds, or kNoValue.
  ValueId pick(const std::function<bool(ValueId)> &wanted);
  ValueId pickFloat() {
    return pick([&](ValueId v) { return isFloat(type(v)); });
  }
  /// Upper bound of a dim, or of the number of elements.
  int64_t most(const DimExpr &d) const { return d.range(graph.symbols).max; }
  int64_t least(const DimExpr &d) const { return d.range(graph.symbols).min; }
  bool fits(const Shape &s) const { return most(numElements(s)) <= options.maxElements; }
  /// Whether an axis of this size has an element that attributes may speak of.
  bool isIndexable(const DimExpr &d) const {
    return least(d) > 0 && (d.isConst() || options.openSizes);
  }
  std::optional<Shape> broadcast(const Shape &a, const Shape &b) const;
  std::optional<DimExpr> broadcast(const DimExpr &a, const DimExpr &b) const;

  /// Facts after one more rounding to `t`; nullopt where the value would grow or lose too much.
  std::optional<Facts> rounded(DType t, Facts f, double operations = 1) const;

  ValueId addInput(DType t, Shape s);
  ValueId addConstant(DType t, std::vector<int64_t> dims);            // random elements
  ValueId addInts(std::vector<int64_t> dims, std::vector<int64_t> v); // i64
  ValueId addScalar(DType t, double v);
  /// A node whose output has the type that the operator's rule gives; `shapes` are those of outputs that operands do
  /// not decide. kNoValue, and no node, where an output would have too many elements.
  ValueId addNode(OpKind op, std::vector<ValueId> inputs,
                  std::map<std::string, Attribute> attributes, const Facts &f,
                  const std::vector<Shape> &shapes = {});
  /// A node with as many outputs as there are facts; none of them where one would be too large.
  std::vector<ValueId> addNodes(OpKind op, std::vector<ValueId> inputs,
                                std::map<std::string, Attribute> attributes,
                                const std::vector<Facts> &outFacts,
                                const std::vector<Shape> &shapes = {});

  /// A node of a computation on sizes: it is not one of those asked for, and no other node is given its result, whose
  /// elements are `known`, or which is a float where there are none.
  ValueId addSizeNode(OpKind op, std::vector<ValueId> inputs,
                      std::map<std::string, Attribute> attributes, Shape known);

private:
  ValueId addValue(DType t, Shape s, Facts f, ConstantRef c, const std::string &prefix);
  std::vector<ValueId> emit(Node n, const std::vector<Facts> &outFacts,
                            const std::vector<Shape> &shapes);
};

/// One attempt to add a node of some family; false where the pool has no fitting operands.
using Attempt = bool (*)(Builder &);
const std::vector<Attempt> &mathsAttempts();
const std::vector<Attempt> &contractionAttempts();
const std::vector<Attempt> &movementAttempts();
/// Attempts that only graphs with open sizes see.
const std::vector<Attempt> &openAttempts();

/// Adds a node that only moves elements of x, beside zeros where `withZero`.
bool move(Builder &b, OpKind op, ValueId x, std::vector<ValueId> more,
          std::map<std::string, Attribute> attributes, const std::vector<SymbolicDims> &shapes = {},
          bool withZero = false);
/// What a product over `depth` elements of values with these facts may be; nullopt where it grows too much.
std::optional<Facts> product(const Builder &b, DType t, const Facts &f, const Facts &g,
                             double depth);

/// A vector of these sizes, computed from the shapes of values in one of the forms that exporters write.
ValueId addSizes(Builder &b, const Shape &sizes);
/// One size, i64 of rank 0.
ValueId addSize(Builder &b, const DimExpr &size);
/// A size of the graph or one that follows from it; at least 1.
DimExpr randomSize(Builder &b);

/// A random element of an input or constant of this type.
double randomFloat(Rng &rng, DType t);
int64_t randomInt(Rng &rng, DType t);
constexpr double kInputRange = 4; // |x| <= kInputRange for float inputs and constants

} // namespace fusec::random
