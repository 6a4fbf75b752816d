// The elements of a tensor that a read touches, dimension by dimension. An index over axes of extents E with
// coefficients c gives a progression where the axes fill it without a gap: with oh < 28 and kh < 3
//
//   %x[oh*2 + kh]  ->  {0, 2, .. 54} + {0, 1, 2}  =  0..56
//
// Indices that are no progression, or that a predicate tests, are enumerated while they have few points; those that
// depend on data may be anywhere.
// A read touches the product over its dimensions, and never more elements than it has points; several reads of one
// tensor touch their sum, and never more than the product of each dimension's union.
#include "Tiling/counts/CompulsoryTraffic.h"

#include "Support/OptValues.h"
#include "Tiling/schedule/FlatAccess.h"
#include "Tiling/schedule/PointEvaluator.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace fusec {

namespace {

constexpr int64_t kMaxEnumerated = 4096; // points of an index that are looked at one by one

/// Values of one index within [0, dimension): first, first + step, ... `count` of them; or `listed`; or, not
/// `placed`, any `count` of them.
struct IndexSet {
  bool placed = true;
  int64_t first = 0, step = 1, count = 0;
  std::vector<int64_t> listed; // ascending; empty: the progression

  int64_t last() const { return listed.empty() ? first + step * (count - 1) : listed.back(); }
  int64_t front() const { return listed.empty() ? first : listed.front(); }
  bool isInterval() const { return placed && listed.empty() && (step == 1 || count <= 1); }
  bool operator==(const IndexSet &) const = default;
};

class Reader {
public:
  Reader(const Equation &equation, int64_t steps, const std::vector<int64_t> &symbols)
      : equation(equation), body(equation.body), symbols(symbols), steps(steps) {}

  /// Elements of the read's index sets, one a dimension; `elements` of them in all.
  std::vector<IndexSet> touched(NodeId read, const Shape &shape, double &elements) const {
    std::vector<IndexSet> sets;
    std::vector<NodeId> indices = indexOperands(body[read]), tests;
    if (body[read].op == ScalarOp::ReadIf)
      splitConjunction(body[read].args[0], tests);
    elements = 1;
    std::vector<NodeId> all;
    for (size_t d = 0; d < indices.size(); ++d) {
      sets.push_back(valuesOf(indices[d], valueOf(shape[d]), tests));
      elements *= double(sets.back().count);
      all.push_back(indices[d]);
    }
    elements = std::min(elements, pointsOf(leavesOf(all)));
    return sets;
  }

private:
  struct Leaf {
    NodeId node;
    int64_t extent;
  };

  int64_t valueOf(const DimExpr &e) const { return e.evaluate(symbols).value_or(1); }

  int64_t extentOf(const Scalar &leaf) const {
    return leaf.op == ScalarOp::Step ? steps : valueOf(equation.axes[leaf.index].extent);
  }

  /// Axes and the step that the nodes depend on, through gathers too.
  std::vector<Leaf> leavesOf(const std::vector<NodeId> &roots) const {
    std::vector<Leaf> leaves;
    for (NodeId id : body.reachable(roots))
      if (body[id].op == ScalarOp::Axis || body[id].op == ScalarOp::Step)
        leaves.push_back({id, extentOf(body[id])});
    return leaves;
  }

  static double pointsOf(const std::vector<Leaf> &leaves) {
    double points = 1;
    for (const Leaf &leaf : leaves)
      points *= double(leaf.extent);
    return points;
  }

  void splitConjunction(NodeId id, std::vector<NodeId> &tests) const {
    if (body[id].op != ScalarOp::And) {
      tests.push_back(id);
      return;
    }
    for (NodeId arg : body[id].args)
      splitConjunction(arg, tests);
  }

  /// The tests that speak of these leaves alone.
  std::vector<NodeId> testsOf(const std::vector<Leaf> &leaves,
                              const std::vector<NodeId> &tests) const {
    std::vector<NodeId> own;
    for (NodeId test : tests) {
      const std::vector<Leaf> used = leavesOf({test});
      auto known = [&](const Leaf &leaf) {
        return std::ranges::any_of(leaves, [&](const Leaf &l) { return l.node == leaf.node; });
      };
      if (!used.empty() && !tiling::readsData(body, {test}) && std::ranges::all_of(used, known))
        own.push_back(test);
    }
    return own;
  }

