// What the columns of a contraction share of its terms becomes a map of its own: kept by a block in its shared memory
// it is made once for all columns of the block's tile, and not by each of them. RMSNorm's gain in front of a product,
// once the root of the row's mean waits for the end (RepairCascades.cpp),
//
//   reduction t [i:8, j:4096; k:4096] sum f32
//     %t = mul(mul(%x[i, k], %g[k]), %w[k, j])
//
// becomes
//
//   map t.factor [i:8, k:4096]
//     %t.factor = mul(%x[i, k], %g[k])
//   reduction t [i:8, j:4096; k:4096] sum f32
//     %t = mul(%t.factor[i, k], %w[k, j])
//
// Every bit stays. For contractions that share their walk with reductions of their rows (SharedWalk.h). Not handled:
// products behind a conversion.
#include "Expr/Alternatives.h"
#include "Expr/SharedWalk.h"
#include "Expr/transforms/Walk.h"

#include <algorithm>

namespace fusec {
namespace {

/// The argument of the product that is computed for each term and not for each column; kNoNode where there is none.
NodeId factorOf(const Equation &e, const std::vector<uint64_t> &axes) {
  const Scalar &product = e.body[e.results[0]];
  if (product.op != ScalarOp::Mul)
    return kNoNode;
  for (NodeId factor : product.args) {
    bool shared = false;
    for (int a = 0; a < std::min(e.numSpatial, 63); ++a)
      shared = shared || (!e.axes[a].extent.isConst(1) && (axes[factor] >> a & 1) == 0);
    if (shared && !isRead(e.body[factor]) && axes[factor] != 0)
      return factor;
  }
  return kNoNode;
}

/// Makes the factor a map in front of the contraction at position i.
void split(ExprProgram &program, size_t i, NodeId factor, uint64_t axes) {
  Equation e = std::get<Equation>(program.items[i].value);
  Equation map;
  map.name = e.name + ".factor";
  map.onnxNodes = e.onnxNodes;
  Tensor value;
  value.name = program.tensors[e.outputs[0]].name + ".factor";
  value.type = e.body[factor].type;
  value.kind = TensorKind::Temp;
  std::vector<int> place(e.axes.size(), -1); // of the contraction's axes among the map's
  for (size_t a = 0; a < e.axes.size(); ++a)
    if ((axes >> std::min<size_t>(a, 63) & 1) != 0) {
      place[a] = map.numSpatial++;
      map.axes.push_back(e.axes[a]);
      value.shape.push_back(e.axes[a].extent);
    }
  const TensorId tensor = program.addTensor(std::move(value));
  map.outputs = {tensor};
  setRanges(map, program.symbols);
  map.results = {map.body.import(e.body, factor, [&](const Scalar &s, NodeId) -> NodeId {
    return s.op == ScalarOp::Axis ? map.body.axis(place[s.index]) : kNoNode;
  })};
  compact(map);
  std::vector<NodeId> at, arguments;
  for (size_t a = 0; a < place.size(); ++a)
    if (place[a] >= 0)
      at.push_back(e.body.axis(static_cast<int32_t>(a)));
  const NodeId made = e.body.read(tensor, e.body[factor].type, at);
  for (NodeId argument : e.body[e.results[0]].args)
    arguments.push_back(argument == factor ? made : argument);
  e.results = {e.body.binary(ScalarOp::Mul, arguments[0], arguments[1])};
  compact(e);
  program.items[i].value = std::move(e);
  program.items.insert(program.items.begin() + static_cast<std::ptrdiff_t>(i),
                       Item{std::move(map)});
}

std::optional<SharedWalk> walkOf(const ExprProgram &pattern) {
  std::vector<const Equation *> equations;
  for (const Item &item : pattern.items)
    if (const auto *e = std::get_if<Equation>(&item.value))
      equations.push_back(e);
  return equations.size() == pattern.items.size() ? sharedWalk(equations) : std::nullopt;
}

} // namespace

std::vector<int64_t> sharedFactorChoices(const ExprProgram &pattern, const Target &target) {
  // A CPU's tile of rows multiplies once for all of its columns.
  return target.kind != TargetKind::Cpu && walkOf(pattern) ? std::vector<int64_t>{0}
                                                           : std::vector<int64_t>{};
}

std::optional<ExprProgram> sharedFactor(const ExprProgram &pattern, int64_t) {
  const std::optional<SharedWalk> walk = walkOf(pattern);
  if (!walk || walk->factor >= 0)
    return std::nullopt;
  const auto position = static_cast<size_t>(walk->contraction);
  const Equation &e = std::get<Equation>(pattern.items[position].value);
  const std::vector<uint64_t> axes = axisDependences(e.body);
  const NodeId factor = factorOf(e, axes);
  if (factor == kNoNode)
    return std::nullopt;
  ExprProgram program = pattern;
  split(program, position, factor, axes[factor]);
  return program;
}

} // namespace fusec
