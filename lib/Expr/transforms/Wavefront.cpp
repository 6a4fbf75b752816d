// Scans that follow each other become one, each a step behind the one whose states it reads, so that the cells of one
// step need each other no more (Souffle, section 8.4). Two running sums of which the second adds up the first:
//
//   scan %s [t:100]:  %s.next = %s.prev + %x[t],        stacked in %s
//   scan %r [t:100]:  %r.next = %r.prev + %s[t],        stacked in %r
//
// become
//
//   scan [w:101]:  %s.next = select(w < 100, %s.prev + %x[min(w, 99)], %s.prev)
//                  %r.next = select(1 <= w, %r.prev + %s.prev, %r.prev)
//                  %r.step = %r.next,                   stacked in %r from step 1 on
//
// with shift(%s) = 0, shift(%r) = 1 (WavefrontShifts.cpp). Maps and reductions between the scans, such as the next
// layer's projection of its input, become equations of a step; maps that only maps read are written into them. Outside
// of its own steps a part keeps its states, and computes what nobody looks at from its first or last step's input:
// every read stays inside its tensor. Every cell computes what it did before, in the same order: every bit stays.
//
// All equations of the pattern take part. Not handled: what WavefrontShifts refuses, and says why.
#include "Expr/Wavefront.h"

#include "Expr/Alternatives.h"
#include "Expr/transforms/Inline.h"
#include "Expr/transforms/Walk.h"
#include "Support/UniqueNames.h"

#include <algorithm>

namespace fusec {

namespace {

class Skew {
public:
  Skew(const ExprProgram &pattern, const std::vector<const Equation *> &equations,
       const WavefrontShifts &shifts)
      : pattern(pattern), equations(equations), shifts(shifts), program(pattern) {}

  ExprProgram run() {
    scan.kind = EquationKind::Scan;
    scan.steps = shifts.steps;
    scan.body.symbolTable = program.symbols;
    for (size_t i = 0; i < equations.size(); ++i)
      for (TensorId t : equations[i]->outputs)
        makers[t] = i;
    UniqueNames nodes;
    for (size_t i = 0; i < equations.size(); ++i) {
      nodes.add(equations[i]->onnxNodes);
      equations[i]->kind == EquationKind::Scan ? addScan(i) : addStep(i);
      if (equations[i]->kind == EquationKind::Scan)
        scan.name = equations[i]->name;
    }
    scan.onnxNodes = nodes.names();
    writeMapsIntoMaps();
    for (const ScanCarry &carry : scan.carries)
      if (carry.final >= 0)
        scan.outputs.push_back(carry.final);
    for (const ScanOutput &output : scan.scanOutputs)
      scan.outputs.push_back(output.stacked);
    program.items.clear();
    program.items.push_back({std::move(scan)});
    dropUnneeded(program);
    return std::move(program);
  }

private:
  const WavefrontShifts::Part &part(size_t i) const { return shifts.parts[i]; }
  bool isOutside(TensorId t) const { return pattern.tensors[t].kind != TensorKind::Temp; }
  bool startsLater(size_t i) const { return part(i).shift > 0; }
  bool endsEarlier(size_t i) const {
    return part(i).steps + DimExpr(part(i).shift) != shifts.steps;
  }

  /// The part's own step; outside of its steps the first or last one.
  NodeId ownStep(Body &body, size_t i) const {
    NodeId step = body.step();
    if (startsLater(i))
      step = body.binary(ScalarOp::Sub, step, body.index(part(i).shift));
    if (endsEarlier(i))
      step = body.binary(ScalarOp::Min, step, body.dim(part(i).steps - DimExpr(1)));
    return startsLater(i) ? body.binary(ScalarOp::Max, step, body.index(0)) : step;
  }

  /// True in the part's own steps; kNoNode: in all.
  NodeId active(Body &body, size_t i) const {
    NodeId begun = kNoNode, left = kNoNode;
    if (startsLater(i))
      begun = body.binary(ScalarOp::Le, body.index(part(i).shift), body.step());
    if (endsEarlier(i))
      left =
          body.binary(ScalarOp::Lt, body.step(), body.dim(part(i).steps + DimExpr(part(i).shift)));
    return body.logicalAnd(begun, left);
  }

