#pragma once
#include "Onnx/GraphBuilder.h"

namespace fusec {

/// What a Loop carries that changes its size along one axis, as a list to which each trip appends. It is kept in a
/// tensor as long as it may become, beside its length, a further carried value: in front of each trip, and behind the
/// loop, the length becomes a size that depends on data, and the first elements are what the body and the model read.
///
/// Which values these are shows behind the body, which is imported with the sizes in front of the loop at first: the
/// import is repeated then (GraphBuilder::growing).
class GrowingValues {
public:
  /// The values of Loop `n` that earlier rounds found to grow.
  GrowingValues(NodeImporter &n, const onnx::GraphProto &body);

  bool empty() const { return values.empty(); }
  size_t size() const { return values.size(); }
  /// Puts the kept tensors in place of the carried ones among `operands`, with the lengths behind, and their types into
  /// `types`, of the body's inputs. `trips`: at most; UnsupportedShape where a bound is missing.
  Status keep(std::vector<ValueId> &operands, std::vector<TypedShape> &types,
              const std::optional<DimExpr> &trips);
  /// In the body: its own inputs, of the region's.
  Result<std::vector<ValueId>> read(const std::vector<ValueId> &inputs);
  /// The shape of carried value `index` with the size that it has in front of a trip, where it grows.
  Shape inFrontOfTrip(size_t index, Shape shape) const;
  /// Behind the body: puts kept tensors among the region's outputs, and returns the lengths, which follow what is
  /// carried. A value that grows by more than is known asks for another round.
  Result<std::vector<ValueId>> handOn(Region &region);
  /// Behind the loop: the values among `made`, its outputs, in place of what was kept; without lengths.
  Status finish(std::vector<ValueId> &made);

  /// Whether a size is one of a value that grows, in this loop or in one in its body, or follows from it.
  bool hasGrown(const DimExpr &size) const;
  /// Carried value `index`, of shape `in` in front of a trip and `out` behind it: whether it changes along one axis
  /// alone, which the next round then knows.
  bool note(size_t index, const Shape &in, const Shape &out);

private:
  struct GrowingValue {
    size_t index; // among what is carried
    size_t axis;
    std::optional<DimExpr> perTrip;
    DimExpr most = 0, behind = 0, inTrip = 0; // sizes: kept, found by the loop, in front of a trip
  };

  /// The first `size` elements of `axis`; x has as many.
  Result<ValueId> first(ValueId x, size_t axis, const DimExpr &size);
  Result<ValueId> kept(ValueId x, const GrowingValue &value);
  /// A trip leaves `size` elements where there were `before`: more of them than is known is for the next round.
  void noteGrowth(const GrowingValue &v, const DimExpr &size, const DimExpr &before);

  NodeImporter &n;
  const onnx::GraphProto &body;
  std::vector<GrowingValue> values;
  size_t carried; // by the model's node
};

} // namespace fusec
