#include "Onnx/Compose.h"
#include "Onnx/Fourier.h"
#include "Onnx/OpTable.h"
#include "Onnx/TestedInRun.h"
#include "Support/Diag.h"

#include <algorithm>

// Fourier transforms of signals whose last axis holds a real number, or a real and an imaginary part.

namespace fusec {
namespace {

/// One meaning that operands known at run time only may have.
struct DftForm {
  int64_t axis;
  DftLength length;
};

/// The number in input `i`, in every type of integer that it may have; nullopt where it is a run-time value.
Result<std::optional<int64_t>> oneNumber(NodeImporter &n, size_t i, const char *what) {
  const std::string text = std::string(what) + " must be one integer";
  if (!isInteger(n.type(i)))
    return n.mismatch(text);
  FUSEC_CHECK(n.oneElement(i, text));
  auto v = n.ints(i);
  return v ? std::optional((*v)[0]) : std::nullopt;
}

/// Lengths of the transform, whose output has `bins` along its axis.
std::vector<int64_t> lengthsOf(int64_t bins, bool halved) {
  if (bins < 1 || bins > INT32_MAX)
    return {};
  if (!halved)
    return {bins};
  std::vector<int64_t> both;
  for (int64_t length : {2 * (bins - 1), 2 * bins - 1})
    if (length >= 1)
      both.push_back(length);
  return both;
}

/// How many entries a transform of `length` has along its axis.
int64_t binsOf(int64_t length, const DftSign &sign) {
  return sign.onesided && !sign.inverse ? length / 2 + 1 : length;
}

/// The length that input `i` gives, where it follows from constants and shapes.
Result<std::optional<DftLength>> lengthOperand(NodeImporter &n, size_t i, const char *name) {
  FUSEC_TRY(const std::optional<int64_t> fixed, oneNumber(n, i, name));
  const auto known = n.known(i);
  if (!known)
    return std::optional<DftLength>();
  const DimExpr length = known->front();
  if (fixed && *fixed < 1)
    return n.fail(Diag::BadOperand, std::string(name) + " is " + std::to_string(*fixed));
  FUSEC_CHECK(n.sizes().noLess(length, DimExpr(1), std::string(name) + " must be positive"));
  Compose c(n);
  DftLength made{length};
  if (!fixed)
    made.number = c.cast(n.reshape(n.id(i), {}), DType::I64);
  return std::optional(made);
}

/// The length of a transform of all numbers of axis `a` of the operand.
Result<DftLength> lengthOfAxis(NodeImporter &n, int64_t a, const DftSign &sign) {
  Compose c(n);
  const DimExpr size = n.shape(0)[static_cast<size_t>(a)];
  const bool isHalf = sign.inverse && sign.onesided;
  FUSEC_CHECK(n.sizes().atLeast(size, isHalf ? 2 : 1, "the axis to transform"));
  if (size.isConst())
    return DftLength{isHalf ? DimExpr(2) * (size - 1) : size};
  FUSEC_TRY(ValueId number, c.extent(n.id(0), a));
  if (!isHalf)
    return DftLength{size, number};
  FUSEC_TRY(number, c.binary(OpKind::Sub, number, c.integer(1)));
  FUSEC_TRY(number, c.binary(OpKind::Add, number, number));
  return DftLength{DimExpr(2) * (size - 1), number};
}

/// All that operands may mean, given the output's declared shape where one of them is a run-time value.
Result<std::vector<DftForm>> dftForms(NodeImporter &n, const DftSign &sign) {
  const int64_t rank = n.rank(0), last = rank - 1;
  const Shape &in = n.shape(0);
  std::optional<int64_t> axis;
  std::optional<DftLength> length;
  if (n.opset() < 20) {
    axis = n.attrInt("axis", 1);
  } else if (!n.has(2)) {
    axis = -2;
  } else {
    FUSEC_TRY(axis, oneNumber(n, 2, "the axis"));
  }
  if (axis) {
    FUSEC_TRY(axis, n.axis(*axis, rank));
    if (*axis == last)
      return n.fail(Diag::BadAttribute, "the last axis holds the parts of a number; it has no "
                                        "transform");
  }
  if (n.has(1)) {
    FUSEC_TRY(length, lengthOperand(n, 1, "dft_length"));
  }
  auto declared = n.declared(0);
  const bool known = axis && (length || !n.has(1));
  if (!known && (!declared || declared->shape.size() != in.size()))
    return n.needsConstant(
        std::string(axis ? "dft_length" : "the axis") +
            " is a run-time value; it must follow from constants and input shapes, or the output's "
            "shape must be declared",
        {1, 2});
  if (known) {
    if (!n.has(1)) {
      FUSEC_TRY(length, lengthOfAxis(n, *axis, sign));
    }
    return std::vector<DftForm>{{*axis, *length}};
  }
  std::vector<DftForm> forms;
  for (int64_t a = axis.value_or(0); a <= axis.value_or(last - 1); ++a) {
    const DimExpr &size = in[static_cast<size_t>(a)],
                  &bins = declared->shape[static_cast<size_t>(a)];
    std::vector<int64_t> lengths;
    if (length && length->size.isConst())
      lengths = {length->size.constValue()};
    else if (!n.has(1) && size.isConst())
      lengths = {sign.inverse && sign.onesided ? 2 * (size.constValue() - 1) : size.constValue()};
    else if (n.has(1) && !length && bins.isConst())
      lengths = lengthsOf(bins.constValue(), sign.onesided && !sign.inverse);
    for (int64_t l : lengths) {
      Shape out = in;
      out[static_cast<size_t>(a)] = DimExpr(binsOf(l, sign));
      out.back() = declared->shape.back();
      if (out == declared->shape)
        forms.push_back({a, {DimExpr(l)}});
    }
  }
  return forms;
}

/// Whether the run-time operands say what `form` says; kNoValue where nothing is left to say.
Result<ValueId> says(NodeImporter &n, const DftForm &form) {
  Compose c(n);
  ValueId all = kNoValue;
  auto demand = [&](ValueId holds) -> Status {
    if (all == kNoValue) {
      all = holds;
      return success();
    }
    FUSEC_TRY(all, c.binary(OpKind::And, all, holds));
    return success();
  };
  auto is = [&](size_t i, int64_t v) {
    return c.binary(OpKind::Equal, c.cast(n.reshape(n.id(i), {}), DType::I64),
                    Compose(n).integer(v));
  };
  if (n.has(2) && n.opset() >= 20 && !n.ints(2)) {
    FUSEC_TRY(ValueId first, is(2, form.axis));
    FUSEC_TRY(ValueId second, is(2, form.axis - n.rank(0)));
    FUSEC_TRY(ValueId either, c.binary(OpKind::Or, first, second));
    FUSEC_CHECK(demand(either));
  }
  if (n.has(1) && !n.known(1)) {
    FUSEC_TRY(ValueId holds, is(1, form.length.size.constValue()));
    FUSEC_CHECK(demand(holds));
  }
  return all;
}

Status dft(NodeImporter &n) {
  DftSign sign{n.attrInt("inverse", 0) != 0, n.attrInt("onesided", 0) != 0};
  if (!isFloat(n.type(0)) || n.rank(0) < 2 ||
      !(n.shape(0).back().isConst(1) || n.shape(0).back().isConst(2)))
    return n.mismatch("the signal must be floats whose last axis holds one or two numbers");
  const bool isComplex = n.shape(0).back().isConst(2);
  if (sign.onesided && sign.inverse != isComplex)
    return n.mismatch(sign.inverse ? "the inverse of a one-sided transform needs complex numbers"
                                   : "a one-sided transform needs real numbers");
  FUSEC_TRY(std::vector<DftForm> forms, dftForms(n, sign));
  if (forms.empty())
    return n.mismatch("no axis and length of a transform fit the declared output");
  Compose c(n);
  ValueId result = kNoValue, isAny = kNoValue;
  for (auto form = forms.rbegin(); form != forms.rend(); ++form) {
    FUSEC_TRY(ValueId y, fourier(n, n.id(0), form->axis, form->length, sign));
    FUSEC_TRY(ValueId chosen, says(n, *form));
    if (result == kNoValue) {
      result = y;
      isAny = chosen;
      continue;
    }
    FUSEC_TRY(result, c.where(chosen, y, result));
    FUSEC_TRY(isAny, c.binary(OpKind::Or, isAny, chosen));
  }
  n.result(0, result);
  if (isAny == kNoValue)
    return success();
  return requireNone(n, c.cast(c.unary(OpKind::Not, isAny), DType::I64), DataTest::Declared);
}

/// frames[b, f, i, parts] = signal[b, f * step + i, parts]
Result<ValueId> frames(NodeImporter &n, const DimExpr &count, const DimExpr &length) {
  Compose c(n);
  const ValueId step = c.cast(n.reshape(n.id(1), {}), DType::I64);
  FUSEC_TRY(ValueId first, c.binary(OpKind::Mul, c.iota(count), step));
  first = n.reshape(first, {count, DimExpr(1)});
  FUSEC_TRY(ValueId place, c.binary(OpKind::Add, first, c.iota(length)));
  return c.gather(n.id(0), place, 1);
}

/// How many frames there are: from the signal's length, or as declared.
Result<DimExpr> frameCount(NodeImporter &n, const DimExpr &length) {
  FUSEC_TRY(const std::optional<int64_t> fixed, oneNumber(n, 1, "frame_step"));
  const auto step = n.known(1);
  const DimExpr size = n.shape(0)[1];
  FUSEC_CHECK(n.sizes().noLess(size, length, "the signal must be as long as a frame"));
  auto declared = n.declared(0);
  if (!step) {
    if (!declared || declared->shape.size() != 4)
      return n.needsConstant("frame_step is a run-time value; it must be constant, or the output's "
                             "shape declared",
                             {1});
    return declared->shape[1];
  }
  if (fixed && *fixed < 1)
    return n.fail(Diag::BadOperand, "frame_step is " + std::to_string(*fixed));
  FUSEC_CHECK(n.sizes().noLess(step->front(), DimExpr(1), "frame_step must be positive"));
  return floorDiv(size - length, step->front()) + 1;
}

/// The lengths that a frame may have, of which frame_length says one where they are several.
Result<std::vector<DftLength>> frameLengths(NodeImporter &n, const DftSign &sign) {
  if (n.has(3)) {
    FUSEC_TRY(const std::optional<DftLength> length, lengthOperand(n, 3, "frame_length"));
    if (length)
      return std::vector{*length};
  }
  if (n.has(2) || !n.has(3)) {
    const size_t i = n.has(2) ? 2 : 0;
    const int64_t axis = n.has(2) ? 0 : 1;
    const DimExpr size = n.shape(i)[static_cast<size_t>(axis)];
    FUSEC_CHECK(n.sizes().atLeast(size, 1, "a frame"));
    if (size.isConst())
      return std::vector<DftLength>{{size}};
    FUSEC_TRY(const ValueId number, Compose(n).extent(n.id(i), axis));
    return std::vector<DftLength>{{size, number}};
  }
  const auto declared = n.declared(0);
  if (!declared || declared->shape.size() != 4 || !declared->shape[2].isConst())
    return n.needsConstant("frame_length is a run-time value; it must follow from constants and "
                           "input shapes, or the output's shape must be declared",
                           {3});
  const int64_t longest = n.shape(0)[1].range(n.symbols()).min;
  std::vector<DftLength> lengths;
  for (int64_t length : lengthsOf(declared->shape[2].constValue(), sign.onesided))
    if (length <= longest)
      lengths.push_back({DimExpr(length)});
  if (lengths.empty())
    return n.mismatch("no length of a frame fits the declared output");
  return lengths;
}

/// Operands that a run alone knows ask for `count` frames, each with one of these numbers of elements.
Status requireFrames(NodeImporter &n, const DimExpr &count, const std::vector<DftLength> &lengths) {
  Compose c(n);
  auto numberOf = [&](const DftLength &length) {
    return length.number == kNoValue ? c.integer(length.size.constValue()) : length.number;
  };
  ValueId length = numberOf(lengths[0]);
  if (n.has(3) && !n.peek(3)) { // where two are declared, one follows the other
    FUSEC_TRY(const ValueId least, c.binary(OpKind::Min, length, numberOf(lengths.back())));
    FUSEC_TRY(const ValueId most, c.binary(OpKind::Max, length, numberOf(lengths.back())));
    length = c.cast(n.reshape(n.id(3), {}), DType::I64);
    FUSEC_CHECK(requireBetween(n, length, least, most, DataTest::Declared));
  }
  if (n.peek(1))
    return success();
  // Steps that do not go forward make no number of frames.
  const ValueId step = c.cast(n.reshape(n.id(1), {}), DType::I64), one = c.integer(1);
  FUSEC_TRY(const ValueId size, c.extent(n.id(0), 1));
  FUSEC_TRY(const ValueId rest, c.binary(OpKind::Sub, size, bounded(n, length)));
  FUSEC_TRY(const ValueId width, c.binary(OpKind::Max, step, one));
  FUSEC_TRY(ValueId asked, c.binary(OpKind::Div, rest, width));
  FUSEC_TRY(asked, c.binary(OpKind::Add, asked, one));
  FUSEC_TRY(const ValueId isWrong, c.binary(OpKind::Less, step, one));
  FUSEC_TRY(asked, c.where(isWrong, c.integer(-1), asked));
  return requireDeclared(n, asked, {count});
}

Status stft(NodeImporter &n) {
  DftSign sign{false, n.attrInt("onesided", 1) != 0};
  const DType type = n.type(0);
  if (!isFloat(type) || n.rank(0) != 3 || !(n.shape(0)[2].isConst(1) || n.shape(0)[2].isConst(2)))
    return n.mismatch("the signal must be floats of the shape [batch, length, 1 or 2]");
  if (sign.onesided && n.shape(0)[2].isConst(2))
    return n.mismatch("a one-sided transform needs real numbers");
  if (n.has(2) && (n.type(2) != type || n.rank(2) != 1))
    return n.mismatch("the window must be a vector of the signal's type");
  FUSEC_TRY(const std::vector<DftLength> lengths, frameLengths(n, sign));
  Compose c(n);
  ValueId result = kNoValue;
  for (const DftLength &length : lengths) {
    if (n.has(2))
      FUSEC_CHECK(n.sizes().sameShape(n.shape(2), {length.size},
                                      "the window must have frame_length numbers"));
    FUSEC_TRY(DimExpr count, frameCount(n, length.size));
    if (result == kNoValue)
      FUSEC_CHECK(requireFrames(n, count, lengths));
    FUSEC_TRY(ValueId x, frames(n, count, length.size));
    if (n.has(2)) {
      FUSEC_TRY(x, c.binary(OpKind::Mul, x, n.reshape(n.id(2), {length.size, DimExpr(1)})));
    }
    FUSEC_TRY(ValueId y, fourier(n, x, 2, length, sign));
    if (result == kNoValue) {
      result = y;
      continue;
    }
    FUSEC_TRY(ValueId chosen, c.binary(OpKind::Equal, c.cast(n.reshape(n.id(3), {}), DType::I64),
                                       Compose(n).integer(length.size.constValue())));
    FUSEC_TRY(result, c.where(chosen, y, result));
  }
  n.result(0, result);
  return success();
}

constexpr const char *kKnown = "a length that follows from constants and shapes, where it is open "
                               "with room for its square, or is declared";

constexpr OpRow kRows[] = {
    {"DFT", 17, 19, 1, 2, 1, dft, kKnown},
    {"DFT", 20, kNewestOpset, 1, 3, 1, dft, kKnown},
    {"STFT", 17, kNewestOpset, 2, 4, 1, stft, kKnown},
};

} // namespace

std::span<const OpRow> signalOps() { return kRows; }

} // namespace fusec
