#include "Reference/OpCall.h"

#include "Support/Diag.h"

namespace fusec {

DType OpCall::outType(size_t i) const { return graph.value(node.outputs[i]).type; }

std::optional<Dims> OpCall::outDims(size_t i) const {
  if (!node.hasOutput(i))
    return std::nullopt;
  std::vector<int64_t> values(symbols.size());
  for (size_t s = 0; s < symbols.size(); ++s)
    values[s] = symbols[s].value_or(0);
  Dims dims;
  for (const DimExpr &d : graph.value(node.outputs[i]).shape) {
    std::vector<SymbolId> used;
    d.collectSymbols(used);
    for (SymbolId s : used)
      if (!symbols[static_cast<size_t>(s)])
        return std::nullopt;
    auto v = d.evaluate(values);
    if (!v)
      return std::nullopt;
    dims.push_back(*v);
  }
  return dims;
}

Result<Dims> OpCall::knownOutDims(size_t i) const {
  auto dims = outDims(i);
  if (!dims)
    return fail("the shape of output " + std::to_string(i) + " is not known",
                Diag::UnsupportedShape);
  FUSEC_CHECK(checkSize(*dims));
  return *dims;
}

Diagnostic OpCall::fail(std::string text) const { return fail(std::move(text), Diag::BadOperand); }

Diagnostic OpCall::fail(std::string text, Diag id) const {
  return {id, "node '" + node.name + "' (" + node.onnxOp + ")", std::move(text)};
}

Status OpCall::checkSize(const Dims &dims) const {
  if (checkedProduct(dims) >= 0)
    return success();
  std::string text;
  for (int64_t d : dims)
    text += (text.empty() ? "" : "x") + std::to_string(d);
  return fail("a tensor of shape " + text + " is larger than the interpreter's 2^31 elements",
              Diag::LimitExceeded);
}

OpFunction referenceOp(OpKind op) {
  static const OpTable table = [] {
    OpTable t{};
    addElementwiseUnary(t);
    addElementwise(t);
    addReductions(t);
    addReductionsSoftmax(t);
    addContractions(t);
    addWindowsConv(t);
    addWindowsPool(t);
    addNormalisations(t);
    addMovementShapes(t);
    addMovement(t);
    addGathers(t);
    addGathersScatter(t);
    addImagesResize(t);
    addImages(t);
    addImagesRoiAlign(t);
    addQuantisation(t);
    addRecurrent(t);
    addReductionsTopK(t);
    addMiscLosses(t);
    addMisc(t);
    return t;
  }();
  return table[static_cast<size_t>(op)];
}

Dims rowMajorStrides(const Dims &dims) {
  Dims strides(dims.size(), 1);
  for (size_t d = dims.size(); d-- > 1;)
    strides[d - 1] = strides[d] * dims[d];
  return strides;
}

std::optional<Dims> broadcastDims(const std::vector<Dims> &shapes) {
  Dims out;
  for (const Dims &s : shapes) {
    if (s.size() > out.size())
      out.insert(out.begin(), s.size() - out.size(), 1);
    for (size_t d = 0; d < s.size(); ++d) {
      int64_t &o = out[out.size() - s.size() + d];
      if (o == 1)
        o = s[d];
      else if (s[d] != 1 && s[d] != o)
        return std::nullopt;
    }
  }
  return out;
}

Dims broadcastStrides(const Dims &dims, const Dims &to) {
  Dims own = rowMajorStrides(dims), out(to.size(), 0);
  for (size_t d = 0; d < dims.size(); ++d)
    if (dims[d] != 1)
      out[to.size() - dims.size() + d] = own[d];
  return out;
}

AxisView::AxisView(const Dims &dims, int64_t axis) {
  for (size_t d = 0; d < dims.size(); ++d) {
    auto a = static_cast<size_t>(axis);
    (d < a ? outer : d == a ? extent : inner) *= dims[d];
  }
}

} // namespace fusec
