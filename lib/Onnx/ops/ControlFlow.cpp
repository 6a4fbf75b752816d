#include "Onnx/Compose.h"
#include "Onnx/GraphBuilder.h"
#include "Onnx/KnownValues.h"
#include "Onnx/OpTable.h"
#include "Support/Diag.h"
#include "Support/DimLimits.h"

#include <algorithm>
#include <utility>

// Loop and Scan: their bodies become regions.

namespace fusec {
namespace {

/// The type of value `id` as a region's output.
TypedShape typeOf(NodeImporter &n, ValueId id) { return {n.typeOf(id), n.shapeOf(id)}; }

/// Whether `id` is the region's input `index`, passed on by any number of Identity nodes.
bool passesOn(const Region &region, ValueId id, size_t index) {
  for (auto node = region.nodes.rbegin(); node != region.nodes.rend(); ++node)
    if (node->op == OpKind::Identity && node->outputs[0] == id)
      id = node->inputs[0];
  return index < region.inputs.size() && id == region.inputs[index];
}

/// What a body hands on has sizes that are known around it: behind `own` data sizes come those of the body.
Status hasOuterSizes(NodeImporter &n, const Region &region, size_t own) {
  const std::vector<SymbolId> &all = n.graphBuilder().dataSizes;
  for (ValueId id : region.outputs)
    for (SymbolId s : symbolsIn(n.graph().value(id)))
      if (std::find(all.begin() + static_cast<std::ptrdiff_t>(own), all.end(), s) != all.end())
        return n.fail(Diag::UnsupportedShape,
                      "the body hands on " + typeText(n.graph().value(id), n.symbols()) +
                          ", whose size '" + n.symbols()[static_cast<size_t>(s)].name +
                          "' it computes anew in each trip");
  return success();
}

/// Whether a size changes in every trip whose tensors have elements, so that no second one could be made.
bool mustChange(const NodeImporter &n, const DimExpr &size, const DimExpr &next) {
  std::vector<Symbol> symbols = n.symbols();
  for (Symbol &s : symbols)
    if (!s.definition)
      s.min = std::max<int64_t>(s.min, 1);
  const DimExpr::Range difference = (next - size).range(symbols);
  return difference.min > 0 || difference.max < 0;
}

/// Carried value `i` has the type `in` before a trip and `out` behind it.
Status keepsShape(NodeImporter &n, size_t i, const TypedShape &in, const TypedShape &out) {
  if (in.type != out.type)
    return n.mismatch("carried value " + std::to_string(i) + " changes its type");
  const bool keeps = std::equal(
      in.shape.begin(), in.shape.end(), out.shape.begin(), out.shape.end(),
      [&](const DimExpr &size, const DimExpr &next) { return !mustChange(n, size, next); });
  if (keeps &&
      n.sizes()
          .sameShape(in.shape, out.shape,
                     "a trip must leave the sizes of what is carried as they are", Need::Tested)
          .ok())
    return success();
  return n.fail(Diag::UnsupportedShape, "carried value " + std::to_string(i) + " grows from " +
                                            typeText(in.type, in.shape, n.symbols()) + " to " +
                                            typeText(out.type, out.shape, n.symbols()));
}

constexpr const char *kLoopOutputs =
    "the body must make the condition, the carried values and the scan outputs";

bool neverRuns(const NodeImporter &n) {
  const auto trips = n.peek(0);
  const auto start = n.peekInts(1);
  return (start && !start->front()) || (trips && trips->front().range(n.symbols()).max <= 0);
}

/// The trips are numbered from 0, to one less than they may be at most.
IntegerRange rangeOfTrip(const NodeImporter &n) {
  IntegerRange range{DimExpr(0), std::nullopt};
  if (const auto trips = n.peek(0); trips && !isTooLarge(trips->front()))
    range.largest = trips->front() - DimExpr(1);
  return range;
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

/// Scan outputs of a loop that ends when the data says so: carried tensors as long as it may run at most, of which each
/// trip writes its part, beside the number of trips. What is behind that number is cut off. `bound` is of the trips,
/// `goesOn` tells that the body does not end them.
Status stackedByData(NodeImporter &n, Region region, size_t carried, const DimExpr &bound,
                     bool goesOn) {
  GraphBuilder &builder = n.graphBuilder();
  Compose c(n);
  const DimExpr size = n.newSize(bound, carried, 0), most = atBounds(size, n.symbols());
  if (most.isConst(INT64_MAX)) {
    const std::string text = "how often the loop runs depends on the data, and so does the size of "
                             "output " +
                             std::to_string(carried) + ", which has no upper bound: --dim " +
                             size.str(n.symbols()) + "=0..N";
    return n.needsConstant(text,
                           goesOn && n.has(0) ? std::vector<size_t>{0, 1} : std::vector<size_t>{});
  }
  std::vector<ValueId> in = n.ids();
  in.resize(carried + 2, kNoValue);
  for (size_t i = 0; i < 2; ++i)
    if (in[i] != kNoValue)
      in[i] = n.reshape(in[i], {});
  std::vector<ValueId> slices(region.outputs.begin() + 1 + static_cast<std::ptrdiff_t>(carried),
                              region.outputs.end());
  region.outputs.resize(1 + carried);
  auto carry = [&](ValueId init) {
    in.push_back(init);
    region.inputs.push_back(builder.newValue("", n.typeOf(init), n.shapeOf(init)));
    return region.inputs.back();
  };
  const ValueId trips = carry(c.integer(0));
  std::vector<ValueId> stacks;
  for (ValueId slice : slices) {
    Shape whole = n.shapeOf(slice);
    whole.insert(whole.begin(), most);
    stacks.push_back(carry(c.filled(n.typeOf(slice), 0, std::move(whole))));
  }
  FUSEC_CHECK(builder.extendRegion(region, [&]() -> Status {
    FUSEC_TRY(region.outputs.emplace_back(), c.binary(OpKind::Add, trips, c.integer(1)));
    const ValueId at = n.reshape(trips, {DimExpr(1), DimExpr(1)});
    for (size_t i = 0; i < slices.size(); ++i) {
      Shape row = n.shapeOf(slices[i]);
      row.insert(row.begin(), DimExpr(1));
      FUSEC_TRY(region.outputs.emplace_back(),
                n.emitOne(OpKind::ScatterND, {stacks[i], at, n.reshape(slices[i], std::move(row))},
                          {{"reduction", std::string("none")}}));
    }
    return success();
  }));
  std::vector<Region> regions;
  regions.push_back(std::move(region));
  FUSEC_TRY(const std::vector<ValueId> made,
            n.emit(OpKind::Loop, std::move(in), {}, std::vector<Shape>(carried + 1 + slices.size()),
                   std::move(regions)));
  FUSEC_TRY([[maybe_unused]] const ValueId told, n.tellSize(size, made[carried]));
  for (size_t i = 0; i < carried; ++i)
    n.result(i, made[i]);
  const ValueId rows = c.iota(n.graphBuilder().solver().canonical(size));
  for (size_t i = 0; i < slices.size(); ++i) {
    FUSEC_TRY(const ValueId stacked, c.gather(made[carried + 1 + i], rows, 0));
    n.result(carried + i, stacked);
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
  const size_t sizesAround = n.graphBuilder().dataSizes.size();
  auto imported = n.graphBuilder().importSubgraph(*body, types, n.name(), rangeOfTrip(n));
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
    Status keeps = keepsShape(n, i, types[i + 2], typeOf(n, region.outputs[i + 1]));
    if (!keeps.ok()) {
      askWhetherRuns();
      return keeps;
    }
    outs.emplace_back();
  }
  FUSEC_CHECK(hasOuterSizes(n, region, sizesAround));
  // Scan outputs are as long as the loop runs: that is known when nothing can end it early.
  auto trips = n.numOutputs() > carried && n.has(0) ? n.known(0) : n.peek(0);
  auto start = n.peekInts(1);
  auto stays = knownElements(n.graph().value(region.outputs[0]));
  bool passes = passesOn(region, region.outputs[0], 1);
  const bool goesOn = (stays && (*stays)[0].isConst(1)) || passes;
  const bool always = (!n.has(1) || start) && goesOn;
  if (n.numOutputs() > carried && (!trips || !always)) {
    askWhetherRuns();
    n.ask(region.outputs[0]);
    const auto declared = n.declared(carried);
    const DimExpr most = trips                                  ? max((*trips)[0], DimExpr(0))
                         : declared && !declared->shape.empty() ? declared->shape[0]
                                                                : DimExpr(INT64_MAX);
    return stackedByData(n, std::move(region), carried, most, goesOn);
  }
  for (size_t i = carried; i < n.numOutputs(); ++i) {
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
  const size_t sizesAround = n.graphBuilder().dataSizes.size();
  FUSEC_TRY(Region region, n.graphBuilder().importSubgraph(*body, types, n.name()));
  if (region.outputs.size() != n.numOutputs())
    return n.fail(Diag::BadGraph, "the body must make as many outputs as the node has");
  FUSEC_CHECK(hasOuterSizes(n, region, sizesAround));
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
    {"Loop", 1, kNewestOpset, 2, -1, -1, loop,
     "carried values keep their shape; scan outputs need a bound on the number of trips", 0b11},
    {"Scan", 9, kNewestOpset, 1, -1, -1, scan},
};

} // namespace

std::span<const OpRow> controlFlowOps() { return kRows; }

} // namespace fusec
