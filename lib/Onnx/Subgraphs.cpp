#include "Onnx/Compose.h"
#include "Onnx/GraphBuilder.h"
#include "Support/Diag.h"

// Subgraphs: bodies and branches become regions, or are written in place.

namespace fusec {

Status GraphBuilder::subgraphBody(const onnx::GraphProto &proto, NameScope &scope, Region &region,
                                  std::vector<ValueId> &outputs) {
  auto declared = declarations(proto);
  ImportFrame inner = *frame;
  inner.scope = &scope;
  inner.region = &region;
  inner.declared = &declared;
  inner.nodes = &proto.node();
  inner.depth = frame->depth + 2;
  inner.isInLoop = frame->isInLoop || (&region != frame->region && !region.inputs.empty());
  ImportFrame *outer = frame;
  frame = &inner;
  size_t before = errors.size();
  Status status = success();
  initialisers(proto, frame->prefix);
  importNodes(proto.node());
  checkDeclarations(declared);
  for (int i = 0; status.ok() && i < proto.output_size(); ++i) {
    auto id = lookUp(proto.output(i).name());
    if (id && *id >= 0)
      outputs.push_back(*id);
    else if (errors.size() == before && !id)
      status =
          Diagnostic{Diag::BadGraph, where("output '" + proto.output(i).name() + "' of a subgraph"),
                     "no node makes it"};
    else if (errors.size() == before)
      status = Diagnostics{}; // depends on a value that was refused before: reported there
  }
  frame = outer;
  if (status.ok() && errors.size() != before)
    status = Diagnostics{};
  return status;
}

Status GraphBuilder::bindInputs(const onnx::GraphProto &proto, const std::vector<ValueId> &values,
                                NameScope &scope, const std::string &place) {
  if (proto.input_size() != static_cast<int>(values.size()))
    return Diagnostic{Diag::BadGraph, place,
                      "it has " + std::to_string(proto.input_size()) +
                          " inputs; the operator passes " + std::to_string(values.size())};
  for (int i = 0; i < proto.input_size(); ++i) {
    const std::string &name = proto.input(i).name();
    if (lookUp(name) || !scope.names.emplace(name, values[static_cast<size_t>(i)]).second)
      return Diagnostic{Diag::BadGraph, place, "its input '" + name + "' is defined a second time"};
  }
  return success();
}

Result<Region> GraphBuilder::importSubgraph(const onnx::GraphProto &proto,
                                            const std::vector<TypedShape> &inputTypes,
                                            const std::string &nodeName,
                                            const IntegerRange &ofFirst, const MakeValues &make) {
  std::string place = where("subgraph of node '" + nodeName + "'");
  FUSEC_CHECK(refuseTooDeep(place));
  NameScope scope;
  scope.outer = frame->scope;
  Region region;
  for (size_t i = 0; i < inputTypes.size(); ++i) {
    const auto k = static_cast<int>(i);
    const std::string name = k < proto.input_size() ? frame->prefix + proto.input(k).name() : "";
    region.inputs.push_back(newValue(name, inputTypes[i].type, inputTypes[i].shape));
  }
  if (!inputTypes.empty() && ofFirst.least)
    integerRanges[region.inputs[0]] = ofFirst;
  std::vector<ValueId> own = region.inputs;
  if (make)
    FUSEC_CHECK(extendRegion(region, [&]() -> Status {
      FUSEC_TRY(own, make(region.inputs));
      return success();
    }));
  FUSEC_CHECK(bindInputs(proto, own, scope, place));
  FUSEC_CHECK(subgraphBody(proto, scope, region, region.outputs));
  return region;
}

void GraphBuilder::checkSubgraphs(const onnx::NodeProto &node, const std::string &nodeName) {
  if (Status status = refuseTooDeep(where("subgraph of node '" + nodeName + "'")); !status.ok()) {
    note(std::move(status));
    return;
  }
  auto check = [&](const onnx::GraphProto &proto) {
    NameScope scope;
    scope.outer = frame->scope;
    for (const auto &input : proto.input())
      scope.names.emplace(input.name(), kPoisoned);
    Region region;
    std::vector<ValueId> outputs;
    note(subgraphBody(proto, scope, region, outputs));
  };
  for (const auto &a : node.attribute()) {
    if (a.has_g())
      check(a.g());
    for (const auto &g : a.graphs())
      check(g);
  }
}

Result<std::vector<ValueId>> GraphBuilder::inlineSubgraph(const onnx::GraphProto &proto,
                                                          const std::vector<ValueId> &inputs,
                                                          const std::string &nodeName) {
  NameScope scope;
  scope.outer = frame->scope;
  FUSEC_CHECK(bindInputs(proto, inputs, scope, where("subgraph of node '" + nodeName + "'")));
  std::vector<ValueId> outputs;
  FUSEC_CHECK(subgraphBody(proto, scope, *frame->region, outputs));
  return outputs;
}

std::optional<DimExpr> GraphBuilder::isTaken(const std::string &node) {
  std::optional<DimExpr> all;
  for (Branch *b = frame->branch; b; b = b->outer) {
    if (!knownValues.sizes(b->condition, node) && !tellCondition(*b).ok())
      continue;
    const auto condition = knownValues.sizes(b->condition, node);
    if (!condition)
      continue;
    const DimExpr own = b->ifTrue ? condition->front() : DimExpr(1) - condition->front();
    all = all ? *all * own : own;
  }
  return all;
}

Status GraphBuilder::tellCondition(Branch &branch) {
  NodeImporter &n = branch.node;
  return extendRegion(branch.around, [&]() -> Status {
    Compose make(n);
    const ValueId bit = make.cast(n.reshape(branch.condition, {}), DType::I64);
    const DimExpr size = newDataSize(n.name() + ".condition", 1);
    FUSEC_TRY(const ValueId told, n.tellSize(size, bit));
    branch.condition = make.cast(told, DType::Bool);
    graph.value(branch.condition).known = {size};
    return success();
  });
}

Status GraphBuilder::extendRegion(Region &region, const std::function<Status()> &make) {
  ImportFrame inner = *frame;
  inner.region = &region;
  ImportFrame *outer = frame;
  frame = &inner;
  Status status = make();
  frame = outer;
  return status;
}

Result<Region> GraphBuilder::makeRegion(const std::vector<TypedShape> &inputTypes,
                                        const MakeValues &body) {
  Region region;
  for (const TypedShape &t : inputTypes)
    region.inputs.push_back(newValue("", t.type, t.shape));
  FUSEC_CHECK(extendRegion(region, [&]() -> Status {
    FUSEC_TRY(region.outputs, body(region.inputs));
    return success();
  }));
  return region;
}

} // namespace fusec
