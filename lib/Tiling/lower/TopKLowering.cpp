#include "Expr/SortKey.h"
#include "Tiling/lower/EquationLowering.h"
#include "Tiling/schedule/TopK.h"

namespace fusec::lowering {

namespace {

/// The opaque equation topk: values[s] = the element of rank s of x[0, n), with its index.
///
/// Elements are compared by (key, index): `sortKey` turns a value into a signed integer such that the element that
/// comes first has the larger key, a NaN included, and of equal keys the lower index comes first. A subclass each has
/// the two ways to find the order.
class TopKLowering : public FoldLowering {
public:
  /// `other`: what the second pair of registers holds.
  TopKLowering(LoweringParts &parts, int number, const std::string &other)
      : FoldLowering(parts, number, Monoid::ArgMax),
        operand(bound.program.tensor(e.opaqueInputs[0])), keyType(sortKeyType(operand.type)),
        // Index arithmetic in 32 bits has twice the lanes a vector.
        indexType(e.axes[e.numSpatial].extent.range(writer.kernel.symbols).max <= INT32_MAX
                      ? DType::I32
                      : DType::I64),
        largest(e.opaqueAttributes.at("largest") != 0), x(buffers.global(e.opaqueInputs[0])) {
    acc.equation = number;
    auto add = [&](const std::string &suffix, DType type) {
      return writer.addBuffer({.name = bound.program.tensor(e.outputs[1]).name + suffix,
                               .level = MemLevel::Register,
                               .type = type,
                               .shape = {}});
    };
    acc.outputs.push_back(folded = add(".key", keyType));
    acc.outputs.push_back(index = add(".index", indexType));
    otherKey = add(".key." + other, keyType);
    otherIndex = add(".index." + other, indexType);
  }

protected:
  /// Flat address of element `j` of the current row of the operand.
  NodeId address(NodeId j) {
    FlatAccess row;
    row.stride = stridesOf(operand.shape);
    row.stride.back() = DimExpr(0);
    row.stride.push_back(DimExpr(0));
    row.constant = DimExpr(0);
    return writer.add(reads.address(number, row), j);
  }

  /// Stores the element at `index` in the current place of both outputs.
  Stmts put(NodeId place) {
    Stmts statements;
    place = body.cast(DType::I64, place);
    loops.clampSpatial = true;
    const NodeId from = address(place);
    loops.clampSpatial = false;
    const NodeId values[] = {writer.read(x, {from}), place};
    for (size_t o : {0, 1}) // an output that nobody reads has no memory
      if (bound.level(e.outputs[o]) != MemLevel::Register)
        storeResult(o, values[o], statements);
    return statements;
  }

  /// True if (key, index) comes behind (otherKey, otherIndex).
  NodeId isBehind(NodeId key, NodeId place, NodeId otherKeyValue, NodeId otherPlace) {
    const NodeId tie = body.binary(ScalarOp::And, body.binary(ScalarOp::Eq, key, otherKeyValue),
                                   writer.less(otherPlace, place));
    return body.binary(ScalarOp::Or, writer.less(key, otherKeyValue), tie);
  }

  NodeId lastKey() { return body.constantInt(keyType, smallestKey(keyType)); }
  NodeId lastIndex() { return body.constantInt(indexType, largestKey(indexType)); }
  NodeId get(BufferId buffer) { return writer.read(buffer, {}); }

  /// Nothing found yet: a pair that comes behind every element.
  void reset(Stmts &result) override {
    result.push_back(storeStmt(folded, {}, lastKey()));
    result.push_back(storeStmt(index, {}, lastIndex()));
  }

  const Tensor &operand;
  const DType keyType, indexType;
  const bool largest;
  const BufferId x;
  // The second pair of registers, beside `folded` and `index`.
  BufferId otherKey = -1, otherIndex = -1;
};

/// Selection: the maximum by (key, index) of what comes strictly behind the one found before. O(n k) work, nothing but
/// registers.
///   seq s { init; seq j:32 { lane j:1 { compute } } combine; store }
class TopKSelection final : public TopKLowering {
public:
  TopKSelection(LoweringParts &parts, int number) : TopKLowering(parts, number, "found") {
    acc.lanesReduce = tiling::sharesReduction(bound, number, LoopKind::Lane);
    acc.unitsReduce = tiling::sharesReduction(bound, number, LoopKind::Unit);
  }

  /// Before the first element everything is still to be found; later what comes behind the last one found.
  void init(Stmts &result) override {
    const NodeId place = loops.equationAxis(number, e.numSpatial - 1);
    const NodeId isFirst = body.binary(ScalarOp::Eq, place, body.index(0));
    Stmts nothing = {storeStmt(otherKey, {}, body.constantInt(keyType, largestKey(keyType))),
                     storeStmt(otherIndex, {}, body.constantInt(indexType, -1))};
    Stmts last = {storeStmt(otherKey, {}, get(folded)), storeStmt(otherIndex, {}, get(index))};
    result.push_back(ifStmt(isFirst, std::move(nothing), std::move(last)));
    reset(result);
  }

  void compute(int, Stmts &result) override {
    loops.clampSpatial = true;
    const NodeId j = loops.equationAxis(number, e.numSpatial);
    const NodeId value = writer.read(x, {address(j)});
    loops.clampSpatial = false;
    const NodeId key = sortKey(body, value, largest);
    const NodeId place = body.cast(indexType, j);
    const NodeId foundKey = get(otherKey), foundIndex = get(otherIndex);
    const NodeId isNext = isBehind(key, place, foundKey, foundIndex);
    Stmt fold = accumulateStmt(folded, {}, monoid, body.select(isNext, key, lastKey()));
    fold.indexBuffer = index;
    fold.indexValue = body.select(isNext, place, lastIndex());
    guarded(Bounds::Reduced, {std::move(fold)}, result);
  }

