#include "Expr/lower/Lowering.h"

#include <cassert>

namespace fusec::lower {

EquationBuilder::EquationBuilder(NodeLowering &n, EquationKind kind, std::vector<TensorId> outputs)
    : EquationBuilder(n, kind, outputs, n.shapeOf(outputs[0])) {}

EquationBuilder::EquationBuilder(NodeLowering &n, EquationKind kind, std::vector<TensorId> outputs,
                                 const Shape &domain)
    : n(n) {
  equation.kind = kind;
  equation.name = n.l.program.tensors[outputs[0]].name;
  if (!n.node.name.empty())
    equation.onnxNodes = {n.node.name};
  equation.outputs = std::move(outputs);
  equation.numSpatial = static_cast<int>(domain.size());
  for (size_t d = 0; d < domain.size(); ++d)
    equation.axes.push_back({"d" + std::to_string(d), domain[d]});
  setRanges(equation, n.l.program.symbols, n.l.scanSteps);
  // An axis of length 1 is 0 everywhere, so that its index is a constant in all maps.
  for (size_t d = 0; d < domain.size(); ++d)
    axes.push_back(domain[d].isConst(1) ? index(0) : val(body().axis(static_cast<int32_t>(d))));
}

Val EquationBuilder::reduction(const DimExpr &extent) {
  if (extent.isConst(1))
    return index(0);
  int32_t id = static_cast<int32_t>(equation.axes.size());
  equation.axes.push_back({"r" + std::to_string(id - equation.numSpatial), extent});
  setRanges(equation, n.l.program.symbols, n.l.scanSteps);
  return val(body().axis(id));
}

std::vector<Val> EquationBuilder::reductions(const Shape &extents) {
  std::vector<Val> list;
  for (const DimExpr &e : extents)
    list.push_back(reduction(e));
  return list;
}

std::vector<NodeId> EquationBuilder::ids(const std::vector<Val> &indices) const {
  std::vector<NodeId> list;
  for (const Val &v : indices)
    list.push_back(v.id);
  return list;
}

namespace {

constexpr int64_t kMaxCompared = 64 * 1024; // elements of a constant

/// first + sum of factors[d] i[d].
struct AffineValues {
  int64_t first = 0;
  std::vector<int64_t> factors; // one a dim, 0 where the index is known
};

/// The elements of an integer tensor as an affine function of the indices that are not known; nullopt if they are
/// none.
std::optional<AffineValues> affineValues(const Constant &c,
                                         const std::vector<std::optional<int64_t>> &known) {
  const size_t rank = c.dims.size();
  std::vector<int64_t> strides(rank, 1);
  for (size_t d = rank; d-- > 1;)
    strides[d - 1] = strides[d] * c.dims[d];
  AffineValues affine{0, std::vector<int64_t>(rank, 0)};
  int64_t compared = 1, base = 0;
  for (size_t d = 0; d < rank; ++d) {
    if (known[d] && (*known[d] < 0 || *known[d] >= c.dims[d]))
      return std::nullopt;
    base += known[d].value_or(0) * strides[d];
    compared *= known[d] ? 1 : c.dims[d];
  }
  if (compared == 0 || compared > kMaxCompared)
    return std::nullopt;
  // Sums of what is below this, over so many elements, do not overflow.
  constexpr int64_t kMostValue = int64_t{1} << 40;
  const auto isLarge = [](int64_t v) { return v < -kMostValue || v > kMostValue; };
  affine.first = c.intAt(base);
  for (size_t d = 0; d < rank; ++d) {
    if (known[d] || c.dims[d] == 1)
      continue;
    const int64_t next = c.intAt(base + strides[d]);
    if (next != affine.first && (isLarge(next) || isLarge(affine.first)))
      return std::nullopt;
    affine.factors[d] = next - affine.first;
  }
  std::vector<int64_t> at(rank, 0);
  for (int64_t i = 0; i < compared; ++i) {
    int64_t element = base, expected = affine.first;
    for (size_t d = 0; d < rank; ++d) {
      element += at[d] * strides[d];
      expected += at[d] * affine.factors[d];
    }
    if (c.intAt(element) != expected)
      return std::nullopt;
    for (size_t d = rank; d-- > 0;) {
      if (known[d])
        continue;
      if (++at[d] < c.dims[d])
        break;
      at[d] = 0;
    }
  }
  return affine;
}

} // namespace

/// One element, or small integer tensors whose values follow from the indices: the zeros that exporters write as token
/// types, the positions that they write for Gather. Floats stay tensors, so that kernels do not depend on what the
/// weights are.
std::optional<Val> EquationBuilder::literal(TensorId t, const std::vector<Val> &indices) {
  const Tensor &tensor = n.l.program.tensors[t];
  if (!tensor.constant)
    return std::nullopt;
  const Constant &c = *tensor.constant;
  if (isFloat(tensor.type))
    return c.numElements() == 1 ? std::optional(constant(tensor.type, c.floatAt(0))) : std::nullopt;
  std::vector<std::optional<int64_t>> known;
  for (const Val &i : indices) {
    const Scalar &s = body()[i.id];
    known.push_back(s.op == ScalarOp::Const ? std::optional(s.imm) : std::nullopt);
  }
  const std::optional<AffineValues> affine = affineValues(c, known);
  if (!affine)
    return std::nullopt;
  if (std::all_of(affine->factors.begin(), affine->factors.end(), [](int64_t f) { return f == 0; }))
    return val(body().constantInt(tensor.type, affine->first));
  if (tensor.type != DType::I64 && tensor.type != DType::I32)
    return std::nullopt;
  Val sum = index(affine->first);
  for (size_t d = 0; d < indices.size(); ++d)
    if (affine->factors[d] != 0)
      sum = sum + indices[d] * index(affine->factors[d]);
  return cast(tensor.type, sum);
}

Val EquationBuilder::load(TensorId t, const std::vector<Val> &indices) {
  assert(indices.size() == n.shapeOf(t).size());
  return val(body().read(t, n.typeOf(t), ids(indices)));
}

Val EquationBuilder::read(TensorId t, const std::vector<Val> &indices) {
  auto v = literal(t, indices);
  return v ? *v : load(t, indices);
}

Val EquationBuilder::readIf(Val predicate, TensorId t, const std::vector<Val> &indices,
                            Val otherwise) {
  if (auto v = literal(t, indices))
    return select(predicate, *v, otherwise);
  return val(body().readIf(t, n.typeOf(t), predicate.id, otherwise.id, ids(indices)));
}

Val EquationBuilder::readClamped(TensorId t, const std::vector<Val> &indices) {
  Val some;
  for (const DimExpr &extent : n.shapeOf(t))
    if (extent.range(n.l.program.symbols).min < 1)
      some = both(some, ge(index(extent), 1));
  return some.always() ? read(t, indices) : readIf(some, t, indices, constant(n.typeOf(t), 0));
}

Val EquationBuilder::broadcast(TensorId t, const std::vector<Val> &indices) {
  const Shape &shape = n.shapeOf(t);
  assert(shape.size() <= indices.size());
  size_t lead = indices.size() - shape.size();
  std::vector<Val> at;
  for (size_t d = 0; d < shape.size(); ++d) {
    Val i = indices[lead + d];
    const Scalar &s = body()[i.id];
    bool same = s.op == ScalarOp::Axis && equation.axes[s.index].extent == shape[d];
    if (shape[d].isConst(1))
      i = index(0);
    else if (!same && !shape[d].isConst() && shape[d].range(n.l.program.symbols).min <= 1)
      // Either of two symbolic sizes may be the one that is broadcast.
      i = select(eq(index(shape[d]), 1), index(0), i);
    at.push_back(i);
  }
  return read(t, at);
}

Val EquationBuilder::scalar(TensorId t) {
  return read(t, std::vector<Val>(n.shapeOf(t).size(), index(0)));
}

void EquationBuilder::finish(const std::vector<Val> &results) {
  equation.results = ids(results);
  if (equation.kind == EquationKind::Reduction && equation.numReduction() == 0) {
    // A reduction of one element becomes a map for it and a map for its index: they are seldom both needed.
    equation.kind = EquationKind::Map;
    equation.monoid = Monoid::Sum;
    for (size_t r = 1; r < results.size(); ++r) {
      Equation other = equation;
      other.name = n.l.program.tensors[equation.outputs[r]].name;
      other.outputs = {equation.outputs[r]};
      other.results = {equation.results[r]};
      compact(other);
      n.l.items->push_back({std::move(other)});
    }
    equation.outputs.resize(1);
    equation.results.resize(1);
  }
  compact(equation);
  n.l.items->push_back({std::move(equation)});
}

std::vector<Val> concat(std::vector<Val> a, const std::vector<Val> &b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Val wrapIndex(Val index, const DimExpr &extent) {
  Val i = cast(DType::I64, index);
  i = select(lt(i, 0.0), i + extent, i);
  return min(max(i, 0.0), i.likeDim(extent - 1));
}

namespace {

/// The next place (i, j) behind (i0, j0) where the products of from[0, i) and to[0, j) agree.
std::pair<size_t, size_t> groupEnd(const Shape &from, const Shape &to, size_t i0, size_t j0) {
  if (i0 < from.size() && from[i0].isConst(1))
    return {i0 + 1, j0};
  if (j0 < to.size() && to[j0].isConst(1))
    return {i0, j0 + 1};
  for (size_t i = i0 + 1; i <= from.size(); ++i)
    for (size_t j = j0 + 1; j <= to.size(); ++j)
      if (product(from, i0, i) == product(to, j0, j))
        return {i, j};
  return {from.size(), to.size()};
}

} // namespace

std::vector<Val> reshapeIndices(const Shape &from, const Shape &to, const std::vector<Val> &indices,
                                Body &body) {
  std::vector<Val> result;
  size_t i0 = 0, j0 = 0;
  while (i0 < from.size() || j0 < to.size()) {
    auto [i, j] = groupEnd(from, to, i0, j0);
    Val flat{&body, body.index(0)};
    for (size_t d = j0; d < j; ++d)
      flat = flat + indices[d] * product(to, d + 1, j);
    for (size_t d = i0; d < i; ++d) {
      Val at = floorDiv(flat, product(from, d + 1, i));
      result.push_back(d == i0 ? at : floorMod(at, from[d]));
    }
    i0 = i;
    j0 = j;
  }
  return result;
}

} // namespace fusec::lower
