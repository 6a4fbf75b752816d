#include "Onnx/ComparedSizes.h"
#include "Onnx/Compose.h"
#include "Onnx/DimTools.h"
#include "Onnx/GraphBuilder.h"
#include "Onnx/KnownValues.h"
#include "Onnx/OpTable.h"
#include "Support/Diag.h"
#include "Support/DimLimits.h"

#include <algorithm>
#include <utility>

// If, Loop and Scan. Bodies become regions; an If whose condition is constant is replaced by its branch.

namespace fusec {
namespace {

/// The type of value `id` as a region's output.
TypedShape typeOf(NodeImporter &n, ValueId id) { return {n.typeOf(id), n.shapeOf(id)}; }

/// A size of what an If makes that the data tells inside of a branch. Both branches hand on as many elements as it may
/// be at most, and the number of those that are meant.
struct InnerSize {
  DimExpr ifTrue, ifFalse, most;
  size_t output, axis; // the first that has it, after which it is called
};

/// The inner sizes of one If. What is told from here on, in a branch, is known there alone.
class InnerSizes {
public:
  explicit InnerSizes(NodeImporter &n) : n(n), around(n.graphBuilder().dataSizes.size()) {}

  bool areIn(const std::vector<SymbolId> &used) const {
    const std::vector<SymbolId> &all = n.graphBuilder().dataSizes;
    return std::any_of(all.begin() + static_cast<std::ptrdiff_t>(around), all.end(),
                       [&](SymbolId s) { return std::ranges::count(used, s) != 0; });
  }

  /// The number of the one that the branches tell as these; nothing where it has no upper bound.
  std::optional<size_t> of(const DimExpr &ifTrue, const DimExpr &ifFalse, size_t output,
                           size_t axis) {
    const auto known = std::ranges::find_if(found, [&](const InnerSize &size) {
      return size.ifTrue == ifTrue && size.ifFalse == ifFalse;
    });
    if (known != found.end())
      return static_cast<size_t>(known - found.begin());
    std::set<SymbolId> ofTrue, ofFalse;
    if (!isMonotone(ifTrue, ofTrue) || !isMonotone(ifFalse, ofFalse))
      return std::nullopt;
    const DimExpr most = max(atBounds(ifTrue, n.symbols()), atBounds(ifFalse, n.symbols()));
    if (most.isConst(INT64_MAX))
      return std::nullopt;
    found.push_back({ifTrue, ifFalse, most, output, axis});
    return found.size() - 1;
  }

  std::vector<InnerSize> found;

private:
  /// Whether the size falls or rises with each inner one, so that atBounds is its most: where one stands once, and not
  /// below a remainder.
  bool isMonotone(const DimExpr &size, std::set<SymbolId> &seen) const {
    if (size.op() == DimExpr::Op::Symbol)
      return !areIn({size.symbolId()}) || seen.insert(size.symbolId()).second;
    std::vector<SymbolId> used;
    size.collectSymbols(used);
    return !areIn(used) || (size.op() != DimExpr::Op::Mod &&
                            std::ranges::all_of(size.operands(), [&](const DimExpr &part) {
                              return isMonotone(part, seen);
                            }));
  }

