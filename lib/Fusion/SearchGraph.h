#pragma once
#include "Expr/Expr.h"

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace fusec {

struct VerticesHash {
  size_t operator()(const std::vector<int> &vertices) const;
};

/// One list of items as a graph: what the search for kernels works on. Vertices are positions in the list, which is in
/// topological order.
struct SearchGraph {
  struct Vertex {
    const Equation *equation =
        nullptr; // null: a branch or loop of the host, or a size that it reads
    const Control *control = nullptr;
    // Facts of the equation, for tests of legality.
    EquationKind kind{};
    bool hasElements = true;
    bool contraction = false;              // isContraction, Expr/transforms/Profile.h
    std::vector<int> producers, consumers; // without repetition, ascending; of values and sizes
    std::vector<TensorId> reads, writes;
    std::vector<SymbolId> sizes; // symbols of its axes, ascending
  };
  std::vector<Vertex> vertices;
  /// Cache of the reasons why groups with contractions have no tree (Legality.cpp).
  mutable std::unordered_map<std::vector<int>, std::string, VerticesHash> treeless;
  /// The vertices that staysAcyclic has visited, marked with numbers that each call uses once.
  mutable std::vector<uint32_t> marks;
  mutable uint32_t lastMark = 0;
};
SearchGraph makeSearchGraph(const std::vector<Item> &items);

/// Vertices of one group span at most this many positions of the list, so that tests of legality look at a bounded part
/// of the graph.
constexpr int kSearchWindow = 128;

/// Sets of vertices, each ascending: a search's candidates for kernels.
using VertexSets = std::vector<std::vector<int>>;
/// For each vertex the number of the set in which it stands, or -1: it is a kernel of its own.
using Partition = std::vector<int>;

/// The vertices that share v's kernel, v included.
std::vector<int> kernelOf(const VertexSets &sets, const Partition &partition, int v);
/// All vertices of both, ascending.
std::vector<int> united(const std::vector<int> &a, const std::vector<int> &b);

/// The vertices in groups that values between them connect, in order of their first one: more than one where they do
/// not all need each other.
VertexSets connectedParts(const SearchGraph &region, const std::vector<int> &vertices);

/// True if making one kernel of `vertices` leaves an order in which it and the partition's kernels can run: no value
/// leaves it for another kernel and comes back. Looks no further than the next place of the list that no kernel lies
/// across: where kernels lie across each other without end, the work grows with the list.
bool staysAcyclic(const SearchGraph &region, const VertexSets &sets, const Partition &partition,
                  const std::vector<int> &vertices);

/// The partition's kernels in an order in which they can run, as early as their first vertex allows.
VertexSets topologicalOrder(const SearchGraph &region, const VertexSets &sets,
                            const Partition &partition);

} // namespace fusec
