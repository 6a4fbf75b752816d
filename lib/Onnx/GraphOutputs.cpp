#include "Onnx/DimTools.h"
#include "Onnx/GraphBuilder.h"
#include "Onnx/Tensors.h"
#include "Support/Diag.h"

#include <algorithm>

// The outputs of the main graph: those of the model, and inner tensors that the user asks for. What the model declares
// of its tensors is compared with what its nodes make.

namespace fusec {

constexpr size_t kMostWarnings = 20;

bool GraphBuilder::contradicts(const DeclaredType &declared, const Value &value) const {
  if (declared.type && *declared.type != value.type)
    return true;
  if (!declared.hasShape)
    return false;
  if (declared.dims.size() != value.shape.size())
    return true;
  for (size_t i = 0; i < value.shape.size(); ++i) {
    if (!declared.dims[i])
      continue;
    DimExpr::Range difference = (*declared.dims[i] - value.shape[i]).range(graph.symbols);
    if (difference.min > 0 || difference.max < 0)
      return true;
  }
  return false;
}

std::string GraphBuilder::declaredText(const DeclaredType &declared) const {
  std::string dims;
  for (const auto &dim : declared.dims)
    dims += (dims.empty() ? "" : ",") + (dim ? dim->str(graph.symbols) : std::string("?"));
  return (declared.type ? std::string(fusec::name(*declared.type)) : "?") +
         (declared.hasShape ? "[" + dims + "]" : "");
}

bool GraphBuilder::askDeclared(const std::string &name, const DeclaredType &declared,
                               const Value &value, const Node &maker) {
  for (size_t i = 0; i < declared.dims.size(); ++i) {
    const DimExpr &made = value.shape[i];
    if (!declared.dims[i] || *declared.dims[i] == made)
      continue;
    // How many there are of something is for the data to say.
    const std::set<SymbolId> used = symbolsOf({made, *declared.dims[i]});
    if (std::any_of(used.begin(), used.end(), [&](SymbolId s) {
          return graph.symbols[static_cast<size_t>(s)].isDataDependent();
        }))
      continue;
    const std::string what = declared.isOutput ? "output" : "tensor";
    const SizeRule rule{SizeRule::Kind::Equal,
                        made,
                        *declared.dims[i],
                        maker.name,
                        maker.onnxOp,
                        what + " '" + frame->prefix + name + "' must be as the model declares it"};
    if (solver().require(rule, Need::Declared) == SizeSolver::Answer::Never)
      return false;
  }
  return true;
}

void GraphBuilder::checkDeclarations(const std::map<std::string, DeclaredType> &declared) {
  if (staleSizes)
    return;
  // What a run may leave out, as a branch, has sizes that may be others then.
  std::unordered_map<ValueId, const Node *> makers;
  if (!isConditional())
    for (const Node &node : graph.body.nodes)
      for (ValueId id : node.outputs)
        makers.emplace(id, &node);
  for (const auto &[name, type] : declared) {
    auto found = frame->scope->names.find(name);
    if (found == frame->scope->names.end() || found->second < 0)
      continue;
    const Value &v = graph.value(found->second);
    const auto maker = makers.find(found->second);
    if (!contradicts(type, v) &&
        (maker == makers.end() || askDeclared(name, type, v, *maker->second)))
      continue;
    Diagnostic d{Diag::WrongDeclaration, where("tensor '" + frame->prefix + name + "'"),
                 "the model declares " + declaredText(type) + ", its nodes make " +
                     typeText(v, graph.symbols) +
                     ", which holds; other sizes of the inputs are given with --shape"};
    // The body of a loop may be imported more than once.
    if (std::any_of(warnings.begin(), warnings.end(),
                    [&](const Diagnostic &told) { return told.where == d.where; }))
      continue;
    if (warnings.size() < kMostWarnings)
      warnings.push_back(std::move(d));
    else
      ++untold;
  }
}

Status GraphBuilder::graphOutputs(const onnx::GraphProto &proto, const NameScope &scope) {
  if (proto.output_size() == 0)
    return Diagnostic{Diag::BadGraph, path, "the graph has no outputs"};
  std::unordered_set<std::string_view> listed;
  for (const auto &output : proto.output()) {
    std::string place = where("output '" + output.name() + "'");
    if (!listed.insert(output.name()).second)
      return Diagnostic{Diag::BadGraph, place,
                        "is listed twice; give the copy a name of its own with an Identity node"};
    auto it = scope.names.find(output.name());
    if (it == scope.names.end() || output.name().empty())
      return Diagnostic{Diag::BadGraph, place, "no node makes it"};
    const Value &v = graph.value(it->second);
    auto type = dtypeOfOnnx(output.type().tensor_type().elem_type());
    if (type && *type != v.type)
      return Diagnostic{Diag::ShapeMismatch, place,
                        "the model declares " + std::string(name(*type)) + ", its nodes make " +
                            typeText(v, graph.symbols)};
    addOutput(output.name(), it->second);
  }
  return success();
}

void GraphBuilder::addOutput(const std::string &name, ValueId id) {
  if (passedOn.empty())
    passedOn.insert(graph.body.inputs.begin(), graph.body.inputs.end());
  Value &v = graph.value(id);
  bool taken = passedOn.count(id) != 0;
  if (v.name != name && !taken && !v.constant && mainName(name))
    v.name = name;
  if (v.constant || v.name != name) {
    // An output is a value with the output's name: copy where the value has another one already.
    Node copy;
    copy.op = OpKind::Identity;
    copy.name = "output_" + name;
    copy.onnxOp = "Identity";
    copy.inputs = {id};
    if (v.constant && v.name == name) {
      v.name = uniqueName(name);
      mainNames.insert(name);
    }
    DType type = v.type;
    Shape shape = v.shape;
    id = mainValue(name, type, std::move(shape));
    copy.outputs = {id};
    graph.body.nodes.push_back(std::move(copy));
  }
  graph.body.outputs.push_back(id);
  passedOn.insert(id);
}

void GraphBuilder::noteOutput(const std::string &name, ValueId value) {
  if (frame->region != &graph.body || value < 0)
    return;
  auto [it, isNew] = nodeOutputs.emplace(frame->prefix + name, value);
  if (!isNew &&
      frame->depth == 0) // a branch that stands in place has made another tensor of this name
    it->second = value;
}

Status GraphBuilder::markOutputs() {
  std::unordered_set<std::string> there;
  for (ValueId id : graph.body.outputs)
    there.insert(graph.value(id).name);
  for (const std::string &name : options.markOutputs) {
    auto bad = [&](std::string text) {
      return Diagnostic{Diag::BadOption, "--mark-output " + name, std::move(text)};
    };
    auto made = nodeOutputs.find(name);
    if (made == nodeOutputs.end())
      return bad("no node of the main graph computes a tensor of this name");
    if (there.insert(name).second)
      addOutput(name, made->second);
  }
  return success();
}

} // namespace fusec
