#include "Onnx/Compose.h"
#include "Onnx/DimTools.h"
#include "Onnx/OpTable.h"
#include "Onnx/ops/Quantised.h"
#include "Support/Diag.h"

#include <map>

// MatMul, Gemm, Einsum and the integer products.

namespace fusec {
namespace {

Status matMul(NodeImporter &n) {
  if (n.type(0) != n.type(1) || n.type(0) == DType::Bool)
    return n.mismatch("the operands must be numbers of one type");
  FUSEC_TRY(Shape out, Compose(n).matMulShape(n.shape(0), n.shape(1)));
  return n.finish(OpKind::MatMul, n.ids(), {}, {{n.type(0), std::move(out)}});
}

Status matMulInteger(NodeImporter &n) {
  if (!isByte(n.type(0)) || !isByte(n.type(1)))
    return n.mismatch("the operands must be i8 or u8");
  FUSEC_TRY(Shape out, Compose(n).matMulShape(n.shape(0), n.shape(1)));
  std::vector<ValueId> in = n.ids();
  for (size_t i = 2; i < in.size(); ++i)
    if (n.has(i) && n.type(i) != n.type(i - 2))
      return n.mismatch("a zero point must have its operand's type");
  FUSEC_CHECK(sideParameter(n, 2, out, true));
  FUSEC_CHECK(sideParameter(n, 3, out, false));
  return n.finish(OpKind::MatMulInteger, std::move(in), {}, {{DType::I32, std::move(out)}});
}

Status qlinearMatMul(NodeImporter &n) {
  if (!isByte(n.type(0)) || !isByte(n.type(3)) || n.type(2) != n.type(0) || n.type(5) != n.type(3))
    return n.mismatch("the operands and their zero points must be i8 or u8");
  if (!isFloat(n.type(1)) || !isFloat(n.type(4)) || !isFloat(n.type(6)) || !isByte(n.type(7)))
    return n.mismatch("the scales must be floats, the output's zero point i8 or u8");
  FUSEC_TRY(Shape out, Compose(n).matMulShape(n.shape(0), n.shape(3)));
  for (size_t i : {1, 2, 6, 7})
    FUSEC_CHECK(sideParameter(n, i, out, true));
  for (size_t i : {4, 5})
    FUSEC_CHECK(sideParameter(n, i, out, false));
  return n.finish(OpKind::QLinearMatMul, n.ids(), {}, {{n.type(7), std::move(out)}});
}

Status gemm(NodeImporter &n) {
  if (n.rank(0) != 2 || n.rank(1) != 2 || n.type(0) != n.type(1))
    return n.mismatch("both factors must be matrices of one type");
  int64_t transA = n.attrInt("transA", 0) != 0, transB = n.attrInt("transB", 0) != 0;
  double alpha = n.attrFloat("alpha", 1.0), beta = n.attrFloat("beta", 1.0);
  n.ignore("broadcast");
  const Shape &a = n.shape(0), &b = n.shape(1);
  FUSEC_TRY([[maybe_unused]] DimExpr same,
            n.sameDim(a[transA ? 0 : 1], b[transB ? 1 : 0], "the sizes to sum over"));
  Shape out{a[transA ? 1 : 0], b[transB ? 0 : 1]};
  if (n.has(2)) {
    if (n.type(2) != n.type(0))
      return n.mismatch("the summand must have the factors' type");
    FUSEC_TRY(Shape all, n.broadcast({&n.shape(2), &out}));
    if (all != out)
      return n.mismatch("the summand must broadcast to the product's shape", out, all);
  }
  return n.finish(OpKind::Gemm, n.ids(),
                  {{"alpha", alpha}, {"beta", beta}, {"transA", transA}, {"transB", transB}},
                  {{n.type(0), std::move(out)}});
}

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Replaces "..." by letters: the last `total` of `spare`, as many as this operand has axes for.
std::string expandEllipsis(const std::string &term, const std::string &spare, size_t own) {
  size_t at = term.find("...");
  if (at == std::string::npos)
    return term;
  return term.substr(0, at) + spare.substr(spare.size() - own) + term.substr(at + 3);
}

Status einsum(NodeImporter &n) {
  std::string text;
  for (char c : n.attrString("equation", ""))
    if (c != ' ')
      text += c;
  auto bad = [&](const std::string &why) {
    return n.fail(Diag::BadAttribute, "equation '" + text.substr(0, 200) + "': " + why);
  };
  if (text.size() > 4096)
    return bad("it is longer than 4096 characters");
  std::string left = text, right;
  bool isExplicit = false;
  if (size_t arrow = text.find("->"); arrow != std::string::npos) {
    left = text.substr(0, arrow);
    right = text.substr(arrow + 2);
    isExplicit = true;
  }
  std::vector<std::string> terms(1);
  for (char c : left) {
    if (c == ',')
      terms.emplace_back();
    else if (isLetter(c) || c == '.')
      terms.back() += c;
    else
      return bad("unexpected character");
  }
  if (terms.size() != n.numInputs())
    return bad("it has " + std::to_string(terms.size()) + " terms for " +
               std::to_string(n.numInputs()) + " inputs");
  std::vector<size_t> own(terms.size(), 0);
  size_t widest = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    size_t letters = 0, dots = 0;
    for (char c : terms[i])
      (c == '.' ? dots : letters) += 1;
    auto rank = static_cast<size_t>(n.rank(i));
    bool ellipsis = terms[i].find("...") != std::string::npos;
    if (dots != (ellipsis ? 3u : 0u) || letters > rank || (!ellipsis && letters != rank))
      return bad("term '" + terms[i] + "' does not fit an operand of rank " + std::to_string(rank));
    own[i] = rank - letters;
    widest = std::max(widest, own[i]);
  }
  std::string spare;
  for (char c = 'A'; c <= 'z' && spare.size() < widest; ++c)
    if (isLetter(c) && text.find(c) == std::string::npos)
      spare += c;
  if (spare.size() < widest)
    return bad("there are not enough letters for the ellipsis");
  std::map<char, DimExpr> sizes;
  std::map<char, int> uses;
  // In the user's words: a letter, or an axis of an ellipsis counted from its end, where ellipses line up.
  auto called = [&](char c) {
    size_t at = spare.find(c);
    return at == std::string::npos
               ? std::string("'") + c + "'"
               : "'...', its axis " +
                     std::to_string(static_cast<int64_t>(at) - static_cast<int64_t>(spare.size())) +
                     ",";
  };
  for (size_t i = 0; i < terms.size(); ++i) {
    terms[i] = expandEllipsis(terms[i], spare, own[i]);
    for (size_t k = 0; k < terms[i].size(); ++k) {
      char c = terms[i][k];
      ++uses[c];
      const DimExpr &size = n.shape(i)[k];
      auto [it, isNew] = sizes.emplace(c, size);
      // Operands broadcast 1 against n; the axes of one operand, of which a diagonal is taken, do not.
      size_t first = terms[i].find(c);
      const DimExpr &other = first < k ? n.shape(i)[first] : it->second;
      std::optional<DimExpr> both = first < k ? std::nullopt : broadcastDim(other, size);
      if (!both) {
        FUSEC_TRY(both, n.sameDim(other, size, "the sizes of " + called(c)));
      } else if (!isNew) {
        it->second = *both;
      }
    }
    if (n.type(i) != n.type(0))
      return n.mismatch("the operands must have one type");
  }
  if (isExplicit) {
    if (size_t at = right.find("...");
        at != std::string::npos && right.find("...", at + 3) != std::string::npos)
      return bad("the output has two ellipses");
    right = expandEllipsis(right, spare, widest);
  } else {
    right = spare;
    for (auto [c, count] : uses)
      if (count == 1 && spare.find(c) == std::string::npos)
        right += c;
  }
  Shape out;
  std::string equation;
  for (size_t i = 0; i < terms.size(); ++i)
    equation += (i ? "," : "") + terms[i];
  for (size_t k = 0; k < right.size(); ++k) {
    auto it = sizes.find(right[k]);
    if (it == sizes.end() || right.find(right[k], k + 1) != std::string::npos)
      return bad(std::string("output letter '") + right[k] + "' is repeated or in no term");
    out.push_back(it->second);
  }
  return n.finish(OpKind::Einsum, n.ids(), {{"equation", equation + "->" + right}},
                  {{n.type(0), std::move(out)}});
}

constexpr OpRow kRows[] = {
    {"Einsum", 12, 28, 1, -1, 1, einsum},
    {"Gemm", 1, 28, 2, 3, 1, gemm},
    {"MatMul", 1, 28, 2, 2, 1, matMul},
    {"MatMulInteger", 10, 28, 2, 4, 1, matMulInteger},
    {"QLinearMatMul", 10, 28, 8, 8, 1, qlinearMatMul},
};

} // namespace

std::span<const OpRow> matMulOps() { return kRows; }

} // namespace fusec
