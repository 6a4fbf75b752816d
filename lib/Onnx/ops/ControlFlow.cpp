#include "Onnx/Compose.h"
#include "Onnx/GraphBuilder.h"
#include "Onnx/KnownValues.h"
#include "Onnx/OpTable.h"
#include "Support/Diag.h"

// If, Loop and Scan. Bodies become regions; an If whose condition is constant is replaced by its branch.

namespace fusec {
namespace {

/// The type of value `id` as a region's output.
TypedShape typeOf(NodeImporter &n, ValueId id) { return {n.typeOf(id), n.shapeOf(id)}; }

/// An If whose condition is a run-time value: both branches become regions.
Status bothBranches(NodeImporter &n, const onnx::GraphProto &thenGraph,
                    const onnx::GraphProto &elseGraph) {
  GraphBuilder &builder = n.graphBuilder();
  // Both, so that what one branch lacks does not hide what the other one lacks.
  auto thenResult = builder.importSubgraph(thenGraph, {}, n.name());
  auto elseResult = builder.importSubgraph(elseGraph, {}, n.name());
  Diagnostics refused;
  for (auto *branch : {&thenResult, &elseResult})
    if (!branch->ok())
      refused.insert(refused.end(), branch->errors().begin(), branch->errors().end());
  if (!thenResult.ok() || !elseResult.ok())
    return refused;
  Region thenRegion = std::move(*thenResult), elseRegion = std::move(*elseResult);
  if (thenRegion.outputs.size() != n.numOutputs() || elseRegion.outputs.size() != n.numOutputs())
    return n.fail(Diag::BadGraph, "both branches must make as many outputs as the node has");
  for (size_t i = 0; i < n.numOutputs(); ++i) {
    TypedShape a = typeOf(n, thenRegion.outputs[i]), b = typeOf(n, elseRegion.outputs[i]);
    if (a.type != b.type)
      return n.fail(Diag::ShapeMismatch,
                    "output " + std::to_string(i) + " is " +
                        typeText(a.type, a.shape, n.symbols()) + " in one branch and " +
                        typeText(b.type, b.shape, n.symbols()) + " in the other");
    if (a.shape != b.shape)
      return n.needsFixed("output " + std::to_string(i) + " has the shape " +
                              typeText(a.type, a.shape, n.symbols()) + " in one branch and " +
                              typeText(b.type, b.shape, n.symbols()) +
                              " in the other; both must be equal",
                          a.shape, b.shape);
  }
  const std::vector<ValueId> ifTrue = thenRegion.outputs, ifFalse = elseRegion.outputs;
  std::vector<Region> regions;
  regions.push_back(std::move(thenRegion));
  regions.push_back(std::move(elseRegion));
  FUSEC_CHECK(n.finish(OpKind::If, {n.reshape(n.id(0), {})}, {}, {}, std::move(regions)));
  for (size_t i = 0; i < n.numOutputs(); ++i)
    if (n.wants(i))
      builder.knownValues.choose(n.results[i], n.id(0), ifTrue[i], ifFalse[i]);
  return success();
}

Status ifOp(NodeImporter &n) {
  if (n.type(0) != DType::Bool)
    return n.mismatch("the condition must be one bool");
  FUSEC_CHECK(n.oneElement(0, "the condition must be one bool"));
  const onnx::GraphProto *thenGraph = n.attrGraph("then_branch"),
                         *elseGraph = n.attrGraph("else_branch");
  if (!thenGraph || !elseGraph)
    return success(); // recorded in n.errors
  if (auto condition = n.peekInts(0)) {
    FUSEC_TRY(auto outputs, n.graphBuilder().inlineSubgraph(
                                (*condition)[0] ? *thenGraph : *elseGraph, {}, n.name()));
    if (outputs.size() != n.numOutputs())
      return n.fail(Diag::BadGraph, "the branch makes another number of outputs than the node has");
    for (size_t i = 0; i < outputs.size(); ++i)
      n.result(i, outputs[i]);
    return success();
  }
  Status status = bothBranches(n, *thenGraph, *elseGraph);
  if (!status.ok() && !n.graphBuilder().foundFixed)
    n.ask(n.id(0)); // one branch alone may be served
  return status;
}

/// Whether `id` is the region's input `index`, passed on by any number of Identity nodes.
bool passesOn(const Region &region, ValueId id, size_t index) {
  for (auto node = region.nodes.rbegin(); node != region.nodes.rend(); ++node)
    if (node->op == OpKind::Identity && node->outputs[0] == id)
      id = node->inputs[0];
  return index < region.inputs.size() && id == region.inputs[index];
}

constexpr const char *kLoopOutputs =
    "the body must make the condition, the carried values and the scan outputs";

bool neverRuns(const NodeImporter &n) {
  const auto trips = n.peek(0);
  const auto start = n.peekInts(1);
  return (start && !start->front()) || (trips && trips->front().range(n.symbols()).max <= 0);
}

/// What a loop that never runs makes: the values that it would carry, and scan outputs without elements, whose other
/// sizes its body tells.
Status initialValues(NodeImporter &n, const onnx::GraphProto &body, std::vector<TypedShape> types) {
  const size_t carried = types.size() - 2;
  for (size_t i = 0; i < carried; ++i)
    n.result(i, n.id(i + 2));
  if (n.numOutputs() == carried)
    return success();
  FUSEC_TRY(const Region region, n.graphBuilder().importSubgraph(body, types, n.name()));
  if (region.outputs.size() != n.numOutputs() + 1)
    return n.fail(Diag::BadGraph, kLoopOutputs);
  for (size_t i = carried; i < n.numOutputs(); ++i) {
    TypedShape t = typeOf(n, region.outputs[i + 1]);
    t.shape.insert(t.shape.begin(), DimExpr(0));
    n.result(i, Compose(n).filled(t.type, 0, std::move(t.shape)));
  }
  return success();
}

Status loop(NodeImporter &n) {
  const onnx::GraphProto *body = n.attrGraph("body");
  if (!body)
    return success(); // recorded in n.errors
  size_t carried = n.numInputs() < 2 ? 0 : n.numInputs() - 2;
  if (n.numOutputs() < carried)
    return n.fail(Diag::BadGraph, "the node has fewer outputs than carried values");
  if ((n.has(0) && n.type(0) != DType::I64) || (n.has(1) && n.type(1) != DType::Bool))
    return n.mismatch("the trip count must be i64 and the condition bool");
  for (size_t i : {0, 1})
    if (n.has(i))
      FUSEC_CHECK(n.oneElement(i, "trip count and condition must be one number each"));
  std::vector<TypedShape> types{{DType::I64, {}}, {DType::Bool, {}}};
  for (size_t i = 0; i < carried; ++i) {
    if (!n.has(i + 2))
      return n.fail(Diag::BadGraph, "carried value " + std::to_string(i) + " is missing");
    types.push_back({n.type(i + 2), n.shape(i + 2)});
  }
  if (neverRuns(n))
    return initialValues(n, *body, std::move(types));
  auto imported = n.graphBuilder().importSubgraph(*body, types, n.name());
  auto askWhetherRuns = [&] { // one that never does is served whatever its body is
    n.ask(n.id(0));
    n.ask(n.id(1));
  };
  if (!imported.ok() && !n.graphBuilder().foundFixed)
    askWhetherRuns();
  FUSEC_TRY(Region region, std::move(imported));
  if (region.outputs.size() != n.numOutputs() + 1)
    return n.fail(Diag::BadGraph, kLoopOutputs);
  if (n.typeOf(region.outputs[0]) != DType::Bool)
    return n.mismatch("the body's condition must be bool");
  std::vector<Shape> outs; // what Graph reads of them: the first size of a scan output
  for (size_t i = 0; i < carried; ++i) {
    TypedShape in = types[i + 2], out = typeOf(n, region.outputs[i + 1]);
    if (in.type != out.type)
      return n.mismatch("carried value " + std::to_string(i) + " changes its type");
    if (in.shape != out.shape) {
      askWhetherRuns();
      return n.fail(Diag::UnsupportedShape, "carried value " + std::to_string(i) + " grows from " +
                                                typeText(in.type, in.shape, n.symbols()) + " to " +
                                                typeText(out.type, out.shape, n.symbols()));
    }
    outs.emplace_back();
  }
  // Scan outputs are as long as the loop runs: that is known when nothing can end it early.
  auto trips = n.numOutputs() > carried && n.has(0) ? n.known(0) : n.peek(0);
  auto start = n.peekInts(1);
  auto stays = knownElements(n.graph().value(region.outputs[0]));
  bool passes = passesOn(region, region.outputs[0], 1);
  const bool goesOn = (stays && (*stays)[0].isConst(1)) || passes;
  const bool always = (!n.has(1) || start) && goesOn;
  for (size_t i = carried; i < n.numOutputs(); ++i) {
    if (!trips || !always) {
      askWhetherRuns();
      n.ask(region.outputs[0]);
      const std::string text = "how often the loop runs depends on the data, and so does the "
                               "size of output " +
                               std::to_string(i);
      // Constants help where the body does not end the loop.
      const bool help = goesOn && n.has(0);
      return n.needsConstant(text, help ? std::vector<size_t>{0, 1} : std::vector<size_t>{});
    }
    const DimExpr &count = (*trips)[0];
    outs.push_back({count.range(n.symbols()).min < 0 ? max(count, DimExpr(0)) : count});
  }
  std::vector<ValueId> in = n.ids();
  in.resize(std::max<size_t>(in.size(), 2), kNoValue);
  for (size_t i = 0; i < 2; ++i)
    if (in[i] != kNoValue)
      in[i] = n.reshape(in[i], {});
  std::vector<Region> regions;
  regions.push_back(std::move(region));
  return n.finish(OpKind::Loop, std::move(in), {}, std::move(outs), std::move(regions));
}

Status scan(NodeImporter &n) {
  const onnx::GraphProto *body = n.attrGraph("body");
  int64_t scanned = n.attrInt("num_scan_inputs");
  if (!body || scanned < 1 || scanned > static_cast<int64_t>(n.numInputs()))
    return n.fail(Diag::BadAttribute, "num_scan_inputs must be between 1 and the number of inputs");
  for (size_t i = 0; i < n.numInputs(); ++i)
    if (!n.has(i))
      return n.fail(Diag::BadGraph, "input " + std::to_string(i) + " is missing");
  auto states = static_cast<int64_t>(n.numInputs()) - scanned;
  auto scanOutputs = static_cast<int64_t>(n.numOutputs()) - states;
  if (scanOutputs < 0)
    return n.fail(Diag::BadGraph, "the node has fewer outputs than states");
  auto list = [&](const char *key, int64_t count) {
    return n.attrInts(key, std::vector<int64_t>(static_cast<size_t>(count), 0));
  };
  std::vector<int64_t> inAxes = list("scan_input_axes", scanned),
                       outAxes = list("scan_output_axes", scanOutputs),
                       inDirections = list("scan_input_directions", scanned),
                       outDirections = list("scan_output_directions", scanOutputs);
  if (inAxes.size() != static_cast<size_t>(scanned) ||
      inDirections.size() != static_cast<size_t>(scanned) ||
      outAxes.size() != static_cast<size_t>(scanOutputs) ||
      outDirections.size() != static_cast<size_t>(scanOutputs))
    return n.fail(Diag::BadAttribute, "axes and directions need one entry a scan input or output");
  std::vector<TypedShape> types;
  for (size_t i = 0; i < static_cast<size_t>(states); ++i)
    types.push_back({n.type(i), n.shape(i)});
  for (size_t i = 0; i < static_cast<size_t>(scanned); ++i) {
    size_t input = i + static_cast<size_t>(states);
    FUSEC_TRY(inAxes[i], n.axis(inAxes[i], n.rank(input)));
    Shape slice = n.shape(input);
    slice.erase(slice.begin() + inAxes[i]);
    types.push_back({n.type(input), std::move(slice)});
  }
  FUSEC_TRY(Region region, n.graphBuilder().importSubgraph(*body, types, n.name()));
  if (region.outputs.size() != n.numOutputs())
    return n.fail(Diag::BadGraph, "the body must make as many outputs as the node has");
  for (size_t k = 0; k < outAxes.size(); ++k) {
    const Shape &slice = n.shapeOf(region.outputs[static_cast<size_t>(states) + k]);
    FUSEC_TRY(outAxes[k], n.axis(outAxes[k], static_cast<int64_t>(slice.size()) + 1));
  }
  std::vector<Region> regions;
  regions.push_back(std::move(region));
  return n.finish(OpKind::Scan, n.ids(),
                  {{"num_scan_inputs", scanned},
                   {"scan_input_axes", inAxes},
                   {"scan_input_directions", inDirections},
                   {"scan_output_axes", outAxes},
                   {"scan_output_directions", outDirections}},
                  {}, std::move(regions));
}

constexpr OpRow kRows[] = {
    {"If", 1, kNewestOpset, 1, 1, -1, ifOp,
     "both branches make equal shapes, or the condition is constant"},
    {"Loop", 1, kNewestOpset, 2, -1, -1, loop,
     "carried values keep their shape; scan outputs need a fixed trip count", 0b11},
    {"Scan", 9, kNewestOpset, 1, -1, -1, scan},
};

} // namespace

std::span<const OpRow> controlFlowOps() { return kRows; }

} // namespace fusec
