#include "Expr/SortKey.h"
#include "Tiling/lower/EquationLowering.h"
#include "Tiling/schedule/TopK.h"

namespace fusec::lowering {

namespace {

/// The opaque equation topk: values[s] = the element of rank s of x[0, n), with its index.
///
/// Elements are compared by (key, index): `sortKey` turns a value into a signed integer such that the element that
/// comes first has the larger key, a NaN included, and of equal keys the lower index comes first. A subclass each has
/// the three ways to find the order.
class TopKLowering : public FoldLowering {
public:
  TopKLowering(LoweringParts &parts, int number, Monoid monoid)
      : FoldLowering(parts, number, monoid), operand(bound.program.tensor(e.opaqueInputs[0])),
        keyType(sortKeyType(operand.type)),
        // Index arithmetic in 32 bits has twice the lanes a vector.
        indexType(e.axes[e.numSpatial].extent.range(writer.kernel.symbols).max <= INT32_MAX
                      ? DType::I32
                      : DType::I64),
        largest(e.opaqueAttributes.at("largest") != 0), x(buffers.global(e.opaqueInputs[0])) {
    acc.equation = number;
  }

protected:
  BufferId addBuffer(const std::string &suffix, DType type, MemLevel level, Shape shape = {}) {
    return writer.addBuffer({.name = bound.program.tensor(e.outputs[1]).name + suffix,
                             .level = level,
                             .type = type,
                             .shape = std::move(shape)});
  }
  BufferId addRegister(const std::string &suffix, DType type) {
    return addBuffer(suffix, type, MemLevel::Register);
  }

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

  NodeId get(BufferId buffer) { return writer.read(buffer, {}); }

  const Tensor &operand;
  const DType keyType, indexType;
  const bool largest;
  const BufferId x;
};

/// With key and index of two elements in registers.
class TopKPairs : public TopKLowering {
public:
  /// `other`: what the second pair holds.
  TopKPairs(LoweringParts &parts, int number, const std::string &other)
      : TopKLowering(parts, number, Monoid::ArgMax) {
    acc.outputs.push_back(folded = addRegister(".key", keyType));
    acc.outputs.push_back(index = addRegister(".index", indexType));
    otherKey = addRegister(".key." + other, keyType);
    otherIndex = addRegister(".index." + other, indexType);
  }

protected:
  /// True if (key, index) comes behind (otherKey, otherIndex).
  NodeId isBehind(NodeId key, NodeId place, NodeId otherKeyValue, NodeId otherPlace) {
    const NodeId tie = body.binary(ScalarOp::And, body.binary(ScalarOp::Eq, key, otherKeyValue),
                                   writer.less(otherPlace, place));
    return body.binary(ScalarOp::Or, writer.less(key, otherKeyValue), tie);
  }

  NodeId lastKey() { return body.constantInt(keyType, smallestKey(keyType)); }
  NodeId lastIndex() { return body.constantInt(indexType, largestKey(indexType)); }

  /// Nothing found yet: a pair that comes behind every element.
  void reset(Stmts &result) override {
    result.push_back(storeStmt(folded, {}, lastKey()));
    result.push_back(storeStmt(index, {}, lastIndex()));
  }

