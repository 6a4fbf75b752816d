#include "Tiling/space/Operands.h"

#include "Expr/Padding.h"
#include "Expr/transforms/Profile.h"
#include "Expr/transforms/Walk.h"
#include "Support/OptValues.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace fusec::tiling {

bool SpaceOperand::movesAlong(int loop) const { return std::ranges::binary_search(loops, loop); }

bool SpaceOperand::isCutBy(int loop) const { return std::ranges::binary_search(cuts, loop); }

double SpaceOperand::elements(std::span<const double> tiles) const {
  double product = 1;
  for (const std::vector<IndexStep> &steps : dims) {
    double last = 0; // of the dimension, from the tile's first element on
    for (const IndexStep &step : steps)
      last += step.elements * (tiles[static_cast<size_t>(step.loop)] - 1);
    product *= last + 1;
  }
  return product;
}

namespace {

class OperandMaker {
public:
  OperandMaker(LoopSpace space, const ExprProgram &program)
      : program(program), symbols(optValues(program.symbols)) {
    out.space = std::move(space);
  }

  SpaceOperands run() {
    for (size_t e = 0; e < out.space.equations.size(); ++e) {
      addReads(static_cast<int>(e));
      addMade(static_cast<int>(e));
      const Equation &own = equation(static_cast<int>(e));
      out.flops.push_back(profileOf(own).operations +
                          (own.kind == EquationKind::Reduction ? 1 : 0));
    }
    return std::move(out);
  }

private:
  const Equation &equation(int e) const { return *out.space.equations[static_cast<size_t>(e)]; }
  const Tensor &tensor(TensorId id) const { return program.tensors[static_cast<size_t>(id)]; }

  bool isMadeInside(TensorId id) const {
    return std::ranges::any_of(out.space.equations, [&](const Equation *e) {
      return std::ranges::count(e->outputs, id) > 0;
    });
  }

  void addReads(int e) {
    const Body &body = equation(e).body;
    const std::vector<uint64_t> dependences = axisDependences(body);
    for (NodeId id : body.reachable(bodyRoots(equation(e)))) {
      if (!isRead(body[id]) || isMadeInside(body[id].index))
        continue;
      SpaceOperand made = start(e, body[id].index);
      for (NodeId index : indexOperands(body[id]))
        made.dims.push_back(steps(e, index, dependences[static_cast<size_t>(index)]));
      add(std::move(made));
    }
  }

  void addMade(int e) {
    for (TensorId id : equation(e).outputs) {
      SpaceOperand made = start(e, id);
      made.isMade = true;
      made.isStored =
          tensor(id).kind == TensorKind::Output || std::ranges::count(program.outputs, id) > 0;
      for (int p = 0; p < equation(e).numSpatial; ++p) {
        const int loop = loopOf(e, p);
        made.dims.push_back(loop < 0 ? std::vector<IndexStep>{}
                                     : std::vector<IndexStep>{{loop, 1}});
      }
      add(std::move(made));
    }
  }

  SpaceOperand start(int e, TensorId id) const {
    SpaceOperand made;
    made.equation = e;
    made.tensor = id;
    made.elementBytes = static_cast<double>(sizeInBytes(tensor(id).type));
    return made;
  }

  int loopOf(int e, size_t axis) const { return out.space.loopOf[static_cast<size_t>(e)][axis]; }
  int loopOf(int e, int axis) const { return loopOf(e, static_cast<size_t>(axis)); }

  /// Where the index is not affine in the axes, each of them may lead to another element.
  std::vector<IndexStep> steps(int e, NodeId index, uint64_t dependences) const {
    const int numAxes = static_cast<int>(equation(e).axes.size());
    const std::optional<AffineForm> form = affineForm(equation(e).body, index, numAxes);
    std::vector<IndexStep> found;
    for (int a = 0; a < numAxes; ++a) {
      const int loop = loopOf(e, a);
      double elements = (dependences >> std::min(a, 63) & 1) != 0 ? 1 : 0;
      if (form) {
        const std::optional<int64_t> value =
            form->coefficients[static_cast<size_t>(a)].evaluate(symbols);
        elements = value ? std::fabs(static_cast<double>(*value)) : 1;
      }
      if (loop >= 0 && elements > 0)
        found.push_back({loop, elements});
    }
    return found;
  }

  void add(SpaceOperand made) {
    std::map<int, int> uses; // by loop: how many dimensions move along it
    for (const std::vector<IndexStep> &dim : made.dims)
      for (const IndexStep &step : dim)
        ++uses[step.loop];
    for (const auto &[loop, count] : uses)
      made.loops.push_back(loop);
    for (const std::vector<IndexStep> &dim : made.dims)
      if (dim.size() == 1 && dim[0].elements == 1 && uses[dim[0].loop] == 1)
        made.cuts.push_back(dim[0].loop);
    std::ranges::sort(made.cuts);
    for (const SpaceOperand &other : out.operands) {
      if (other.tensor != made.tensor)
        continue;
      if (other.equation == made.equation && other.loops == made.loops)
        return;
      made.isFirst = false;
    }
    out.operands.push_back(std::move(made));
  }

  const ExprProgram &program;
  const std::vector<int64_t> symbols;
  SpaceOperands out;
};

} // namespace

SpaceOperands spaceOperands(LoopSpace space, const ExprProgram &program) {
  return OperandMaker(std::move(space), program).run();
}

SpaceExtents spaceExtents(const LoopSpace &space, const std::vector<Symbol> &symbols) {
  const std::vector<int64_t> values = optValues(symbols);
  SpaceExtents out;
  for (const SpaceLoop &loop : space.loops) {
    const DimExpr::Range range = loop.extent.range(symbols);
    const std::optional<int64_t> usual = loop.extent.evaluate(values);
    out.least.push_back(static_cast<double>(std::max<int64_t>(1, range.min)));
    out.usual.push_back(static_cast<double>(std::max<int64_t>(1, usual.value_or(range.max))));
    out.greatest.push_back(static_cast<double>(std::max<int64_t>(1, range.max)));
  }
  return out;
}

} // namespace fusec::tiling
