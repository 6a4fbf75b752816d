#pragma once
#include "Graph/Graph.h"
#include "Reference/TensorValue.h"
#include "Support/Result.h"

#include <array>

namespace fusec {

using Dims = std::vector<int64_t>;
using Outputs = std::vector<TensorValue>;

/// What a reference operator sees of one execution of a node.
struct OpCall {
  const Graph &graph;
  const Node &node;
  std::vector<const TensorValue *> inputs; // nullptr: absent
  const std::vector<std::optional<int64_t>> &symbols;

  bool has(size_t i) const { return i < inputs.size() && inputs[i]; }
  const TensorValue &in(size_t i) const {
    assert(has(i));
    return *inputs[i];
  }
  /// Input `i` rounded to its declared type: for operators that are not continuous (rounding, comparing,
  /// ordering), where the excess precision of a double would decide otherwise than any real computation.
  TensorValue rounded(size_t i) const {
    TensorValue t = in(i);
    t.round();
    return t;
  }
  DType outType(size_t i = 0) const;
  /// Dims of output `i` as the graph states them, where all their symbols are known.
  std::optional<Dims> outDims(size_t i = 0) const;
  /// Dims of output `i`, or a diagnostic if a symbol is not known.
  Result<Dims> knownOutDims(size_t i = 0) const;
  Diagnostic fail(std::string text) const; // BadOperand
  Diagnostic fail(std::string text, Diag id) const;
  /// Refuses sizes that the interpreter cannot hold.
  Status checkSize(const Dims &dims) const;
};

using OpFunction = Result<Outputs> (*)(const OpCall &);

using OpTable = std::array<OpFunction, kNumOpKinds>;
inline OpFunction &entry(OpTable &table, OpKind op) { return table[static_cast<size_t>(op)]; }

// One function a family, in GraphOps/<Family>.cpp: enters its operators.
void addElementwiseUnary(OpTable &table);
void addElementwise(OpTable &table);
void addReductions(OpTable &table);
void addReductionsSoftmax(OpTable &table);
void addContractions(OpTable &table);
void addWindowsConv(OpTable &table);
void addWindowsPool(OpTable &table);
void addNormalisations(OpTable &table);
void addMovementShapes(OpTable &table);
void addMovement(OpTable &table);
void addGathers(OpTable &table);
void addGathersScatter(OpTable &table);
void addImagesResize(OpTable &table);
void addImages(OpTable &table);
void addImagesRoiAlign(OpTable &table);
void addQuantisation(OpTable &table);
void addRecurrent(OpTable &table);
void addReductionsTopK(OpTable &table);
void addMiscLosses(OpTable &table);
void addMisc(OpTable &table);

/// Operators without regions; nullptr for the others.
OpFunction referenceOp(OpKind op);

// Index helpers

/// Row-major strides in elements.
Dims rowMajorStrides(const Dims &dims);
/// Result dims of a multidirectional broadcast; nullopt where the shapes do not fit.
std::optional<Dims> broadcastDims(const std::vector<Dims> &shapes);
/// Strides of `dims` seen as a tensor of shape `to`: 0 along broadcast dimensions.
Dims broadcastStrides(const Dims &dims, const Dims &to);

/// Walks all coordinates of `dims` in row-major order and keeps one offset for each list of strides.
class Walker {
public:
  Walker(Dims dims, std::vector<Dims> strides)
      : dims(std::move(dims)), strides(std::move(strides)), at(this->dims.size(), 0),
        offsets(this->strides.size(), 0) {
    for (int64_t d : this->dims)
      finished = finished || d == 0;
  }
  bool done() const { return finished; }
  int64_t offset(size_t list) const { return offsets[list]; }
  int64_t operator[](size_t dim) const { return at[dim]; }
  const Dims &coordinates() const { return at; }
  void next() {
    for (size_t d = dims.size(); d-- > 0;) {
      if (++at[d] < dims[d]) {
        for (size_t s = 0; s < strides.size(); ++s)
          offsets[s] += strides[s][d];
        return;
      }
      for (size_t s = 0; s < strides.size(); ++s)
        offsets[s] -= strides[s][d] * (dims[d] - 1);
      at[d] = 0;
    }
    finished = true;
  }

private:
  Dims dims;
  std::vector<Dims> strides;
  Dims at;
  Dims offsets;
  bool finished = false;
};

/// A tensor seen as [outer, extent, inner] around one axis; an axis beyond the rank has extent 1.
struct AxisView {
  int64_t outer = 1, extent = 1, inner = 1;
  AxisView(const Dims &dims, int64_t axis);
  int64_t index(int64_t o, int64_t e, int64_t i) const { return (o * extent + e) * inner + i; }
};

/// out[c] = x[source(c)], for all coordinates c of `dims`; a negative source leaves zero.
template <typename F> TensorValue rearrange(const TensorValue &x, const Dims &dims, F source) {
  TensorValue out(x.type, dims);
  int64_t i = 0;
  for (Walker w(dims, {}); !w.done(); w.next(), ++i)
    if (int64_t j = source(w.coordinates()); j >= 0)
      out.copyElement(i, x, j);
  return out;
}

} // namespace fusec
