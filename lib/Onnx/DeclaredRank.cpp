#include "Onnx/DeclaredRank.h"

#include "Onnx/GraphBuilder.h"
#include "Onnx/OpTable.h"

#include <algorithm>

// A model often declares its outputs alone. Element-wise nodes leave the rank of a tensor as it is but where they
// broadcast it to a higher one, so that the declaration of what such a chain makes speaks of its start, too:
//
//   s = Squeeze(x[batch,1]); y = Add(Mul(s, 4.0), 1.0), declared f32[]: s has rank 0, and batch is 1.

namespace fusec {

static bool makesScalar(const onnx::NodeProto &node) {
  return node.op_type() == "Constant" && node.attribute_size() == 1 &&
         (node.attribute(0).name() == "value_float" || node.attribute(0).name() == "value_int" ||
          (node.attribute(0).has_t() && node.attribute(0).t().dims_size() == 0));
}

bool GraphBuilder::isScalar(const std::string &name) const {
  if (const auto known = lookUp(name))
    return *known >= 0 && graph.value(*known).shape.empty();
  return std::ranges::any_of(*frame->nodes, [&](const onnx::NodeProto &node) {
    return makesScalar(node) && std::ranges::count(node.output(), name) != 0;
  });
}

static bool isElementwise(const onnx::NodeProto &node) {
  return (node.domain().empty() || node.domain() == "ai.onnx") &&
         std::ranges::any_of(elementwiseOps(),
                             [&](const OpRow &row) { return row.name == node.op_type(); });
}

std::optional<size_t> GraphBuilder::declaredRank(std::string name) const {
  constexpr int kMostNodes = 16; // of the chain
  if (!frame->nodes)
    return std::nullopt;
  for (int i = 0; i < kMostNodes; ++i) {
    if (const DeclaredType *declared = declaredType(name); declared && declared->hasShape)
      return declared->dims.size();
    const auto reader = std::ranges::find_if(*frame->nodes, [&](const onnx::NodeProto &node) {
      return isElementwise(node) && std::ranges::count(node.input(), name) != 0;
    });
    // Another operand may be what gives the result its rank.
    if (reader == frame->nodes->end() || reader->output_size() == 0 ||
        std::ranges::any_of(reader->input(), [&](const std::string &other) {
          return other != name && !other.empty() && !isScalar(other);
        }))
      return std::nullopt;
    name = reader->output(0);
  }
  return std::nullopt;
}

std::optional<std::vector<std::optional<DimExpr>>> NodeImporter::declaredSizes(size_t i) const {
  if (!wants(i))
    return std::nullopt;
  if (const DeclaredType *own = builder.declaredType(outputNames[i]); own && own->hasShape)
    return own->dims;
  const auto rank = builder.declaredRank(outputNames[i]);
  return rank ? std::optional(std::vector<std::optional<DimExpr>>(*rank)) : std::nullopt;
}

namespace {

bool mayBe(const DimExpr &size, int64_t value, const std::vector<Symbol> &symbols) {
  const DimExpr::Range range = size.range(symbols);
  return range.min <= value && value <= range.max;
}

/// Finds the sets of axes that leave the declared sizes.
class SqueezeChoice {
public:
  SqueezeChoice(const Shape &in, const std::vector<std::optional<DimExpr>> &left,
                const std::vector<Symbol> &symbols)
      : in(in), left(left), symbols(symbols) {}

  /// nullopt: none, or several.
  std::optional<std::vector<int64_t>> only() {
    choose(0, 0);
    return found.size() == 1 ? std::optional(found[0]) : std::nullopt;
  }

private:
  void choose(size_t axis, size_t kept) {
    if (found.size() > 1 || left.size() - kept > in.size() - axis)
      return;
    if (axis == in.size()) {
      if (kept == left.size())
        found.push_back(gone);
      return;
    }
    const DimExpr &size = in[axis];
    if (size.isConst(1) || mayBe(size, 1, symbols)) {
      gone.push_back(static_cast<int64_t>(axis));
      choose(axis + 1, kept);
      gone.pop_back();
    }
    if (!size.isConst(1) && kept < left.size() && fits(size, left[kept]))
      choose(axis + 1, kept + 1);
  }

  bool fits(const DimExpr &size, const std::optional<DimExpr> &declared) const {
    return !declared || *declared == size ||
           (declared->isConst() && mayBe(size, declared->constValue(), symbols));
  }

  const Shape &in;
  const std::vector<std::optional<DimExpr>> &left;
  const std::vector<Symbol> &symbols;
  std::vector<int64_t> gone;
  std::vector<std::vector<int64_t>> found; // two at most
};

} // namespace

Result<std::vector<int64_t>> squeezedAxes(NodeImporter &n) {
  const Shape &in = n.shape(0);
  std::vector<int64_t> axes;
  for (size_t i = 0; i < in.size(); ++i)
    if (in[i].isConst(1))
      axes.push_back(static_cast<int64_t>(i));
  if (std::ranges::all_of(in, [](const DimExpr &size) { return size.isConst(); }))
    return axes;
  const Diagnostic open = n.needsFixed("the node names no axes, so the sizes must be known", in);
  const auto declared = n.declaredSizes(0);
  auto only = declared ? SqueezeChoice(in, *declared, n.symbols()).only() : std::nullopt;
  if (!only)
    return open;
  for (size_t i = 0; i < in.size(); ++i)
    if (!std::ranges::count(*only, static_cast<int64_t>(i)) && mayBe(in[i], 1, n.symbols()) &&
        !n.require({SizeRule::Kind::AtLeast,
                    in[i],
                    DimExpr(2),
                    {},
                    {},
                    "the node names no axes and the model declares that dimension " +
                        std::to_string(i) + " stays, so it must be larger than 1"},
                   Need::Tested))
      return open;
  return std::move(*only);
}

} // namespace fusec
