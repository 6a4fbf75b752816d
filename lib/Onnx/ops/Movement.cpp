#include "Onnx/Compose.h"
#include "Onnx/DeclaredRank.h"
#include "Onnx/DimTools.h"
#include "Onnx/GraphBuilder.h"
#include "Onnx/OpTable.h"
#include "Onnx/TestedInRun.h"
#include "Support/Diag.h"

#include <algorithm>
#include <numeric>

// Reshape and its kin, Transpose, Concat, Split, Expand, Tile.

namespace fusec {
namespace {

constexpr const char *kOpenTarget =
    "the target shape is a run-time value; it must follow from constants and input shapes";

/// Emits an operator whose second operand only describes the output's shape.
Status finishShaped(NodeImporter &n, OpKind op, Shape out) {
  std::vector<ValueId> in{n.id(0)};
  if (ValueId operand = n.shapeOperand(out); operand != kNoValue)
    in.push_back(operand);
  return n.finish(op, std::move(in), {}, {std::move(out)});
}

/// A size of the target that is 0 in a run copies one of the operand too, which then has to be 0 itself.
Status requireNoCopy(NodeImporter &n, const std::vector<DimExpr> &wanted) {
  const Shape in = n.shape(0);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].isConst())
      continue;
    if (i < in.size())
      if (const DimExpr times = floorDiv(wanted[i], in[i]);
          times.isConst() && times * in[i] == wanted[i])
        continue; // they are 0 together
    const DimExpr least = i < in.size() ? min(in[i], DimExpr(1)) : DimExpr(1);
    FUSEC_CHECK(n.sizes().noLess(
        wanted[i], least, "a size of the target shape may be 0 only where the operand's is"));
  }
  return success();
}

/// The target dims of a Reshape: 0 copies a dim, -1 takes what is left.
Result<Shape> reshapeTarget(NodeImporter &n, const std::vector<DimExpr> &wanted, bool allowZero) {
  const Shape &in = n.shape(0);
  Shape out;
  std::optional<size_t> rest;
  for (size_t i = 0; i < wanted.size(); ++i) {
    DimExpr d = wanted[i];
    if (d.isConst(-1)) {
      if (rest)
        return n.fail(Diag::BadOperand, "the target shape has two -1");
      rest = i;
      d = DimExpr(1);
    } else if (d.isConst(0) && !allowZero) {
      if (i >= in.size())
        return n.fail(Diag::BadOperand,
                      "the target shape copies a dimension that the operand lacks");
      d = in[i];
    } else if (d.isConst() && d.constValue() < 0) {
      return n.fail(Diag::BadOperand,
                    "the target shape has the size " + std::to_string(d.constValue()));
    }
    out.push_back(d);
  }
  if (rest) {
    auto size = exactQuotient(in, out, n.symbols());
    auto missing = missingDivisor(in, out);
    const DimExpr others = numElements(out);
    if (!n.graphBuilder().isInLoop())
      for (const DimExpr &d : out)
        FUSEC_CHECK(
            n.sizes().noLess(d, DimExpr(1), "beside -1 the target shape must have no size of 0"));
    out[*rest] = size.value_or(DimExpr(-1));
    if (size)
      return out;
    std::string target = "the target shape " + typeText(n.type(0), out, n.symbols());
    if (isStatic(in) && isStatic(out))
      return n.mismatch("the operand's elements do not divide into " + target);
    if (missing && missing->first.op() == DimExpr::Op::Symbol)
      FUSEC_CHECK(
          n.sizes().multiple(missing->first, missing->second, "for " + target + " one size"));
    out[*rest] = floorDiv(numElements(in), others); // that the numbers agree is the operator's rule
    return out;
  }
  if (isStatic(in) && isStatic(out) && numElements(in) != numElements(out))
    return n.mismatch("the target shape " + typeText(n.type(0), out, n.symbols()) +
                      " has another number of elements");
  return out;
}

Status reshape(NodeImporter &n) {
  bool allowZero = n.attrInt("allowzero", 0) != 0;
  Shape out;
  if (n.opset() < 5) {
    std::vector<int64_t> shape = n.attrInts("shape");
    FUSEC_TRY(out, reshapeTarget(n, {shape.begin(), shape.end()}, false));
  } else {
    if (!n.has(1) || n.type(1) != DType::I64 || n.rank(1) != 1)
      return n.mismatch("the target shape must be a vector of i64");
    if (auto wanted = n.known(1)) {
      if (!allowZero && !n.graphBuilder().isInLoop())
        FUSEC_CHECK(requireNoCopy(n, *wanted));
      FUSEC_TRY(out, reshapeTarget(n, *wanted, allowZero));
    } else if (auto declared = n.declared(0);
               declared && n.shape(1)[0].isConst(static_cast<int64_t>(declared->shape.size())) &&
               numElements(declared->shape) == numElements(n.shape(0))) {
      out = declared->shape;
      FUSEC_CHECK(requireTarget(n, out, allowZero));
    } else {
      return n.needsConstant(kOpenTarget, {1});
    }
  }
  return finishShaped(n, OpKind::Reshape, std::move(out));
}

