// LSTM, GRU and RNN: x [T,B,I], W [dirs,G*H,I], R [dirs,G*H,H], B [dirs,2*G*H], lengths [B], states [dirs,B,H],
// peepholes [dirs,3*H]; outputs [T,dirs,B,H] and [dirs,B,H].
#include "Graph/rules/OpCheck.h"

#include <algorithm>

namespace fusec::rules {
namespace {

constexpr const char *kActivations[] = {
    "Relu",       "Tanh",        "Sigmoid", "Affine",   "LeakyRelu", "ThresholdedRelu",
    "ScaledTanh", "HardSigmoid", "Elu",     "Softsign", "Softplus"};

/// Operand `i`, where there is one, has this shape.
Status operandIs(const OpCheck &c, size_t i, const Shape &shape) {
  constexpr const char *kNames[] = {"X",         "W",         "R", "B", "sequence_lens",
                                    "initial_h", "initial_c", "P"};
  if (!c.has(i))
    return success();
  const Shape &given = c.shape(i);
  FUSEC_CHECK(
      c.expect(given.size() == shape.size(), "input " + std::to_string(i) + " must be " +
                                                 typeText(c.type(i), shape, c.graph.symbols)));
  for (size_t d = 0; d < shape.size(); ++d) {
    const bool isBatch = (i == 4 && d == 0) || ((i == 5 || i == 6) && d == 1);
    FUSEC_CHECK(c.sameDim(given[d], shape[d],
                          isBatch ? std::string("the batch sizes of ") + kNames[i] + " and X"
                                  : "axis " + std::to_string(d) + " of " + kNames[i] +
                                        " and what the other operands say"));
  }
  return success();
}

template <int64_t gates, size_t functions> Result<Types> recurrent(const OpCheck &c) {
  int64_t dirs = c.node.stringAttr("direction") == "bidirectional" ? 2 : 1;
  int64_t hidden = c.number("hidden_size");
  FUSEC_CHECK(c.expect(hidden >= 1 && hidden <= int64_t(1) << 31,
                       "hidden_size must be between 1 and 2^31"));
  const auto &names = std::get<std::vector<std::string>>(c.node.attributes.at("activations"));
  for (const char *key : {"activation_alpha", "activation_beta"})
    FUSEC_CHECK(
        c.expect(std::get<std::vector<double>>(c.node.attributes.at(key)).size() == names.size(),
                 std::string(key) + " needs one entry a function"));
  FUSEC_CHECK(c.expectAttribute(names.size() == functions * static_cast<size_t>(dirs),
                                "activations must name " + std::to_string(functions) +
                                    " functions a direction"));
  for (const std::string &name : names)
    FUSEC_CHECK(c.expect(std::find(std::begin(kActivations), std::end(kActivations), name) !=
                             std::end(kActivations),
                         "activation '" + name + "' does not exist"));
  FUSEC_CHECK(c.kind(0, Kind::Float));
  FUSEC_CHECK(c.exactRank(0, 3));
  FUSEC_CHECK(c.sameTypes({0, 1, 2, 3, 5, 6, 7}));
  FUSEC_CHECK(c.kind(4, Kind::Integer));
  const Shape &x = c.shape(0);
  Shape state{DimExpr(dirs), x[1], DimExpr(hidden)};
  FUSEC_CHECK(operandIs(c, 1, {DimExpr(dirs), DimExpr(gates * hidden), x[2]}));
  FUSEC_CHECK(operandIs(c, 2, {DimExpr(dirs), DimExpr(gates * hidden), DimExpr(hidden)}));
  FUSEC_CHECK(operandIs(c, 3, {DimExpr(dirs), DimExpr(2 * gates * hidden)}));
  FUSEC_CHECK(operandIs(c, 4, {x[1]}));
  FUSEC_CHECK(operandIs(c, 5, state));
  FUSEC_CHECK(operandIs(c, 6, state));
  FUSEC_CHECK(operandIs(c, 7, {DimExpr(dirs), DimExpr(3 * hidden)}));
  Types types{{c.type(0), {x[0], DimExpr(dirs), x[1], DimExpr(hidden)}}, {c.type(0), state}};
  if (gates == 4)
    types.push_back({c.type(0), state});
  return types;
}

} // namespace

void addRecurrent(RuleTable &table) {
  entry(table, OpKind::LSTM) = recurrent<4, 3>;
  entry(table, OpKind::GRU) = recurrent<3, 2>;
  entry(table, OpKind::RNN) = recurrent<1, 1>;
}

} // namespace fusec::rules
