// Finds the step of one loop that each equation's steps fall into. A scan's step t, and the point t of the axis by
// which a map or reduction reads what a scan stacks, are steps of the same time. What is read at t + d, made by
//   a map or reduction:   both fall into one step of the loop:  shift(reader) = shift(maker) + d
//   a scan, for another:  the state that it had one step before: shift(reader) = shift(maker) + d + 1
//   a scan, for no other: the value itself:                      shift(reader) = shift(maker) + d
// All reads must agree on the shifts. With layers of recurrence, d = 0, layer l has the shift l: the cells of one step
// need only what the step before has made (Souffle, section 8.4).
#include "Expr/Wavefront.h"
#include "Expr/transforms/Walk.h"

#include <algorithm>

namespace fusec {

std::optional<int64_t> offsetFromLeaf(const Body &body, NodeId index, ScalarOp leaf, int axis) {
  const Scalar &s = body[index];
  if (s.op == leaf && (leaf == ScalarOp::Step || s.index == axis))
    return 0;
  if (s.op != ScalarOp::Add && s.op != ScalarOp::Sub)
    return std::nullopt;
  for (size_t a = 0; a < 2; ++a) {
    const Scalar &other = body[s.args[1 - a]];
    if (other.op != ScalarOp::Const || (s.op == ScalarOp::Sub && a == 1))
      continue;
    if (std::optional<int64_t> inner = offsetFromLeaf(body, s.args[a], leaf, axis))
      return *inner + (s.op == ScalarOp::Sub ? -other.imm : other.imm);
  }
  return std::nullopt;
}

const ScanCarry *stateBehind(const Equation &scan, TensorId stacked) {
  for (const ScanOutput &output : scan.scanOutputs)
    for (const ScanCarry &carry : scan.carries)
      if (output.stacked == stacked && output.first < 0 && carry.next == output.perStep)
        return &carry;
  return nullptr;
}

DimExpr WavefrontShifts::cells(const std::vector<const Equation *> &equations) const {
  DimExpr sum(0);
  for (size_t i = 0; i < equations.size(); ++i)
    if (equations[i]->kind == EquationKind::Scan)
      sum = sum + parts[i].steps;
  return sum;
}

namespace {

class Shifts {
public:
  Shifts(const ExprProgram &program, const std::vector<const Equation *> &equations,
         const std::function<bool(TensorId)> &isOutside)
      : program(program), equations(equations), isOutside(isOutside) {
    out.parts.resize(equations.size());
  }

  WavefrontShifts run() {
    checkKinds();
    if (out.why.empty())
      findTimes();
    if (out.why.empty())
      findDistances();
    if (out.why.empty())
      placeAll();
    return std::move(out);
  }

private:
  bool isScan(size_t i) const { return equations[i]->kind == EquationKind::Scan; }
  void refuse(const std::string &reason) {
    if (out.why.empty())
      out.why = reason;
  }
  std::string nameOf(TensorId t) const { return "%" + program.tensors[t].name; }

  void checkKinds() {
    bool any = false;
    for (size_t i = 0; i < equations.size(); ++i) {
      const Equation &e = *equations[i];
      any = any || isScan(i);
      if (!isScan(i) &&
          (e.kind == EquationKind::Opaque || e.kind == EquationKind::Scatter || !e.states.empty()))
        refuse(e.name + " is neither a scan nor a map or reduction");
      if (e.reversed)
        refuse(e.name + " runs backwards");
      for (TensorId t : e.outputs)
        makers[t] = i;
      for (const ScanCarry &carry : e.carries)
        if (makers.count(carry.init) != 0)
          refuse(e.name + " begins with what " + equations[makers.at(carry.init)]->name + " makes");
    }
    if (!any || equations.size() < 2)
      refuse("a wavefront takes a scan and others");
  }