Status flatten(NodeImporter &n) {
  int64_t rank = n.rank(0), axis = n.attrInt("axis", 1);
  if (axis < -rank || axis > rank)
    return n.fail(Diag::BadAttribute, "axis " + std::to_string(axis) + " is out of range");
  return n.finish(OpKind::Flatten, {n.id(0)}, {{"axis", axis < 0 ? axis + rank : axis}});
}

/// Axes of Squeeze and Unsqueeze: an attribute before opset 13.
Result<std::optional<std::vector<int64_t>>> axesOperand(NodeImporter &n) {
  if (n.opset() < 13)
    return n.hasAttribute("axes") ? std::optional(n.attrInts("axes")) : std::nullopt;
  return n.has(1) ? n.ints(1) : std::nullopt;
}

Status squeeze(NodeImporter &n) {
  FUSEC_TRY(auto given, axesOperand(n));
  const Shape &in = n.shape(0);
  std::vector<int64_t> axes;
  if (given) {
    FUSEC_TRY(axes, n.axes(*given, n.rank(0)));
  } else if (!n.has(1)) {
    FUSEC_TRY(axes, squeezedAxes(n));
  } else {
    auto declared = n.declared(0);
    for (size_t i = 0; i < in.size(); ++i)
      if (in[i].isConst(1))
        axes.push_back(static_cast<int64_t>(i));
    // A run-time list of axes can be followed only when it must name all axes of size 1.
    if (!declared || declared->shape.size() != in.size() - axes.size() ||
        n.shape(1) != Shape{DimExpr(static_cast<int64_t>(axes.size()))})
      return n.needsConstant("the axes are a run-time value; they must be constant", {1});
    FUSEC_CHECK(requireSqueezed(n, axes));
  }
  return n.finish(OpKind::Squeeze, {n.id(0)}, {{"axes", axes}});
}

Status unsqueeze(NodeImporter &n) {
  FUSEC_TRY(auto given, axesOperand(n));
  if (!given) {
    // Any placement of size-1 axes that gives the declared shape means the same data.
    auto declared = n.declared(0);
    const Shape &in = n.shape(0);
    if (!n.has(1) || !declared)
      return n.needsConstant("the axes are missing or a run-time value; they must be constant",
                             {1});
    std::vector<int64_t> axes;
    size_t next = 0;
    for (size_t i = 0; i < declared->shape.size(); ++i) {
      if (next < in.size() && declared->shape[i] == in[next])
        ++next;
      else if (declared->shape[i].isConst(1))
        axes.push_back(static_cast<int64_t>(i));
      else
        return n.mismatch("the declared output shape does not fit");
    }
    if (next != in.size() || n.shape(1) != Shape{DimExpr(static_cast<int64_t>(axes.size()))})
      return n.mismatch("the declared output shape does not fit");
    FUSEC_CHECK(requireUnsqueezed(n, declared->shape));
    given = axes;
  }
  int64_t rank = n.rank(0) + static_cast<int64_t>(given->size());
  FUSEC_TRY(std::vector<int64_t> axes, n.axes(*given, rank));
  return n.finish(OpKind::Unsqueeze, {n.id(0)}, {{"axes", axes}});
}

Status reverseSequence(NodeImporter &n) {
  FUSEC_TRY(const int64_t axis, n.axis(n.attrInt("time_axis", 0), n.rank(0)));
  Compose make(n);
  FUSEC_TRY(const ValueId size, make.extent(n.id(0), axis));
  FUSEC_CHECK(requireBetween(n, n.id(1), make.integer(0), size, DataTest::Lengths));
  return sameOperator(n);
}

Status transpose(NodeImporter &n) {
  std::vector<int64_t> perm(static_cast<size_t>(n.rank(0)));
  std::iota(perm.rbegin(), perm.rend(), 0);
  return n.finish(OpKind::Transpose, {n.id(0)}, {{"perm", n.attrInts("perm", perm)}});
}

Status concat(NodeImporter &n) {
  FUSEC_TRY(int64_t axis,
            n.axis(n.opset() < 4 ? n.attrInt("axis", 1) : n.attrInt("axis"), n.rank(0)));
  return n.finish(OpKind::Concat, n.ids(), {{"axis", axis}});
}

