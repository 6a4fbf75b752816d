#include "Reference/GraphOps/Quantise.h"
#include "Reference/OpCall.h"
#include "Support/Diag.h"

#include <map>

namespace fusec {

namespace {

/// c[m,n] += sum over k of a[m,k] * b[k,n], all row-major.
template <typename T>
void multiplyInto(T *c, const T *a, const T *b, int64_t m, int64_t k, int64_t n) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t p = 0; p < k; ++p) {
      T v = a[i * k + p];
      const T *row = b + p * n;
      T *out = c + i * n;
      for (int64_t j = 0; j < n; ++j)
        out[j] += v * row[j];
    }
}

/// numpy.matmul; integers wrap to `outType`.
Result<TensorValue> matMul(const OpCall &call, const TensorValue &a, const TensorValue &b,
                           DType outType) {
  if (a.dims.empty() || b.dims.empty())
    return call.fail("scalars cannot be multiplied as matrices", Diag::ShapeMismatch);
  Dims ad = a.dims, bd = b.dims;
  bool vectorA = ad.size() == 1, vectorB = bd.size() == 1;
  if (vectorA)
    ad.insert(ad.begin(), 1);
  if (vectorB)
    bd.push_back(1);
  int64_t m = ad[ad.size() - 2], k = ad.back(), n = bd.back();
  auto batch = broadcastDims({Dims(ad.begin(), ad.end() - 2), Dims(bd.begin(), bd.end() - 2)});
  if (bd[bd.size() - 2] != k || !batch)
    return call.fail("the matrices' shapes do not fit", Diag::ShapeMismatch);
  Dims outDims = *batch;
  if (!vectorA)
    outDims.push_back(m);
  if (!vectorB)
    outDims.push_back(n);
  FUSEC_CHECK(call.checkSize(outDims));
  TensorValue out(outType, outDims);
  Dims aStrides = broadcastStrides(Dims(ad.begin(), ad.end() - 2), *batch);
  Dims bStrides = broadcastStrides(Dims(bd.begin(), bd.end() - 2), *batch);
  int64_t i = 0;
  for (Walker w(*batch, {aStrides, bStrides}); !w.done(); w.next(), ++i) {
    if (a.isFloating()) {
      multiplyInto(out.floats.data() + i * m * n, a.floats.data() + w.offset(0) * m * k,
                   b.floats.data() + w.offset(1) * k * n, m, k, n);
    } else {
      auto bits = [](const int64_t *p) { return reinterpret_cast<const uint64_t *>(p); };
      multiplyInto(reinterpret_cast<uint64_t *>(out.ints.data()) + i * m * n,
                   bits(a.ints.data()) + w.offset(0) * m * k,
                   bits(b.ints.data()) + w.offset(1) * k * n, m, k, n);
    }
  }
  for (int64_t &v : out.ints)
    v = wrapToDType(outType, v);
  return out;
}

Result<Outputs> matMulOp(const OpCall &call) {
  FUSEC_TRY(TensorValue out, matMul(call, call.in(0), call.in(1), call.in(0).type));
  return Outputs{std::move(out)};
}

/// Per-row parameters of the left operand are vectors [M] or tensors [.., M, 1]; this gives the latter form.
TensorValue asRows(TensorValue t) {
  if (t.rank() == 1 && t.dims[0] != 1)
    t.dims.push_back(1);
  return t;
}

Result<Outputs> matMulInteger(const OpCall &call) {
  TensorValue a = call.in(0), b = call.in(1);
  if (call.has(2))
    FUSEC_CHECK(subtractZeroPoint(call, a, asRows(call.in(2))));
  if (call.has(3))
    FUSEC_CHECK(subtractZeroPoint(call, b, call.in(3)));
  FUSEC_TRY(TensorValue out, matMul(call, a, b, DType::I32));
  return Outputs{std::move(out)};
}

Result<Outputs> qLinearMatMul(const OpCall &call) {
  TensorValue a = call.in(0), b = call.in(3);
  FUSEC_CHECK(subtractZeroPoint(call, a, asRows(call.in(2))));
  FUSEC_CHECK(subtractZeroPoint(call, b, call.in(5)));
  FUSEC_TRY(TensorValue sum, matMul(call, a, b, DType::I32));
  FUSEC_TRY(TensorValue scaled, scaleBy(call, sum, {asRows(call.in(1)), call.in(4)}));
  FUSEC_TRY(TensorValue out, quantise(call, scaled, asRows(call.in(6)), asRows(call.in(7))));
  return Outputs{std::move(out)};
}

TensorValue transposed(const TensorValue &x) {
  int64_t n = x.dims[1];
  return rearrange(x, {x.dims[1], x.dims[0]}, [n](const Dims &c) { return c[1] * n + c[0]; });
}

