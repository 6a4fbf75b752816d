#include "Reference/Random/Builder.h"
#include "Graph/CheckOperator.h"
#include "Support/Diag.h"

#include <cassert>

namespace fusec::random {

double unitRoundoff(DType t) {
  switch (t) {
  case DType::F16: return 0x1p-11;
  case DType::BF16: return 0x1p-8;
  case DType::F32: return 0x1p-24;
  default: return 0x1p-53;
  }
}

double magnitudeLimit(DType t) { return t == DType::F16 ? 1e3 : 1e4; }

double randomFloat(Rng &rng, DType t) {
  // Half of the elements are small multiples of 1/4, so that ties and equal values occur.
  double v = rng.chance(50) ? static_cast<double>(rng.between(-16, 16)) / 4
                            : (2 * rng.unit() - 1) * kInputRange;
  return roundToDType(t, v);
}

int64_t randomInt(Rng &rng, DType t) {
  if (t == DType::Bool)
    return rng.below(2);
  if (rng.chance(10)) // corners: 0, -1, lowest and highest
    return wrapToDType(t,
                       rng.pick(std::vector<int64_t>{
                           0, -1, int64_t(1) << (8 * sizeInBytes(t) - 1),
                           static_cast<int64_t>((uint64_t(1) << (8 * sizeInBytes(t) - 1)) - 1)}));
  return wrapToDType(t, rng.between(-20, 20));
}

ValueId Builder::pick(const std::function<bool(ValueId)> &wanted) {
  std::vector<ValueId> found;
  for (ValueId v : pool)
    if (wanted(v)) {
      found.push_back(v);
      if (!consumed[static_cast<size_t>(v)]) // prefer values that nothing reads yet
        found.push_back(v);
    }
  return found.empty() ? kNoValue : rng.pick(found);
}

std::optional<Shape> Builder::broadcast(const Shape &a, const Shape &b) const {
  Shape out = a.size() >= b.size() ? a : b;
  const Shape &other = a.size() >= b.size() ? b : a;
  for (size_t d = 0; d < other.size(); ++d) {
    DimExpr &o = out[out.size() - other.size() + d];
    const std::optional<DimExpr> both = broadcast(o, other[d]);
    if (!both)
      return std::nullopt;
    o = *both;
  }
  return out;
}

std::optional<DimExpr> Builder::broadcast(const DimExpr &a, const DimExpr &b) const {
  if (a == b || b.isConst(1))
    return a;
  if (a.isConst(1))
    return b;
  if (!oneOr)
    return std::nullopt;
  const DimExpr one = DimExpr::symbol(oneOr->symbol), other = DimExpr::symbol(oneOr->other),
                larger = max(one, other);
  const auto isOne = [&](const DimExpr &d) { return d == one || d == other || d == larger; };
  return isOne(a) && isOne(b) ? std::optional(larger) : std::nullopt;
}

std::optional<Facts> Builder::rounded(DType t, Facts f, double operations) const {
  // Subnormals of f16 and f32 lose at most their last place.
  double tiny = t == DType::F16 ? 0x1p-24 : t == DType::F64 ? 0 : 1e-37;
  f.error += operations * (unitRoundoff(t) * f.largest() + tiny);
  double allowed = 0.05 * std::max(1.0, f.largest());
  if (!(f.largest() <= magnitudeLimit(t)) || !(f.error <= allowed))
    return std::nullopt;
  f.low -= f.error;
  f.high += f.error;
  return f;
}

ValueId Builder::addValue(DType t, Shape s, Facts f, ConstantRef c, const std::string &prefix) {
  auto id = static_cast<ValueId>(graph.values.size());
  Value v;
  v.name = prefix + std::to_string(id);
  v.type = t;
  v.shape = std::move(s);
  v.constant = std::move(c);
  graph.addValue(std::move(v));
  facts.push_back(f);
  consumed.push_back(false);
  return id;
}

ValueId Builder::addInput(DType t, Shape s) {
  ValueId id = addValue(t, std::move(s), {-kInputRange, kInputRange, 0}, nullptr, "in");
  graph.body.inputs.push_back(id);
  pool.push_back(id);
  return id;
}

ValueId Builder::addConstant(DType t, std::vector<int64_t> dims) {
  TensorValue v(t, dims);
  for (double &x : v.floats)
    x = randomFloat(rng, t);
  for (int64_t &x : v.ints)
    x = randomInt(rng, t);
  Shape s(dims.begin(), dims.end());
  return addValue(t, s, {-kInputRange, kInputRange, 0}, toConstant(v), "c");
}

ValueId Builder::addInts(std::vector<int64_t> dims, std::vector<int64_t> v) {
  Shape s(dims.begin(), dims.end());
  return addValue(DType::I64, s, {}, makeIntConstant(std::move(dims), v), "c");
}

ValueId Builder::addScalar(DType t, double v) {
  v = roundToDType(t, v);
  return addValue(t, {}, {v, v, 0}, makeScalarConstant(t, v), "c");
}

std::vector<ValueId> Builder::emit(Node n, const std::vector<Facts> &outFacts,
                                   const std::vector<Shape> &shapes) {
  // Ranges prove less than what attempts know of their sizes.
  auto samples = sampleSymbols(graph.symbols);
  if (oneOr)
    for (size_t i = 0, count = samples.size(); i < count; ++i) {
      samples.push_back(samples[i]);
      samples[i][static_cast<size_t>(oneOr->symbol)] = 1;
      samples.back()[static_cast<size_t>(oneOr->symbol)] =
          samples[i][static_cast<size_t>(oneOr->other)];
    }
  const SizeCheck sizes(
      graph.symbols, SizeCheck::Equality::Sampled,
      [](const Misfit &m) { return Diagnostic{Diag::BadIr, "", m.text}; },
      [&](const SizeRule &rule, Need) {
        return std::all_of(samples.begin(), samples.end(), [&](const std::vector<int64_t> &values) {
          return holds(rule.kind, rule.left.evaluate(values), rule.right.evaluate(values));
        });
      });
  auto types = inferTypes(graph, n, shapes, sizes);
  assert(types.ok() && "operands are picked to fit");
  types->resize(outFacts.size());
  for (const TypedShape &t : *types)
    if (!fits(t.shape))
      return {};
  n.onnxOp = std::string(info(n.op).name);
  n.name = n.onnxOp + "_" + std::to_string(graph.body.nodes.size());
  // A shape says nothing of the elements, which are to be compared.
  const bool reads = n.op != OpKind::Shape && n.op != OpKind::Size;
  for (ValueId v : n.inputs)
    if (v != kNoValue && reads)
      consumed[static_cast<size_t>(v)] = true;
  for (size_t i = 0; i < outFacts.size(); ++i) {
    TypedShape &t = (*types)[i];
    n.outputs.push_back(addValue(t.type, std::move(t.shape), outFacts[i], nullptr, "v"));
  }
  std::vector<ValueId> outputs = n.outputs;
  graph.body.nodes.push_back(std::move(n));
  return outputs;
}

std::vector<ValueId> Builder::addNodes(OpKind op, std::vector<ValueId> inputs,
                                       std::map<std::string, Attribute> attributes,
                                       const std::vector<Facts> &outFacts,
                                       const std::vector<Shape> &shapes) {
  Node n;
  n.op = op;
  n.inputs = std::move(inputs);
  n.attributes = std::move(attributes);
  std::vector<ValueId> outputs = emit(std::move(n), outFacts, shapes);
  nodes += !outputs.empty();
  pool.insert(pool.end(), outputs.begin(), outputs.end());
  return outputs;
}

ValueId Builder::addSizeNode(OpKind op, std::vector<ValueId> inputs,
                             std::map<std::string, Attribute> attributes, Shape known) {
  Node n;
  n.op = op;
  n.inputs = std::move(inputs);
  n.attributes = std::move(attributes);
  const ValueId made = emit(std::move(n), {{}}, {})[0];
  graph.value(made).known = std::move(known);
  return made;
}

ValueId Builder::addNode(OpKind op, std::vector<ValueId> inputs,
                         std::map<std::string, Attribute> attributes, const Facts &f,
                         const std::vector<Shape> &shapes) {
  auto made = addNodes(op, std::move(inputs), std::move(attributes), {f}, shapes);
  return made.empty() ? kNoValue : made[0];
}

} // namespace fusec::random