  IndexSet valuesOf(NodeId index, int64_t dimension, const std::vector<NodeId> &tests) const {
    const std::vector<Leaf> leaves = leavesOf({index});
    const double points = pointsOf(leaves);
    if (points < 1 || dimension < 1)
      return {};
    IndexSet set;
    if (!tiling::readsData(body, {index})) {
      const std::vector<NodeId> own = testsOf(leaves, tests);
      const bool few = points <= double(kMaxEnumerated);
      if (few && !own.empty() && enumerate(index, own, leaves, dimension, set))
        return set;
      if (progression(index, leaves, set)) {
        clip(set, dimension);
        return set;
      }
      if (few && enumerate(index, {}, leaves, dimension, set))
        return set;
    }
    const IndexRange range = body.rangeOf(index);
    set.placed = false;
    set.count = dimension;
    if (points < double(set.count))
      set.count = static_cast<int64_t>(points);
    if (range.min >= 0 && range.max < dimension)
      set.count = std::min(set.count, range.max - range.min + 1);
    return set;
  }

  /// Coefficients of the leaves where the index is their sum; false where it is not.
  bool coefficients(NodeId id, int64_t factor, std::map<NodeId, int64_t> &sum,
                    int64_t &constant) const {
    const Scalar &node = body[id];
    switch (node.op) {
    case ScalarOp::Const: constant += factor * node.imm; return true;
    case ScalarOp::Dim: constant += factor * valueOf(node.dim); return true;
    case ScalarOp::Axis:
    case ScalarOp::Step: sum[id] += factor; return true;
    case ScalarOp::Neg: return coefficients(node.args[0], -factor, sum, constant);
    case ScalarOp::Add:
      return coefficients(node.args[0], factor, sum, constant) &&
             coefficients(node.args[1], factor, sum, constant);
    case ScalarOp::Sub:
      return coefficients(node.args[0], factor, sum, constant) &&
             coefficients(node.args[1], -factor, sum, constant);
    case ScalarOp::Mul:
      for (int side : {0, 1}) {
        const Scalar &number = body[node.args[side]];
        if (number.op == ScalarOp::Const)
          return coefficients(node.args[1 - side], factor * number.imm, sum, constant);
        if (number.op == ScalarOp::Dim)
          return coefficients(node.args[1 - side], factor * valueOf(number.dim), sum, constant);
      }
      return false;
    default: return false;
    }
  }

  bool progression(NodeId index, const std::vector<Leaf> &leaves, IndexSet &set) const {
    std::map<NodeId, int64_t> sum;
    int64_t constant = 0;
    if (!coefficients(index, 1, sum, constant))
      return false;
    std::vector<std::pair<int64_t, int64_t>> terms; // |coefficient|, extent
    for (const Leaf &leaf : leaves) {
      const int64_t c = sum[leaf.node];
      if (c == 0 || leaf.extent == 1)
        continue;
      if (c < 0)
        constant += c * (leaf.extent - 1);
      terms.push_back({std::abs(c), leaf.extent});
    }
    std::ranges::sort(terms);
    IndexSet made{true, constant, terms.empty() ? 1 : terms[0].first, 1, {}};
    for (auto [c, extent] : terms) {
      // A copy of the progression every c: a longer progression where the copies touch.
      if (c % made.step != 0 || c / made.step > made.count)
        return false;
      made.count += c / made.step * (extent - 1);
    }
    set = made;
    return true;
  }

  static void clip(IndexSet &set, int64_t dimension) {
    if (set.first < 0) {
      const int64_t skip = std::min(set.count, (-set.first + set.step - 1) / set.step);
      set.first += skip * set.step;
      set.count -= skip;
    }
    if (set.count > 0 && set.last() >= dimension)
      set.count = set.first >= dimension ? 0 : (dimension - 1 - set.first) / set.step + 1;
    if (set.count <= 1)
      set.step = 1;
  }

  /// Values of the index where all tests hold; false where an operation is not known.
  bool enumerate(NodeId index, const std::vector<NodeId> &tests, const std::vector<Leaf> &leaves,
                 int64_t dimension, IndexSet &set) const {
    std::vector<NodeId> roots = tests;
    roots.push_back(index);
    tiling::PointEvaluator value(body, roots, 1, symbols);
    std::vector<int64_t> axes(equation.axes.size(), 0), found;
    int64_t step = 0;
    for (bool more = true; more;) {
      if (!value.at(axes, step))
        return false;
      const int64_t v = value[index];
      if (v >= 0 && v < dimension &&
          std::ranges::all_of(tests, [&](NodeId t) { return value[t] != 0; }))
        found.push_back(v);
      more = false;
      for (size_t digit = 0; digit < leaves.size() && !more; ++digit) {
        const Scalar &leaf = body[leaves[digit].node];
        int64_t &place = leaf.op == ScalarOp::Step ? step : axes[static_cast<size_t>(leaf.index)];
        more = ++place < leaves[digit].extent;
        if (!more)
          place = 0;
      }
    }
    std::ranges::sort(found);
    found.erase(std::unique(found.begin(), found.end()), found.end());
    set = fromList(std::move(found));
    return true;
  }

