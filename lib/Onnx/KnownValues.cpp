#include "Onnx/KnownValues.h"

#include "Onnx/FollowElementwise.h"
#include "Onnx/FollowIndices.h"
#include "Onnx/FollowLines.h"
#include "Onnx/FollowLoop.h"
#include "Onnx/FollowMovement.h"
#include "Onnx/FollowProducts.h"
#include "Support/DimLimits.h"

#include <algorithm>

namespace fusec {

using Id = KnownValues::Id;
using Elements = KnownValues::Elements;
using Op = DimProgram::Op;

std::optional<std::vector<DimExpr>> knownElements(const Value &v) {
  if (!v.known.empty())
    return v.known;
  if (!v.constant || isFloat(v.type) || v.constant->numElements() > kMaxFollowedElements)
    return std::nullopt;
  std::vector<DimExpr> e;
  for (int64_t i = 0; i < v.constant->numElements(); ++i)
    e.push_back(v.constant->intAt(i));
  return e;
}

std::optional<std::vector<int64_t>>
allConstants(const std::optional<std::vector<DimExpr>> &elements) {
  if (!elements)
    return std::nullopt;
  std::vector<int64_t> list;
  for (const DimExpr &e : *elements) {
    if (!e.isConst())
      return std::nullopt;
    list.push_back(e.constValue());
  }
  return list;
}

ConstantRef constantFromElements(DType type, const Shape &shape,
                                 const std::vector<DimExpr> &elements) {
  std::vector<uint8_t> data;
  for (const DimExpr &e : elements) {
    if (!e.isConst())
      return nullptr;
    appendElement(data, type, e.constValue());
  }
  return makeConstant(type, staticDims(shape), std::move(data));
}

std::optional<Elements> KnownValues::elements(ValueId id) {
  if (id < 0)
    return std::nullopt;
  if (const auto found = others.find(id); found != others.end())
    return found->second;
  const Value &v = graph.value(id);
  Elements e;
  if (v.constant && isFloat(v.type) && v.constant->numElements() <= kMaxComputedElements) {
    for (int64_t i = 0; i < v.constant->numElements(); ++i)
      e.push_back(numbers.real(v.type, v.constant->floatAt(i)));
    return e;
  }
  const auto known = knownElements(v);
  if (!known)
    return std::nullopt;
  for (const DimExpr &d : *known)
    e.push_back(numbers.integer(v.type, d));
  return e;
}

std::optional<Elements> KnownValues::exchange(ValueId id, std::optional<Elements> elements) {
  std::optional<Elements> known;
  if (const auto found = others.find(id); found != others.end())
    known = std::move(found->second);
  if (elements)
    others[id] = std::move(*elements);
  else
    others.erase(id);
  return known;
}

std::optional<std::vector<DimExpr>> KnownValues::expressions(const Elements &elements) const {
  std::vector<DimExpr> list;
  for (Id x : elements) {
    const auto &d = numbers.expression(x);
    if (!d)
      return std::nullopt;
    list.push_back(*d);
  }
  return list;
}

std::optional<std::vector<DimExpr>> KnownValues::sizes(ValueId id, const std::string &node) {
  if (id < 0)
    return std::nullopt;
  if (auto known = knownElements(graph.value(id)))
    return known;
  const auto found = others.find(id);
  if (found == others.end() || isFloat(graph.value(id).type))
    return std::nullopt;
  std::vector<DimExpr> list;
  for (Id x : found->second) {
    auto size = numbers.size(x, node);
    if (!size)
      return std::nullopt;
    list.push_back(std::move(*size));
  }
  graph.value(id).known = list;
  return list;
}

void KnownValues::settle() {
  for (const auto &[id, elements] : others) {
    Value &v = graph.value(id);
    if (v.constant || isFloat(v.type))
      continue;
    std::vector<DimExpr> list;
    for (Id x : elements)
      if (auto size = numbers.knownSize(x))
        list.push_back(std::move(*size));
    if (list.size() == elements.size() &&
        std::none_of(list.begin(), list.end(),
                     [](const DimExpr &d) { return isTooLarge(d, kLargestSizeOfModel); }))
      v.known = std::move(list);
  }
}

void KnownValues::choose(ValueId result, ValueId condition, ValueId ifTrue, ValueId ifFalse) {
  const auto which = elements(condition), a = elements(ifTrue), b = elements(ifFalse);
  if (!a || !b || a->size() != b->size() || static_cast<int64_t>(a->size()) > kMaxComputedElements)
    return;
  Elements made;
  for (size_t i = 0; i < a->size(); ++i) {
    const Id ofTrue = (*a)[i], ofFalse = (*b)[i];
    const auto v = ofTrue == ofFalse ? std::optional(ofTrue)
                   : which           ? numbers.apply(Op::Select, graph.value(result).type,
                                                     {which->front(), ofTrue, ofFalse})
                                     : std::nullopt;
    if (!v)
      return;
    made.push_back(*v);
  }
  remember(result, std::move(made));
}

std::optional<DimExpr> KnownValues::choose(ValueId condition, const DimExpr &ifTrue,
                                           const DimExpr &ifFalse, const std::string &node) {
  const auto which = elements(condition);
  if (!which || !sizes(condition, node))
    return std::nullopt;
  const auto chosen = numbers.apply(
      Op::Select, DType::I64,
      {which->front(), numbers.integer(DType::I64, ifTrue), numbers.integer(DType::I64, ifFalse)});
  return chosen ? numbers.size(*chosen, node) : std::nullopt;
}

/// Shapes are fixed, but for one that is asked for; the output is small; and constant floats are not all that the node
/// takes: these are the evaluator's.
bool KnownValues::mayFollow(const Node &node) const {
  const Value &out = graph.value(node.outputs[0]);
  auto isEach = [&](auto holds) {
    return std::ranges::all_of(
        node.inputs, [&](ValueId id) { return id == kNoValue || holds(graph.value(id)); });
  };
  const bool asksForShape = node.op == OpKind::Shape || node.op == OpKind::Size;
  return followedCount(out) &&
         (asksForShape || isEach([](const Value &v) { return isStatic(v.shape); })) &&
         !(isFloat(out.type) && isEach([](const Value &v) { return v.constant != nullptr; }));
}

std::vector<std::optional<Elements>> KnownValues::follow(const Node &node) {
  std::vector<std::optional<Elements>> made(node.outputs.size());
  if (node.op == OpKind::Loop)
    made = followLoop(*this, node);
  else if (!mayFollow(node))
    return made;
  else if (movesElements(node.op))
    made = followMovement(*this, node);
  else if (takesPlaces(node.op))
    made[0] = followIndices(*this, node);
  else if (goesAlongLines(node.op))
    made = followLines(*this, node);
  else if (addsProducts(node.op))
    made[0] = followProducts(*this, node);
  else if (node.outputs.size() == 1)
    made[0] = followElementwise(*this, node);
  for (size_t i = 0; i < made.size(); ++i) {
    if (!made[i])
      continue;
    const Value &out = graph.value(node.outputs[i]);
    // Narrow types wrap; leave those to the evaluator.
    const bool isWhole =
        isStatic(out.shape) && numElements(out.shape).isConst(std::ssize(*made[i]));
    const bool isNarrow = !isFloat(out.type) && out.type != DType::I64 && out.type != DType::I32 &&
                          out.type != DType::Bool;
    if (!isWhole || isNarrow ||
        (!expressions(*made[i]) && static_cast<int64_t>(made[i]->size()) > kMaxComputedElements))
      made[i] = std::nullopt;
    else if (out.type == DType::I32 && std::any_of(made[i]->begin(), made[i]->end(), [&](Id x) {
               const auto v = numbers.constant(x);
               return v && *v != static_cast<int32_t>(*v);
             }))
      made[i] = std::nullopt;
  }
  return made;
}

} // namespace fusec
