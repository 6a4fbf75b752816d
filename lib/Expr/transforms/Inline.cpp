#include "Expr/transforms/Inline.h"

#include "Expr/transforms/Walk.h"

#include <algorithm>

namespace fusec {

NodeId inlineMap(Body &into, const Equation &producer, const Scalar &read) {
  const auto output = std::find(producer.outputs.begin(), producer.outputs.end(), read.index);
  const bool guards = read.op == ScalarOp::ReadIf;
  const NodeId predicate = guards ? read.args[0] : kNoNode,
               otherwise = guards ? read.args[1] : kNoNode;
  const std::vector<NodeId> indices(read.args.begin() + (guards ? 2 : 0), read.args.end());
  assert(producer.kind == EquationKind::Map && output != producer.outputs.end() &&
         indices.size() == producer.axes.size());
  const NodeId root = producer.results[static_cast<size_t>(output - producer.outputs.begin())];
  bool choose = predicate != kNoNode; // the copy's value still holds elsewhere: select at the end
  NodeId value = into.import(producer.body, root, [&](const Scalar &s, NodeId original) {
    if (s.op == ScalarOp::Axis)
      return indices[s.index];
    if (predicate == kNoNode || s.op == ScalarOp::Step)
      return kNoNode;
    // A read outside the predicate gives a value nobody looks at; at the root it gives the result.
    bool guarded = s.op == ScalarOp::ReadIf;
    NodeId elsewhere = guarded            ? s.args[1]
                       : original == root ? otherwise
                                          : into.constantInt(s.type, 0);
    if (original == root && elsewhere == otherwise)
      choose = false;
    NodeId both = guarded ? into.logicalAnd(predicate, s.args[0]) : predicate;
    size_t first = guarded ? 2 : 0;
    return into.readIf(s.index, s.type, both, elsewhere,
                       {s.args.begin() + static_cast<ptrdiff_t>(first), s.args.end()});
  });
  return choose ? into.select(predicate, value, otherwise) : value;
}

} // namespace fusec
