#include "Onnx/GraphBuilder.h"
#include "Support/Diag.h"

#include "Graph/Passes.h"

#include <algorithm>

// Inputs that have a default value: the initialisers of their names, from version 4 of the format on. A run may give
// such an input or leave it out, so that nothing is folded into it. Where sizes or the form of an operator hang on its
// value it is a constant after all: that shows while nodes are imported, and the import is then repeated.

namespace fusec {

bool GraphBuilder::isDefault(const std::string &name) const {
  const bool isFixed = memory.allFixed || memory.fixedInputs.count(name);
  return frame->depth == 0 && inputNames.count(name) &&
         (!isFixed || memory.lostDefaults.count(name));
}

Status GraphBuilder::defaultInput(const onnx::ValueInfoProto &input, const ConstantRef &value) {
  const std::string &name = input.name(), place = where("input '" + name + "'");
  Shape shape(value->dims.begin(), value->dims.end());
  const ValueId id = mainValue(name, value->type, std::move(shape));
  Value &v = graph.value(id);
  v.defaultValue = value;
  const DeclaredType declared = readType(input.type());
  if (contradicts(declared, v))
    warnings.push_back({Diag::WrongDeclaration, place,
                        "the model declares " + declaredText(declared) + ", its initialiser is " +
                            typeText(v, graph.symbols) + ", which holds"});
  graph.body.inputs.push_back(id);
  return bind(name, id, place);
}

bool GraphBuilder::mayBecomeConstant(ValueId id) const {
  if (id < 0)
    return true;
  const Value &v = graph.value(id);
  return v.constant || !v.known.empty() || madeFrom.count(id) || v.defaultValue;
}

void GraphBuilder::noteOperands(const Node &node) {
  if (defaults.empty() || !std::all_of(node.inputs.begin(), node.inputs.end(),
                                       [&](ValueId id) { return mayBecomeConstant(id); }))
    return;
  for (ValueId out : node.outputs) {
    const DimExpr count = numElements(graph.value(out).shape);
    if (count.isConst() && count.constValue() <= kMaxFoldedElements)
      madeFrom.emplace(out, node.inputs);
  }
}

void GraphBuilder::needsConstant(ValueId id, const std::string &who) {
  if (defaults.empty() || !mayBecomeConstant(id))
    return;
  std::vector<ValueId> open{id};
  while (!open.empty()) {
    const ValueId next = open.back();
    open.pop_back();
    if (next < 0 || !followed.insert(next).second)
      continue;
    const Value &v = graph.value(next);
    if (v.constant || !v.known.empty())
      continue;
    if (v.defaultValue)
      foundFixed |= memory.fixedInputs.emplace(v.name, who).second;
    else
      open.insert(open.end(), madeFrom.at(next).begin(), madeFrom.at(next).end());
  }
}

void GraphBuilder::warnOfFixedInputs(const onnx::GraphProto &proto) {
  constexpr size_t kMostTold = 10;
  size_t count = 0;
  for (const auto &input : proto.input()) {
    const std::string &name = input.name();
    const auto bound = frame->scope->names.find(name);
    if (!inputNames.count(name) || setInputs.count(name) || bound == frame->scope->names.end() ||
        bound->second < 0 || !graph.value(bound->second).constant || ++count > kMostTold)
      continue;
    const auto known = memory.fixedInputs.find(name);
    warnings.push_back(
        {Diag::FixedInput, where("input '" + name + "'"),
         "has its initialiser's value in every run: " +
             (known == memory.fixedInputs.end() ? "the model cannot be imported with it open"
                                                : known->second)});
  }
  if (count > kMostTold)
    warnings.push_back({Diag::FixedInput, path,
                        std::to_string(count - kMostTold) +
                            " more inputs have their initialisers' values in every run"});
}

void GraphBuilder::loseDefault(ValueId id, const Constant &value) {
  const Value &v = graph.value(id);
  memory.lostDefaults.insert(v.name);
  const Shape shape(value.dims.begin(), value.dims.end());
  warnings.push_back({Diag::LostDefault, where("input '" + v.name + "'"),
                      "every run has to give it: --shape makes it " + typeText(v, graph.symbols) +
                          ", its initialiser, which is not used, is " +
                          typeText(value.type, shape, graph.symbols)});
}

void GraphBuilder::warnOfDefaultInputs() {
  constexpr size_t kMostNamed = 3;
  size_t count = 0;
  int64_t bytes = 0;
  std::string names;
  for (ValueId id : graph.body.inputs) {
    const Value &v = graph.value(id);
    if (!v.defaultValue)
      continue;
    bytes += v.defaultValue->sizeBytes;
    if (++count <= kMostNamed)
      names += (count > 1 ? ", '" : "'") + v.name + "'";
  }
  if (count == 0)
    return;
  if (count > kMostNamed)
    names += " and " + std::to_string(count - kMostNamed) + " more";
  warnings.push_back(
      {Diag::DefaultInputs, path,
       "a run may replace what initialisers hold that are inputs too, " + names + ", " +
           std::to_string(bytes) +
           " bytes in all: nothing is folded into them and no weight among them is packed, which "
           "costs speed; --constant-initializers makes constants of them"});
}

} // namespace fusec