  /// A list without gaps is an interval.
  static IndexSet fromList(std::vector<int64_t> list) {
    IndexSet set;
    set.count = static_cast<int64_t>(list.size());
    if (set.count > 0 && list.back() - list.front() + 1 == set.count)
      set.first = list.front();
    else
      set.listed = std::move(list);
    return set;
  }

  const Equation &equation;
  const Body &body;
  const std::vector<int64_t> &symbols;
  const int64_t steps;
};

/// Values of a dimension that lie in one of the sets, at most.
double unionSize(const std::vector<IndexSet> &sets, int64_t dimension) {
  std::vector<std::pair<int64_t, int64_t>> intervals; // first, last
  double sum = 0;
  int64_t front = INT64_MAX, last = INT64_MIN;
  bool placed = true;
  std::vector<IndexSet> seen;
  for (const IndexSet &set : sets) {
    if (set.count == 0 || std::ranges::find(seen, set) != seen.end())
      continue;
    seen.push_back(set);
    placed = placed && set.placed;
    front = std::min(front, set.front());
    last = std::max(last, set.last());
    if (set.isInterval())
      intervals.push_back({set.first, set.last()});
    else
      sum += double(set.count);
  }
  std::ranges::sort(intervals);
  int64_t covered = INT64_MIN;
  for (auto [from, to] : intervals) {
    from = std::max(from, covered);
    if (to >= from)
      sum += double(to - from + 1);
    covered = std::max(covered, to + 1);
  }
  const double hull = placed && !seen.empty() ? double(last - front + 1) : double(dimension);
  return std::min({sum, hull, double(dimension)});
}

class Meter {
public:
  explicit Meter(const ExprProgram &pattern) : pattern(pattern) {
    symbols = optValues(pattern.symbols);
    reads.resize(pattern.tensors.size());
  }

  Traffic run() {
    for (const Item &item : pattern.items)
      visit(std::get<Equation>(item.value), 1);
    Traffic traffic;
    traffic.readOf.resize(pattern.tensors.size());
    for (size_t t = 0; t < pattern.tensors.size(); ++t) {
      const Tensor &tensor = pattern.tensors[t];
      const double bytes = double(sizeInBytes(tensor.type));
      if (tensor.kind == TensorKind::Output)
        traffic.writtenBytes += elementsOf(tensor) * bytes;
      else if (tensor.kind != TensorKind::Temp)
        traffic.readBytes += traffic.readOf[t] = elementsRead(static_cast<TensorId>(t)) * bytes;
    }
    return traffic;
  }

private:
  struct TensorReads {
    bool whole = false;
    double sum = 0; // elements of distinct reads
    std::vector<std::vector<IndexSet>> distinct;
  };

  int64_t valueOf(const DimExpr &e) const { return e.evaluate(symbols).value_or(1); }
  double elementsOf(const Tensor &t) const { return double(valueOf(numElements(t.shape))); }

  void visit(const Equation &e, int64_t steps) {
    if (e.base >= 0)
      reads[e.base].whole = true;
    for (TensorId t : e.opaqueInputs)
      reads[t].whole = true;
    for (const ScanCarry &carry : e.carries)
      reads[carry.init].whole = true;
    for (const Equation &inner : e.scanBody)
      visit(inner, valueOf(e.steps));
    Reader reader(e, steps, symbols);
    for (NodeId id : readsOf(e)) {
      const TensorId t = e.body[id].index;
      double elements = 0;
      std::vector<IndexSet> sets = reader.touched(id, pattern.tensors[t].shape, elements);
      TensorReads &of = reads[t];
      if (std::ranges::find(of.distinct, sets) != of.distinct.end() &&
          std::ranges::all_of(sets, [](const IndexSet &s) { return s.placed; }))
        continue;
      of.sum += elements;
      of.distinct.push_back(std::move(sets));
    }
  }

  double elementsRead(TensorId t) const {
    const Tensor &tensor = pattern.tensors[t];
    const TensorReads &of = reads[t];
    const double all = elementsOf(tensor);
    if (of.whole)
      return all;
    if (of.distinct.empty())
      return 0;
    double box = 1;
    for (size_t d = 0; d < tensor.shape.size(); ++d) {
      std::vector<IndexSet> sets;
      for (const std::vector<IndexSet> &read : of.distinct)
        sets.push_back(read[d]);
      box *= unionSize(sets, valueOf(tensor.shape[d]));
    }
    return std::min({of.sum, box, all});
  }

  const ExprProgram &pattern;
  std::vector<int64_t> symbols;
  std::vector<TensorReads> reads; // one a tensor
};

} // namespace

Traffic compulsoryTraffic(const ExprProgram &pattern) { return Meter(pattern).run(); }

} // namespace fusec