  // The second pair of registers, beside `folded` and `index`.
  BufferId otherKey = -1, otherIndex = -1;
};

/// Selection: the maximum by (key, index) of what comes strictly behind the one found before. O(n k) work, nothing but
/// registers.
///   seq s { init; seq j:32 { lane j:1 { compute } } combine; store }
class TopKSelection final : public TopKPairs {
public:
  TopKSelection(LoweringParts &parts, int number) : TopKPairs(parts, number, "found") {
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

/// What finds all places of a row before it stores any: they lie in the block's shared memory.
template <typename Base> class TopKInMemory : public Base {
public:
  using Base::Base, Base::bound, Base::writer, Base::body, Base::loops, Base::e, Base::number;

  void store(Stmts &result) override {
    if (found < 0)
      return writer.problem("store e", number,
                            " stands behind its sort or select, given before it");
    const AxisId rank = bound.axisOf(number, e.numSpatial - 1);
    auto emit = [&](NodeId flat) {
      loops.overrides[rank] = flat;
      Stmts statements = this->put(writer.read(found, {flat}));
      loops.overrides.clear();
      return statements;
    };
    writer.cooperative(body.dim(loops.extent(rank)), emit, result);
  }

protected:
  BufferId addShared(const std::string &suffix, DType type, int64_t elements) {
    return this->addBuffer(suffix, type, MemLevel::Shared, {DimExpr(elements)});
  }
  /// Places that a row's elements take at most; nullopt, and a problem, where no bound is known.
  std::optional<int64_t> paddedLength(const char *statement) {
    const DimExpr &length = e.axes[e.numSpatial].extent;
    const std::optional<int64_t> padded = tiling::paddedLength(length, writer.kernel.symbols);
    if (!padded)
      writer.problem(statement, " e", number, " takes rows of a bounded length, given ", length,
                     "; init, compute, combine and store need no bound");
    return padded;
  }

  BufferId found = -1; // Shared: indices of elements, the first one's first
};

/// Selection by tiles. Of each tile the first element that is still to be found lies in the block's memory: the next
/// one is the first of those, and its tile alone is searched again for what comes behind it. O(n + k sqrt(n)) work.
/// Tiles are columns of a few vectors, so that each lane searches its own:
///   for t { first[t] = max of tile t }
///   for s { found[s] = max of first; t = its tile; first[t] = max of what comes behind it in tile t }
/// An element is one number, its key above and its index below, so that a step of a search is one maximum.
class TopKTiles final : public TopKInMemory<TopKLowering> {
public:
  TopKTiles(LoweringParts &parts, int number) : TopKInMemory(parts, number, Monoid::Max) {
    acc.outputs.push_back(folded = addRegister(".first", DType::I64));
    previous = addRegister(".found", DType::I64);
    acc.lanesReduce = true;
  }

  void select(Stmts &result) override {
    const std::optional<int64_t> padded = paddedLength("select");
    if (!padded)
      return;
    if (keyType != DType::I32)
      return writer.problem("select e", number, " takes elements of up to 32 bits, given ",
                            name(operand.type));
    rows = tiling::rowsOfTile(*padded, writer.lanes);
    const int64_t elements = rows * writer.lanes;
    const DimExpr groups = ceilDiv(e.axes[e.numSpatial].extent, DimExpr(elements));
    const DimExpr &places = e.axes[e.numSpatial - 1].extent;
    first = addShared(".firsts", DType::I64, (*padded + elements - 1) / elements * writer.lanes);
    found = addShared(".indices", indexType,
                      std::clamp<int64_t>(places.range(writer.kernel.symbols).max, 1, *padded));

    result.push_back(storeStmt(previous, {}, body.constantInt(DType::I64, INT64_MAX)));
    Stmt group = writer.loop(LoopKind::Seq, body.dim(groups), "group");
    search(body.axis(group.var), group.body);
    result.push_back(std::move(group));

    Stmt place = writer.loop(LoopKind::Seq, body.dim(places), "place");
    reset(place.body);
    Stmt each = writer.loop(LoopKind::Seq, body.dim(groups), "group");
    Stmt lane = writer.laneLoop({});
    lane.body = {fold(writer.read(first, {tileOf(body.axis(each.var), lane)}))};
    each.body = {std::move(lane)};
    place.body.push_back(std::move(each));
    combine(place.body);
    place.body.push_back(storeStmt(previous, {}, get(folded)));
    place.body.push_back(storeStmt(found, {body.axis(place.var)}, indexIn(get(folded))));
    // Read from memory, it is one number for all lanes: their tiles lie side by side.
    const NodeId chosen = body.cast(DType::I64, writer.read(found, {body.axis(place.var)}));
    search(writer.div(chosen, body.index(elements)), place.body);
    result.push_back(std::move(place));
  }

private:
  void reset(Stmts &result) override {
    result.push_back(storeStmt(folded, {}, body.constantInt(DType::I64, INT64_MIN)));
  }

  static constexpr int64_t kIndexMask = UINT32_MAX;
  /// A number that is the larger, the earlier the element comes. Equal keys go by their indices. None is the largest or
  /// the smallest one: nothing is found yet, and there is nothing.
  NodeId numberOf(NodeId key, NodeId place) {
    return writer.add(
        body.binary(ScalarOp::Mul, body.cast(DType::I64, key), body.index(int64_t{1} << 32)),
        writer.sub(body.index(kIndexMask - 1), place));
  }
  NodeId indexIn(NodeId element) {
    const NodeId low = body.binary(ScalarOp::And, element, body.index(kIndexMask));
    return body.cast(indexType, writer.sub(body.index(kIndexMask - 1), low));
  }

  NodeId tileOf(NodeId group, const Stmt &lane) {
    return writer.add(writer.mul(group, body.index(writer.lanes)), body.axis(lane.var));
  }
  Stmt fold(NodeId value) { return accumulateStmt(folded, {}, monoid, value); }

  /// Searches the tiles of a group, a lane each, for the first that comes behind what was found last.
  void search(NodeId group, Stmts &result) {
    const DimExpr &length = e.axes[e.numSpatial].extent;
    Stmt start = writer.laneLoop({});
    reset(start.body);
    result.push_back(std::move(start));

    Stmt row = writer.loop(LoopKind::Seq, body.index(rows), "row");
    Stmt lane = writer.laneLoop({});
    const NodeId j =
        tileOf(writer.add(writer.mul(group, body.index(rows)), body.axis(row.var)), lane);
    const bool isWhole = length.divisibleBy(rows * writer.lanes, writer.kernel.symbols);
    const NodeId inside = isWhole ? kNoNode : writer.less(j, body.dim(length));
    const NodeId value = isWhole ? writer.read(x, {address(j)})
                                 : body.readIf(x, operand.type, inside,
                                               body.constant(operand.type, 0), {address(j)});
    const NodeId element = numberOf(sortKey(body, value, largest), j);
    NodeId isNext = writer.less(element, get(previous));
    if (!isWhole)
      isNext = body.binary(ScalarOp::And, inside, isNext);
    lane.body = {fold(body.select(isNext, element, body.constantInt(DType::I64, INT64_MIN)))};
    row.body = {std::move(lane)};
    result.push_back(std::move(row));

    Stmt end = writer.laneLoop({});
    end.body = {storeStmt(first, {tileOf(group, end)}, get(folded))};
    result.push_back(std::move(end));
  }

  int64_t rows = 1;       // of a tile
  BufferId previous = -1; // register: what was found last
  BufferId first = -1;    // Shared: of each tile what comes next
};

/// Sort: (key, index) pairs in the block's shared memory, padded to a power of two P with pairs that come last, ordered
/// by a bitonic network; O(P log^2 P) work. The network has the form in which every comparator puts the earlier element
/// lower: runs of P/2^r are merged by comparing mirrored places first, then by halving distances.
///   size 4: (0,3) (1,2), then (0,1) (2,3)
/// The rounds are written one after another, so that all distances are constants: addresses then need no division, and
/// lanes that walk neighbours load vectors. What a row's own length leaves out is said in schedule/TopK.h.
class TopKSort final : public TopKInMemory<TopKPairs> {
public:
  TopKSort(LoweringParts &parts, int number) : TopKInMemory(parts, number, "high") {}

  void sort(Stmts &result) override {
    const DimExpr &length = e.axes[e.numSpatial].extent;
    const std::optional<int64_t> padded = paddedLength("sort");
    if (!padded)
      return;
    keys = addShared(".keys", keyType, *padded);
    found = addShared(".indices", indexType, *padded);
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

private:
  /// Puts the row's elements into the block's memory, and behind them pairs that come last.
  void fill(const DimExpr &length, int64_t padded, Stmts &result) {
    auto emit = [&](NodeId flat) {
      const NodeId inside = writer.less(flat, body.dim(length));
      const NodeId value =
          body.readIf(x, operand.type, inside, body.constant(operand.type, 0), {address(flat)});
      const NodeId key = body.select(inside, sortKey(body, value, largest), lastKey());
      return Stmts{storeStmt(keys, {flat}, key),
                   storeStmt(found, {flat}, body.cast(indexType, flat))};
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
                   storeStmt(index, {}, writer.read(found, {low})),
                   storeStmt(otherKey, {}, writer.read(keys, {high})),
                   storeStmt(otherIndex, {}, writer.read(found, {high})),
                   storeStmt(keys, {low}, body.select(swap, highKey, lowKey)),
                   storeStmt(found, {low}, body.select(swap, highIndex, lowIndex)),
                   storeStmt(keys, {high}, body.select(swap, lowKey, highKey)),
                   storeStmt(found, {high}, body.select(swap, lowIndex, highIndex))};
    };
    writer.cooperative(body.dim(pairs), emit, result);
  }

  const int64_t threads = int64_t{writer.units} * writer.lanes;
  BufferId keys = -1; // Shared
};

} // namespace

std::unique_ptr<EquationLowering> lowerTopK(LoweringParts &parts, int number) {
  if (parts.bound.has(LeafKind::Sort, number))
    return std::make_unique<TopKSort>(parts, number);
  if (parts.bound.has(LeafKind::Select, number))
    return std::make_unique<TopKTiles>(parts, number);
  return std::make_unique<TopKSelection>(parts, number);
}

} // namespace fusec::lowering
