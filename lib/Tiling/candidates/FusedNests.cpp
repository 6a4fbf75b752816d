#include "Tiling/candidates/FusedNests.h"

#include "Tiling/schedule/FlatAccess.h"
#include <algorithm>
#include <map>

namespace fusec::tiling {

namespace {

class NestMaker {
public:
  NestMaker(const std::vector<const Equation *> &equations, const std::vector<int> &rowPositions)
      : equations(equations), rowPositions(rowPositions) {}

  std::vector<FusedNest> run() {
    for (size_t e = 0; e < equations.size(); ++e)
      add(static_cast<int>(e));
    return std::move(nests);
  }

private:
  void add(int e) {
    const Equation &equation = *equations[e];
    FusedNest own;
    own.equations = {e};
    own.dims = {innerDims(equation)};
    bool reduces = false, spatial = false;
    for (int p : own.dims[0]) {
      reduces = reduces || p >= equation.numSpatial;
      spatial = spatial || p < equation.numSpatial;
    }
    own.columns = equation.kind == EquationKind::Reduction && (spatial || !reduces);
    size_t place = nests.size();
    if (!own.columns && !own.dims[0].empty())
      for (size_t n = firstPossible(e); n < nests.size() && place == nests.size(); ++n)
        if (joins(nests[n], e, own.dims[0]))
          place = n;
    if (place == nests.size()) {
      nests.push_back(std::move(own));
    } else {
      nests[place].equations.push_back(e);
      nests[place].dims.push_back(std::move(own.dims[0]));
    }
    for (TensorId t : equation.outputs)
      producers[t] = {e, place};
  }

  std::vector<int> innerDims(const Equation &e) const {
    std::vector<int> dims;
    for (size_t p = 0; p < e.axes.size(); ++p)
      if (!e.axes[p].extent.isConst(1) &&
          std::ranges::count(rowPositions, static_cast<int>(p)) == 0)
        dims.push_back(static_cast<int>(p));
    return dims;
  }

  /// The last nest that makes something that e reads: e runs there at the earliest.
  size_t firstPossible(int e) const {
    size_t first = 0;
    for (NodeId read : readsOf(*equations[e]))
      if (auto it = producers.find(equations[e]->body[read].index); it != producers.end())
        first = std::max(first, it->second.nest);
    return first;
  }

  bool joins(const FusedNest &nest, int e, const std::vector<int> &dims) const {
    const Equation &equation = *equations[e];
    const Equation &head = *equations[nest.equations[0]];
    if (nest.columns || nest.dims[0].size() != dims.size())
      return false;
    for (size_t i = 0; i < dims.size(); ++i)
      if (equation.axes[dims[i]].extent != head.axes[nest.dims[0][i]].extent)
        return false;
    for (NodeId id : readsOf(equation)) {
      const Scalar &read = equation.body[id];
      auto it = producers.find(read.index);
      if (it == producers.end())
        continue;
      auto member = std::ranges::find(nest.equations, it->second.equation);
      if (member == nest.equations.end())
        continue;
      const Equation &producer = *equations[*member];
      if (producer.kind != EquationKind::Map || read.op != ScalarOp::Read)
        return false; // a sum is not there before its loops end
      if (!equation.states.empty())
        return false; // walks each tile several times
      const std::vector<int> &made = nest.dims[member - nest.equations.begin()];
      for (size_t i = 0; i < dims.size(); ++i) {
        const Scalar &index = equation.body[read.args[made[i]]];
        if (index.op != ScalarOp::Axis || index.index != dims[i])
          return false;
      }
    }
    return true;
  }

  struct Producer {
    int equation;
    size_t nest;
  };
  const std::vector<const Equation *> &equations;
  const std::vector<int> &rowPositions;
  std::vector<FusedNest> nests;
  std::map<TensorId, Producer> producers;
};

} // namespace

std::vector<FusedNest> makeNests(const std::vector<const Equation *> &equations,
                                 const std::vector<int> &rowPositions) {
  return NestMaker(equations, rowPositions).run();
}

} // namespace fusec::tiling
