#include "Onnx/GrowingValues.h"

#include "Onnx/Compose.h"
#include "Onnx/DimTools.h"
#include "Support/DimLimits.h"

namespace fusec {

GrowingValues::GrowingValues(NodeImporter &n, const onnx::GraphProto &body)
    : n(n), body(body), carried(n.numInputs() < 2 ? 0 : n.numInputs() - 2) {
  for (const auto &[index, growth] : n.graphBuilder().growing(body, n.name()))
    if (index < carried)
      values.push_back({index, growth.axis, growth.perTrip});
}

/// At most so much is `a` larger than `b`; what is a maximum or a minimum, as lengths of slices are, is taken apart.
static int64_t mostBeyond(const DimExpr &a, const DimExpr &b, const std::vector<Symbol> &symbols) {
  if (a.op() != DimExpr::Op::Max && a.op() != DimExpr::Op::Min)
    return (a - b).range(symbols).max;
  const bool isLargest = a.op() == DimExpr::Op::Max;
  int64_t most = isLargest ? INT64_MIN : INT64_MAX;
  for (const DimExpr &operand : a.operands()) {
    const int64_t own = mostBeyond(operand, b, symbols);
    most = isLargest ? std::max(most, own) : std::min(most, own);
  }
  return most;
}

bool GrowingValues::note(size_t index, const Shape &in, const Shape &out) {
  std::optional<size_t> axis;
  for (size_t a = 0; in.size() == out.size() && a < in.size(); ++a) {
    if (in[a] == out[a])
      continue;
    if (axis)
      return false;
    axis = a;
  }
  Growths &known = n.graphBuilder().growing(body, n.name());
  if (!axis || known.count(index))
    return false;
  Growth growth{*axis, DimExpr(0)};
  if (mostBeyond(out[*axis], in[*axis], n.symbols()) > 0)
    growth.perTrip = atBounds(out[*axis] - in[*axis], n.symbols());
  if (isTooLarge(*growth.perTrip))
    growth.perTrip.reset();
  known.emplace(index, std::move(growth));
  n.graphBuilder().foundGrowth = true;
  return true;
}

bool GrowingValues::hasGrown(const DimExpr &size) const {
  GraphBuilder &builder = n.graphBuilder();
  const std::set<SymbolId> used = symbolsOf({builder.solver().canonical(size)});
  return std::ranges::any_of(builder.grownSizes, [&](const DimExpr &grown) {
    return std::ranges::any_of(symbolsOf({builder.solver().canonical(grown)}),
                               [&](SymbolId s) { return used.count(s) != 0; });
  });
}

Result<ValueId> GrowingValues::first(ValueId x, size_t axis, const DimExpr &size) {
  return Compose(n).gather(x, Compose(n).iota(size), static_cast<int64_t>(axis));
}

// Zeros are put behind x first, as many as it may lack: where it is longer than what is kept, which the size that it
// then becomes refuses, the rest is cut off.
Result<ValueId> GrowingValues::kept(ValueId x, const GrowingValue &value) {
  Compose make(n);
  Shape shape = n.shapeOf(x);
  DimExpr &size = shape[value.axis];
  if (size == value.most)
    return x;
  size = max(value.most - size, DimExpr(0));
  const ValueId zeros = make.filled(n.typeOf(x), 0, shape);
  return first(make.concat({x, zeros}, static_cast<int64_t>(value.axis)), value.axis, value.most);
}

Status GrowingValues::keep(std::vector<ValueId> &operands, std::vector<TypedShape> &types,
                           const std::optional<DimExpr> &trips) {
  Compose make(n);
  for (GrowingValue &v : values) {
    ValueId &operand = operands[v.index + 2];
    const DimExpr size = n.shapeOf(operand)[v.axis];
    DimExpr bound(INT64_MAX);
    if (v.perTrip && v.perTrip->isConst(0))
      bound = size;
    else if (v.perTrip && trips)
      bound = size + max(*v.perTrip, DimExpr(0)) * max(*trips, DimExpr(0));
    v.behind = n.newSize(isTooLarge(bound) ? DimExpr(INT64_MAX) : bound, v.index, v.axis);
    n.graphBuilder().grownSizes.push_back(v.behind);
    v.most = atBounds(v.behind, n.symbols());
    if (v.most.isConst(INT64_MAX))
      return n.needsConstant("carried value " + std::to_string(v.index) +
                                 " changes its size from trip to trip, and there is no upper bound "
                                 "of size " +
                                 std::to_string(v.axis) + ": --dim " + v.behind.str(n.symbols()) +
                                 "=0..N",
                             {0});
    FUSEC_TRY(const ValueId length, make.extent(operand, static_cast<int64_t>(v.axis)));
    FUSEC_TRY(operand, kept(operand, v));
    types[v.index + 2].shape = n.shapeOf(operand);
    operands.push_back(length);
    types.push_back({DType::I64, {}});
  }
  return success();
}

Result<std::vector<ValueId>> GrowingValues::read(const std::vector<ValueId> &inputs) {
  std::vector<ValueId> own(inputs.begin(), inputs.end() - static_cast<std::ptrdiff_t>(size()));
  for (size_t i = 0; i < size(); ++i) {
    GrowingValue &v = values[i];
    const size_t input = v.index + 2;
    const int place = static_cast<int>(input);
    const std::string name = place < body.input_size() ? body.input(place).name() : n.name();
    v.inTrip = n.graphBuilder().newDataSize(nameOfSize(name, v.axis), v.most);
    n.graphBuilder().grownSizes.push_back(v.inTrip);
    FUSEC_TRY([[maybe_unused]] const ValueId told, n.tellSize(v.inTrip, inputs[own.size() + i]));
    FUSEC_TRY(own[input],
              first(inputs[input], v.axis, n.graphBuilder().solver().canonical(v.inTrip)));
  }
  return own;
}

Shape GrowingValues::inFrontOfTrip(size_t index, Shape shape) const {
  for (const GrowingValue &v : values)
    if (v.index == index && v.axis < shape.size())
      shape[v.axis] = n.graphBuilder().solver().canonical(v.inTrip);
  return shape;
}

/// The size where those that other nodes tell of the data are as large as they may be, but for `own`.
static DimExpr withoutOthers(DimExpr size, const std::set<SymbolId> &own,
                             const std::vector<Symbol> &symbols) {
  constexpr int kMostDepth = 8; // sizes whose bounds hang on such sizes
  for (int depth = 0; depth < kMostDepth && !isTooLarge(size); ++depth)
    size = size.substitute([&](SymbolId s) {
      const Symbol &symbol = symbols[static_cast<size_t>(s)];
      return symbol.isDataDependent() && own.count(s) == 0 ? std::optional(*symbol.bound)
                                                           : std::nullopt;
    });
  return size;
}

void GrowingValues::noteGrowth(const GrowingValue &v, const DimExpr &size, const DimExpr &before) {
  if (!v.perTrip)
    return;
  const std::set<SymbolId> own = symbolsOf({before});
  const auto hasOwn = [&](const DimExpr &e) {
    return std::ranges::any_of(symbolsOf({e}), [&](SymbolId s) { return own.count(s) != 0; });
  };
  const DimExpr most = withoutOthers(size, own, n.symbols());
  if (mostBeyond(most, hasOwn(most) ? before + *v.perTrip : *v.perTrip, n.symbols()) <= 0)
    return;
  // What is more by its own size, as where it doubles, is more in every trip: there is no bound.
  const DimExpr added = hasOwn(most) ? most - before : most;
  n.graphBuilder().growing(body, n.name()).at(v.index).perTrip =
      hasOwn(added) || isTooLarge(added) ? std::nullopt : std::optional(added);
  n.graphBuilder().foundGrowth = true;
}

Result<std::vector<ValueId>> GrowingValues::handOn(Region &region) {
  GraphBuilder &builder = n.graphBuilder();
  std::vector<ValueId> lengths;
  FUSEC_CHECK(builder.extendRegion(region, [&]() -> Status {
    for (const GrowingValue &v : values) {
      ValueId &made = region.outputs[v.index + 1];
      const DimExpr size = builder.solver().canonical(n.shapeOf(made)[v.axis]),
                    before = builder.solver().canonical(v.inTrip);
      noteGrowth(v, size, before);
      FUSEC_TRY(lengths.emplace_back(), Compose(n).extent(made, static_cast<int64_t>(v.axis)));
      FUSEC_TRY(made, kept(made, v));
    }
    return success();
  }));
  return lengths;
}

Status GrowingValues::finish(std::vector<ValueId> &made) {
  for (size_t i = 0; i < size(); ++i) {
    const GrowingValue &v = values[i];
    FUSEC_TRY([[maybe_unused]] const ValueId told, n.tellSize(v.behind, made[carried + i]));
    FUSEC_TRY(made[v.index],
              first(made[v.index], v.axis, n.graphBuilder().solver().canonical(v.behind)));
  }
  made.erase(made.begin() + static_cast<std::ptrdiff_t>(carried),
             made.begin() + static_cast<std::ptrdiff_t>(carried + size()));
  return success();
}

} // namespace fusec