Status split(NodeImporter &n) {
  FUSEC_TRY(int64_t axis, n.axis(n.attrInt("axis", 0), n.rank(0)));
  auto a = static_cast<size_t>(axis);
  const DimExpr size = n.shape(0)[a];
  auto parts = static_cast<int64_t>(n.numOutputs());
  std::optional<std::vector<DimExpr>> sizes;
  if (n.hasAttribute("split")) {
    const std::vector<int64_t> given = n.attrInts("split");
    sizes.emplace(given.begin(), given.end());
  }
  int64_t asked = n.attrInt("num_outputs", parts);
  if (asked != parts)
    return n.fail(Diag::BadAttribute, "num_outputs is " + std::to_string(asked) +
                                          ", the node has " + std::to_string(parts) + " outputs");
  if (n.has(1)) {
    sizes = n.known(1);
    if (!sizes) {
      sizes.emplace();
      for (size_t i = 0; i < n.numOutputs(); ++i) {
        auto declared = n.declared(i);
        if (!declared || declared->shape.size() <= a || !declared->shape[a].isConst())
          return n.needsConstant("the sizes are a run-time value; they must be constant", {1});
        sizes->push_back(declared->shape[a]);
      }
      if (n.shape(1) != Shape{DimExpr(parts)})
        return n.mismatch("the parts' sizes must be as many as the outputs and sum to the axis");
      FUSEC_CHECK(requireDeclared(n, n.id(1), *sizes));
    }
  }
  std::vector<DimExpr> dims;
  if (sizes) {
    dims = *sizes;
    int64_t total = 0;
    for (const DimExpr &s : dims)
      if (s.range(n.symbols()).max < 0 ||
          (s.isConst() && __builtin_add_overflow(total, s.constValue(), &total)))
        return n.fail(Diag::BadOperand, "a part has the size " + s.str(n.symbols()));
    if (static_cast<int64_t>(dims.size()) != parts)
      return n.mismatch("the parts' sizes must be as many as the outputs and sum to the axis");
  } else if (size.isConst()) {
    int64_t each = (size.constValue() + parts - 1) / parts, left = size.constValue();
    if (n.opset() < 18 && each * parts != left)
      return n.mismatch("the axis does not divide into " + std::to_string(parts) + " equal parts");
    for (int64_t i = 0; i < parts; ++i, left -= dims.back().constValue())
      dims.push_back(std::min(each, left));
  } else if (n.opset() >= 18 && !size.divisibleBy(parts, n.symbols()) &&
             n.require({SizeRule::Kind::AtLeast,
                        size,
                        ceilDiv(size, DimExpr(parts)) * DimExpr(parts - 1) + DimExpr(1),
                        {},
                        {},
                        "each of the parts must have an element"},
                       Need::Case)) {
    const DimExpr each = ceilDiv(size, DimExpr(parts));
    dims.assign(static_cast<size_t>(parts), each);
    dims.back() = size - each * DimExpr(parts - 1);
  } else { // that it divides is the operator's rule
    dims.assign(static_cast<size_t>(parts), floorDiv(size, DimExpr(parts)));
  }
  std::vector<Shape> shapes(dims.size(), n.shape(0));
  for (size_t i = 0; i < dims.size(); ++i)
    shapes[i][a] = dims[i];
  return n.finish(OpKind::Split, {n.id(0)}, {{"axis", axis}}, std::move(shapes));
}

Status expand(NodeImporter &n) {
  auto wanted = n.known(1);
  if (!wanted) {
    auto declared = n.declared(0);
    if (!declared)
      return n.needsConstant(kOpenTarget, {1});
    FUSEC_TRY(Shape both, n.broadcast({&n.shape(0), &declared->shape}));
    FUSEC_CHECK(requireBroadcast(n, both));
    return finishShaped(n, OpKind::Expand, std::move(both));
  }
  for (const DimExpr &d : *wanted)
    if (d.isConst() && d.constValue() < 0)
      return n.fail(Diag::BadOperand, "the target shape has a negative size");
  FUSEC_TRY(Shape out, n.broadcast({&n.shape(0), &*wanted}));
  return finishShaped(n, OpKind::Expand, std::move(out));
}

