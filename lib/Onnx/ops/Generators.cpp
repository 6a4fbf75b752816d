#include "Onnx/Compose.h"
#include "Onnx/GraphBuilder.h"
#include "Onnx/OpTable.h"
#include "Onnx/TestedInRun.h"
#include "Support/Diag.h"

#include <cmath>

// Operators that make tensors out of parameters.

namespace fusec {
namespace {

Status constant(NodeImporter &n) {
  ConstantRef c;
  int given = 0;
  if (n.hasAttribute("value")) {
    c = n.attrTensor("value");
    ++given;
  }
  if (n.hasAttribute("value_int")) {
    c = makeIntConstant({}, {n.attrInt("value_int")});
    ++given;
  }
  if (n.hasAttribute("value_ints")) {
    std::vector<int64_t> v = n.attrInts("value_ints");
    c = makeIntConstant({static_cast<int64_t>(v.size())}, v);
    ++given;
  }
  if (n.hasAttribute("value_float")) {
    c = makeScalarConstant(DType::F32, n.attrFloat("value_float"));
    ++given;
  }
  if (n.hasAttribute("value_floats")) {
    std::vector<uint8_t> data;
    std::vector<double> v = n.attrFloats("value_floats");
    for (double x : v)
      appendElement(data, DType::F32, x);
    c = makeConstant(DType::F32, {static_cast<int64_t>(v.size())}, std::move(data));
    ++given;
  }
  if (n.hasAttribute("value_string") || n.hasAttribute("value_strings"))
    return n.fail(Diag::UnsupportedType, "element type string is not supported");
  if (n.hasAttribute("sparse_value")) {
    c = n.attrSparseTensor("sparse_value");
    ++given;
  }
  if (given != 1)
    return n.fail(Diag::BadAttribute, "exactly one value is needed");
  if (!c)
    return success(); // recorded in n.errors
  n.result(0, n.constantValue(c));
  return success();
}

Status constantOfShape(NodeImporter &n) {
  ConstantRef value =
      n.hasAttribute("value") ? n.attrTensor("value") : makeScalarConstant(DType::F32, 0);
  if (!value)
    return success(); // recorded in n.errors
  if (value->numElements() != 1)
    return n.fail(Diag::BadAttribute, "value must have one element");
  if (n.rank(0) != 1 || n.type(0) != DType::I64)
    return n.mismatch("the shape must be a vector of i64");
  auto wanted = n.known(0);
  Shape out;
  if (wanted) {
    out = *wanted;
  } else if (auto declared = n.declared(0);
             declared && n.shape(0)[0].isConst(static_cast<int64_t>(declared->shape.size()))) {
    out = declared->shape;
    FUSEC_CHECK(requireDeclared(n, n.id(0), out));
  } else {
    return n.needsConstant("the shape is a run-time value; it must follow from constants and "
                           "input shapes",
                           {0});
  }
  std::vector<uint8_t> bytes(value->bytes, value->bytes + value->sizeBytes);
  ConstantRef scalar = makeConstant(value->type, {}, std::move(bytes));
  std::vector<ValueId> in;
  if (ValueId operand = n.shapeOperand(out); operand != kNoValue)
    in.push_back(operand);
  return n.finish(OpKind::ConstantOfShape, std::move(in), {{"value", scalar}}, {out});
}

/// How many floats from start to limit, by delta, there are: an i64.
Result<ValueId> countOfFloats(NodeImporter &n, ValueId start, ValueId limit, ValueId delta) {
  Compose c(n);
  FUSEC_TRY(const ValueId span, c.binary(OpKind::Sub, limit, start));
  FUSEC_TRY(const ValueId steps,
            c.binary(OpKind::Div, c.cast(span, DType::F64), c.cast(delta, DType::F64)));
  FUSEC_TRY(const ValueId count,
            c.binary(OpKind::Max, c.unary(OpKind::Ceil, steps), c.scalar(DType::F64, 0)));
  return c.cast(count, DType::I64);
}

/// How many integers from `low` on there are before `high`, `width` apart: all i64. Where the two are 2^63 or more
/// apart, there are -1.
Result<ValueId> countOfIntegers(NodeImporter &n, ValueId low, ValueId high, ValueId width) {
  Compose c(n);
  const ValueId zero = c.integer(0), one = c.integer(1);
  FUSEC_TRY(const ValueId apart, c.binary(OpKind::Sub, high, low));
  // A difference that overflows has another sign than `high`, whose sign is not that of `low`.
  FUSEC_TRY(const ValueId isLowNegative, c.binary(OpKind::Less, low, zero));
  FUSEC_TRY(const ValueId isHighNegative, c.binary(OpKind::Less, high, zero));
  FUSEC_TRY(const ValueId isApartNegative, c.binary(OpKind::Less, apart, zero));
  FUSEC_TRY(const ValueId areUnlike, c.binary(OpKind::Xor, isLowNegative, isHighNegative));
  FUSEC_TRY(const ValueId isTurned, c.binary(OpKind::Xor, isApartNegative, isHighNegative));
  FUSEC_TRY(const ValueId isFar, c.binary(OpKind::And, areUnlike, isTurned));
  FUSEC_TRY(const ValueId span, c.binary(OpKind::Max, apart, zero));
  // (max(span, 1) - 1) / width + 1, which does not overflow, but where there is none.
  FUSEC_TRY(ValueId count, c.binary(OpKind::Max, span, one));
  FUSEC_TRY(count, c.binary(OpKind::Sub, count, one));
  FUSEC_TRY(count, c.binary(OpKind::Div, count, width));
  FUSEC_TRY(count, c.binary(OpKind::Add, count, one));
  FUSEC_TRY(count, c.binary(OpKind::Min, count, span));
  return c.where(isFar, c.integer(-1), count);
}

/// How many numbers from start to limit, by delta, there are: an i64. By 0 there are -1, which no run has.
Result<ValueId> countOfRange(NodeImporter &n, ValueId start, ValueId limit, ValueId delta) {
  Compose c(n);
  const ValueId zero = c.scalar(n.typeOf(delta), 0);
  FUSEC_TRY(const ValueId stands, c.binary(OpKind::Equal, delta, zero));
  ValueId count = kNoValue;
  if (isFloat(n.typeOf(start))) {
    FUSEC_TRY(count, countOfFloats(n, start, limit, delta));
  } else {
    for (ValueId *operand : {&start, &limit, &delta})
      *operand = c.cast(*operand, DType::I64);
    FUSEC_TRY(const ValueId isDown, c.binary(OpKind::Less, delta, c.integer(0)));
    FUSEC_TRY(const ValueId low, c.where(isDown, limit, start));
    FUSEC_TRY(const ValueId high, c.where(isDown, start, limit));
    FUSEC_TRY(count, countOfIntegers(n, low, high, c.unary(OpKind::Abs, delta)));
  }
  return c.where(stands, c.integer(-1), count);
}

/// Why the length of a Range has no bound.
Diagnostic unknownLength(NodeImporter &n, const DimExpr &size) {
  const std::string text =
      "the length of the range must follow from constants and input shapes, or "
      "have an upper bound: --dim " +
      size.str(n.symbols()) + "=0..N";
  Shape open;
  for (size_t i = 0; i < 3; ++i)
    if (auto known = n.peek(i))
      open.insert(open.end(), known->begin(), known->end());
  return open.size() == 3 ? n.needsFixed(text, open) : n.needsConstant(text, {0, 1, 2});
}

/// A range whose length depends on data. Nothing bounds it but what --dim says.
Status rangeByData(NodeImporter &n) {
  ValueId operands[3];
  for (size_t i = 0; i < 3; ++i)
    operands[i] = n.reshape(n.id(i), {});
  FUSEC_TRY(const ValueId count, countOfRange(n, operands[0], operands[1], operands[2]));
  FUSEC_TRY(const DimExpr size, n.dataSize(count, DimExpr(INT64_MAX), 0, 0));
  if (atBounds(size, n.symbols()).isConst(INT64_MAX))
    return unknownLength(n, size);
  return n.finish(OpKind::Range, {operands[0], kNoValue, operands[2]}, {}, {{size}});
}

/// Always positive, always negative, or 0.
bool hasSign(const DimExpr &d, const std::vector<Symbol> &symbols) {
  const DimExpr::Range r = d.range(symbols);
  return r.min > 0 || r.max < 0 || d.isConst();
}

/// How many numbers from `start` on come before `limit`, in steps of `delta`, all of them floats that follow from
/// shapes.
std::optional<DimExpr> lengthOfFloats(NodeImporter &n) {
  using Op = DimProgram::Op;
  KnownValues &values = n.graphBuilder().knownValues;
  HostNumbers &numbers = values.numbers;
  std::array<HostNumbers::Id, 3> operands{};
  for (size_t i = 0; i < 3; ++i) {
    const auto elements = values.elements(n.id(i));
    const auto wide = elements ? numbers.cast(DType::F64, elements->front()) : std::nullopt;
    if (!wide)
      return std::nullopt;
    operands[i] = *wide;
  }
  auto made = numbers.apply(Op::Sub, DType::F64, {operands[1], operands[0], -1});
  if (made)
    made = numbers.apply(Op::Div, DType::F64, {*made, operands[2], -1});
  if (made)
    made = numbers.apply(Op::Ceil, DType::F64, {*made, -1, -1});
  if (made)
    made = numbers.cast(DType::I64, *made);
  if (made)
    made = numbers.apply(Op::Max, DType::I64, {*made, numbers.integer(DType::I64, 0), -1});
  return made ? n.sizeOf(*made) : std::nullopt;
}

Status range(NodeImporter &n) {
  const char *text = "start, limit and delta must be scalars of one type";
  for (size_t i = 0; i < 3; ++i) {
    if (n.type(i) != n.type(0))
      return n.mismatch(text);
    FUSEC_CHECK(n.oneElement(i, text));
  }
  DimExpr count;
  const auto ofFloats = isFloat(n.type(0)) ? lengthOfFloats(n) : std::nullopt;
  auto start = n.known(0), limit = n.known(1), delta = n.known(2);
  ConstantRef cs = n.constant(0), cl = n.constant(1), cd = n.constant(2);
  if (cs && cl && cd && isFloat(n.type(0))) {
    double steps = std::ceil((cl->floatAt(0) - cs->floatAt(0)) / cd->floatAt(0));
    if (!(steps < 1e12))
      return n.fail(Diag::BadOperand, "the range has no end");
    count = DimExpr(static_cast<int64_t>(std::max(steps, 0.0)));
  } else if (ofFloats) {
    count = *ofFloats;
  } else if (start && limit && delta && hasSign((*delta)[0], n.symbols())) {
    const DimExpr &step = (*delta)[0];
    if (step.isConst(0))
      return n.fail(Diag::BadOperand, "delta is 0");
    if (step.isConst() && (*start)[0].isConst() && (*limit)[0].isConst()) {
      const int64_t d = step.constValue();
      auto a = static_cast<__int128>((*start)[0].constValue()),
           b = static_cast<__int128>((*limit)[0].constValue());
      __int128 steps = d > 0 ? (b - a + d - 1) / d : (a - b - d - 1) / -static_cast<__int128>(d);
      if (steps > (int64_t(1) << 40))
        return n.fail(Diag::LimitExceeded, "the range has more than 2^40 elements");
      count =
          DimExpr(static_cast<int64_t>(std::max<__int128>((d > 0 ? b > a : a > b) ? steps : 0, 0)));
    } else {
      const bool up = step.range(n.symbols()).min > 0;
      const DimExpr span = up ? (*limit)[0] - (*start)[0] : (*start)[0] - (*limit)[0];
      count = ceilDiv(span, up ? step : step * DimExpr(-1));
      if (count.range(n.symbols()).min < 0)
        count = max(count, DimExpr(0));
    }
  } else if (auto declared = n.declared(0); declared && declared->shape.size() == 1) {
    count = declared->shape[0];
    FUSEC_TRY(const ValueId asked, countOfRange(n, n.reshape(n.id(0), {}), n.reshape(n.id(1), {}),
                                                n.reshape(n.id(2), {})));
    FUSEC_CHECK(requireDeclared(n, asked, {count}));
  } else {
    return rangeByData(n);
  }
  ValueId limitOperand = cl ? n.reshape(n.id(1), {}) : kNoValue;
  return n.finish(OpKind::Range, {n.reshape(n.id(0), {}), limitOperand, n.reshape(n.id(2), {})}, {},
                  {{count}});
}

Status eyeLike(NodeImporter &n) {
  return n.finish(OpKind::EyeLike, {n.id(0)}, {{"dtype", n.attrType("dtype").value_or(n.type(0))}});
}

/// The number in input `i` (a float: towards zero), which is a size of the output: a constant, what follows from
/// shapes, or `declared`, which the data then has to say.
Result<DimExpr> sizeOperand(NodeImporter &n, size_t i, const char *name,
                            const std::optional<DimExpr> &declared) {
  FUSEC_CHECK(n.oneElement(i, std::string(name) + " must be one number"));
  const ValueId whole = isFloat(n.type(i)) ? Compose(n).cast(n.id(i), DType::I64) : n.id(i);
  if (const auto known = n.knownOf(whole))
    return known->front();
  if (!declared || !declared->isConst())
    return n.needsConstant(std::string(name) +
                               " is a run-time value; it must follow from constants and input "
                               "shapes",
                           {i});
  FUSEC_CHECK(requireDeclared(n, whole, {*declared}));
  return *declared;
}

/// What a node takes for such a size: its own number where that is fixed.
ValueId operandOf(NodeImporter &n, size_t i, const DimExpr &size) {
  return size.isConst() ? Compose(n).integer(size.constValue()) : n.reshape(n.id(i), {});
}

Status oneHot(NodeImporter &n) {
  int64_t rank = n.rank(0) + 1;
  FUSEC_TRY(int64_t axis, n.axis(n.attrInt("axis", -1), rank));
  const auto declared = n.declared(0);
  const auto place = static_cast<size_t>(axis);
  FUSEC_TRY(const DimExpr depth,
            sizeOperand(n, 1, "depth",
                        declared && static_cast<int64_t>(declared->shape.size()) == rank
                            ? std::optional(declared->shape[place])
                            : std::nullopt));
  if (depth.isConst() && (depth.constValue() < 1 || depth.constValue() > int64_t(1) << 40))
    return n.fail(Diag::BadOperand, "depth must be positive");
  FUSEC_CHECK(n.sizes().noLess(depth, DimExpr(1), "depth must be positive"));
  Shape out = n.shape(0);
  out.insert(out.begin() + axis, depth);
  return n.finish(OpKind::OneHot, {n.id(0), operandOf(n, 1, depth), n.id(2)}, {{"axis", axis}},
                  {out});
}

Status window(NodeImporter &n) {
  DType type = n.attrType("output_datatype").value_or(DType::F32);
  const auto declared = n.declared(0);
  FUSEC_TRY(const DimExpr size,
            sizeOperand(n, 0, "the size",
                        declared && declared->shape.size() == 1 ? std::optional(declared->shape[0])
                                                                : std::nullopt));
  if (size.isConst() && (size.constValue() < 0 || size.constValue() > int64_t(1) << 32))
    return n.fail(Diag::BadOperand, "the size is out of range");
  return n.finish(*parseOpKind(n.op()), {operandOf(n, 0, size)}, {{"output_datatype", type}},
                  {{size}});
}

constexpr OpRow kRows[] = {
    {"BlackmanWindow", 17, kNewestOpset, 1, 1, 1, window,
     "a size that follows from constants and shapes, or is declared"},
    {"Constant", 1, kNewestOpset, 0, 0, 1, constant},
    {"ConstantOfShape", 9, kNewestOpset, 1, 1, 1, constantOfShape,
     "shape known at compile time or declared"},
    {"EyeLike", 9, kNewestOpset, 1, 1, 1, eyeLike},
    {"HammingWindow", 17, kNewestOpset, 1, 1, 1, window,
     "a size that follows from constants and shapes, or is declared"},
    {"HannWindow", 17, kNewestOpset, 1, 1, 1, window,
     "a size that follows from constants and shapes, or is declared"},
    {"OneHot", 9, kNewestOpset, 3, 3, 1, oneHot,
     "a depth that follows from constants and shapes, or is declared"},
    {"Range", 11, kNewestOpset, 3, 3, 1, range,
     "a length that depends on data needs a bound by --dim"},
};

} // namespace

std::span<const OpRow> generatorOps() { return kRows; }

} // namespace fusec