Result<Outputs> gemm(const OpCall &call) {
  if (call.in(0).rank() != 2 || call.in(1).rank() != 2)
    return call.fail("expects matrices", Diag::ShapeMismatch);
  TensorValue a = call.node.intAttr("transA") ? transposed(call.in(0)) : call.in(0);
  TensorValue b = call.node.intAttr("transB") ? transposed(call.in(1)) : call.in(1);
  FUSEC_TRY(TensorValue out, matMul(call, a, b, a.type));
  double alpha = call.node.floatAttr("alpha"), beta = call.node.floatAttr("beta");
  if (alpha != 1)
    for (int64_t i = 0; i < out.numElements(); ++i)
      out.setNumber(i, alpha * out.number(i));
  if (!call.has(2))
    return Outputs{std::move(out)};
  const TensorValue &c = call.in(2);
  auto dims = broadcastDims({out.dims, c.dims});
  if (!dims || *dims != out.dims)
    return call.fail("C does not broadcast to the product", Diag::ShapeMismatch);
  int64_t i = 0;
  for (Walker w(out.dims, {broadcastStrides(c.dims, out.dims)}); !w.done(); w.next(), ++i) {
    if (out.isFloating())
      out.floats[static_cast<size_t>(i)] += beta * c.floats[static_cast<size_t>(w.offset(0))];
    else if (beta == 1) {
      auto sum = static_cast<uint64_t>(out.ints[static_cast<size_t>(i)]) +
                 static_cast<uint64_t>(c.ints[static_cast<size_t>(w.offset(0))]);
      out.ints[static_cast<size_t>(i)] = wrapToDType(out.type, static_cast<int64_t>(sum));
    } else
      out.setNumber(i, out.number(i) + beta * c.number(w.offset(0)));
  }
  return Outputs{std::move(out)};
}

/// The equation has letters, commas and "->" only; a letter twice in one operand takes its diagonal.
Result<Outputs> einsum(const OpCall &call) {
  const std::string &equation = call.node.stringAttr("equation");
  size_t arrow = equation.find("->");
  assert(arrow != std::string::npos);
  std::vector<std::string> terms(1);
  for (char c : equation.substr(0, arrow))
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  std::string output = equation.substr(arrow + 2);
  if (terms.size() != call.inputs.size())
    return call.fail("the equation has " + std::to_string(terms.size()) + " operands");

  std::map<char, int64_t> extents;
  for (size_t t = 0; t < terms.size(); ++t) {
    if (terms[t].size() != call.in(t).dims.size())
      return call.fail("operand " + std::to_string(t) + " does not have the equation's rank");
    for (size_t d = 0; d < terms[t].size(); ++d) {
      int64_t &e = extents.try_emplace(terms[t][d], 1).first->second;
      int64_t size = call.in(t).dims[d];
      if (e != 1 && size != 1 && e != size)
        return call.fail(std::string("sizes of '") + terms[t][d] + "' differ", Diag::ShapeMismatch);
      e = e == 1 ? size : e;
    }
  }
  std::string order = output;
  for (const auto &[letter, extent] : extents)
    if (output.find(letter) == std::string::npos)
      order += letter;
  auto letterDims = [&](const std::string &letters) {
    Dims dims;
    for (char c : letters)
      dims.push_back(extents[c]);
    return dims;
  };
  std::vector<Dims> strides;
  for (size_t t = 0; t < terms.size(); ++t) {
    Dims own = rowMajorStrides(call.in(t).dims), s(order.size(), 0);
    for (size_t d = 0; d < terms[t].size(); ++d)
      if (call.in(t).dims[d] != 1)
        s[order.find(terms[t][d])] += own[d];
    strides.push_back(std::move(s));
  }
  TensorValue out(call.in(0).type, letterDims(output));
  Dims outStrides = rowMajorStrides(out.dims);
  outStrides.resize(order.size(), 0);
  strides.push_back(outStrides);
  for (Walker w(letterDims(order), strides); !w.done(); w.next()) {
    auto o = static_cast<size_t>(w.offset(terms.size()));
    if (out.isFloating()) {
      double p = 1;
      for (size_t t = 0; t < terms.size(); ++t)
        p *= call.in(t).floats[static_cast<size_t>(w.offset(t))];
      out.floats[o] += p;
    } else {
      uint64_t p = 1;
      for (size_t t = 0; t < terms.size(); ++t)
        p *= static_cast<uint64_t>(call.in(t).ints[static_cast<size_t>(w.offset(t))]);
      out.ints[o] =
          wrapToDType(out.type, static_cast<int64_t>(static_cast<uint64_t>(out.ints[o]) + p));
    }
  }
  return Outputs{std::move(out)};
}

} // namespace

void addContractions(OpTable &t) {
  entry(t, OpKind::MatMul) = matMulOp;
  entry(t, OpKind::MatMulInteger) = matMulInteger;
  entry(t, OpKind::QLinearMatMul) = qLinearMatMul;
  entry(t, OpKind::Gemm) = gemm;
  entry(t, OpKind::Einsum) = einsum;
}

} // namespace fusec