  /// Every read of a tensor that these equations make, with the index that runs with the reader's steps.
  template <typename F> void forEachRead(size_t i, F visit) const {
    auto ofBody = [&](const Equation &e, ScalarOp leaf, int axis) {
      for (NodeId id : e.body.reachable(bodyRoots(e)))
        if (isRead(e.body[id]) && makers.count(e.body[id].index) != 0)
          visit(e, id, leaf, axis);
    };
    if (!isScan(i))
      return ofBody(*equations[i], ScalarOp::Axis, out.parts[i].timeAxis);
    for (const Equation &inner : equations[i]->scanBody)
      ofBody(inner, ScalarOp::Step, 0);
  }

  static NodeId indexOf(const Scalar &read, int dimension) {
    return read.args[static_cast<size_t>(dimension) + (read.op == ScalarOp::ReadIf ? 2 : 0)];
  }

  /// Dimensions and axes that run over the steps: what a scan stacks has them in front, and reads carry them on.
  void findTimes() {
    for (const Equation *e : equations)
      for (const ScanOutput &output : e->scanOutputs)
        out.timeDims[output.stacked] = 0;
    for (bool changed = true; changed && out.why.empty();) {
      changed = false;
      for (size_t i = 0; i < equations.size(); ++i) {
        if (!isScan(i) && out.parts[i].timeAxis < 0)
          changed = findAxis(i) || changed;
        if (isScan(i) || out.parts[i].timeAxis >= 0)
          changed = noteDimensions(i) || changed;
      }
    }
    for (size_t i = 0; i < equations.size(); ++i) {
      const Equation &e = *equations[i];
      if (!isScan(i) && out.parts[i].timeAxis < 0)
        return refuse(e.name + " has no axis that runs with the steps of a scan");
      out.parts[i].steps = isScan(i) ? e.steps : e.axes[out.parts[i].timeAxis].extent;
      if (out.parts[i].steps.range(program.symbols).min < 1)
        return refuse(e.name + " may have no steps");
    }
  }

  bool findAxis(size_t i) {
    const Equation &e = *equations[i];
    int &axis = out.parts[i].timeAxis;
    for (TensorId t : e.outputs)
      if (auto it = out.timeDims.find(t); it != out.timeDims.end())
        axis = it->second;
    forEachRead(i, [&](const Equation &, NodeId id, ScalarOp, int) {
      const Scalar &read = e.body[id];
      auto dimension = out.timeDims.find(read.index);
      for (int a = 0;
           axis < 0 && dimension != out.timeDims.end() && a < static_cast<int>(e.axes.size()); ++a)
        if (offsetFromLeaf(e.body, indexOf(read, dimension->second), ScalarOp::Axis, a))
          axis = a;
    });
    if (axis < e.numSpatial)
      return axis >= 0;
    // No axis of its outputs: readers must not look for it among their dimensions.
    axis = -1;
    refuse(e.name + " reduces over the steps");
    return false;
  }

  bool noteDimensions(size_t i) {
    bool changed = false;
    if (!isScan(i))
      for (TensorId t : equations[i]->outputs)
        changed = out.timeDims.emplace(t, out.parts[i].timeAxis).second || changed;
    forEachRead(i, [&](const Equation &e, NodeId id, ScalarOp leaf, int axis) {
      const Scalar &read = e.body[id];
      if (isScan(makers.at(read.index)))
        return;
      const auto rank = static_cast<int>(program.tensors[read.index].shape.size());
      for (int d = 0; d < rank; ++d)
        if (out.timeDims.count(read.index) == 0 &&
            offsetFromLeaf(e.body, indexOf(read, d), leaf, axis))
          changed = out.timeDims.emplace(read.index, d).second || changed;
    });
    return changed;
  }

