#include "Expr/transforms/Profile.h"

#include "Expr/OpWeight.h"
#include "Expr/Padding.h"
#include "Expr/transforms/Walk.h"

#include <algorithm>

namespace fusec {
namespace {

bool isConversion(ScalarOp op) {
  return op == ScalarOp::Cast || op == ScalarOp::CastSat || op == ScalarOp::Bitcast;
}
bool isExpensive(ScalarOp op) {
  return op == ScalarOp::Div || op == ScalarOp::Rem || op == ScalarOp::Pow ||
         op == ScalarOp::Sqrt || (op >= ScalarOp::Exp && op <= ScalarOp::Atanh);
}

class Profiler {
public:
  explicit Profiler(const Body &body)
      : body(body), seen(body.nodes.size()), data(body.nodes.size()) {
    for (size_t i = 0; i < body.nodes.size(); ++i) {
      data[i] = isRead(body.nodes[i]);
      for (NodeId a : body.nodes[i].args)
        data[i] = data[i] || data[a];
    }
  }
  Profile profile;

  void value(NodeId id) {
    if (seen[id])
      return;
    seen[id] = true;
    const Scalar &s = body[id];
    switch (s.op) {
    case ScalarOp::Const:
    case ScalarOp::Dim:
    case ScalarOp::Axis:
    case ScalarOp::Step:
    case ScalarOp::State:
    case ScalarOp::Part: return;
    case ScalarOp::Read: profile.valueReads.insert(id); return;
    case ScalarOp::ReadIf:
      profile.valueReads.insert(id);
      value(s.args[1]);
      return;
    case ScalarOp::Select:
      if (data[s.args[0]]) // a Where by data is arithmetic
        break;
      value(s.args[1]);
      value(s.args[2]);
      return;
    default: break;
    }
    if (s.type == DType::I64 && !data[id])
      return; // iota: index arithmetic as a value
    profile.movement = false;
    ++profile.operations;
    profile.expensive |= isExpensive(s.op);
    for (NodeId a : s.args)
      value(a);
  }

  /// Indices and choices come at no cost beside what they move, unless they take a maths function: the buckets of
  /// relative positions, say, which grow with a logarithm.
  void indices(const std::vector<NodeId> &results) {
    constexpr double kDear = 16;
    for (NodeId id : body.reachable(results))
      if (!seen[id] && weightOf(body[id].op) >= kDear) {
        profile.movement = false;
        ++profile.operations;
        profile.expensive = true;
      }
  }

private:
  const Body &body;
  std::vector<bool> seen, data; // data: some read is below
};

} // namespace

Profile profileOf(const Equation &e) {
  Profiler p(e.body);
  for (NodeId r : e.results)
    p.value(r);
  p.indices(e.results);
  return p.profile;
}

std::vector<bool> madeOfConstants(ExprProgram &program) {
  std::vector<bool> made;
  for (const Tensor &tensor : program.tensors)
    made.push_back(tensor.kind == TensorKind::Constant);
  forEachEquation(program.items, [&](const Equation &e, const DimExpr *steps) {
    const auto isMade = [&](NodeId id) { return !isRead(e.body[id]) || made[e.body[id].index]; };
    if (e.kind == EquationKind::Map && !steps &&
        std::ranges::all_of(e.body.reachable(bodyRoots(e)), isMade))
      for (TensorId t : e.outputs)
        made[t] = true;
  });
  return made;
}

bool looksUp(const Equation &map) {
  return std::ranges::any_of(map.body.reachable(bodyRoots(map)), [&](NodeId id) {
    return isRead(map.body[id]) &&
           std::ranges::any_of(indexOperands(map.body[id]), [&](NodeId index) {
             return !affineForm(map.body, index, static_cast<int>(map.axes.size()));
           });
  });
}

static NodeId stripConversions(const Body &body, NodeId id) {
  while (isConversion(body[id].op))
    id = body[id].args[0];
  return id;
}

/// Factors of a sum of products along an axis that both depend on, of which several outputs use each.
static int usedAgain(const Equation &e) {
  if (e.kind != EquationKind::Reduction || e.monoid != Monoid::Sum)
    return 0;
  const Scalar &s = e.body[stripConversions(e.body, e.results[0])];
  if (s.op != ScalarOp::Mul)
    return 0;
  std::vector<uint64_t> axes = axisDependences(e.body);
  bool together = false;
  for (int a = e.numSpatial; a < std::min(static_cast<int>(e.axes.size()), 64); ++a)
    together =
        together || (!e.axes[a].extent.isConst(1) && (axes[s.args[0]] & axes[s.args[1]]) >> a & 1);
  if (!together)
    return 0;
  auto reused = [&](NodeId factor) {
    for (int a = 0; a < std::min(e.numSpatial, 63); ++a)
      if (!e.axes[a].extent.isConst(1) && !(axes[factor] >> a & 1))
        return true;
    return false;
  };
  return int{reused(s.args[0])} + int{reused(s.args[1])};
}

bool isContraction(const Equation &e) { return usedAgain(e) == 2; }

bool sharesFactor(const Equation &e) { return usedAgain(e) > 0; }

} // namespace fusec
