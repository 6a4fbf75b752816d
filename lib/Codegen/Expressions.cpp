// Expressions: which values are equal in all lanes, which are linear in the lane, and which are vectors.
#include "Codegen/Emitter.h"

namespace fusec {

using llvm::Value;

void Emitter::forget() { ++epoch; }

/// Operands come first, not by recursion: maps that follow each other make an expression of hundreds of operations one
/// inside of the other. A guarded read says itself where its operands are computed.
Val Emitter::eval(NodeId id) {
  std::vector<std::pair<NodeId, size_t>> open{{id, 0}}; // and which operand comes next
  while (!open.empty()) {
    auto &[at, next] = open.back();
    const Scalar &s = kernel.body[at];
    const size_t operands = s.op == ScalarOp::ReadIf ? 0 : s.args.size();
    bool known = cache[at].epoch == epoch;
    if (Value *column = known || !turns ? nullptr : columnOf(at)) {
      cache[at] = {{fromMemory(s.type, column), 0, true}, epoch};
      known = true;
    }
    if (!known)
      if (const std::optional<Val> v = neighbourRead(at)) {
        cache[at] = {*v, epoch};
        known = true;
      }
    if (!known && next < operands) {
      open.push_back({s.args[next++], 0});
      continue;
    }
    if (!known) {
      const Val v = evalUncached(s);
      cache[at] = {v, epoch};
    }
    open.pop_back();
  }
  return cache[id].value;
}

Value *Emitter::evalScalar(NodeId id) {
  Val v = eval(id);
  assert(v.uniform() && "trips and predicates of loops are the same in all lanes");
  return v.v;
}

std::vector<Val> Emitter::evalAll(const std::vector<NodeId> &ids, size_t first) {
  std::vector<Val> values;
  for (size_t i = first; i < ids.size(); ++i)
    values.push_back(eval(ids[i]));
  return values;
}

Val Emitter::evalUncached(const Scalar &s) {
  switch (s.op) {
  case ScalarOp::Const: {
    llvm::Type *type = valueType(s.type);
    return {isFloat(s.type) ? constantLike(type, s.fimm) : integerLike(type, s.imm)};
  }
  case ScalarOp::Axis: return vars[s.index];
  case ScalarOp::Step:
  case ScalarOp::State:
  case ScalarOp::Part: assert(false && "Step, State and Part belong to Expr"); return {};
  case ScalarOp::Dim: return {dimValue(s.dim)};
  case ScalarOp::Read: return load(s.index, evalAll(s.args));
  case ScalarOp::ReadIf: return evalReadIf(s);
  default: break;
  }
  std::vector<Val> args = evalAll(s.args);
  const DType operandType = kernel.body[s.args.back()].type;
  if (s.type == DType::I64) {
    if (Val v = evalIndexSum(s); v.v)
      return v;
    if (Val v = divideIndex(s); v.v)
      return v;
    // Vector divisions of 64-bit integers are done lane by lane; those of 32-bit ones by constants are not.
    if (args.size() == 2 && !args[0].uniform() && args[1].uniform() &&
        (s.op == ScalarOp::FloorDiv || s.op == ScalarOp::FloorMod)) {
      IndexRange x = kernel.body.rangeOf(s.args[0]), y = kernel.body.rangeOf(s.args[1]);
      if (x.min >= 0 && x.max <= INT32_MAX && y.min > 0 && y.max <= INT32_MAX) {
        llvm::Type *i32 = b.getInt32Ty();
        Value *a = asVector(args[0]);
        Value *narrow = b.CreateTrunc(a, withShapeOf(i32, a->getType()));
        Value *by = b.CreateVectorSplat(width, b.CreateTrunc(args[1].v, i32));
        Value *r = s.op == ScalarOp::FloorDiv ? b.CreateUDiv(narrow, by) : b.CreateURem(narrow, by);
        return {b.CreateZExt(r, a->getType()), 0, true};
      }
    }
  }
  if (Value *lanes = linearComparison(s, args))
    return {lanes, 0, true};
  bool vector = false;
  for (const Val &a : args)
    vector = vector || !a.uniform();
  std::vector<Value *> v;
  for (const Val &a : args)
    v.push_back(asLike(a, vector));
  Value *result = nullptr;
  switch (s.op) {
  case ScalarOp::Fma: result = fma(s.type, v[0], v[1], v[2]); break;
  case ScalarOp::Select: result = b.CreateSelect(v[0], v[1], v[2]); break;
  case ScalarOp::Cast: result = cast(s.type, operandType, v[0]); break;
  case ScalarOp::CastSat: result = castSat(s.type, operandType, v[0]); break;
  case ScalarOp::Bitcast: result = bitcast(s.type, operandType, v[0]); break;
  default:
    if ((s.op == ScalarOp::FloorDiv || s.op == ScalarOp::FloorMod) && s.type == DType::I64 &&
        kernel.body.rangeOf(s.args[1]).min > 0) {
      const bool isQuotient = s.op == ScalarOp::FloorDiv, isUniform = !vector || width == 1;
      // Told to be no 0, a division may leave the loops that it does not depend on.
      llvm::Value *by = llvm::isa<llvm::Constant>(v[1])
                            ? v[1]
                            : b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, v[1],
                                                      llvm::ConstantInt::get(v[1]->getType(), 1));
      if (kernel.body.rangeOf(s.args[0]).min >= 0) {
        result = divideNatural(s, v[0], by);
        break;
      }
      if (isUniform && !llvm::isa<llvm::Constant>(v[1])) {
        const auto [quotient, rest] = floorDivision(b, v[0], by);
        result = isQuotient ? quotient : rest;
        break;
      }
    }
    result = v.size() == 2 ? binary(s.op, s.type, operandType, v[0], v[1])
                           : unary(s.op, s.type, operandType, v[0]);
  }
  return {result, 0, vector && width > 1};
}