  /// What holds, in this step, the value that the part reads of a tensor that the equations make.
  TensorId valueOfStep(size_t reader, TensorId t) const {
    const size_t maker = makers.at(t);
    if (equations[maker]->kind != EquationKind::Scan)
      return stepTensors.at(t);
    if (part(reader).feedsScan)
      return stateBehind(*equations[maker], t)->previous;
    for (const ScanOutput &output : equations[maker]->scanOutputs)
      if (output.stacked == t)
        return output.perStep;
    assert(false && "a final value has no steps");
    return -1;
  }

  /// The equation's body as one of the loop, with reads of what the equations make taken from the step.
  void moveIntoLoop(Equation &e, size_t i, int timeAxis) {
    rebuild(e, program.symbols, &shifts.steps, [&](Body &body, const Scalar &s, NodeId) -> NodeId {
      if (s.op == ScalarOp::Step || (s.op == ScalarOp::Axis && s.index == timeAxis))
        return ownStep(body, i);
      if (s.op == ScalarOp::Axis)
        return timeAxis >= 0 && s.index > timeAxis ? body.axis(s.index - 1) : kNoNode;
      if (!isRead(s) || makers.count(s.index) == 0)
        return kNoNode;
      const size_t front = s.op == ScalarOp::ReadIf ? 2 : 0;
      std::vector<NodeId> indices(s.args.begin() + static_cast<std::ptrdiff_t>(front),
                                  s.args.end());
      indices.erase(indices.begin() + shifts.timeDims.at(s.index));
      const TensorId value = valueOfStep(i, s.index);
      return front != 0 ? body.readIf(value, s.type, s.args[0], s.args[1], indices)
                        : body.read(value, s.type, indices);
    });
  }

  TensorId addTensor(TensorId like, const std::string &suffix, int without = -1) {
    Tensor tensor = program.tensors[like];
    do
      tensor.name += suffix;
    while (std::any_of(program.tensors.begin(), program.tensors.end(),
                       [&](const Tensor &t) { return t.name == tensor.name; }));
    tensor.kind = TensorKind::Temp;
    if (without >= 0)
      tensor.shape.erase(tensor.shape.begin() + without);
    return program.addTensor(std::move(tensor));
  }

  /// A map over all elements of `to`; the caller gives it a result.
  Equation mapOf(TensorId to, size_t i) const {
    Equation map;
    map.name = program.tensors[to].name;
    map.onnxNodes = equations[i]->onnxNodes;
    map.outputs = {to};
    for (size_t d = 0; d < program.tensors[to].shape.size(); ++d)
      map.axes.push_back({"i" + std::to_string(d), program.tensors[to].shape[d]});
    map.numSpatial = static_cast<int>(map.axes.size());
    setRanges(map, program.symbols, &shifts.steps);
    return map;
  }

  /// As the layers' own equations read it, so that both are one read.
  NodeId readOwn(Equation &map, TensorId t) const {
    std::vector<NodeId> at;
    for (int d = 0; d < map.numSpatial; ++d)
      at.push_back(map.axes[d].extent.isConst(1) ? map.body.index(0) : map.body.axis(d));
    return map.body.read(t, program.tensors[t].type, at);
  }

  void stack(TensorId value, TensorId stacked, size_t i) {
    const TensorId step = addTensor(value, ".step");
    Equation map = mapOf(step, i);
    map.results = {readOwn(map, value)};
    compact(map);
    scan.scanBody.push_back(std::move(map));
    scan.scanOutputs.push_back({step, stacked, part(i).shift});
  }

  void addStep(size_t i) {
    Equation e = *equations[i];
    const int axis = part(i).timeAxis;
    e.axes.erase(e.axes.begin() + axis);
    --e.numSpatial;
    for (TensorId &t : e.outputs)
      t = stepTensors[t] = addTensor(t, ".step", axis);
    moveIntoLoop(e, i, axis);
    scan.scanBody.push_back(std::move(e));
    for (TensorId t : equations[i]->outputs)
      if (isOutside(t)) {
        if (std::none_of(equations.begin(), equations.end(), [&](const Equation *reader) {
              return reads(*reader, t) ||
                     std::any_of(reader->scanBody.begin(), reader->scanBody.end(),
                                 [&](const Equation &inner) { return reads(inner, t); });
            }))
          scan.scanOutputs.push_back({stepTensors.at(t), t, part(i).shift});
        else
          stack(stepTensors.at(t), t, i);
      }
  }

