#include "Onnx/GraphBuilder.h"
#include "Onnx/OpTable.h"
#include "Support/Diag.h"

#include <algorithm>

// Scopes, nodes and functions of GraphBuilder.

namespace fusec {

bool GraphBuilder::note(Status status) {
  if (status.ok())
    return true;
  errors.insert(errors.end(), status.errors().begin(), status.errors().end());
  return false;
}

void GraphBuilder::reserveNames(const onnx::GraphProto &proto) {
  auto reserve = [&](const std::string &name) {
    if (!name.empty() && usedNames.insert(name).second)
      mainNames.insert(name);
  };
  for (const auto *list : {&proto.input(), &proto.output()})
    for (const auto &value : *list)
      reserve(value.name());
  for (const auto &t : proto.initializer())
    reserve(t.name());
  for (const auto &t : proto.sparse_initializer())
    reserve(t.values().name());
  for (const auto &node : proto.node())
    for (const std::string &name : node.output())
      reserve(name);
}

bool GraphBuilder::mainName(const std::string &name) {
  return frame->depth == 0 && mainNames.erase(name);
}

std::string GraphBuilder::uniqueName(const std::string &wanted) {
  if (!wanted.empty() && usedNames.insert(wanted).second)
    return wanted;
  int &suffix = nextSuffix[wanted];
  for (;;) {
    std::string name = wanted + "$" + std::to_string(++suffix);
    if (usedNames.insert(name).second)
      return name;
  }
}

ValueId GraphBuilder::newValue(const std::string &wantedName, DType type, Shape shape) {
  Value v;
  v.name = uniqueName(wantedName);
  v.type = type;
  v.shape = std::move(shape);
  if (wantedName.empty())
    madeUp.insert(static_cast<ValueId>(graph.values.size()));
  return graph.addValue(std::move(v));
}

ValueId GraphBuilder::mainValue(const std::string &name, DType type, Shape shape) {
  if (mainName(name))
    usedNames.erase(name);
  return newValue(name, type, std::move(shape));
}

void GraphBuilder::nameValue(ValueId id, const std::string &name) {
  if (id < 0 || !madeUp.erase(id))
    return;
  usedNames.erase(graph.value(id).name);
  graph.value(id).name = mainName(name) ? name : uniqueName(name);
}

ValueId GraphBuilder::constantValue(ConstantRef c, const std::string &name) {
  if (name.empty()) {
    auto it = constantIds.find(c->digest);
    if (it != constantIds.end())
      return it->second;
  }
  Value v;
  v.name = mainName(name) ? name : uniqueName(name.empty() ? "const" : name);
  v.type = c->type;
  v.shape.assign(c->dims.begin(), c->dims.end());
  v.constant = c;
  ValueId id = graph.addValue(std::move(v));
  constantIds.emplace(c->digest, id);
  return id;
}

std::optional<ValueId> GraphBuilder::lookUp(const std::string &name) const {
  for (const NameScope *s = frame->scope; s; s = s->outer)
    if (auto it = s->names.find(name); it != s->names.end())
      return it->second;
  return std::nullopt;
}

Status GraphBuilder::bind(const std::string &name, ValueId value, const std::string &place) {
  if (static_cast<int64_t>(name.size()) > options.limits.nameBytes)
    return Diagnostic{Diag::LimitExceeded, path, "a tensor's name is longer than 64 KiB"};
  if (lookUp(name))
    return Diagnostic{Diag::BadGraph, place, "tensor '" + name + "' is defined a second time"};
  frame->scope->names.emplace(name, value);
  return success();
}

void GraphBuilder::importNodes(const OnnxNodes &nodes) {
  constexpr size_t kMaxErrors = 1000;
  for (int i = 0; i < nodes.size() && errors.size() < kMaxErrors; ++i)
    importNode(nodes[i], static_cast<size_t>(i));
}

void GraphBuilder::importNode(const onnx::NodeProto &node, size_t index) {
  std::string nodeName =
      frame->prefix +
      (node.name().empty() ? node.op_type() + "_" + std::to_string(index) : node.name());
  if (note(tryNode(node, nodeName)))
    return;
  for (const std::string &out : node.output())
    if (!out.empty())
      frame->scope->names.emplace(out, kPoisoned);
}

Result<OnnxAttributes> GraphBuilder::attributesOf(const onnx::NodeProto &node,
                                                  const std::string &place) {
  OnnxAttributes map;
  for (const auto &a : node.attribute()) {
    const onnx::AttributeProto *actual = &a;
    if (!a.ref_attr_name().empty()) {
      if (!frame->functionAttributes)
        return Diagnostic{Diag::BadAttribute, place,
                          "attribute '" + a.name() +
                              "' refers to a function's attribute outside a function"};
      auto it = frame->functionAttributes->find(a.ref_attr_name());
      if (it == frame->functionAttributes->end())
        continue; // the caller leaves it out, so the operator's default holds
      actual = it->second;
    }
    if (!map.emplace(a.name(), actual).second)
      return Diagnostic{Diag::BadAttribute, place, "attribute '" + a.name() + "' is given twice"};
  }
  return map;
}

Status GraphBuilder::tryNode(const onnx::NodeProto &node, const std::string &nodeName) {
  std::string domain = node.domain() == "ai.onnx" ? "" : node.domain();
  auto opset = frame->opsets->find(domain);
  std::string shown = domain.empty() ? node.op_type() : domain + "::" + node.op_type();
  std::string kind = "(" + shown + ", opset " +
                     (opset == frame->opsets->end() ? "?" : std::to_string(opset->second)) + ")";
  std::string place = where("node '" + nodeName + "' " + kind);
  std::vector<ValueId> inputs;
  bool poisoned = false;
  for (const std::string &name : node.input()) {
    ValueId id = kNoValue;
    if (!name.empty()) {
      auto found = lookUp(name);
      if (!found)
        return Diagnostic{Diag::BadGraph, place,
                          "input '" + name +
                              "' is not defined before this node; nodes must be sorted"};
      id = *found;
    }
    poisoned = poisoned || id == kPoisoned;
    inputs.push_back(id);
  }
  FUSEC_TRY(OnnxAttributes attributes, attributesOf(node, place));
  auto function = functions.find(functionKey(domain, node.op_type(), node.overload()));
  if (function != functions.end()) {
    return inlineFunction(node, *function->second, nodeName, std::move(attributes), inputs);
  } else {
    if (opset == frame->opsets->end())
      return Diagnostic{Diag::BadModelHeader, place,
                        "domain '" + node.domain() + "' is not in the model's opset_import"};
    const OpRow *row = findOpRow(domain, node.op_type(), opset->second);
    if (!row) {
      nodePlaces.emplace(place, NodePlace{nodeName, kind});
      note(Diagnostic{Diag::UnsupportedOp, place,
                      "the operator is not supported; its inputs are (" + describe(inputs) + ")"});
      checkSubgraphs(node, nodeName);
      return Diagnostics{};
    }
    if (poisoned) {
      checkSubgraphs(node, nodeName);
    } else {
      Status s = importOperator(node, nodeName, opset->second, std::move(attributes),
                                std::move(inputs), *row);
      if (!s.ok())
        for (Diagnostic &d : s.errors())
          if (d.where.empty()) {
            d.where = place;
            nodePlaces.emplace(place, NodePlace{nodeName, kind});
          }
      return s;
    }
  }
  for (const std::string &out : node.output())
    if (!out.empty())
      FUSEC_CHECK(bind(out, kPoisoned, place));
  return success();
}

Status GraphBuilder::importOperator(const onnx::NodeProto &node, const std::string &nodeName,
                                    int opset, OnnxAttributes attributes,
                                    std::vector<ValueId> inputs, const OpRow &row) {
  auto fail = [&](Diag id, std::string text) { return Diagnostic{id, "", std::move(text)}; };
  int count = static_cast<int>(inputs.size());
  if (count < row.minInputs || (row.maxInputs >= 0 && count > row.maxInputs))
    return fail(Diag::BadGraph,
                std::to_string(count) + " inputs; the operator takes " +
                    std::to_string(row.minInputs) +
                    (row.maxInputs < 0                ? " or more"
                     : row.maxInputs == row.minInputs ? ""
                                                      : " to " + std::to_string(row.maxInputs)));
  for (int i = 0; i < row.minInputs; ++i)
    if (inputs[static_cast<size_t>(i)] == kNoValue && !(row.optional >> i & 1))
      return fail(Diag::BadGraph, "input " + std::to_string(i) + " is mandatory and has no name");
  if (row.maxOutputs >= 0 && node.output_size() > row.maxOutputs)
    return fail(Diag::BadGraph, std::to_string(node.output_size()) + " outputs; the operator has " +
                                    std::to_string(row.maxOutputs));
  std::vector<std::string> outputNames(node.output().begin(), node.output().end());
  NodeImporter importer(*this, node.op_type(), opset, nodeName, std::move(attributes),
                        std::move(inputs), outputNames);
  Status s = row.import(importer);
  if (!importer.errors.empty()) // they came first
    return std::move(importer.errors);
  if (!s.ok())
    return s;
  if (std::string unused = importer.unusedAttribute(); !unused.empty())
    // The schemas are those of the default domain.
    return node.domain().empty() || node.domain() == "ai.onnx"
               ? importer.unreadAttribute(unused)
               : fail(Diag::BadAttribute, "the operator has no attribute '" + unused + "'");
  for (size_t i = 0; i < outputNames.size(); ++i) {
    if (outputNames[i].empty())
      continue;
    if (i >= importer.results.size() || importer.results[i] == kNoValue)
      return fail(Diag::UnsupportedOp,
                  "output " + std::to_string(i) + " of this operator is not supported");
    nameValue(importer.results[i], frame->prefix + outputNames[i]);
    noteOutput(outputNames[i], importer.results[i]);
    FUSEC_CHECK(bind(outputNames[i], importer.results[i], where("node '" + nodeName + "'")));
  }
  return success();
}

Status GraphBuilder::inlineFunction(const onnx::NodeProto &node,
                                    const onnx::FunctionProto &function,
                                    const std::string &nodeName, OnnxAttributes attributes,
                                    const std::vector<ValueId> &inputs) {
  std::string place = where("node '" + nodeName + "' (function " + function.name() + ")");
  auto bad = [&](std::string text) { return Diagnostic{Diag::BadGraph, place, std::move(text)}; };
  FUSEC_CHECK(refuseTooDeep(place));
  if (static_cast<int>(inputs.size()) > function.input_size())
    return bad("passes more inputs than the function has");
  if (node.output_size() > function.output_size())
    return bad("asks for more outputs than the function has");
  for (const auto &a : function.attribute_proto())
    attributes.emplace(a.name(), &a);
  std::map<std::string, int> functionOpsets;
  for (const auto &o : function.opset_import())
    functionOpsets[o.domain() == "ai.onnx" ? "" : o.domain()] =
        static_cast<int>(std::min<int64_t>(o.version(), INT32_MAX));
  for (const auto &[domain, version] : *frame->opsets)
    functionOpsets.emplace(domain, version);
  NameScope scope;
  ImportFrame inner;
  inner.scope = &scope;
  inner.region = frame->region;
  inner.opsets = &functionOpsets;
  inner.functionAttributes = &attributes;
  inner.prefix = nodeName + "/";
  inner.branch = frame->branch;
  inner.isInLoop = frame->isInLoop;
  inner.depth = frame->depth + 1;
  ImportFrame *outer = frame;
  frame = &inner;
  Status status = success();
  for (int i = 0; i < function.input_size() && status.ok(); ++i)
    status = bind(
        function.input(i),
        static_cast<size_t>(i) < inputs.size() ? inputs[static_cast<size_t>(i)] : kNoValue, place);
  size_t before = errors.size();
  if (status.ok())
    importNodes(function.node());
  frame = outer;
  if (!status.ok())
    return status;
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty())
      continue;
    auto it = scope.names.find(function.output(i));
    if (it == scope.names.end() && errors.size() == before)
      return bad("the function does not make its output '" + function.output(i) + "'");
    ValueId id = it == scope.names.end() ? kPoisoned : it->second;
    if (id == kNoValue)
      return bad("output '" + function.output(i) + "' is an input that the call leaves out");
    FUSEC_CHECK(bind(node.output(i), id, place));
    noteOutput(node.output(i), id);
  }
  return success();
}

} // namespace fusec