/// Quotient or remainder of an index that is not negative, which needs no corrections. A GPU divides in software, and
/// 64-bit numbers several times as long as 32-bit ones.
Value *Emitter::divideNatural(const Scalar &s, Value *x, Value *by) {
  const bool narrow = threads && kernel.body.rangeOf(s.args[0]).max <= UINT32_MAX &&
                      kernel.body.rangeOf(s.args[1]).max <= UINT32_MAX;
  const auto sized = [&](Value *of) { return narrow ? b.CreateTrunc(of, b.getInt32Ty()) : of; };
  Value *result = s.op == ScalarOp::FloorDiv ? b.CreateUDiv(sized(x), sized(by))
                                             : b.CreateURem(sized(x), sized(by));
  return b.CreateZExt(result, x->getType());
}

/// Sums and multiples of values that are linear in the lane stay linear.
Val Emitter::evalIndexSum(const Scalar &s) {
  if (s.args.size() != 2 || width == 1)
    return {};
  Val x = eval(s.args[0]), y = eval(s.args[1]);
  if (x.varying || y.varying || (x.uniform() && y.uniform()))
    return {};
  switch (s.op) {
  case ScalarOp::Add: return {b.CreateAdd(x.v, y.v), x.step + y.step};
  case ScalarOp::Sub: return {b.CreateSub(x.v, y.v), x.step - y.step};
  case ScalarOp::Mul: {
    if (!y.uniform())
      std::swap(x, y);
    auto *factor = llvm::dyn_cast<llvm::ConstantInt>(y.v);
    if (!y.uniform() || !factor)
      return {};
    return {b.CreateMul(x.v, y.v), x.step * factor->getSExtValue()};
  }
  default: return {};
  }
}

/// x + p l < y + q l is (p - q) l < y - x: a comparison of 32-bit constants with one number, clamped to where nothing
/// changes any more. Null where the operands are not of that form.
Value *Emitter::linearComparison(const Scalar &s, const std::vector<Val> &args) {
  const bool compares =
      s.op == ScalarOp::Lt || s.op == ScalarOp::Le || s.op == ScalarOp::Eq || s.op == ScalarOp::Ne;
  if (!compares || kernel.body[s.args[0]].type != DType::I64 || args[0].varying || args[1].varying)
    return nullptr;
  constexpr int64_t kLimit = int64_t(1) << 30;
  const int64_t step = args[0].step - args[1].step;
  if (step == 0 || std::abs(step) >= kLimit / width)
    return nullptr;
  Value *difference = b.CreateSub(args[1].v, args[0].v);
  Value *low = b.getInt64(-kLimit), *high = b.getInt64(kLimit);
  difference = b.CreateSelect(b.CreateICmpSLT(difference, low), low, difference);
  difference = b.CreateSelect(b.CreateICmpSGT(difference, high), high, difference);
  Value *bound = b.CreateVectorSplat(width, b.CreateTrunc(difference, b.getInt32Ty()));
  std::vector<llvm::Constant *> lanes;
  for (int l = 0; l < width; ++l)
    lanes.push_back(b.getInt32(static_cast<uint32_t>(step * l)));
  return binary(s.op, DType::Bool, DType::I32, llvm::ConstantVector::get(lanes), bound);
}

Value *Emitter::asVector(const Val &v) {
  if (v.varying || width == 1)
    return v.v;
  Value *splat = b.CreateVectorSplat(width, v.v);
  if (v.step == 0)
    return splat;
  std::vector<llvm::Constant *> steps;
  for (int l = 0; l < width; ++l)
    steps.push_back(b.getInt64(v.step * l));
  return b.CreateAdd(splat, llvm::ConstantVector::get(steps));
}