  NodeImporter &n;
  const size_t around;
};

/// The shape of what both branches hand on: as it is behind the If, but for sizes at their most.
struct BranchShape {
  Shape shape;
  std::vector<std::optional<size_t>> inner; // by axis: the InnerSize that it has behind the If
};

/// The size of the branch that the data takes; nothing where that is too large an expression.
std::optional<DimExpr> sizeOfTaken(NodeImporter &n, Branch &branch, const DimExpr &ifTrue,
                                   const DimExpr &ifFalse) {
  KnownValues &values = n.graphBuilder().knownValues;
  if (!values.sizes(branch.condition, n.name())) {
    n.ask(n.id(0)); // a default value leaves one branch, and sizes that are known in time
    if (!n.graphBuilder().tellCondition(branch).ok())
      return std::nullopt;
  }
  const auto which = values.sizes(branch.condition, n.name());
  const DimExpr size = which ? ifFalse + (ifTrue - ifFalse) * which->front() : DimExpr(0);
  return which && !isTooLarge(size) ? std::optional(size) : std::nullopt;
}

/// Whether one of two sizes is never larger than the other, so that they are no two names of one size.
bool isOrdered(NodeImporter &n, const DimExpr &a, const DimExpr &b) {
  const DimExpr::Range difference = (a - b).range(n.symbols());
  return difference.min >= 0 || difference.max <= 0;
}

/// The shape of what an If makes: where the condition follows from sizes, these say which branch's it is. Else sizes
/// are equal where they may be, and the data says which ones it has where they are not. What the data tells in a
/// branch becomes one of `inner`, and has its most here.
std::optional<BranchShape> commonShape(NodeImporter &n, Branch &branch, const Shape &a,
                                       const Shape &b, size_t output, InnerSizes &inner) {
  if (a.size() != b.size())
    return std::nullopt;
  KnownValues &values = n.graphBuilder().knownValues;
  BranchShape common{{}, std::vector<std::optional<size_t>>(a.size())};
  Shape &shape = common.shape;
  for (size_t d = 0; d < a.size(); ++d) {
    std::vector<SymbolId> used;
    a[d].collectSymbols(used);
    b[d].collectSymbols(used);
    if (inner.areIn(used)) {
      common.inner[d] = inner.of(a[d], b[d], output, d);
      if (!common.inner[d])
        return std::nullopt;
      shape.push_back(inner.found[*common.inner[d]].most);
    } else if (a[d] == b[d])
      shape.push_back(a[d]);
    else if (auto size = values.choose(branch.condition, a[d], b[d], n.name()))
      shape.push_back(std::move(*size));
    else if (!isOrdered(n, a[d], b[d]) &&
             n.sizes()
                 .sameShape({a[d]}, {b[d]}, "both branches must make equal sizes", Need::Tested)
                 .ok())
      shape.push_back(a[d]);
    else if (auto chosen = sizeOfTaken(n, branch, a[d], b[d]))
      shape.push_back(std::move(*chosen));
    else
      return std::nullopt;
  }
  return common;
}

/// The branch's outputs with what fills them up to the most of `inner`, then the numbers of elements that are meant.
Status fillUp(NodeImporter &n, Region &region, const std::vector<BranchShape> &shapes,
              const std::vector<InnerSize> &inner) {
  return n.graphBuilder().extendRegion(region, [&]() -> Status {
    Compose make(n);
    const std::vector<ValueId> own = region.outputs;
    for (const InnerSize &size : inner) {
      FUSEC_TRY(region.outputs.emplace_back(),
                make.extent(own[size.output], static_cast<int64_t>(size.axis)));
    }
    for (size_t i = 0; i < own.size(); ++i)
      for (size_t d = 0; d < shapes[i].shape.size(); ++d) {
        Shape rest = n.shapeOf(region.outputs[i]);
        const DimExpr &most = shapes[i].shape[d];
        if (!shapes[i].inner[d] || rest[d] == most)
          continue;
        rest[d] = most - rest[d];
        const ValueId filler = make.filled(n.typeOf(own[i]), 0, std::move(rest));
        region.outputs[i] = make.concat({region.outputs[i], filler}, static_cast<int64_t>(d));
      }
    return success();
  });
}

/// An If with sizes that the data tells in a branch: behind it they are told once more, and cut what it made.
Status cutToSizes(NodeImporter &n, ValueId condition, std::vector<Region> regions,
                  const std::vector<BranchShape> &shapes, const std::vector<InnerSize> &inner) {
  for (Region &region : regions)
    FUSEC_CHECK(fillUp(n, region, shapes, inner));
  std::vector<Shape> made;
  for (const BranchShape &of : shapes)
    made.push_back(of.shape);
  made.resize(shapes.size() + inner.size()); // the numbers have rank 0
  FUSEC_TRY(const std::vector<ValueId> values,
            n.emit(OpKind::If, {condition}, {}, std::move(made), std::move(regions)));
  Compose make(n);
  std::vector<ValueId> places;
  for (size_t s = 0; s < inner.size(); ++s) {
    FUSEC_TRY(const DimExpr size,
              n.dataSize(values[shapes.size() + s], inner[s].most, inner[s].output, inner[s].axis));
    places.push_back(make.iota(size));
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    ValueId value = values[i];
    for (size_t d = 0; d < shapes[i].inner.size(); ++d)
      if (const auto &size = shapes[i].inner[d]) {
        FUSEC_TRY(value, make.gather(value, places[*size], static_cast<int64_t>(d)));
      }
    n.result(i, value);
  }
  return success();
}

/// An If whose condition is a run-time value: both branches become regions.
Status bothBranches(NodeImporter &n, const onnx::GraphProto &thenGraph,
                    const onnx::GraphProto &elseGraph) {
  GraphBuilder &builder = n.graphBuilder();
  // Both, so that what one branch lacks does not hide what the other one lacks.
  InnerSizes inner(n);
  Branch branch{builder.frame->branch, n, *builder.frame->region, n.id(0), true};
  auto import = [&](const onnx::GraphProto &graph, bool ifTrue) {
    branch.ifTrue = ifTrue;
    builder.frame->branch = &branch;
    builder.solver().enterBranch(n.name() + (ifTrue ? "/then" : "/else"),
                                 [&] { return builder.isTaken(n.name()); });
    auto result = builder.importSubgraph(graph, {}, n.name());
    builder.solver().leaveBranch();
    builder.frame->branch = branch.outer;
    return result;
  };
  auto thenResult = import(thenGraph, true), elseResult = import(elseGraph, false);
  Diagnostics refused;
  for (auto *branch : {&thenResult, &elseResult})
    if (!branch->ok())
      refused.insert(refused.end(), branch->errors().begin(), branch->errors().end());
  if (!thenResult.ok() || !elseResult.ok())
    return refused;
  Region thenRegion = std::move(*thenResult), elseRegion = std::move(*elseResult);
  if (thenRegion.outputs.size() != n.numOutputs() || elseRegion.outputs.size() != n.numOutputs())
    return n.fail(Diag::BadGraph, "both branches must make as many outputs as the node has");
  std::vector<BranchShape> common;
  for (size_t i = 0; i < n.numOutputs(); ++i) {
    TypedShape a = typeOf(n, thenRegion.outputs[i]), b = typeOf(n, elseRegion.outputs[i]);
    if (a.type != b.type)
      return n.fail(Diag::ShapeMismatch,
                    "output " + std::to_string(i) + " is " +
                        typeText(a.type, a.shape, n.symbols()) + " in one branch and " +
                        typeText(b.type, b.shape, n.symbols()) + " in the other");
    if (auto shape = commonShape(n, branch, a.shape, b.shape, i, inner))
      common.push_back(std::move(*shape));
    else
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
  const ValueId condition = n.reshape(branch.condition, {});
  if (inner.found.empty()) {
    std::vector<Shape> shapes;
    for (BranchShape &of : common)
      shapes.push_back(std::move(of.shape));
    FUSEC_CHECK(n.finish(OpKind::If, {condition}, {}, std::move(shapes), std::move(regions)));
  } else {
    FUSEC_CHECK(cutToSizes(n, condition, std::move(regions), common, inner.found));
  }
  const auto isKnownInside = [&](ValueId id) {
    return inner.areIn(symbolsIn(n.graph().value(id)));
  };
  for (size_t i = 0; i < n.numOutputs(); ++i)
    if (n.wants(i) && !isKnownInside(ifTrue[i]) && !isKnownInside(ifFalse[i]))
      builder.knownValues.choose(n.results[i], branch.condition, ifTrue[i], ifFalse[i]);
  return success();
}

constexpr const char *kOneBranch =
    "where one branch alone can be served, what the condition compares must be equal";

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
  GraphBuilder &builder = n.graphBuilder();
  const auto before = static_cast<std::ptrdiff_t>(builder.errors.size());
  Status status = bothBranches(n, *thenGraph, *elseGraph);
  if (status.ok())
    return status;
  if (!builder.foundFixed)
    n.ask(n.id(0)); // one branch alone may be served
  auto isOfShapes = [](const Diagnostic &d) { return d.id == Diag::UnsupportedShape; };
  if (!std::all_of(builder.errors.begin() + before, builder.errors.end(), isOfShapes) ||
      !std::ranges::all_of(status.errors(), isOfShapes))
    return status;
  // PyTorch's x.squeeze(axis) removes an axis of size 1 and leaves another one, so that ranks differ: that it is 1 is
  // what a model means whose next nodes take one rank.
  if (const auto sizes = comparedSizes(*builder.frame->region, n.id(0), builder.knownValues,
                                       builder.options, n.name()))
    n.require({SizeRule::Kind::Equal, sizes->first, sizes->second, {}, {}, kOneBranch},
              Need::Solved);
  return status;
}

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
    const Status keeps = n.sizes().sameShape(
        in.shape, out.shape, "a trip must leave the sizes of what is carried as they are",
        Need::Tested);
    if (!keeps.ok()) {
      askWhetherRuns();
      return n.fail(Diag::UnsupportedShape, "carried value " + std::to_string(i) + " grows from " +
                                                typeText(in.type, in.shape, n.symbols()) + " to " +
                                                typeText(out.type, out.shape, n.symbols()));
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
    {"If", 1, kNewestOpset, 1, 1, -1, ifOp, "both branches make as many dimensions"},
    {"Loop", 1, kNewestOpset, 2, -1, -1, loop,
     "carried values keep their shape; scan outputs need a bound on the number of trips", 0b11},
    {"Scan", 9, kNewestOpset, 1, -1, -1, scan},
};

} // namespace

std::span<const OpRow> controlFlowOps() { return kRows; }

} // namespace fusec