Status tile(NodeImporter &n) {
  if (n.opset() < 6)
    return n.unsupported("the form of Tile before opset 6");
  if (n.rank(1) != 1 || n.shape(1)[0] != DimExpr(n.rank(0)))
    return n.mismatch("one repeat count for each axis is needed");
  auto repeats = n.known(1);
  Shape out;
  if (repeats) {
    for (size_t i = 0; i < repeats->size(); ++i) {
      const DimExpr &r = (*repeats)[i];
      if (r.isConst() && r.constValue() < 0)
        return n.fail(Diag::BadOperand, "a repeat count is negative");
      int64_t checked;
      if (r.isConst() && n.shape(0)[i].isConst() &&
          (__builtin_mul_overflow(r.constValue(), n.shape(0)[i].constValue(), &checked)))
        return n.fail(Diag::LimitExceeded, "the output is too large");
      out.push_back(n.shape(0)[i] * r);
    }
  } else if (auto declared = n.declared(0);
             declared && declared->shape.size() == n.shape(0).size()) {
    out = declared->shape;
    FUSEC_CHECK(requireRepeated(n, out));
  } else {
    return n.needsConstant("the repeat counts are a run-time value; they must follow from "
                           "constants and input shapes",
                           {1});
  }
  std::vector<ValueId> in{n.id(0)};
  if (repeats && n.constant(1)) {
    in.push_back(n.id(1));
  } else if (isStatic(out) && isStatic(n.shape(0)) && !numElements(n.shape(0)).isConst(0)) {
    std::vector<int64_t> counts;
    for (size_t i = 0; i < out.size(); ++i)
      counts.push_back(out[i].constValue() / n.shape(0)[i].constValue());
    in.push_back(n.intsValue(counts));
  }
  return n.finish(OpKind::Tile, std::move(in), {}, {std::move(out)});
}

Status shape(NodeImporter &n) {
  int64_t rank = n.rank(0), start = n.attrInt("start", 0), end = n.attrInt("end", rank);
  auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  start = clamp(start);
  end = std::max(clamp(end), start);
  return n.finish(OpKind::Shape, {n.id(0)}, {{"start", start}, {"end", end}});
}

/// A diagonal that is known at run time only: column - row is compared with it.
Status triluByMask(NodeImporter &n) {
  Compose c(n);
  const Shape s = n.shape(0);
  ValueId rows = n.reshape(c.iota(s[s.size() - 2]), {s[s.size() - 2], DimExpr(1)});
  FUSEC_TRY(ValueId offset, c.binary(OpKind::Sub, c.iota(s.back()), rows));
  const OpKind keeps = n.attrInt("upper", 1) ? OpKind::GreaterOrEqual : OpKind::LessOrEqual;
  FUSEC_TRY(ValueId kept, c.binary(keeps, offset, n.reshape(n.id(1), {})));
  FUSEC_TRY(ValueId y, c.where(kept, n.id(0), c.scalar(n.type(0), 0)));
  n.result(0, y);
  return success();
}

Status trilu(NodeImporter &n) {
  if (n.rank(0) < 2)
    return n.mismatch("the operand must be at least a matrix");
  std::vector<ValueId> in{n.id(0)};
  if (n.has(1)) {
    const char *text = "the diagonal must be one number of type i64";
    if (n.type(1) != DType::I64)
      return n.mismatch(text);
    FUSEC_CHECK(n.oneElement(1, text));
    if (!n.peekInts(1))
      return triluByMask(n);
    in.push_back(Compose(n).integer((*n.peekInts(1))[0]));
  }
  return n.finish(OpKind::Trilu, std::move(in));
}

constexpr OpRow kRows[] = {
    {"Concat", 1, kNewestOpset, 1, -1, 1, concat},
    {"Expand", 8, kNewestOpset, 2, 2, 1, expand, "shape known at compile time or declared"},
    {"Flatten", 1, kNewestOpset, 1, 1, 1, flatten},
    {"Reshape", 1, kNewestOpset, 1, 2, 1, reshape, "shape known at compile time or declared"},
    {"ReverseSequence", 10, kNewestOpset, 2, 2, 1, reverseSequence},
    {"Shape", 1, kNewestOpset, 1, 1, 1, shape},
    {"Size", 1, kNewestOpset, 1, 1, 1, sameOperator},
    {"Split", 2, kNewestOpset, 1, 2, -1, split, "sizes known at compile time or declared"},
    {"Squeeze", 1, kNewestOpset, 1, 2, 1, squeeze, "constant axes"},
    {"Tile", 6, kNewestOpset, 2, 2, 1, tile, "repeats known at compile time or declared"},
    {"Transpose", 1, kNewestOpset, 1, 1, 1, transpose},
    {"Trilu", 14, kNewestOpset, 1, 2, 1, trilu},
    {"Unsqueeze", 1, kNewestOpset, 1, 2, 1, unsqueeze, "constant axes"},
};

} // namespace

std::span<const OpRow> movementOps() { return kRows; }

} // namespace fusec
