// MatMul, Gemm, Einsum and the integer products.
#include "Graph/rules/OpCheck.h"

#include <map>

namespace fusec::rules {
namespace {

Status matMul(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Number));
  FUSEC_CHECK(c.allSameTypes());
  FUSEC_TRY(Shape shape, c.matMulShape(c.shape(0), c.shape(1)));
  return c.output(c.type(0), shape);
}

Status gemm(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Number));
  FUSEC_CHECK(c.sameTypes({0, 1, 2}));
  FUSEC_CHECK(c.exactRank(0, 2));
  FUSEC_CHECK(c.exactRank(1, 2));
  size_t transA = c.node.intAttr("transA") != 0, transB = c.node.intAttr("transB") != 0;
  const Shape &a = c.shape(0), &b = c.shape(1);
  FUSEC_CHECK(c.sameDim(a[1 - transA], b[transB], "sizes to sum over"));
  Shape out{a[transA], b[1 - transB]};
  if (c.has(2))
    FUSEC_CHECK(c.broadcastsTo(c.shape(2), out, "the summand"));
  return c.output(c.type(0), out);
}

/// The equation is normalised: letters, commas and one arrow.
Status einsum(const OpCheck &c) {
  FUSEC_CHECK(c.kind(0, Kind::Number));
  FUSEC_CHECK(c.allSameTypes());
  const std::string &equation = c.node.stringAttr("equation");
  auto bad = [&](const std::string &why) {
    return c.fail("equation '" + equation.substr(0, 200) + "': " + why);
  };
  size_t arrow = equation.find("->");
  if (arrow == std::string::npos)
    return bad("it has no explicit output");
  std::map<char, DimExpr> sizes;
  size_t operand = 0, d = 0;
  for (size_t at = 0; at <= arrow; ++at) {
    if (at == arrow || equation[at] == ',') {
      if (operand >= c.node.inputs.size() || d != c.shape(operand).size())
        return bad("term " + std::to_string(operand) + " does not fit its operand");
      ++operand;
      d = 0;
      continue;
    }
    char letter = equation[at];
    bool isLetter = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
    if (!isLetter || operand >= c.node.inputs.size() || d >= c.shape(operand).size())
      return bad("term " + std::to_string(operand) + " does not fit its operand");
    const DimExpr &size = c.shape(operand)[d++];
    auto [it, isNew] = sizes.emplace(letter, size);
    if (isNew || size.isConst(1))
      continue;
    if (!it->second.isConst(1))
      FUSEC_CHECK(c.sameDim(it->second, size, std::string("sizes of '") + letter + "'"));
    it->second = size;
  }
  if (operand != c.node.inputs.size())
    return bad("it has " + std::to_string(operand) + " terms");
  Shape out;
  std::string result = equation.substr(arrow + 2);
  for (size_t k = 0; k < result.size(); ++k) {
    auto it = sizes.find(result[k]);
    if (it == sizes.end() || result.find(result[k], k + 1) != std::string::npos)
      return bad("an output letter is repeated or in no term");
    out.push_back(it->second);
  }
  return c.output(c.type(0), out);
}

bool isByte(DType t) { return t == DType::U8 || t == DType::I8; }

/// A scale or zero point of a factor: one number, one a row of the left factor, or one that broadcasts to the product
/// (one a column of the right one).
Status sideParameter(const OpCheck &c, size_t i, bool left, const Shape &product) {
  if (!c.has(i) || numElements(c.shape(i)).isConst(1))
    return success();
  if (left && c.rank(i) == 1) {
    FUSEC_CHECK(c.expect(product.size() >= 2, "a parameter a row needs a product of matrices"));
    return c.vectorOf(i, product[product.size() - 2]);
  }
  return c.broadcastsTo(c.shape(i), product, "operand " + std::to_string(i));
}

Status matMulInteger(const OpCheck &c) {
  FUSEC_CHECK(c.expect(isByte(c.type(0)) && isByte(c.type(1)), "the factors must be i8 or u8"));
  FUSEC_CHECK(c.sameTypes({0, 2}));
  FUSEC_CHECK(c.sameTypes({1, 3}));
  FUSEC_TRY(Shape shape, c.matMulShape(c.shape(0), c.shape(1)));
  FUSEC_CHECK(sideParameter(c, 2, true, shape));
  FUSEC_CHECK(sideParameter(c, 3, false, shape));
  return c.output(DType::I32, shape);
}

/// Inputs: a, its scale and zero point, b, likewise, the output's scale and zero point.
Status qLinearMatMul(const OpCheck &c) {
  FUSEC_CHECK(c.expect(isByte(c.type(0)) && isByte(c.type(3)) && isInteger(c.type(7)),
                       "the factors must be i8 or u8 and the result an integer"));
  FUSEC_CHECK(c.sameTypes({0, 2}));
  FUSEC_CHECK(c.sameTypes({3, 5}));
  for (size_t scale : {1, 4, 6})
    FUSEC_CHECK(c.kind(scale, Kind::Float));
  FUSEC_TRY(Shape shape, c.matMulShape(c.shape(0), c.shape(3)));
  for (size_t i : {1, 2, 4, 5, 6, 7})
    FUSEC_CHECK(sideParameter(c, i, i < 3 || i > 5, shape));
  return c.output(c.type(7), shape);
}

} // namespace

void addContractions(RuleTable &table) {
  using enum OpKind;
  table[MatMul] = matMul;
  table[Gemm] = gemm;
  table[Einsum] = einsum;
  table[MatMulInteger] = matMulInteger;
  table[QLinearMatMul] = qLinearMatMul;
}

} // namespace fusec::rules
