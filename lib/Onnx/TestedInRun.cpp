#include "Onnx/TestedInRun.h"

#include "Onnx/Compose.h"
#include "Onnx/GraphBuilder.h"

#include <numeric>

namespace fusec {

Status requireNone(NodeImporter &n, ValueId off, DataTest test) {
  Compose make(n);
  FUSEC_TRY(off, make.binary(OpKind::Min, off, make.integer(INT32_MAX)));
  if (const auto known = knownElements(n.graph().value(off)); known && known->front().isConst(0))
    return success();
  const DimExpr size = n.graphBuilder().newTest(n.name(), test);
  FUSEC_TRY([[maybe_unused]] const ValueId told, n.tellSize(size, off));
  return success();
}

Status requireBetween(NodeImporter &n, ValueId numbers, ValueId least, ValueId most,
                      DataTest test) {
  Compose make(n);
  std::vector<int64_t> all(n.shapeOf(numbers).size());
  std::iota(all.begin(), all.end(), 0);
  const ValueId at = make.cast(numbers, DType::I64);
  FUSEC_TRY(const ValueId above, make.binary(OpKind::Sub, at, most));
  FUSEC_TRY(const ValueId below, make.binary(OpKind::Sub, least, at));
  FUSEC_TRY(ValueId outside, make.binary(OpKind::Max, above, below));
  if (!all.empty()) {
    FUSEC_TRY(outside, make.reduce(OpKind::ReduceMax, outside, all));
  }
  FUSEC_TRY(outside, make.binary(OpKind::Max, outside, make.integer(0)));
  return requireNone(n, outside, test);
}

Status requireDeclared(NodeImporter &n, ValueId asked, const Shape &declared,
                       const std::vector<int64_t> &open) {
  if (declared.empty())
    return success();
  Compose make(n);
  // The operator Shape knows sizes that are open, too.
  const auto count = static_cast<int64_t>(declared.size());
  FUSEC_TRY(const ValueId wanted, n.emitOne(OpKind::Shape, {make.filled(DType::Bool, 0, declared)},
                                            {{"start", int64_t(0)}, {"end", count}}));
  const ValueId sizes = n.reshape(make.cast(asked, DType::I64), {DimExpr(count)});
  FUSEC_TRY(const ValueId more, make.binary(OpKind::Sub, sizes, wanted));
  FUSEC_TRY(const ValueId less, make.binary(OpKind::Sub, wanted, sizes));
  FUSEC_TRY(ValueId off, make.binary(OpKind::Max, more, less));
  for (int64_t value : open) {
    FUSEC_TRY(const ValueId isOpen, make.binary(OpKind::Equal, sizes, make.integer(value)));
    FUSEC_TRY(off, make.where(isOpen, make.integer(0), off));
  }
  FUSEC_TRY(off, make.reduce(OpKind::ReduceMax, off, {0}));
  return requireNone(n, off, DataTest::Declared);
}

namespace {

/// The input's sizes as data: the first `count` of them, with ones behind them or, `aligned`, in front where it has
/// fewer.
Result<ValueId> sizesOfInput(NodeImporter &n, int64_t count, bool aligned) {
  Compose make(n);
  const int64_t have = std::min(n.rank(0), count), missing = count - have;
  std::vector<ValueId> parts;
  if (have > 0) {
    FUSEC_TRY(parts.emplace_back(),
              n.emitOne(OpKind::Shape, {n.id(0)}, {{"start", int64_t(0)}, {"end", have}}));
  }
  const ValueId ones = n.intsValue(std::vector<int64_t>(static_cast<size_t>(missing), 1));
  if (missing > 0)
    parts.insert(aligned ? parts.begin() : parts.end(), ones);
  return parts.size() == 1 ? parts[0] : make.concat(parts, 0);
}

} // namespace

Status requireTarget(NodeImporter &n, const Shape &declared, bool allowZero) {
  if (allowZero || declared.empty())
    return requireDeclared(n, n.id(1), declared, {-1});
  Compose make(n);
  FUSEC_TRY(const ValueId copied, sizesOfInput(n, static_cast<int64_t>(declared.size()), false));
  FUSEC_TRY(const ValueId copies, make.binary(OpKind::Equal, n.id(1), make.integer(0)));
  FUSEC_TRY(const ValueId asked, make.where(copies, copied, n.id(1)));
  return requireDeclared(n, asked, declared, {-1});
}

Status requireBroadcast(NodeImporter &n, const Shape &declared) {
  if (n.rank(1) != 1 || !n.shape(1)[0].isConst() || declared.empty())
    return success();
  Compose make(n);
  const auto count = static_cast<int64_t>(declared.size());
  const int64_t given = n.shape(1)[0].constValue();
  ValueId target = n.id(1);
  if (given < count)
    target = make.concat(
        {n.intsValue(std::vector<int64_t>(static_cast<size_t>(count - given), 1)), target}, 0);
  FUSEC_TRY(const ValueId own, sizesOfInput(n, count, true));
  FUSEC_TRY(const ValueId asked, make.binary(OpKind::Max, target, own));
  return requireDeclared(n, asked, declared);
}

} // namespace fusec
