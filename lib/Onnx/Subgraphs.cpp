#include "Onnx/GraphBuilder.h"

// Subgraphs: bodies and branches become regions, or are written in place.

namespace fusec {

Status GraphBuilder::subgraphBody(const onnx::GraphProto &proto, NameScope &scope, Region &region,
                                  std::vector<ValueId> &outputs) {
  auto declared = declarations(proto);
  ImportFrame inner = *frame;
  inner.scope = &scope;
  inner.region = &region;
  inner.declared = &declared;
  inner.depth = frame->depth + 1;
  ImportFrame *outer = frame;
  frame = &inner;
  size_t before = errors.size();
  Status status = success();
  initialisers(proto, frame->prefix);
  importNodes(proto.node());
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

Result<Region> GraphBuilder::importSubgraph(const onnx::GraphProto &proto,
                                            const std::vector<TypedShape> &inputTypes,
                                            const std::string &nodeName) {
  std::string place = where("subgraph of node '" + nodeName + "'");
  if (frame->depth >= options.limits.functionDepth + options.limits.subgraphDepth)
    return Diagnostic{Diag::LimitExceeded, place, "functions and subgraphs are nested too deeply"};
  if (proto.input_size() != static_cast<int>(inputTypes.size()))
    return Diagnostic{Diag::BadGraph, place,
                      "it has " + std::to_string(proto.input_size()) +
                          " inputs; the operator passes " + std::to_string(inputTypes.size())};
  NameScope scope;
  scope.outer = frame->scope;
  Region region;
  for (int i = 0; i < proto.input_size(); ++i) {
    const std::string &name = proto.input(i).name();
    const TypedShape &t = inputTypes[static_cast<size_t>(i)];
    ValueId id = newValue(frame->prefix + name, t.type, t.shape);
    if (lookUp(name) || !scope.names.emplace(name, id).second)
      return Diagnostic{Diag::BadGraph, place, "its input '" + name + "' is defined a second time"};
    region.inputs.push_back(id);
  }
  FUSEC_CHECK(subgraphBody(proto, scope, region, region.outputs));
  return region;
}

void GraphBuilder::checkSubgraphs(const onnx::NodeProto &node, const std::string &nodeName) {
  if (frame->depth >= options.limits.functionDepth + options.limits.subgraphDepth) {
    note(Diagnostic{Diag::LimitExceeded, where("subgraph of node '" + nodeName + "'"),
                    "functions and subgraphs are nested too deeply"});
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
                                                          const std::string &nodeName) {
  if (proto.input_size())
    return Diagnostic{Diag::BadGraph, where("subgraph of node '" + nodeName + "'"),
                      "a branch of If has no inputs"};
  NameScope scope;
  scope.outer = frame->scope;
  std::vector<ValueId> outputs;
  FUSEC_CHECK(subgraphBody(proto, scope, *frame->region, outputs));
  return outputs;
}

} // namespace fusec
