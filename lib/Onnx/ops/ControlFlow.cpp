#include "Onnx/Compose.h"
#include "Onnx/DimTools.h"
#include "Onnx/GraphBuilder.h"
#include "Onnx/GrowingValues.h"
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

/// Whether one of the symbols stands for a data size behind the first `own`, which a body computes.
template <typename Symbols> bool haveInner(NodeImporter &n, const Symbols &symbols, size_t own) {
  const std::vector<SymbolId> &all = n.graphBuilder().dataSizes;
  return std::ranges::any_of(symbols, [&](SymbolId s) {
    return std::find(all.begin() + static_cast<std::ptrdiff_t>(own), all.end(), s) != all.end();
  });
}

/// What a body hands on has sizes that are known around it.
Status hasOuterSizes(NodeImporter &n, const Region &region, size_t own) {
  for (ValueId id : region.outputs)
    if (haveInner(n, symbolsIn(n.graph().value(id)), own))
      return n.fail(Diag::UnsupportedShape, "the body hands on " +
                                                typeText(n.graph().value(id), n.symbols()) +
                                                ", of which it computes a size anew in each trip");
  return success();
}

/// Whether a size changes in every trip whose tensors have elements, so that no second one could be made: at none of
/// some sizes does it stay.
bool mustChange(const NodeImporter &n, const DimExpr &size, const DimExpr &next) {
  for (const int64_t sample : {1, 2, 3, 8, 60, 1001}) {
    std::vector<int64_t> values;
    for (const Symbol &s : n.symbols())
      values.push_back(
          std::clamp(sample, std::max<int64_t>(s.min, 1), std::max<int64_t>(s.max, 1)));
    if (size.evaluate(values) == next.evaluate(values))
      return false;
  }
  return true;
}