  void store(Stmts &result) override { guarded(Bounds::Spatial, put(get(index)), result); }
};

/// Sort: (key, index) pairs in the block's shared memory, padded to a power of two P with pairs that come last, ordered
/// by a bitonic network; O(P log^2 P) work. The network has the form in which every comparator puts the earlier element
/// lower: runs of P/2^r are merged by comparing mirrored places first, then by halving distances.
///   size 4: (0,3) (1,2), then (0,1) (2,3)
/// The rounds are written one after another, so that all distances are constants: addresses then need no division, and
/// lanes that walk neighbours load vectors. What a row's own length leaves out is said in schedule/TopK.h.
class TopKSort final : public TopKLowering {
public:
  TopKSort(LoweringParts &parts, int number) : TopKLowering(parts, number, "high") {}

  void sort(Stmts &result) override {
    const DimExpr &length = e.axes[e.numSpatial].extent;
    const std::optional<int64_t> padded = tiling::paddedLength(length, writer.kernel.symbols);
    if (!padded)
      return writer.problem("sort e", number, " takes rows of a bounded length, given ", length,
                            "; init, compute, combine and store need no bound");
    auto add = [&](const std::string &suffix, DType type) {
      return writer.addBuffer({.name = bound.program.tensor(e.outputs[1]).name + suffix,
                               .level = MemLevel::Shared,
                               .type = type,
                               .shape = {DimExpr(*padded)}});
    };
    keys = add(".keys", keyType);
    indices = add(".indices", indexType);
    fill(length, *padded, result);
    for (int64_t size = 2; size <= *padded; size *= 2) {
      const DimExpr pairs = tiling::pairsMerged(length, size, *padded, threads);
      Stmts merge;
      for (int64_t distance = size / 2; distance > 0; distance /= 2)
        sortRound(pairs, distance, distance == size / 2, merge);
      const NodeId isTaken =
          length.isConst() ? kNoNode : writer.less(body.index(size / 2), body.dim(length));
      writer.guarded(isTaken, std::move(merge), result);
    }
  }

  void store(Stmts &result) override {
    if (indices < 0)
      return writer.problem("store e", number, " stands behind its sort, given before it");
    const AxisId rank = bound.axisOf(number, e.numSpatial - 1);
    auto emit = [&](NodeId flat) {
      loops.overrides[rank] = flat;
      Stmts statements = put(writer.read(indices, {flat}));
      loops.overrides.clear();
      return statements;
    };
    writer.cooperative(body.dim(loops.extent(rank)), emit, result);
  }

private:
  /// Puts the row's elements into the block's memory, and behind them pairs that come last.
  void fill(const DimExpr &length, int64_t padded, Stmts &result) {
    auto emit = [&](NodeId flat) {
      const NodeId inside = writer.less(flat, body.dim(length));
      const NodeId value =
          body.readIf(x, operand.type, inside, body.constant(operand.type, 0), {address(flat)});
      const NodeId key = body.select(inside, sortKey(body, value, largest), lastKey());
      return Stmts{storeStmt(keys, {flat}, key),
                   storeStmt(indices, {flat}, body.cast(indexType, flat))};
    };
    writer.cooperative(body.dim(tiling::filledPlaces(length, padded, threads)), emit, result);
  }

  /// One round of the network: `pairs` comparators of places `distance` apart, or of places that mirror each other in
  /// runs of twice the distance.
  void sortRound(const DimExpr &pairs, int64_t distance, bool mirrored, Stmts &result) {
    auto emit = [&](NodeId pair) {
      const NodeId run = writer.div(pair, body.index(distance));
      const NodeId within = writer.mod(pair, body.index(distance));
      const NodeId start = writer.mul(run, body.index(2 * distance));
      const NodeId low = writer.add(start, within);
      const NodeId high = mirrored
                              ? writer.sub(writer.add(start, body.index(2 * distance - 1)), within)
                              : writer.add(low, body.index(distance));
      const NodeId lowKey = get(folded), lowIndex = get(index);
      const NodeId highKey = get(otherKey), highIndex = get(otherIndex);
      const NodeId swap = isBehind(lowKey, lowIndex, highKey, highIndex);
      return Stmts{storeStmt(folded, {}, writer.read(keys, {low})),
                   storeStmt(index, {}, writer.read(indices, {low})),
                   storeStmt(otherKey, {}, writer.read(keys, {high})),
                   storeStmt(otherIndex, {}, writer.read(indices, {high})),
                   storeStmt(keys, {low}, body.select(swap, highKey, lowKey)),
                   storeStmt(indices, {low}, body.select(swap, highIndex, lowIndex)),
                   storeStmt(keys, {high}, body.select(swap, lowKey, highKey)),
                   storeStmt(indices, {high}, body.select(swap, lowIndex, highIndex))};
    };
    writer.cooperative(body.dim(pairs), emit, result);
  }

  const int64_t threads = int64_t{writer.units} * writer.lanes;
  BufferId keys = -1, indices = -1; // Shared
};

} // namespace

std::unique_ptr<EquationLowering> lowerTopK(LoweringParts &parts, int number) {
  if (parts.bound.has(LeafKind::Sort, number))
    return std::make_unique<TopKSort>(parts, number);
  return std::make_unique<TopKSelection>(parts, number);
}

} // namespace fusec::lowering
