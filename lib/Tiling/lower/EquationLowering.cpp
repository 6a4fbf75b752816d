#include "Tiling/lower/EquationLowering.h"

namespace fusec::lowering {

EquationLowering::EquationLowering(LoweringParts &parts, int number)
    : bound(parts.bound), writer(parts.writer), buffers(parts.buffers), loops(parts.loops),
      steps(parts.steps), reads(parts.reads), body(parts.writer.body), number(number),
      e(bound.equation(number)), acc(buffers.accumulators[static_cast<size_t>(number)]) {}

void EquationLowering::refuse(const char *statement) {
  writer.problem("e", number, " has the statements of its kind of equation, given ", statement,
                 "; leave it out");
}

void EquationLowering::init(Stmts &) { refuse("init"); }
void EquationLowering::compute(int, Stmts &) { refuse("compute"); }
void EquationLowering::correct(int, Stmts &) { refuse("correct"); }
void EquationLowering::combine(Stmts &) { refuse("combine"); }
void EquationLowering::sort(Stmts &) { refuse("sort"); }
void EquationLowering::select(Stmts &) { refuse("select"); }

void EquationLowering::guarded(Bounds bounds, Stmts statements, Stmts &result) {
  writer.guarded(loops.inBounds(number, bounds), std::move(statements), result);
}

void EquationLowering::storeResult(size_t output, NodeId value, Stmts &result) {
  const TensorId tensor = e.outputs[output];
  const Tensor &info = bound.program.tensor(tensor);
  value = body.cast(info.type, value);
  if (const SharedTile *tile = buffers.shared(tensor)) {
    std::vector<NodeId> own;
    for (size_t d = 0; !tile->whole && d < info.shape.size(); ++d)
      own.push_back(loops.equationAxis(number, static_cast<int>(d)));
    const NodeId index =
        tile->whole ? loops.outputIndex(number, output) : loops.tileIndex(*tile, number, own);
    result.push_back(storeStmt(tile->buffer, {index}, value));
  }
  if (bound.level(tensor) != MemLevel::Global && !tiling::outlivesStep(bound, tensor))
    return;
  Stmts stores;
  steps.store(tensor, loops.outputIndex(number, output), value, stores);
  const NodeId stored = e.scatterPredicate; // of a cache: rows that are in place are left
  writer.guarded(stored == kNoNode ? kNoNode : this->value(stored), std::move(stores), result);
}

void EquationLowering::store(Stmts &result) {
  Stmts statements;
  for (size_t o = 0; o < acc.outputs.size() && o < e.outputs.size(); ++o)
    if (bound.level(e.outputs[o]) != MemLevel::Register ||
        tiling::outlivesStep(bound, e.outputs[o]))
      storeResult(o, reads.readRegister(acc, acc.outputs[o]), statements);
  guarded(Bounds::Spatial, std::move(statements), result);
}

bool mergesUnits(const Accumulator &acc, const KernelWriter &writer) {
  return acc.unitsReduce && writer.units > 1;
}

BufferId addPartials(const Accumulator &acc, const std::string &name, DType type,
                     KernelWriter &writer) {
  Shape shape = {DimExpr(writer.units)};
  if (acc.lanesKeep)
    shape.push_back(DimExpr(writer.lanes));
  return writer.addBuffer({.name = name + ".units",
                           .level = MemLevel::Shared,
                           .type = type,
                           .shape = std::move(shape)});
}

Stmts atPartials(const Accumulator &acc, NodeId unit, KernelWriter &writer,
                 const std::function<Stmts(const std::vector<NodeId> &)> &emit) {
  if (!acc.lanesKeep)
    return emit({unit});
  Stmt lanes = writer.laneLoop({});
  lanes.body = emit({unit, writer.body.axis(lanes.var)});
  return {std::move(lanes)};
}

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
/// where the lanes keep several. In Unroll loops over spatial axes those of each accumulator do so in turn.
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

/// A map: each point is computed and stored where it is read, or waits in a register for its readers.
class MapLowering final : public EquationLowering {
public:
  MapLowering(LoweringParts &parts, int number) : EquationLowering(parts, number) {
    const TensorId result = e.outputs[0];
    if ((bound.level(result) == MemLevel::Register || isStoredTwice()) &&
        buffers.shapeAccumulator(number))
      acc.outputs.push_back(buffers.addRegister(acc, ".acc", bound.program.tensor(result).type));
  }

  void compute(int, Stmts &result) override {
    Stmts statements;
    for (size_t o = 0; o < e.outputs.size(); ++o) {
      const DType type = bound.program.tensor(e.outputs[o]).type;
      NodeId point = body.cast(type, value(e.results[o]));
      if (o < acc.outputs.size()) {
        statements.push_back(storeStmt(acc.outputs[o], loops.registerIndex(acc), point));
        point = reads.readRegister(acc, acc.outputs[o]);
      }
      storeResult(o, point, statements);
    }
    guarded(Bounds::All, std::move(statements), result);
  }

private:
  /// The value goes to several places, and is computed once.
  bool isStoredTwice() const {
    const TensorId t = e.outputs[0];
    return tiling::outlivesStep(bound, t) &&
           (bound.level(t) == MemLevel::Shared ||
            (bound.gridScan() && tiling::isStacked(*bound.scan(), t) &&
             tiling::isNextState(*bound.scan(), t)));
  }
};

/// A scatter: each point updates the element that its indices name, if there is one.
class ScatterLowering final : public EquationLowering {
public:
  using EquationLowering::EquationLowering;

  void compute(int, Stmts &result) override {
    const Shape &shape = bound.program.tensor(e.outputs[0]).shape;
    NodeId exists = e.scatterPredicate == kNoNode ? kNoNode : value(e.scatterPredicate);
    std::vector<NodeId> indices;
    for (NodeId index : e.scatterIndex)
      indices.push_back(value(index));
    for (size_t d = 0; d < indices.size(); ++d) {
      exists = body.logicalAnd(exists, writer.atMost(body.index(0), indices[d]));
      exists = body.logicalAnd(exists, writer.less(indices[d], body.dim(shape[d])));
    }
    Stmt update = storeStmt(buffers.global(e.outputs[0]), {writer.flatIndex(shape, indices)},
                            value(e.results[0]));
    constexpr Monoid kMonoids[] = {Monoid::Sum, Monoid::Sum, Monoid::Prod, Monoid::Min,
                                   Monoid::Max};
    if (e.combiner != Combiner::Assign) {
      update.kind = StmtKind::Accumulate;
      update.monoid = kMonoids[static_cast<int>(e.combiner)];
    }
    if (exists != kNoNode && body[exists].op == ScalarOp::Const && body[exists].imm != 0)
      exists = kNoNode;
    Stmts statements;
    writer.guarded(exists, {std::move(update)}, statements);
    guarded(Bounds::All, std::move(statements), result);
  }
};

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

std::unique_ptr<EquationLowering> lowerEquation(LoweringParts &parts, int number) {
  using tiling::EquationForm;
  switch (parts.bound.facts(number).form) {
  case EquationForm::Scatter: return std::make_unique<ScatterLowering>(parts, number);
  case EquationForm::TopK: return lowerTopK(parts, number);
  case EquationForm::Reduction: return std::make_unique<ReductionLowering>(parts, number);
  case EquationForm::Cascade: return lowerCascade(parts, number);
  case EquationForm::Map:
  case EquationForm::Scan: break; // none of the equations of a scan's step is one
  }
  return std::make_unique<MapLowering>(parts, number);
}

} // namespace fusec::lowering