/// Carried value `i` has the type `in` before a trip and `out` behind it. One of its sizes that hangs on what a trip's
/// data says (`own`: as hasOuterSizes) is asked to stay, unless the user bounds what it may become, or another value's
/// growth is in it.
Status keepsShape(NodeImporter &n, size_t i, const TypedShape &in, const TypedShape &out,
                  size_t own, const GrowingValues &growing) {
  if (in.type != out.type)
    return n.mismatch("carried value " + std::to_string(i) + " changes its type");
  std::string rule = "a trip must leave the sizes of what is carried as they are";
  bool keeps = in.shape.size() == out.shape.size();
  for (size_t axis = 0; keeps && axis < in.shape.size(); ++axis) {
    const DimExpr &size = in.shape[axis], &next = out.shape[axis];
    if (size == next)
      continue;
    keeps = !mustChange(n, size, next) && !growing.hasGrown(next);
    if (!haveInner(n, symbolsOf({next}), own))
      continue;
    const std::string name = n.nameOfNewSize(i, axis);
    keeps = keeps && n.graphBuilder().options.dims.count(name) == 0;
    rule += ", where --dim " + name + "=0..N does not say how large this one becomes";
  }
  if (keeps && n.sizes().sameShape(in.shape, out.shape, rule, Need::Tested).ok())
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
/// trip writes its part, beside the number of trips. What is behind that number is cut off. `in` are the loop's
/// operands, `output` is the first of these outputs, `bound` of the trips, and `goesOn` tells that the body does not
/// end them. Returns what is carried out, and the scan outputs.
Result<std::vector<ValueId>> stackedByData(NodeImporter &n, Region region, std::vector<ValueId> in,
                                           size_t output, const DimExpr &bound, bool goesOn) {
  GraphBuilder &builder = n.graphBuilder();
  Compose c(n);
  const size_t carried = in.size() - 2;
  const DimExpr size = n.newSize(bound, output, 0), most = atBounds(size, n.symbols());
  if (most.isConst(INT64_MAX)) {
    const std::string text = "how often the loop runs depends on the data, and so does the size of "
                             "output " +
                             std::to_string(output) + ", which has no upper bound: --dim " +
                             size.str(n.symbols()) + "=0..N";
    return n.needsConstant(text,
                           goesOn && n.has(0) ? std::vector<size_t>{0, 1} : std::vector<size_t>{});
  }
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
  FUSEC_TRY(std::vector<ValueId> made,
            n.emit(OpKind::Loop, std::move(in), {}, std::vector<Shape>(carried + 1 + slices.size()),
                   std::move(regions)));
  FUSEC_TRY([[maybe_unused]] const ValueId told, n.tellSize(size, made[carried]));
  made.erase(made.begin() + static_cast<std::ptrdiff_t>(carried));
  const ValueId rows = c.iota(n.graphBuilder().solver().canonical(size));
  for (size_t i = 0; i < slices.size(); ++i) {
    FUSEC_TRY(made[carried + i], c.gather(made[carried + i], rows, 0));
  }
  return made;
}

/// `made`: the loop's outputs, with what GrowingValues has added.
Status giveResults(NodeImporter &n, GrowingValues &growing, std::vector<ValueId> made) {
  FUSEC_CHECK(growing.finish(made));
  for (size_t i = 0; i < made.size(); ++i)
    if (n.wants(i))
      n.result(i, made[i]);
  return success();
}

/// No bound: exporters write the largest i64 where a condition ends the loop.
constexpr int64_t kEndless = int64_t(1) << 40;

/// The types of what a Loop hands its body: the trip's number, the condition, and what is carried.
Result<std::vector<TypedShape>> inputsOfBody(NodeImporter &n) {
  const size_t carried = n.numInputs() < 2 ? 0 : n.numInputs() - 2;
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
  return types;
}

/// What a Loop carries keeps its type and its sizes, but for what grows: where more does, the next round knows it.
/// `given`: inputsOfBody. `own`: as hasOuterSizes.
Status carriedKeepShapes(NodeImporter &n, const Region &region, GrowingValues &growing,
                         const std::vector<TypedShape> &given, size_t own) {
  Status all = success();
  for (size_t i = 0; i + 2 < given.size(); ++i) {
    TypedShape before = given[i + 2], behind = typeOf(n, region.outputs[i + 1]);
    before.shape = growing.inFrontOfTrip(i, std::move(before.shape));
    Status keeps = keepsShape(n, i, before, {behind.type, growing.inFrontOfTrip(i, behind.shape)},
                              own, growing);
    if (keeps.ok())
      continue;
    if (before.type == behind.type)
      growing.note(i, before.shape, behind.shape);
    if (all.ok())
      all = std::move(keeps);
  }
  return all;
}

Status loop(NodeImporter &n) {
  const onnx::GraphProto *body = n.attrGraph("body");
  if (!body)
    return success(); // recorded in n.errors
  FUSEC_TRY(std::vector<TypedShape> types, inputsOfBody(n));
  if (neverRuns(n))
    return initialValues(n, *body, std::move(types));
  const std::vector<TypedShape> given = types;
  const size_t carried = given.size() - 2;
  std::vector<ValueId> in = n.ids();
  in.resize(carried + 2, kNoValue);
  for (size_t i = 0; i < 2; ++i)
    if (in[i] != kNoValue)
      in[i] = n.reshape(in[i], {});
  auto askWhetherRuns = [&] { // one that never does is served whatever its body is
    n.ask(n.id(0));
    n.ask(n.id(1));
  };
  GrowingValues growing(n, *body);
  if (!growing.empty()) {
    const auto most = n.peek(0);
    const bool isBound = most && (!(*most)[0].isConst() || (*most)[0].constValue() < kEndless);
    Status kept = growing.keep(in, types, isBound ? std::optional((*most)[0]) : std::nullopt);
    if (!kept.ok()) {
      askWhetherRuns();
      return kept;
    }
  }
  const size_t sizesAround = n.graphBuilder().dataSizes.size();
  auto imported = n.graphBuilder().importSubgraph(
      *body, types, n.name(), rangeOfTrip(n),
      [&](const std::vector<ValueId> &inputs) { return growing.read(inputs); });
  if (!imported.ok() && !n.graphBuilder().foundFixed)
    askWhetherRuns();
  FUSEC_TRY(Region region, std::move(imported));
  if (region.outputs.size() != n.numOutputs() + 1)
    return n.fail(Diag::BadGraph, kLoopOutputs);
  if (n.typeOf(region.outputs[0]) != DType::Bool)
    return n.mismatch("the body's condition must be bool");
  if (Status keep = carriedKeepShapes(n, region, growing, given, sizesAround); !keep.ok()) {
    if (!n.graphBuilder().foundGrowth)
      askWhetherRuns();
    return keep;
  }
  FUSEC_TRY(const std::vector<ValueId> lengths, growing.handOn(region));
  FUSEC_CHECK(hasOuterSizes(n, region, sizesAround));
  region.outputs.insert(region.outputs.begin() + static_cast<std::ptrdiff_t>(1 + carried),
                        lengths.begin(), lengths.end());
  std::vector<Shape> outs(in.size() - 2); // Graph reads the first size of a scan output alone
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
    FUSEC_TRY(std::vector<ValueId> made,
              stackedByData(n, std::move(region), std::move(in), carried, most, goesOn));
    return giveResults(n, growing, std::move(made));
  }
  for (size_t i = carried; i < n.numOutputs(); ++i) {
    const DimExpr &count = (*trips)[0];
    outs.push_back({count.range(n.symbols()).min < 0 ? max(count, DimExpr(0)) : count});
  }
  std::vector<Region> regions;
  regions.push_back(std::move(region));
  if (growing.empty())
    return n.finish(OpKind::Loop, std::move(in), {}, std::move(outs), std::move(regions));
  FUSEC_TRY(std::vector<ValueId> made,
            n.emit(OpKind::Loop, std::move(in), {}, std::move(outs), std::move(regions)));
  return giveResults(n, growing, std::move(made));
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
     "carried values change one size at most; scan outputs and values that grow need a bound on "
     "the number of trips",
     0b11},
    {"Scan", 9, kNewestOpset, 1, -1, -1, scan},
};

} // namespace

std::span<const OpRow> controlFlowOps() { return kRows; }

} // namespace fusec
