#include "Onnx/OpTable.h"
#include "Support/Diag.h"

#include <map>

// MatMul, Gemm, Einsum and the integer products.

namespace fusec {
namespace {

Status gemm(NodeImporter &n) {
  int64_t transA = n.attrInt("transA", 0) != 0, transB = n.attrInt("transB", 0) != 0;
  n.ignore("broadcast");
  return n.finish(OpKind::Gemm, n.ids(), {{"transA", transA}, {"transB", transB}});
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
  // In the user's words: a letter, or an axis of an ellipsis counted from its end, where ellipses line up.
  auto called = [&](char c) {
    size_t at = spare.find(c);
    return at == std::string::npos
               ? std::string("'") + c + "'"
               : "'...', its axis " +
                     std::to_string(static_cast<int64_t>(at) - static_cast<int64_t>(spare.size())) +
                     ",";
  };
  std::map<char, int> uses;
  std::vector<const Shape *> shapes;
  for (size_t i = 0; i < terms.size(); ++i) {
    terms[i] = expandEllipsis(terms[i], spare, own[i]);
    shapes.push_back(&n.shape(i));
    for (char c : terms[i])
      ++uses[c];
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
  FUSEC_TRY(auto sizes, n.sizes().einsum(terms, shapes, right, called));
  std::string equation;
  for (size_t i = 0; i < terms.size(); ++i)
    equation += (i ? "," : "") + terms[i];
  for (size_t k = 0; k < right.size(); ++k)
    if (!sizes.count(right[k]) || right.find(right[k], k + 1) != std::string::npos)
      return bad(std::string("output letter '") + right[k] + "' is repeated or in no term");
  return n.finish(OpKind::Einsum, n.ids(), {{"equation", equation + "->" + right}});
}

constexpr OpRow kRows[] = {
    {"Einsum", 12, kNewestOpset, 1, -1, 1, einsum},
    {"Gemm", 1, kNewestOpset, 2, 3, 1, gemm},
    {"MatMul", 1, kNewestOpset, 2, 2, 1, sameOperator},
    {"MatMulInteger", 10, kNewestOpset, 2, 4, 1, sameOperator},
    {"QLinearMatMul", 10, kNewestOpset, 8, 8, 1, sameOperator},
};

} // namespace

std::span<const OpRow> contractionsOps() { return kRows; }

} // namespace fusec
