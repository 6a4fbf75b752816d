#include "Onnx/NodeImporter.h"
#include "Graph/CheckOperator.h"
#include "Graph/OpAttributes.h"
#include "Onnx/DimTools.h"
#include "Onnx/GraphBuilder.h"
#include "Onnx/KnownValues.h"
#include "Support/Diag.h"
#include "Support/DimLimits.h"

#include <algorithm>

namespace fusec {

NodeImporter::NodeImporter(GraphBuilder &builder, std::string opType, int opset,
                           std::string nodeName,
                           std::map<std::string, const onnx::AttributeProto *> attributes,
                           std::vector<ValueId> inputs, std::vector<std::string> outputNames)
    : builder(builder), opType(std::move(opType)), opsetVersion(opset),
      nodeName(std::move(nodeName)), attributes(std::move(attributes)), inputs(std::move(inputs)),
      outputNames(std::move(outputNames)) {
  results.assign(this->outputNames.size(), kNoValue);
}

const Graph &NodeImporter::graph() const { return builder.graph; }
const Value &NodeImporter::in(size_t i) const {
  assert(has(i));
  return builder.graph.value(inputs[i]);
}
const Shape &NodeImporter::shapeOf(ValueId id) const { return builder.graph.value(id).shape; }
DType NodeImporter::typeOf(ValueId id) const { return builder.graph.value(id).type; }

void NodeImporter::ask(ValueId id) const {
  builder.needsConstant(id, "node '" + nodeName + "' (" + opType + ") needs that at compile time");
}

std::optional<std::vector<DimExpr>> NodeImporter::knownOf(ValueId value) const {
  if (const auto numbers = builder.knownValues.elements(value))
    std::ranges::for_each(*numbers, [this](HostNumbers::Id x) { preferExact(x); });
  auto elements = builder.knownValues.sizes(value, nodeName);
  if (!elements)
    ask(value);
  return elements;
}

void NodeImporter::preferExact(HostNumbers::Id x) const {
  // What some runs leave out limits nothing.
  if (builder.frame->branch || builder.isInLoop())
    return;
  std::vector<SizeRule> limits = builder.knownValues.numbers.limits(x);
  for (SizeRule &limit : limits)
    std::tie(limit.node, limit.op) = std::tie(nodeName, opType);
  builder.solver().suppose(limits);
}

std::optional<DimExpr> NodeImporter::sizeOf(HostNumbers::Id x) const {
  preferExact(x);
  return builder.knownValues.numbers.size(x, nodeName);
}

std::optional<std::vector<DimExpr>> NodeImporter::peek(size_t i) const {
  return has(i) ? knownElements(in(i)) : std::nullopt;
}

std::optional<std::vector<int64_t>> NodeImporter::ints(size_t i) const {
  return allConstants(known(i));
}

std::optional<std::vector<int64_t>> NodeImporter::peekInts(size_t i) const {
  return allConstants(peek(i));
}

ConstantRef NodeImporter::constant(size_t i) const {
  if (has(i) && !in(i).constant)
    ask(id(i));
  return has(i) ? in(i).constant : nullptr;
}

std::optional<TypedShape> NodeImporter::declared(size_t i) const {
  const DeclaredType *d = wants(i) ? builder.declaredType(outputNames[i]) : nullptr;
  if (!d || !d->type || !d->hasShape)
    return std::nullopt;
  TypedShape t{*d->type, {}};
  for (const auto &dim : d->dims) {
    if (!dim)
      return std::nullopt;
    t.shape.push_back(*dim);
  }
  return t;
}

Result<std::vector<ValueId>> NodeImporter::emit(OpKind op, std::vector<ValueId> in,
                                                Attributes attrs, std::vector<Shape> shapes,
                                                std::vector<Region> regions, size_t count) {
  Node node;
  node.op = op;
  node.name = nodeName;
  node.onnxOp = opType;
  node.inputs = std::move(in);
  node.attributes = std::move(attrs);
  node.regions = std::move(regions);
  FUSEC_TRY(std::vector<TypedShape> types, inferTypes(builder.graph, node, shapes, sizes()));
  types.resize(std::min(types.size(), count));
  for (TypedShape &t : types)
    for (DimExpr &d : t.shape)
      d = builder.solver().unified(d);
  for (const TypedShape &t : types)
    for (const DimExpr &d : t.shape)
      FUSEC_CHECK(sizes().atLeast(d, 0, "a size of the output"));
  FUSEC_CHECK(checkSizes(types));
  std::vector<ValueId> ids;
  for (TypedShape &t : types)
    ids.push_back(builder.newValue("", t.type, std::move(t.shape)));
  node.outputs = ids;
  builder.noteOperands(node);
  Graph &g = builder.graph;
  if (!node.regions.empty()) {
    auto followed = builder.knownValues.follow(node);
    for (size_t i = 0; i < ids.size(); ++i)
      if (followed[i])
        builder.knownValues.remember(ids[i], std::move(*followed[i]));
    builder.frame->region->nodes.push_back(std::move(node));
    return ids;
  }
  if (op == OpKind::DataSize) { // a symbol has its value from here, whatever is known of it
    const SymbolId symbol = *sizedSymbol(g, node);
    if (!symbols()[static_cast<size_t>(symbol)].testsData())
      g.value(ids[0]).known = {builder.solver().canonical(DimExpr::symbol(symbol))};
    builder.frame->region->nodes.push_back(std::move(node));
    return ids;
  }
  auto followed = builder.knownValues.follow(node);
  std::optional<std::vector<DimExpr>> elements;
  if (ids.size() == 1 && followed[0] && !isFloat(g.value(ids[0]).type))
    elements = builder.knownValues.expressions(*followed[0]);
  for (size_t i = 0; !elements && i < followed.size(); ++i)
    if (followed[i])
      builder.knownValues.remember(ids[i], std::move(*followed[i]));
  if (!elements || std::any_of(elements->begin(), elements->end(), [](const DimExpr &e) {
        return isTooLarge(e, kLargestSizeOfModel);
      })) {
    builder.noteBeyondLimit(node, elements.value_or(Shape()));
  } else {
    Value &v = g.value(ids[0]);
    for (DimExpr &e : *elements)
      e = builder.solver().canonical(e);
    if (ConstantRef c = constantFromElements(v.type, v.shape, *elements))
      return std::vector<ValueId>{builder.constantValue(std::move(c))};
    v.known = std::move(*elements);
  }
  if (auto folded = foldNode(g, node, builder.options.evaluator)) {
    for (size_t i = 0; i < ids.size(); ++i)
      ids[i] = builder.constantValue((*folded)[i]);
    return ids;
  }
  followRanges(g, builder.integerRanges, node);
  if (const auto ramp = followRamp(g, builder.ramps, node)) {
    builder.ramps.emplace(ids[0], *ramp);
    const auto [least, largest] = endsOf(*ramp, g.value(ids[0]).shape);
    if (!isTooLarge(least) && !isTooLarge(largest))
      builder.integerRanges[ids[0]] = {least, largest, true};
  }
  builder.frame->region->nodes.push_back(std::move(node));
  return ids;
}

Status NodeImporter::checkSizes(const std::vector<TypedShape> &types) const {
  Diagnostics refused;
  for (const TypedShape &t : types)
    if (std::string size = tooLarge(t.type, t.shape, symbols(), builder.options.limits);
        !size.empty())
      refused.push_back(
          fail(Diag::LimitExceeded,
               outputNames.empty() ? size : "output '" + outputNames[0] + "': " + size));
  if (refused.empty())
    return success();
  return refused;
}

Result<ValueId> NodeImporter::emitOne(OpKind op, std::vector<ValueId> in, Attributes attrs,
                                      std::vector<Shape> shapes) {
  FUSEC_TRY(auto made, emit(op, std::move(in), std::move(attrs), std::move(shapes), {}, 1));
  return made[0];
}

ValueId NodeImporter::orStandIn(Result<ValueId> made, DType type, Shape shape) {
  if (made.ok())
    return *made;
  errors.insert(errors.end(), made.errors().begin(), made.errors().end());
  return builder.newValue("", type, std::move(shape));
}

void NodeImporter::result(size_t i, ValueId value) {
  if (i < results.size())
    results[i] = value;
}

template <typename T> static std::optional<T> valueOf(const std::optional<Attribute> &a) {
  return a ? std::optional(std::get<T>(*a)) : std::nullopt;
}

/// `attrs` and the other numbers and words that `op` has, as the node gives them.
Attributes NodeImporter::withOwn(OpKind op, Attributes attrs) {
  for (const AttributeRule &rule : attributeRules(op)) {
    const std::string key(rule.name);
    if (rule.optional || attrs.count(key))
      continue;
    switch (rule.kind) { // alternatives of Attribute
    case 0: attrs[key] = attrInt(key, valueOf<int64_t>(rule.fallback)); break;
    case 1: attrs[key] = attrFloat(key, valueOf<double>(rule.fallback)); break;
    case 2: attrs[key] = attrString(key, valueOf<std::string>(rule.fallback).value_or("")); break;
    default: break;
    }
  }
  return attrs;
}

Status NodeImporter::finish(OpKind op, std::vector<ValueId> in, Attributes attrs,
                            std::vector<Shape> shapes, std::vector<Region> regions) {
  FUSEC_TRY(std::vector<ValueId> ids,
            emit(op, std::move(in), withOwn(op, std::move(attrs)), std::move(shapes),
                 std::move(regions), std::max<size_t>(numOutputs(), 1)));
  // Outputs that the model leaves out are absent, not unused.
  auto &nodes = builder.frame->region->nodes;
  if (!nodes.empty() && nodes.back().outputs == ids) {
    auto &outputs = nodes.back().outputs;
    for (size_t i = 1; i < outputs.size(); ++i)
      if (!wants(i))
        outputs[i] = kNoValue;
    while (outputs.size() > 1 && outputs.back() == kNoValue)
      outputs.pop_back();
  }
  for (size_t i = 0; i < ids.size(); ++i)
    if (wants(i))
      result(i, ids[i]);
  return success();
}

ValueId NodeImporter::constantValue(ConstantRef c) { return builder.constantValue(std::move(c)); }

ValueId NodeImporter::intsValue(const std::vector<int64_t> &v) {
  return constantValue(makeIntConstant({static_cast<int64_t>(v.size())}, v));
}

ValueId NodeImporter::scalarValue(DType type, double v) {
  return constantValue(makeScalarConstant(type, v));
}

ValueId NodeImporter::shapeOperand(const Shape &shape) {
  return isStatic(shape) ? intsValue(staticDims(shape)) : kNoValue;
}

ValueId NodeImporter::reshape(ValueId x, Shape shape) {
  if (shapeOf(x) == shape)
    return x;
  std::vector<ValueId> in{x};
  if (ValueId operand = shapeOperand(shape); operand != kNoValue)
    in.push_back(operand);
  auto made = emitOne(OpKind::Reshape, std::move(in), {}, {shape});
  return orStandIn(std::move(made), typeOf(x), std::move(shape));
}

Result<DimExpr> NodeImporter::dataSize(ValueId count, const DimExpr &bound, size_t i, size_t axis) {
  if (auto known = builder.knownValues.sizes(count, nodeName))
    return (*known)[0];
  const DimExpr size = newSize(bound, i, axis);
  FUSEC_TRY([[maybe_unused]] const ValueId told, tellSize(size, count));
  return builder.solver().canonical(size);
}

std::string NodeImporter::nameOfNewSize(size_t i, size_t axis) const {
  return nameOfSize(wants(i) ? outputNames[i] : nodeName, axis);
}

DimExpr NodeImporter::newSize(const DimExpr &bound, size_t i, size_t axis) {
  return builder.newDataSize(nameOfNewSize(i, axis), bound);
}

Result<ValueId> NodeImporter::tellSize(const DimExpr &size, ValueId count) {
  const Symbol &symbol = symbols()[static_cast<size_t>(size.symbolId())];
  return emitOne(OpKind::DataSize, {count}, {{"symbol", std::string(symbol.name)}});
}

Result<int64_t> NodeImporter::axis(int64_t a, int64_t rank) const {
  if (a < -rank || a >= rank)
    return fail(Diag::BadAttribute,
                "axis " + std::to_string(a) + " is out of range for rank " + std::to_string(rank));
  return a < 0 ? a + rank : a;
}

Result<std::vector<int64_t>> NodeImporter::axes(const std::vector<int64_t> &list,
                                                int64_t rank) const {
  std::vector<int64_t> out;
  for (int64_t a : list) {
    FUSEC_TRY(int64_t normal, axis(a, rank));
    out.push_back(normal);
  }
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end())
    return fail(Diag::BadAttribute, "an axis is given twice");
  return out;
}

Status NodeImporter::oneElement(size_t i, const std::string &text) const {
  return sizes().sameShape({numElements(shape(i))}, {DimExpr(1)}, text);
}

Status NodeImporter::quantParameter(size_t i, const DimExpr &count) const {
  return has(i) ? sizes().quantParameter(shape(i), count, "input " + std::to_string(i)) : success();
}

Status NodeImporter::sideParameter(size_t i, const Shape &product, bool rows) const {
  return has(i) ? sizes().sideParameter(shape(i), product, rows, "input " + std::to_string(i))
                : success();
}

} // namespace fusec
