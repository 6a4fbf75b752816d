#include "Onnx/TestedInRun.h"

#include "Onnx/Compose.h"
#include "Onnx/GraphBuilder.h"
#include "Support/Diag.h"

#include <numeric>

namespace fusec {

ValueId bounded(NodeImporter &n, ValueId numbers) {
  constexpr int64_t kFar = int64_t(1) << 56;
  Compose make(n);
  return make.like(OpKind::Clip, {numbers, make.integer(-kFar), make.integer(kFar)});
}

Status requireNone(NodeImporter &n, ValueId off, DataTest test) {
  Compose make(n);
  FUSEC_TRY(off, make.binary(OpKind::Min, off, make.integer(INT32_MAX)));
  if (const auto known = knownElements(n.graph().value(off)); known && known->front().isConst()) {
    const int64_t value = known->front().constValue();
    return value == 0 ? success() : Status(n.fail(Diag::BadOperand, brokenText(test, value)));
  }
  const DimExpr size = n.graphBuilder().newTest(n.name(), test);
  FUSEC_TRY([[maybe_unused]] const ValueId told, n.tellSize(size, off));
  return success();
}

Status requireBetween(NodeImporter &n, ValueId numbers, ValueId least, ValueId most,
                      DataTest test) {
  Compose make(n);
  std::vector<int64_t> all(n.shapeOf(numbers).size());
  std::iota(all.begin(), all.end(), 0);
  // Indices go from -size to size - 1: one of the two distances below is right where the other overflows.
  const ValueId given = make.cast(numbers, DType::I64);
  const ValueId at = test == DataTest::Indices ? given : bounded(n, given);
  FUSEC_TRY(ValueId outside, make.binary(OpKind::Sub, least, at));
  if (most != kNoValue) {
    FUSEC_TRY(const ValueId above, make.binary(OpKind::Sub, at, most));
    FUSEC_TRY(outside, make.binary(OpKind::Max, outside, above));
  }
  if (!all.empty()) {
    FUSEC_TRY(outside, make.reduce(OpKind::ReduceMax, outside, all));
  }
  FUSEC_TRY(outside, make.binary(OpKind::Max, outside, make.integer(0)));
  return requireNone(n, outside, test);
}

Status requireIndices(NodeImporter &n, ValueId indices, size_t axis) {
  if (!n.graphBuilder().isConditional() && !n.shape(0)[axis].isConst() &&
      numElements(n.shapeOf(indices)).range(n.symbols()).min >= 1)
    FUSEC_CHECK(n.sizes().noLess(n.shape(0)[axis], 1,
                                 "axis " + std::to_string(axis) +
                                     " of the data must be as long as the indices reach"));
  Compose make(n);
  FUSEC_TRY(const ValueId size, make.extent(n.id(0), static_cast<int64_t>(axis)));
  FUSEC_TRY(const ValueId last, make.binary(OpKind::Sub, size, make.integer(1)));
  FUSEC_TRY(const ValueId lowest, make.binary(OpKind::Sub, make.integer(0), size));
  return requireBetween(n, indices, lowest, last, DataTest::Indices);
}

Status requireAxes(NodeImporter &n, ValueId axes) {
  Compose make(n);
  return requireBetween(n, axes, make.integer(-n.rank(0)), make.integer(n.rank(0) - 1),
                        DataTest::Indices);
}

/// The sizes as data: the operator Shape knows those that are open, too.
static Result<ValueId> sizesOf(NodeImporter &n, const Shape &sizes) {
  const auto count = static_cast<int64_t>(sizes.size());
  return n.emitOne(OpKind::Shape, {Compose(n).filled(DType::Bool, 0, sizes)},
                   {{"start", int64_t(0)}, {"end", count}});
}

/// By how much each of `sizes`, an i64 for each of `declared`, is off.
static Result<ValueId> distances(NodeImporter &n, ValueId sizes, const Shape &declared) {
  Compose make(n);
  sizes = bounded(n, sizes);
  FUSEC_TRY(const ValueId wanted, sizesOf(n, declared));
  FUSEC_TRY(const ValueId more, make.binary(OpKind::Sub, sizes, wanted));
  FUSEC_TRY(const ValueId less, make.binary(OpKind::Sub, wanted, sizes));
  return make.binary(OpKind::Max, more, less);
}

Status requireDeclared(NodeImporter &n, ValueId asked, const Shape &declared,
                       std::optional<int64_t> open) {
  if (declared.empty())
    return success();
  Compose make(n);
  const DimExpr count(static_cast<int64_t>(declared.size()));
  const ValueId sizes = n.reshape(make.cast(asked, DType::I64), {count});
  FUSEC_TRY(ValueId off, distances(n, sizes, declared));
  if (!open) {
    FUSEC_TRY(off, make.reduce(OpKind::ReduceMax, off, {0}));
    return requireNone(n, off, DataTest::Declared);
  }
  FUSEC_TRY(const ValueId isOpen, make.binary(OpKind::Equal, sizes, make.integer(*open)));
  FUSEC_TRY(off, make.where(isOpen, make.integer(0), off));
  FUSEC_TRY(off, make.reduce(OpKind::ReduceMax, off, {0}));
  FUSEC_TRY(ValueId many, make.reduce(OpKind::ReduceSum, make.cast(isOpen, DType::I64), {0}));
  FUSEC_TRY(many, make.binary(OpKind::Sub, many, make.integer(1)));
  FUSEC_TRY(off, make.binary(OpKind::Max, off, many));
  return requireNone(n, off, DataTest::Declared);
}

namespace {

constexpr int64_t kNoSize = -2; // that is declared, and not -1, which may leave one open

/// The first `count` of the operand's sizes as data; where it has fewer, `others` stand behind them.
Result<ValueId> sizesOfInput(NodeImporter &n, int64_t count, int64_t others) {
  const int64_t have = std::min(n.rank(0), count);
  std::vector<ValueId> parts;
  if (have > 0) {
    FUSEC_TRY(parts.emplace_back(),
              n.emitOne(OpKind::Shape, {n.id(0)}, {{"start", int64_t(0)}, {"end", have}}));
  }
  if (have < count)
    parts.push_back(n.intsValue(std::vector<int64_t>(static_cast<size_t>(count - have), others)));
  return parts.size() == 1 ? parts[0] : Compose(n).concat(parts, 0);
}

/// How often each of `rank` axes is named by `axes`: i64[rank].
Result<ValueId> timesNamed(NodeImporter &n, ValueId axes, int64_t rank) {
  Compose make(n);
  axes = make.cast(axes, DType::I64);
  FUSEC_TRY(const ValueId isNegative, make.binary(OpKind::Less, axes, make.integer(0)));
  FUSEC_TRY(const ValueId wrapped, make.binary(OpKind::Add, axes, make.integer(rank)));
  FUSEC_TRY(axes, make.where(isNegative, wrapped, axes));
  axes = n.reshape(axes, {n.shapeOf(axes)[0], DimExpr(1)});
  FUSEC_TRY(const ValueId are, make.binary(OpKind::Equal, axes, make.iota(rank)));
  return make.reduce(OpKind::ReduceSum, make.cast(are, DType::I64), {0});
}

/// The last `count` sizes of a list that is as long or shorter, with ones in front.
Result<ValueId> lastSizes(NodeImporter &n, ValueId list, int64_t count) {
  Compose make(n);
  const DimExpr length = n.shapeOf(list)[0];
  const std::vector<int64_t> ones(static_cast<size_t>(count), 1);
  const ValueId longer = make.concat({n.intsValue(ones), list}, 0);
  if (length.isConst())
    return make.slice(longer, 0, length.constValue(), count);
  FUSEC_TRY(const ValueId first, make.extent(list, 0));
  FUSEC_TRY(const ValueId places, make.binary(OpKind::Add, make.iota(count), first));
  return make.gather(longer, places, 0);
}

} // namespace

Status requireReduced(NodeImporter &n, const std::vector<std::vector<int64_t>> &sets, bool noop) {
  if (n.rank(0) == 0)
    return success();
  Compose make(n);
  FUSEC_TRY(const ValueId times, timesNamed(n, n.id(1), n.rank(0)));
  FUSEC_TRY(ValueId isReduced, make.binary(OpKind::Greater, times, make.integer(0)));
  if (!noop) {
    FUSEC_TRY(const ValueId length, make.extent(n.id(1), 0));
    FUSEC_TRY(const ValueId isEmpty, make.binary(OpKind::Equal, length, make.integer(0)));
    FUSEC_TRY(isReduced, make.binary(OpKind::Or, isReduced, isEmpty));
  }
  FUSEC_CHECK(requireAxes(n, n.id(1)));
  FUSEC_TRY(const ValueId own, sizesOfInput(n, n.rank(0), kNoSize));
  FUSEC_TRY(const ValueId asked, make.where(isReduced, make.integer(1), own));
  ValueId least = kNoValue;
  for (const std::vector<int64_t> &axes : sets) {
    FUSEC_TRY(ValueId off, distances(n, asked, reducedShape(n.shape(0), axes, true)));
    FUSEC_TRY(off, make.reduce(OpKind::ReduceMax, off, {0}));
    if (least != kNoValue) {
      FUSEC_TRY(off, make.binary(OpKind::Min, least, off));
    }
    least = off;
  }
  return requireNone(n, least, DataTest::Declared);
}

Status requireSqueezed(NodeImporter &n, const std::vector<int64_t> &axes) {
  Shape times(n.shape(0).size(), DimExpr(0));
  for (int64_t a : axes)
    times[static_cast<size_t>(a)] = DimExpr(1);
  FUSEC_TRY(const ValueId asked, timesNamed(n, n.id(1), n.rank(0)));
  return requireDeclared(n, asked, times);
}

Status requireUnsqueezed(NodeImporter &n, const Shape &declared) {
  Compose make(n);
  const auto rank = static_cast<int64_t>(declared.size());
  FUSEC_TRY(const ValueId times, timesNamed(n, n.id(1), rank));
  FUSEC_TRY(const ValueId isNew, make.binary(OpKind::Greater, times, make.integer(0)));
  // The others are the input's, in order; behind its last one, as where an axis is named twice, there is none.
  const ValueId isOwn = make.cast(make.unary(OpKind::Not, isNew), DType::I64);
  FUSEC_TRY(ValueId place, n.emitOne(OpKind::CumSum, {isOwn, make.integer(0)},
                                     {{"exclusive", int64_t(1)}, {"reverse", int64_t(0)}}));
  FUSEC_TRY(place, make.binary(OpKind::Min, place, make.integer(n.rank(0))));
  FUSEC_TRY(const ValueId sizes, sizesOfInput(n, n.rank(0) + 1, kNoSize));
  FUSEC_TRY(const ValueId own, make.gather(sizes, place, 0));
  FUSEC_TRY(const ValueId asked, make.where(isNew, make.integer(1), own));
  return requireDeclared(n, asked, declared);
}

Status requireTarget(NodeImporter &n, const Shape &declared, bool allowZero) {
  if (allowZero || declared.empty())
    return requireDeclared(n, n.id(1), declared, -1);
  Compose make(n);
  FUSEC_TRY(const ValueId copied, sizesOfInput(n, static_cast<int64_t>(declared.size()), kNoSize));
  FUSEC_TRY(const ValueId copies, make.binary(OpKind::Equal, n.id(1), make.integer(0)));
  FUSEC_TRY(ValueId asked, make.where(copies, copied, n.id(1)));
  // Beside a size of 0, one that is left open could be any.
  FUSEC_TRY(const ValueId isOpen, make.binary(OpKind::Equal, asked, make.integer(-1)));
  FUSEC_TRY(ValueId many, make.reduce(OpKind::ReduceMax, make.cast(isOpen, DType::I64), {0}));
  FUSEC_TRY(const ValueId isEmpty, make.binary(OpKind::Equal, asked, make.integer(0)));
  FUSEC_TRY(const ValueId isWrong, make.binary(OpKind::And, isEmpty, make.cast(many, DType::Bool)));
  FUSEC_TRY(asked, make.where(isWrong, make.integer(kNoSize), asked));
  return requireDeclared(n, asked, declared, -1);
}

Status requireBroadcast(NodeImporter &n, const Shape &declared) {
  const auto count = static_cast<int64_t>(declared.size());
  if (n.type(1) != DType::I64 || n.rank(1) != 1)
    return n.mismatch("the target shape must be a vector of i64");
  const DimExpr length = n.shape(1)[0];
  FUSEC_CHECK(
      n.sizes().noLess(count, length, "the target shape may not be longer than the declared one"));
  if (n.rank(0) < count)
    FUSEC_CHECK(
        n.sizes().noLess(length, count, "the target shape must be as long as the declared one"));
  if (declared.empty())
    return success();
  Compose make(n);
  FUSEC_TRY(const ValueId own,
            n.emitOne(OpKind::Shape, {n.id(0)}, {{"start", int64_t(0)}, {"end", n.rank(0)}}));
  FUSEC_TRY(const ValueId sizes, lastSizes(n, own, count));
  FUSEC_TRY(const ValueId target, lastSizes(n, n.id(1), count));
  FUSEC_TRY(const ValueId isOne, make.binary(OpKind::Equal, target, make.integer(1)));
  FUSEC_TRY(const ValueId asked, make.where(isOne, sizes, target));
  return requireDeclared(n, asked, declared);
}

Status requireRepeated(NodeImporter &n, const Shape &declared) {
  if (declared.empty())
    return success();
  Compose make(n);
  FUSEC_TRY(const ValueId own, sizesOfInput(n, n.rank(0), kNoSize));
  // More than this many of an element are too many, and their product may overflow.
  FUSEC_TRY(const ValueId wanted, sizesOf(n, declared));
  FUSEC_TRY(const ValueId most, make.binary(OpKind::Add, wanted, make.integer(1)));
  FUSEC_TRY(const ValueId times, make.binary(OpKind::Min, n.id(1), most));
  FUSEC_TRY(ValueId asked, make.binary(OpKind::Mul, own, times));
  FUSEC_TRY(const ValueId isWrong, make.binary(OpKind::Less, n.id(1), make.integer(0)));
  FUSEC_TRY(asked, make.where(isWrong, make.integer(kNoSize), asked));
  return requireDeclared(n, asked, declared);
}

} // namespace fusec
