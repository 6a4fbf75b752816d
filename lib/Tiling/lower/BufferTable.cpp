#include "Tiling/lower/BufferTable.h"

#include "Target/OnChip.h"
#include "Tiling/schedule/SharedBuffers.h"
#include "Tiling/schedule/StagedTile.h"

#include <algorithm>

namespace fusec::lowering {

namespace {

/// Finds the tensors that are parameters of the kernel as they are: those in device memory that a statement touches.
class ParamFinder {
public:
  explicit ParamFinder(const BoundSchedule &bound)
      : needed(bound.program.expr.tensors.size(), false), written(needed), bound(bound) {
    for (size_t e = 0; e < bound.program.equations.size(); ++e)
      addEquation(static_cast<int>(e));
    if (bound.scan())
      addScan(*bound.scan());
  }

  std::vector<bool> needed, written; // one a tensor

private:
  void add(TensorId tensor, bool writes) {
    if (tensor < 0)
      return;
    needed[tensor] = true;
    written[tensor] = written[tensor] || writes;
  }
  void addIfGlobal(TensorId tensor, bool writes) {
    if (bound.level(tensor) == MemLevel::Global)
      add(tensor, writes);
  }

  void addEquation(int number) {
    const Equation &e = bound.equation(number);
    const std::vector<NodeId> &reads = bound.facts(number).reads;
    for (size_t r = 0; r < reads.size(); ++r) {
      auto isPacked = [&](const Operand &o) {
        return o.level == MemLevel::Global && o.equation == number && o.read == static_cast<int>(r);
      };
      if (std::ranges::none_of(bound.schedule.operands, isPacked))
        addIfGlobal(e.body[reads[r]].index, false);
    }
    // A staged element is evaluated from the tensors themselves, with all reads inside its indices and predicate.
    for (const Operand &operand : bound.schedule.operands)
      if (operand.level == MemLevel::Shared && operand.equation == number)
        for (NodeId id : e.body.reachable({reads[operand.read]}))
          if (std::ranges::find(reads, id) != reads.end())
            addIfGlobal(e.body[id].index, false);
    for (TensorId t : e.outputs)
      addIfGlobal(t, true);
    add(e.base, false);
    for (TensorId t : e.opaqueInputs)
      add(t, false);
  }

  void addScan(const Equation &scan) {
    for (const ScanCarry &carry : scan.carries) {
      add(carry.init, false);
      add(carry.final, true);
      addIfGlobal(carry.previous, true);
    }
    for (const ScanOutput &output : scan.scanOutputs) {
      add(output.stacked, true);
      needed[output.perStep] = false; // lives in its slice of the stacked tensor
    }
    if (bound.gridScan())
      for (const ScanCarry &carry : scan.carries)
        needed[carry.next] = false; // lives in the half of the state that is written
  }

