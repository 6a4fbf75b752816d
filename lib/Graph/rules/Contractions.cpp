// MatMul, Gemm, Einsum and the integer products.
#include "Graph/rules/OpCheck.h"

namespace fusec::rules {
namespace {

Result<Types> matMul(const OpCheck &c) {
  FUSEC_CHECK(c.operands(Kind::Number));
  FUSEC_TRY(Shape shape, c.sizes.matMul(c.shape(0), c.shape(1)));
  return one(c.type(0), std::move(shape));
}

Result<Types> gemm(const OpCheck &c) {
  FUSEC_CHECK(c.expect(c.rank(0) == 2 && c.rank(1) == 2 && c.type(0) == c.type(1) &&
                           c.type(0) != DType::Bool,
                       "both factors must be matrices of one type"));
  size_t transA = c.number("transA") != 0, transB = c.number("transB") != 0;
  const Shape &a = c.shape(0), &b = c.shape(1);
  FUSEC_CHECK(c.sameDim(a[1 - transA], b[transB], "the sizes to sum over"));
  Shape out{a[transA], b[1 - transB]};
  if (c.has(2)) {
    FUSEC_CHECK(c.expect(c.type(2) == c.type(0), "the summand must have the factors' type"));
    FUSEC_CHECK(
        c.sizes.broadcastsTo(c.shape(2), out, "the summand must broadcast to the product's shape"));
  }
  return one(c.type(0), std::move(out));
}

/// The equation is normalised: letters, commas and one arrow.
Result<Types> einsum(const OpCheck &c) {
  FUSEC_CHECK(c.operands(Kind::Number));
  const std::string &equation = c.node.stringAttr("equation");
  auto bad = [&](const std::string &why) {
    return c.badAttribute("equation '" + equation.substr(0, 200) + "': " + why);
  };
  size_t arrow = equation.find("->");
  if (arrow == std::string::npos)
    return bad("it has no explicit output");
  std::vector<std::string> terms(1);
  for (char letter : equation.substr(0, arrow))
    if (letter == ',')
      terms.emplace_back();
    else
      terms.back() += letter;
  if (terms.size() != c.node.inputs.size())
    return bad("it has " + std::to_string(terms.size()) + " terms");
  std::vector<const Shape *> shapes;
  for (size_t i = 0; i < terms.size(); ++i) {
    bool fits = terms[i].size() == c.shape(i).size();
    for (char l : terms[i])
      fits = fits && ((l >= 'a' && l <= 'z') || (l >= 'A' && l <= 'Z'));
    if (!fits)
      return bad("term " + std::to_string(i) + " does not fit its operand");
    shapes.push_back(&c.shape(i));
  }
  const std::string result = equation.substr(arrow + 2);
  FUSEC_TRY(auto sizes, c.sizes.einsum(terms, shapes, result, [](char letter) {
    return std::string("'") + letter + "'";
  }));
  Shape out;
  for (size_t k = 0; k < result.size(); ++k) {
    auto it = sizes.find(result[k]);
    if (it == sizes.end() || result.find(result[k], k + 1) != std::string::npos)
      return bad("an output letter is repeated or in no term");
    out.push_back(it->second);
  }
  return one(c.type(0), std::move(out));
}

/// Operand `i` is a scale or a zero point of a factor, with one value for all, for each row or for each column.
Status sideParameter(const OpCheck &c, size_t i, const Shape &product, bool rows) {
  if (!c.has(i))
    return success();
  return c.sizes.sideParameter(c.shape(i), product, rows, "input " + std::to_string(i));
}

Result<Types> matMulInteger(const OpCheck &c) {
  FUSEC_CHECK(c.expect(isByte(c.type(0)) && isByte(c.type(1)), "the operands must be i8 or u8"));
  for (size_t i : {2, 3})
    FUSEC_CHECK(c.expect(!c.has(i) || c.type(i) == c.type(i - 2),
                         "a zero point must have its operand's type"));
  FUSEC_TRY(Shape shape, c.sizes.matMul(c.shape(0), c.shape(1)));
  FUSEC_CHECK(sideParameter(c, 2, shape, true));
  FUSEC_CHECK(sideParameter(c, 3, shape, false));
  return one(DType::I32, std::move(shape));
}

/// Inputs: a, its scale and zero point, b, likewise, the output's scale and zero point.
Result<Types> qLinearMatMul(const OpCheck &c) {
  FUSEC_CHECK(c.expect(isByte(c.type(0)) && isByte(c.type(3)) && c.type(2) == c.type(0) &&
                           c.type(5) == c.type(3),
                       "the operands and their zero points must be i8 or u8"));
  FUSEC_CHECK(
      c.expect(isFloat(c.type(1)) && isFloat(c.type(4)) && isFloat(c.type(6)) && isByte(c.type(7)),
               "the scales must be floats, the output's zero point i8 or u8"));
  FUSEC_TRY(Shape shape, c.sizes.matMul(c.shape(0), c.shape(3)));
  for (size_t i : {1, 2, 6, 7})
    FUSEC_CHECK(sideParameter(c, i, shape, true));
  for (size_t i : {4, 5})
    FUSEC_CHECK(sideParameter(c, i, shape, false));
  return one(c.type(7), std::move(shape));
}

} // namespace

void addContractions(RuleTable &table) {
  using enum OpKind;
  entry(table, MatMul) = matMul;
  entry(table, Gemm) = gemm;
  entry(table, Einsum) = einsum;
  entry(table, MatMulInteger) = matMulInteger;
  entry(table, QLinearMatMul) = qLinearMatMul;
}

} // namespace fusec::rules