  void addScan(size_t i) {
    const size_t first = scan.scanBody.size();
    for (Equation e : equations[i]->scanBody) {
      moveIntoLoop(e, i, -1);
      scan.scanBody.push_back(std::move(e));
    }
    for (const ScanOutput &output : equations[i]->scanOutputs)
      if (isOutside(output.stacked))
        stack(output.perStep, output.stacked, i);
    for (ScanCarry carry : equations[i]->carries) {
      carry.next = held(carry, i, first);
      scan.carries.push_back(carry);
    }
  }

  /// The carry's next value, which outside of the part's own steps is the one before.
  TensorId held(const ScanCarry &carry, size_t i, size_t first) {
    if (!startsLater(i) && !endsEarlier(i))
      return carry.next;
    const bool alone = std::count_if(equations[i]->carries.begin(), equations[i]->carries.end(),
                                     [&](const ScanCarry &c) { return c.next == carry.next; }) == 1;
    for (size_t b = first; alone && b < scan.scanBody.size(); ++b)
      if (Equation &e = scan.scanBody[b];
          e.kind == EquationKind::Map && e.outputs == std::vector<TensorId>{carry.next}) {
        e.results = {e.body.select(active(e.body, i), e.results[0], readOwn(e, carry.previous))};
        compact(e);
        return carry.next;
      }
    const TensorId kept = addTensor(carry.previous, ".held");
    Equation map = mapOf(kept, i);
    map.results = {map.body.select(active(map.body, i), readOwn(map, carry.next),
                                   readOwn(map, carry.previous))};
    compact(map);
    scan.scanBody.push_back(std::move(map));
    return kept;
  }

  /// Maps that stood between the scans and that only maps read.
  void writeMapsIntoMaps() {
    for (size_t m = 0; m < scan.scanBody.size();) {
      const Equation map = scan.scanBody[m];
      if (!standsAlone(map) || !writeInto(map)) {
        ++m;
        continue;
      }
      scan.scanBody.erase(scan.scanBody.begin() + static_cast<std::ptrdiff_t>(m));
    }
  }

  bool standsAlone(const Equation &map) const {
    const bool fromBetween =
        std::any_of(stepTensors.begin(), stepTensors.end(), [&](const auto &made) {
          return map.outputs == std::vector<TensorId>{made.second};
        });
    const bool isStacked =
        std::any_of(scan.scanOutputs.begin(), scan.scanOutputs.end(),
                    [&](const ScanOutput &o) { return o.perStep == map.outputs[0]; });
    return map.kind == EquationKind::Map && fromBetween && !isStacked;
  }

  static bool reads(const Equation &e, TensorId t) {
    const std::vector<NodeId> nodes = e.body.reachable(bodyRoots(e));
    return std::any_of(nodes.begin(), nodes.end(),
                       [&](NodeId id) { return isRead(e.body[id]) && e.body[id].index == t; });
  }

  bool writeInto(const Equation &map) {
    std::vector<Equation> written = scan.scanBody;
    for (Equation &e : written) {
      if (!reads(e, map.outputs[0]))
        continue;
      if (e.kind != EquationKind::Map)
        return false;
      rebuild(e, program.symbols, &shifts.steps,
              [&](Body &body, const Scalar &s, NodeId) -> NodeId {
                return isRead(s) && s.index == map.outputs[0] ? inlineMap(body, map, s) : kNoNode;
              });
      if (e.body.nodes.size() > kMaxBodyNodes)
        return false;
    }
    scan.scanBody = std::move(written);
    return true;
  }

  const ExprProgram &pattern;
  const std::vector<const Equation *> &equations;
  const WavefrontShifts &shifts;
  ExprProgram program;
  Equation scan;
  std::map<TensorId, size_t> makers;
  std::map<TensorId, TensorId> stepTensors; // of maps and reductions: one step's part
};

} // namespace

std::optional<ExprProgram> wavefront(const ExprProgram &pattern, int64_t) {
  std::vector<const Equation *> equations;
  for (const Item &item : pattern.items)
    equations.push_back(&std::get<Equation>(item.value));
  const WavefrontShifts shifts = wavefrontShifts(
      pattern, equations, [&](TensorId t) { return pattern.tensors[t].kind != TensorKind::Temp; });
  if (!shifts.why.empty())
    return std::nullopt;
  return Skew(pattern, equations, shifts).run();
}

} // namespace fusec