Value *Emitter::dimValue(const DimExpr &d) {
  using Op = DimExpr::Op;
  if (d.isConst())
    return b.getInt64(d.constValue());
  if (d.op() == Op::Symbol) {
    auto at = std::find(symbols.begin(), symbols.end(), d.symbolId());
    assert(at != symbols.end());
    return dims[at - symbols.begin()];
  }
  const std::vector<DimExpr> &operands = d.operands();
  Value *r = dimValue(operands[0]);
  for (size_t i = 1; i < operands.size(); ++i) {
    Value *y = dimValue(operands[i]);
    switch (d.op()) {
    case Op::Add: r = b.CreateAdd(r, y); break;
    case Op::Mul: r = b.CreateMul(r, y); break;
    case Op::Min: r = b.CreateSelect(b.CreateICmpSLT(r, y), r, y); break;
    case Op::Max: r = b.CreateSelect(b.CreateICmpSLT(r, y), y, r); break;
    case Op::FloorDiv: r = binary(ScalarOp::FloorDiv, DType::I64, DType::I64, r, y); break;
    case Op::CeilDiv: // -floor(-a / b)
      r = b.CreateNeg(binary(ScalarOp::FloorDiv, DType::I64, DType::I64, b.CreateNeg(r), y));
      break;
    case Op::Mod: r = binary(ScalarOp::FloorMod, DType::I64, DType::I64, r, y); break;
    case Op::Const:
    case Op::Symbol: assert(false && "leaves have no operands");
    }
  }
  return r;
}

Predicate Emitter::reduced(const Val &lanes) {
  if (!lanes.varying)
    return {lanes, lanes.v, lanes.v, lanes.v};
  Value *bits = b.CreateBitCast(lanes.v, b.getIntNTy(width));
  return {lanes, b.CreateICmpNE(bits, llvm::ConstantInt::get(bits->getType(), 0)),
          b.CreateICmpEQ(bits, llvm::Constant::getAllOnesValue(bits->getType())), nullptr, lanes.v};
}

Predicate Emitter::negated(const Predicate &p) {
  Value *lanes = b.CreateNot(p.lanes.v);
  const bool vector = p.lanes.varying;
  return {{lanes, 0, vector},
          b.CreateNot(p.all),
          b.CreateNot(p.any),
          vector ? nullptr : lanes,
          vector ? lanes : nullptr};
}

Predicate Emitter::both(const Predicate &x, const Predicate &y) {
  const auto conjunction = [this](Value *p, Value *q) {
    return p && q ? b.CreateAnd(p, q) : p ? p : q;
  };
  bool vector = x.lanes.varying || y.lanes.varying;
  Val lanes{b.CreateAnd(asLike(x.lanes, vector), asLike(y.lanes, vector)), 0, vector};
  Predicate p{lanes, nullptr, b.CreateAnd(x.all, y.all), conjunction(x.common, y.common),
              conjunction(x.apart, y.apart)};
  p.any = x.apart && y.apart ? conjunction(p.common, reduced({p.apart, 0, true}).any)
                             : b.CreateAnd(x.any, y.any);
  return p;
}

/// "lane number below a bound" is the predicate of every ragged edge: whether all lanes are inside is then one
/// scalar comparison, and the vector is made only where it is not so.
Predicate Emitter::evalPredicate(NodeId id) {
  const Scalar &s = kernel.body[id];
  // Deeper conjunctions are evaluated as one value: `eval` does not recurse.
  constexpr int kMostInside = 32;
  const auto parts = [&](const auto &self, NodeId at, int inside) -> Predicate {
    const Scalar &part = kernel.body[at];
    if (part.op != ScalarOp::And)
      return evalPredicate(at);
    if (inside == kMostInside)
      return reduced(eval(at));
    return both(self(self, part.args[0], inside + 1), self(self, part.args[1], inside + 1));
  };
  if (s.op == ScalarOp::And)
    return parts(parts, id, 0);
  if ((s.op == ScalarOp::Lt || s.op == ScalarOp::Le) && kernel.body[s.args[0]].type == DType::I64) {
    Val x = eval(s.args[0]), y = eval(s.args[1]);
    if (!x.varying && !y.varying && (x.step != 0 || y.step != 0)) {
      const int64_t last = width - 1;
      auto at = [&](const Val &v, int64_t lane) {
        return b.CreateAdd(v.v, b.getInt64(v.step * lane));
      };
      auto compare = [&](Value *p, Value *q) {
        return s.op == ScalarOp::Lt ? b.CreateICmpSLT(p, q) : b.CreateICmpSLE(p, q);
      };
      // y - x is linear, so it is smallest in the first or the last lane.
      bool firstHolds = x.step >= y.step;
      Value *first = compare(at(x, 0), at(y, 0)), *end = compare(at(x, last), at(y, last));
      const Val lanes = eval(id);
      return {lanes, firstHolds ? first : end, firstHolds ? end : first, nullptr, lanes.v};
    }
  }
  return reduced(eval(id));
}

} // namespace fusec