  void findDistances() {
    for (size_t i = equations.size(); i-- > 0;) {
      bool &feeds = out.parts[i].feedsScan;
      feeds = feeds || isScan(i);
      forEachRead(i, [&](const Equation &e, NodeId id, ScalarOp, int) {
        bool &maker = out.parts[makers.at(e.body[id].index)].feedsScan;
        maker = maker || feeds;
      });
    }
    for (size_t i = 0; i < equations.size(); ++i) {
      const std::string &reader = equations[i]->name;
      for (TensorId t : equations[i]->outputs)
        if (isOutside(t) && out.timeDims.count(t) != 0 && out.timeDims.at(t) != 0)
          refuse(nameOf(t) + " has the steps behind another axis, and others need it");
      forEachRead(i, [&](const Equation &e, NodeId id, ScalarOp leaf, int axis) {
        const Scalar &read = e.body[id];
        const size_t maker = makers.at(read.index);
        auto dimension = out.timeDims.find(read.index);
        if (dimension == out.timeDims.end())
          return refuse(reader + " needs " + nameOf(read.index) + " of the last step");
        std::optional<int64_t> distance =
            offsetFromLeaf(e.body, indexOf(read, dimension->second), leaf, axis);
        if (!distance)
          return refuse(reader + " reads " + nameOf(read.index) +
                        " at steps that lie at no constant distance");
        const bool viaState = isScan(maker) && out.parts[i].feedsScan;
        if (viaState && !stateBehind(*equations[maker], read.index))
          return refuse(nameOf(read.index) + " is no state of " + equations[maker]->name);
        distances.push_back({i, maker, *distance + viaState});
      });
      dataIndices(i);
    }
  }

  /// Before its first step and after its last one an equation runs on what lies there; an index from data might then
  /// point anywhere.
  void dataIndices(size_t i) {
    auto ofBody = [&](const Equation &e) {
      std::vector<NodeId> indices;
      for (NodeId id : e.body.reachable(bodyRoots(e)))
        if (const Scalar &s = e.body[id]; isRead(s))
          indices.insert(indices.end(), s.args.begin() + (s.op == ScalarOp::ReadIf ? 2 : 0),
                         s.args.end());
      for (NodeId id : e.body.reachable(indices))
        if (isRead(e.body[id]))
          refuse(e.name + " reads where data says");
      if (e.kind == EquationKind::Scatter || !e.states.empty())
        refuse(e.name + " is neither a map nor a reduction");
    };
    if (!isScan(i))
      return ofBody(*equations[i]);
    for (const Equation &inner : equations[i]->scanBody)
      ofBody(inner);
  }

  void placeAll() {
    std::vector<bool> placed(equations.size());
    for (size_t seed = 0; seed < equations.size(); ++seed) {
      if (placed[seed])
        continue;
      std::vector<size_t> component = {seed};
      placed[seed] = true;
      for (size_t next = 0; next < component.size(); ++next)
        for (const Distance &d : distances) {
          const size_t at = component[next];
          if (d.reader != at && d.maker != at)
            continue;
          const size_t other = d.reader == at ? d.maker : d.reader;
          const int64_t shift = out.parts[at].shift + (d.reader == at ? -d.steps : d.steps);
          if (!placed[other]) {
            placed[other] = true;
            out.parts[other].shift = shift;
            component.push_back(other);
          } else if (out.parts[other].shift != shift) {
            return refuse(equations[d.reader]->name + " needs steps of " +
                          equations[d.maker]->name + " at different distances");
          }
        }
      int64_t least = INT64_MAX;
      for (size_t i : component)
        least = std::min(least, out.parts[i].shift);
      for (size_t i : component)
        out.parts[i].shift -= least;
    }
    for (const WavefrontShifts::Part &part : out.parts) {
      const DimExpr end = part.steps + DimExpr(part.shift);
      if ((end - out.steps).range(program.symbols).min >= 0)
        out.steps = end;
      else if ((out.steps - end).range(program.symbols).min < 0)
        return refuse("it is not known which of its parts ends last");
    }
  }

  struct Distance {
    size_t reader, maker;
    int64_t steps; // shift(reader) - shift(maker)
  };

  const ExprProgram &program;
  const std::vector<const Equation *> &equations;
  const std::function<bool(TensorId)> &isOutside;
  std::map<TensorId, size_t> makers;
  std::vector<Distance> distances;
  WavefrontShifts out;
};

} // namespace

WavefrontShifts wavefrontShifts(const ExprProgram &program,
                                const std::vector<const Equation *> &equations,
                                const std::function<bool(TensorId)> &isOutside) {
  return Shifts(program, equations, isOutside).run();
}

} // namespace fusec