  const BoundSchedule &bound;
};

} // namespace

BufferTable::BufferTable(const BoundSchedule &bound, KernelWriter &writer)
    : accumulators(bound.program.equations.size()), staged(bound.schedule.operands.size()),
      bound(bound), writer(writer) {
  addParams();
  const std::map<TensorId, TensorId> buffers = tiling::sharedBuffers(bound);
  for (const auto &[tensor, buffer] : buffers)
    if (tensor == buffer)
      addShared(bound.program.tensor(tensor), tensor);
  for (const auto &[tensor, buffer] : buffers)
    if (const SharedTile *tile = tensor == buffer ? nullptr : shared(buffer)) {
      sharedTiles[tensor] = *tile;
      sharedTiles[tensor].producer = bound.program.producer(tensor);
    }
}

BufferId BufferTable::addParam(GirBuffer buffer, KernelParam param) {
  buffer.shape = {numElements(buffer.shape)};
  writer.out.params.push_back(param);
  return writer.addBuffer(std::move(buffer));
}

void BufferTable::addParams() {
  const ParamFinder params(bound);
  for (size_t t = 0; t < bound.program.expr.tensors.size(); ++t) {
    if (!params.needed[t])
      continue;
    const Tensor &tensor = bound.program.tensor(t);
    KernelParam param{static_cast<TensorId>(t)};
    GirBuffer buffer{.name = tensor.name, .type = tensor.type, .shape = tensor.shape};
    buffer.written = params.written[t];
    buffer.scratch = buffer.written && tensor.kind == TensorKind::Temp;
    if (bound.gridScan() && tiling::isPreviousState(*bound.scan(), param.tensor)) {
      param.copies = 2;
      buffer.shape.insert(buffer.shape.begin(), DimExpr(param.copies));
    }
    globals[param.tensor] = addParam(std::move(buffer), param);
  }
  for (size_t o = 0; o < bound.schedule.operands.size(); ++o) {
    const Operand &operand = bound.schedule.operands[o];
    if (operand.level != MemLevel::Global)
      continue;
    const TensorId tensor = bound.program.tensorOf(operand);
    packedOperands[o] = addParam({.name = operand.name,
                                  .type = bound.program.tensor(tensor).type,
                                  .shape = packedShape(bound.schedule, operand)},
                                 {tensor, OperandIndex(o)});
  }
  if (!bound.scan())
    return;
  for (const ScanOutput &output : bound.scan()->scanOutputs)
    globals[output.perStep] = globals.at(output.stacked);
  if (bound.gridScan())
    for (const ScanCarry &carry : bound.scan()->carries)
      globals[carry.next] = globals.at(carry.previous);
}

/// Sets a tile's place from the loops that its Store (of a map, its Compute) has in common with all statements that
/// read it. False, with a problem noted, if one of them is missing.
bool BufferTable::placeTile(TensorId tensor, SharedTile &tile) const {
  const std::optional<Loops> around = tiling::loopsOfEdge(bound, tensor);
  if (readersOf(bound, tensor).empty() || !around) {
    writer.problem("edge ", bound.program.tensor(tensor).name,
                   " shared has a statement that writes it and one of each reader, given ",
                   around ? "no reader" : "some without");
    return false;
  }
  tile.whole = false;
  tile.depth = around->size() - (bound.gridScan() ? 1 : 0); // the step's loop is none of a phase's
  for (AxisId a{0}; a < AxisId(bound.schedule.axes.size()); ++a)
    if (const AxisUse *use = bound.use(a, tile.producer); use && !use->reduction)
      tile.axes.push_back({a, mostOfTile(bound, a, *around)});
  if (std::ranges::any_of(tile.axes, [&](const auto &axis) {
        return axis.first != tile.axes.back().first && axis.second > 1;
      }))
    tile.axes.back().second = tiling::rowOfTile(bound.schedule, tile.axes.back().second);
  return true;
}

void BufferTable::addShared(const Tensor &tensor, TensorId id) {
  SharedTile tile;
  tile.producer = bound.program.producer(id);
  int64_t elements = 1;
  if ((bound.scan() && !bound.gridScan()) || tile.producer < 0) {
    const DimExpr total = numElements(tensor.shape);
    const std::optional<int64_t> most = bound.program.mostOf(total);
    if (!most)
      return writer.problem("edge ", tensor.name, " shared has a size with a bound, given ", total,
                            "; make it global");
    elements = *most;
  } else {
    if (!placeTile(id, tile))
      return;
    for (const auto &[axis, size] : tile.axes) {
      if (size == 0 || __builtin_mul_overflow(elements, size, &elements) || elements > kMostOnChip)
        return writer.problem("edge ", tensor.name, " shared has a tile of a size with a bound, ",
                              "given one without along ", bound.schedule.axes[axis],
                              "; tile the loops around maker and readers");
    }
  }
  tile.buffer = writer.addBuffer({.name = tensor.name + ".shared",
                                  .level = MemLevel::Shared,
                                  .type = tensor.type,
                                  .shape = {DimExpr(elements)}});
  sharedTiles[id] = std::move(tile);
}

BufferId BufferTable::global(TensorId tensor) const {
  const auto it = globals.find(tensor);
  assert(it != globals.end() && "every global tensor has a parameter before the tree is lowered");
  return it->second;
}

const SharedTile *BufferTable::shared(TensorId tensor) const {
  const auto it = sharedTiles.find(tensor);
  return it == sharedTiles.end() ? nullptr : &it->second;
}

BufferId BufferTable::memoryOf(TensorId tensor) const {
  const SharedTile *tile = shared(tensor);
  return tile ? tile->buffer : global(tensor);
}

bool BufferTable::shapeAccumulator(int equation) {
  const Loops *path = bound.loopsOf(equation);
  if (!path) {
    writer.problem("e", equation, " is computed by one statement, given 0");
    return false;
  }
  Accumulator &acc = accumulators[equation];
  acc.equation = equation;
  acc.lanesReduce = tiling::sharesReduction(bound, equation, LoopKind::Lane);
  acc.unitsReduce = tiling::sharesReduction(bound, equation, LoopKind::Unit);
  acc.lanesKeep = tiling::lanesKeep(bound, equation);
  const Equation &e = bound.equation(equation);
  const bool folds = bound.facts(equation).reduces() && !isTupleMonoid(e.monoid) &&
                     bound.has(LeafKind::Combine, equation);
  std::map<AxisId, int> ordinals;
  std::vector<std::pair<std::pair<AxisId, int>, int64_t>> dims;
  for (size_t i = 0; i < path->size(); ++i) {
    const LoopNode &loop = *(*path)[i];
    // Each lane and each unit has a value of its own.
    acc.perLane = acc.perLane || loop.kind == LoopKind::Lane ||
                  (loop.kind == LoopKind::Unit && loop.axis != kStepAxis);
    if (loop.axis == kStepAxis)
      continue;
    const AxisUse *use = bound.use(loop.axis, equation);
    const bool isReduced = use && use->reduction;
    if (loop.kind != LoopKind::Unroll || (isReduced && !folds))
      continue;
    const int64_t tile = constantTile(bound, loop.axis, std::span(*path).first(i));
    if (tile == 0) {
      writer.problem(loop, " has a constant trip, given ", bound.trip(loop),
                     "; tile a loop around it");
      return false;
    }
    const int64_t trip = (tile + loop.step - 1) / loop.step;
    if (!isReduced) {
      dims.push_back({{loop.axis, ordinals[loop.axis]++}, trip});
    } else if (acc.partsAxis < 0 && !tiling::isInsideLanes(*path, i)) {
      acc.partsAxis = loop.axis;
      acc.parts = trip;
    }
  }
  std::ranges::sort(dims);
  for (const auto &[key, trip] : dims) {
    acc.dims.push_back(key);
    acc.shape.push_back(DimExpr(trip));
  }
  if (acc.parts > 1)
    acc.shape.push_back(DimExpr(acc.parts));
  return true;
}

BufferId BufferTable::addRegister(const Accumulator &accumulator, const std::string &suffix,
                                  DType type) {
  const TensorId result = bound.equation(accumulator.equation).outputs[0];
  return writer.addBuffer({.name = bound.program.tensor(result).name + suffix,
                           .level = MemLevel::Register,
                           .type = type,
                           .shape = accumulator.shape,
                           .perLane = accumulator.perLane});
}

} // namespace fusec::lowering
