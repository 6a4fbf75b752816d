#include "Tiling/schedule/PointEvaluator.h"

#include "Tiling/schedule/FlatAccess.h"
#include <algorithm>

namespace fusec::tiling {

PointEvaluator::PointEvaluator(const Body &body, const std::vector<NodeId> &roots,
                               int64_t dataBelow, const std::vector<int64_t> &symbols)
    : body(body), values(body.nodes.size()), dataBelow(dataBelow) {
  for (NodeId id : body.reachable(roots)) {
    const Scalar &node = body[id];
    if (node.op == ScalarOp::Const)
      values[id] = {node.imm, node.fimm};
    else if (node.op == ScalarOp::Dim)
      values[id].i = node.dim.evaluate(symbols).value_or(1);
    else
      order.push_back(id);
  }
}

bool PointEvaluator::at(const std::vector<int64_t> &axes, int64_t step) {
  bool known = true;
  for (NodeId id : order) {
    const Scalar &node = body[id];
    switch (node.op) {
    case ScalarOp::Axis: values[id].i = axes[node.index]; break;
    case ScalarOp::Step: values[id].i = step; break;
    case ScalarOp::Read:
    case ScalarOp::ReadIf: values[id] = data(node); break;
    default: {
      ScalarValue args[3];
      for (size_t a = 0; a < node.args.size() && a < std::size(args); ++a)
        args[a] = values[node.args[a]];
      const auto value =
          node.args.empty() ? std::nullopt
                            : evaluateScalar(node.op, node.type, body[node.args.back()].type, args);
      known = known && value && node.args.size() <= std::size(args);
      values[id] = value.value_or(ScalarValue{});
    }
    }
  }
  return known;
}

ScalarValue PointEvaluator::data(const Scalar &read) const {
  uint64_t mixed = 0x9e3779b97f4a7c15u + static_cast<uint64_t>(read.index);
  for (NodeId arg : indexOperands(read)) {
    mixed = (mixed ^ static_cast<uint64_t>(values[arg].i)) * 0xff51afd7ed558ccdu;
    mixed ^= mixed >> 32;
  }
  const auto number = static_cast<int64_t>(mixed % static_cast<uint64_t>(dataBelow));
  return {number, static_cast<double>(number)};
}

std::vector<NodeId> knownTests(const Body &body, std::vector<NodeId> predicates) {
  std::erase_if(predicates, [&](NodeId predicate) { return readsData(body, {predicate}); });
  return predicates;
}

bool readsData(const Body &body, const std::vector<NodeId> &nodes, uint64_t axes) {
  for (NodeId id : body.reachable(nodes)) {
    const bool reads = body[id].op == ScalarOp::Read || body[id].op == ScalarOp::ReadIf;
    if (reads && (axes == ~uint64_t{0} || (axisDependence(body, id) & axes) != 0))
      return true;
  }
  return false;
}

int64_t longestSide(const Shape &shape, const std::vector<int64_t> &symbols) {
  int64_t longest = 1;
  for (const DimExpr &side : shape)
    longest = std::max(longest, side.evaluate(symbols).value_or(1));
  return longest;
}

} // namespace fusec::tiling
