#include "Onnx/ComparedSizes.h"
#include "Onnx/Compose.h"
#include "Onnx/GraphBuilder.h"
#include "Onnx/InnerSizes.h"
#include "Onnx/KnownValues.h"
#include "Onnx/OpTable.h"
#include "Support/Diag.h"
#include "Support/DimLimits.h"

#include <algorithm>
#include <utility>

// If: both branches become regions; where the condition is constant, one stands in place of the node.

namespace fusec {
namespace {

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
bool isOrdered(const NodeImporter &n, const DimExpr &a, const DimExpr &b) {
  const DimExpr::Range difference = (a - b).range(n.symbols());
  return difference.min >= 0 || difference.max <= 0;
}

/// The size that follows from those around the If and, where these are ordered, from its condition. Of others a node
/// behind may need what only one of the two is: that is solved for a size which is told, and for no expression.
std::optional<DimExpr> sizeBehind(NodeImporter &n, Branch &branch, const DimExpr &ifTrue,
                                  const DimExpr &ifFalse) {
  if (ifTrue == ifFalse)
    return ifTrue;
  if (auto size = n.graphBuilder().knownValues.choose(branch.condition, ifTrue, ifFalse, n.name()))
    return size;
  return isOrdered(n, ifTrue, ifFalse) ? sizeOfTaken(n, branch, ifTrue, ifFalse) : std::nullopt;
}

/// The shape of what an If makes: what sizes around it and its condition do not say, and what the data tells in a
/// branch, becomes one of `inner`, and has its most here.
Result<BranchShape> commonShape(NodeImporter &n, Branch &branch, const Shape &a, const Shape &b,
                                size_t output, InnerSizes &inner) {
  BranchShape common{{}, std::vector<std::optional<size_t>>(a.size())};
  for (size_t d = 0; d < a.size(); ++d) {
    auto size = inner.hasInner(a[d]) || inner.hasInner(b[d]) ? std::nullopt
                                                             : sizeBehind(n, branch, a[d], b[d]);
    if (!size) {
      FUSEC_TRY(common.inner[d], inner.of(a[d], b[d], output, d));
      size = inner.found[*common.inner[d]].most;
    }
    common.shape.push_back(std::move(*size));
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

/// Says that output `i` has another type, or another number of dimensions, in one branch than in the other.
Diagnostic unlikeOutputs(NodeImporter &n, ValueId condition, size_t i, const TypedShape &a,
                         const TypedShape &b) {
  const std::string output = "output " + std::to_string(i),
                    ofTrue = typeText(a.type, a.shape, n.symbols()),
                    ofFalse = typeText(b.type, b.shape, n.symbols());
  if (a.type != b.type)
    return n.fail(Diag::ShapeMismatch,
                  output + " is " + ofTrue + " in one branch and " + ofFalse + " in the other");
  const std::string text = output + " has rank " + std::to_string(a.shape.size()) + " (" + ofTrue +
                           ") in one branch and rank " + std::to_string(b.shape.size()) + " (" +
                           ofFalse +
                           ") in the other; make both ranks equal in the model, or the "
                           "condition a constant";
  if (const auto sizes = n.graphBuilder().knownValues.sizes(condition, n.name()))
    return n.needsFixed(text, *sizes);
  return n.needsConstant(text, {0});
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
    const ValueId ifTrue = thenRegion.outputs[i], ifFalse = elseRegion.outputs[i];
    const TypedShape a{n.typeOf(ifTrue), n.shapeOf(ifTrue)},
        b{n.typeOf(ifFalse), n.shapeOf(ifFalse)};
    if (a.type != b.type || a.shape.size() != b.shape.size())
      return unlikeOutputs(n, branch.condition, i, a, b);
    FUSEC_TRY(common.emplace_back(), commonShape(n, branch, a.shape, b.shape, i, inner));
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

constexpr OpRow kRows[] = {
    {"If", 1, kNewestOpset, 1, 1, -1, ifOp, "both branches make as many dimensions"},
};

} // namespace

std::span<const OpRow> controlFlowIfOps() { return kRows; }

} // namespace fusec
