#include "Expr/ScalarRules.h"

#include "Expr/IndexAlgebra.h"
#include "Expr/ScalarEval.h"

#include <algorithm>

namespace fusec {
namespace {

bool isConst(const Scalar &s) { return s.op == ScalarOp::Const; }
bool isInt(const Scalar &s, int64_t v) { return isConst(s) && !isFloat(s.type) && s.imm == v; }
bool isFloatConst(const Scalar &s, double v) {
  return isConst(s) && isFloat(s.type) && sameBits(s.fimm, v);
}

NodeId foldConstants(Body &body, const Scalar &s) {
  if (s.args.empty() || s.args.size() > 3 || s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf)
    return kNoNode;
  ScalarValue values[3];
  for (size_t i = 0; i < s.args.size(); ++i) {
    const Scalar &a = body[s.args[i]];
    if (!isConst(a))
      return kNoNode;
    values[i] = {a.imm, a.fimm};
  }
  auto r = evaluateScalar(s.op, s.type, body[s.args.back()].type, values);
  if (!r)
    return kNoNode;
  return isFloat(s.type) ? body.constant(s.type, r->f) : body.constantInt(s.type, r->i);
}

/// Rules that leave one of the operands. x + 0.0 is none of them: -0 + 0 is 0.
NodeId identity(const Body &body, const Scalar &s) {
  if (s.args.size() < 2)
    return kNoNode;
  NodeId a = s.args[0], b = s.args[1];
  const Scalar &x = body[a], &y = body[b];
  bool floating = isFloat(s.type);
  bool mask = s.type == DType::Bool;
  int64_t ones = wrapToType(s.type, -1);
  switch (s.op) {
  case ScalarOp::Add:
    if (floating ? isFloatConst(y, -0.0) : isInt(y, 0))
      return a;
    return (floating ? isFloatConst(x, -0.0) : isInt(x, 0)) ? b : kNoNode;
  case ScalarOp::Sub: return (floating ? isFloatConst(y, 0.0) : isInt(y, 0)) ? a : kNoNode;
  case ScalarOp::Mul:
    if (floating ? isFloatConst(y, 1.0) : isInt(y, 1) || isInt(x, 0))
      return a;
    return (floating ? isFloatConst(x, 1.0) : isInt(x, 1) || isInt(y, 0)) ? b : kNoNode;
  case ScalarOp::Div: return (floating ? isFloatConst(y, 1.0) : isInt(y, 1)) ? a : kNoNode;
  case ScalarOp::FloorDiv: return isInt(y, 1) ? a : kNoNode;
  case ScalarOp::Min:
  case ScalarOp::Max: return a == b ? a : kNoNode;
  case ScalarOp::And:
    if (a == b || isInt(y, mask ? 1 : ones) || isInt(x, 0))
      return a;
    return isInt(x, mask ? 1 : ones) || isInt(y, 0) ? b : kNoNode;
  case ScalarOp::Or:
    if (a == b || isInt(y, 0) || isInt(x, mask ? 1 : ones))
      return a;
    return isInt(x, 0) || isInt(y, mask ? 1 : ones) ? b : kNoNode;
  case ScalarOp::Xor:
    if (isInt(y, 0))
      return a;
    return isInt(x, 0) ? b : kNoNode;
  case ScalarOp::Shl:
  case ScalarOp::Shr: return isInt(y, 0) ? a : kNoNode;
  default: return kNoNode;
  }
}

/// Conversions that lose nothing on the way: cast(T, cast(wider, x:T)) is x.
bool holdsExactly(DType wide, DType narrow) {
  if (wide == narrow)
    return true;
  auto mantissa = [](DType t) {
    return t == DType::F64 ? 53 : t == DType::F32 ? 24 : t == DType::F16 ? 11 : 8;
  };
  if (isFloat(wide) && isFloat(narrow))
    return mantissa(wide) > mantissa(narrow) && !(wide == DType::F16 && narrow == DType::BF16);
  if (isFloat(wide) || isFloat(narrow)) // an integer narrower than the mantissa
    return isFloat(wide) && static_cast<int>(sizeInBytes(narrow)) * 8 <= mantissa(wide);
  if (wide == DType::Bool)
    return false;
  if (narrow == DType::Bool)
    return true;
  if (isSigned(narrow) && !isSigned(wide))
    return false;
  return sizeInBytes(wide) > sizeInBytes(narrow);
}

NodeId conversion(Body &body, const Scalar &s) {
  const Scalar a = body[s.args[0]];
  if (a.type == s.type)
    return s.args[0];
  if (a.op == ScalarOp::Cast && s.op == ScalarOp::Cast) {
    const DType inner = body[a.args[0]].type;
    if (holdsExactly(a.type, inner)) // the middle type changed nothing
      return body.cast(s.type, a.args[0]);
  }
  return kNoNode;
}

void conjuncts(const Body &body, NodeId id, std::vector<NodeId> &out) {
  const Scalar &s = body[id];
  if (s.op == ScalarOp::And) {
    conjuncts(body, s.args[0], out);
    conjuncts(body, s.args[1], out);
  } else if (std::find(out.begin(), out.end(), id) == out.end()) {
    out.push_back(id);
  }
}

/// and(a, b) over bool as a left-leaning chain in which no conjunct occurs twice.
NodeId conjunction(Body &body, const Scalar &s) {
  std::vector<NodeId> left, all;
  conjuncts(body, s.args[0], left);
  all = left;
  conjuncts(body, s.args[1], all);
  if (all.size() == left.size())
    return s.args[0];
  if (body[s.args[1]].op != ScalarOp::And)
    return kNoNode;
  NodeId r = s.args[0];
  for (size_t i = left.size(); i < all.size(); ++i)
    r = body.addExact({ScalarOp::And, DType::Bool, {r, all[i]}, 0, 0, 0, 0});
  return r;
}

NodeId choice(Body &body, const Scalar &s) {
  const Scalar &p = body[s.args[0]];
  if (isConst(p))
    return p.imm ? s.args[1] : s.args[2];
  if (s.args[1] == s.args[2])
    return s.args[1];
  if (p.op == ScalarOp::Not)
    return body.select(p.args[0], s.args[2], s.args[1]);
  if (s.type == DType::Bool && isInt(body[s.args[1]], 1) && isInt(body[s.args[2]], 0))
    return s.args[0];
  return kNoNode;
}

bool commutes(ScalarOp op) {
  switch (op) {
  case ScalarOp::Add:
  case ScalarOp::Mul:
  case ScalarOp::And:
  case ScalarOp::Or:
  case ScalarOp::Xor:
  case ScalarOp::Eq:
  case ScalarOp::Ne: return true;
  default: return false;
  }
}

bool isIndexArithmetic(ScalarOp op) {
  return op == ScalarOp::Add || op == ScalarOp::Sub || op == ScalarOp::Mul || op == ScalarOp::Neg ||
         op == ScalarOp::FloorDiv || op == ScalarOp::FloorMod;
}

/// Min and Max of i64 nodes of which one is known to be the smaller.
NodeId orderedChoice(Body &body, const Scalar &s) {
  Scalar le{ScalarOp::Le, DType::Bool, s.args, 0, 0, 0, 0};
  NodeId r = IndexAlgebra(body).simplifyComparison(le);
  if (r != kNoNode && isConst(body[r]))
    return body[r].imm == (s.op == ScalarOp::Min) ? s.args[0] : s.args[1];
  std::swap(le.args[0], le.args[1]);
  r = IndexAlgebra(body).simplifyComparison(le);
  if (r != kNoNode && isConst(body[r]))
    return body[r].imm == (s.op == ScalarOp::Min) ? s.args[1] : s.args[0];
  return kNoNode;
}

} // namespace

NodeId simplifyScalar(Body &body, const Scalar &s) {
  if (NodeId folded = foldConstants(body, s); folded != kNoNode)
    return folded;
  switch (s.op) {
  case ScalarOp::Const:
  case ScalarOp::Axis:
  case ScalarOp::Step:
  case ScalarOp::State:
  case ScalarOp::Part:
  case ScalarOp::Read: return kNoNode;
  case ScalarOp::Dim: return s.dim.isConst() ? body.index(s.dim.constValue()) : kNoNode;
  case ScalarOp::ReadIf: {
    const Scalar &p = body[s.args[0]];
    if (!isConst(p))
      return kNoNode;
    if (!p.imm)
      return s.args[1];
    return body.addExact(
        {ScalarOp::Read, s.type, {s.args.begin() + 2, s.args.end()}, s.index, s.imm, 0, 0});
  }
  case ScalarOp::Select: return choice(body, s);
  case ScalarOp::Cast:
  case ScalarOp::CastSat: return conversion(body, s);
  case ScalarOp::Bitcast: return body[s.args[0]].type == s.type ? s.args[0] : kNoNode;
  case ScalarOp::Neg:
  case ScalarOp::Not:
    if (body[s.args[0]].op == s.op)
      return body[s.args[0]].args[0];
    break;
  case ScalarOp::IsNan:
  case ScalarOp::IsInf:
    if (!isFloat(body[s.args[0]].type))
      return body.constantInt(DType::Bool, 0);
    break;
  case ScalarOp::Floor:
  case ScalarOp::Ceil:
  case ScalarOp::Trunc:
  case ScalarOp::RoundEven:
    if (!isFloat(s.type))
      return s.args[0];
    break;
  default: break;
  }
  if (NodeId same = identity(body, s); same != kNoNode)
    return same;
  if (s.type == DType::I64 && isIndexArithmetic(s.op))
    if (NodeId r = IndexAlgebra(body).simplify(s); r != kNoNode)
      return r;
  if (s.type == DType::I64 && (s.op == ScalarOp::Min || s.op == ScalarOp::Max))
    if (NodeId r = orderedChoice(body, s); r != kNoNode)
      return r;
  if (s.type == DType::Bool && s.args.size() == 2 && body[s.args[0]].type == DType::I64 &&
      s.op != ScalarOp::And)
    if (NodeId r = IndexAlgebra(body).simplifyComparison(s); r != kNoNode)
      return r;
  if (s.type == DType::Bool && s.op == ScalarOp::And)
    if (NodeId r = conjunction(body, s); r != kNoNode)
      return r;
  if (commutes(
          s.op)) { // the order as written stays, for the text's sake, unless its twin is there already
    Scalar twin = s;
    std::swap(twin.args[0], twin.args[1]);
    return body.find(twin);
  }
  return kNoNode;
}

} // namespace fusec
