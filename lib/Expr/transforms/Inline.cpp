#include "Expr/transforms/Inline.h"

#include "Expr/transforms/Walk.h"

namespace fusec {

NodeId inlineMap(Body &into, const Equation &producer, size_t output,
                 const std::vector<NodeId> &indices, NodeId predicate, NodeId otherwise) {
  assert(producer.kind == EquationKind::Map && indices.size() == producer.axes.size());
  const NodeId root = producer.results[output];
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
