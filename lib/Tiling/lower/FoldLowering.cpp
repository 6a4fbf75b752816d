#include "Tiling/lower/EquationLowering.h"

namespace fusec::lowering {

/// Folds the parts that an Unroll loop keeps into the first one, in each lane.
void FoldLowering::foldParts(Stmts &result) {
  Stmts folds;
  for (int64_t part = 1; part < acc.parts; ++part)
    folds.push_back(accumulateStmt(folded, loops.registerIndex(acc), monoid,
                                   writer.read(folded, loops.partIndex(acc, body.index(part)))));
  if (!folds.empty())
    result.push_back(writer.laneLoop(std::move(folds)));
}

/// Partial results of the units meet in shared memory; then every lane folds them in the order of the units, its own
/// where the lanes keep several.
void FoldLowering::combine(Stmts &result) {
  const std::vector<NodeId> indices = loops.registerIndex(acc);
  foldParts(result);
  if (acc.lanesReduce) {
    Stmt reduce = accumulateStmt(folded, indices, monoid, kNoNode);
    reduce.kind = StmtKind::LaneReduce;
    reduce.indexBuffer = index;
    result.push_back(std::move(reduce));
  }
  if (!mergesUnits(acc, writer))
    return;
  auto addPartialsOf = [&](BufferId buffer) {
    const GirBuffer &kept = writer.kernel.buffers[buffer];
    return addPartials(acc, kept.name, kept.type, writer);
  };
  const BufferId values = addPartialsOf(folded);
  const BufferId indexes = index >= 0 ? addPartialsOf(index) : -1;
  Stmt unit = writer.loop(LoopKind::Unit, body.index(writer.units), "unit");
  unit.body = atPartials(acc, body.axis(unit.var), writer, [&](const std::vector<NodeId> &place) {
    Stmts stores = {storeStmt(values, place, writer.read(folded, indices))};
    if (indexes >= 0)
      stores.push_back(storeStmt(indexes, place, writer.read(index, indices)));
    return stores;
  });
  result.push_back(std::move(unit));
  reset(result);
  Stmt fold = writer.loop(LoopKind::Seq, body.index(writer.units), "fold");
  fold.body = atPartials(acc, body.axis(fold.var), writer, [&](const std::vector<NodeId> &place) {
    Stmt merge = accumulateStmt(folded, indices, monoid, writer.read(values, place));
    if (indexes >= 0) {
      merge.indexBuffer = index;
      merge.indexValue = writer.read(indexes, place);
    }
    return Stmts{std::move(merge)};
  });
  result.push_back(std::move(fold));
}

namespace {

/// A reduction with one monoid.
class ReductionLowering final : public FoldLowering {
public:
  ReductionLowering(LoweringParts &parts, int number)
      : FoldLowering(parts, number, parts.bound.equation(number).monoid) {
    if (!buffers.shapeAccumulator(number))
      return;
    acc.outputs.push_back(folded = buffers.addRegister(acc, ".acc", e.accumulateType));
    if (isArgMonoid(monoid))
      acc.outputs.push_back(index = buffers.addRegister(acc, ".index", DType::I64));
  }

  void init(Stmts &result) override { reset(result); }

  void compute(int, Stmts &result) override {
    loops.clampSpatial = true;
    Stmt fold = accumulateStmt(folded, loops.registerIndex(acc), monoid, kNoNode);
    fold.value = body.cast(e.accumulateType, value(e.results[0]));
    if (index >= 0) {
      fold.indexBuffer = index;
      fold.indexValue = value(e.results[1]);
    }
    loops.clampSpatial = false;
    guarded(Bounds::Reduced, {std::move(fold)}, result);
  }

private:
  void reset(Stmts &result) override {
    for (int64_t part = 0; part < acc.parts; ++part) {
      const std::vector<NodeId> indices = loops.partIndex(acc, body.index(part));
      result.push_back(storeStmt(folded, indices, identityOf(body, monoid, e.accumulateType)));
      if (index >= 0)
        result.push_back(storeStmt(index, indices, body.index(0)));
    }
  }
};

} // namespace

std::unique_ptr<EquationLowering> lowerReduction(LoweringParts &parts, int number) {
  return std::make_unique<ReductionLowering>(parts, number);
}

} // namespace fusec::lowering
