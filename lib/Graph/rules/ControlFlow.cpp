// If, Loop and Scan: the regions' inputs and outputs fit the node's.
#include "Graph/rules/OpCheck.h"

namespace fusec::rules {
namespace {

Status truth(const OpCheck &c, size_t i) {
  FUSEC_CHECK(c.expect(!c.has(i) || c.type(i) == DType::Bool, "the condition must be bool"));
  return c.oneNumber(i);
}

const Value &outputOf(const OpCheck &c, size_t region, size_t i) {
  return c.graph.value(c.node.regions[region].outputs[i]);
}
const Value &inputOf(const OpCheck &c, size_t i) {
  return c.graph.value(c.node.regions[0].inputs[i]);
}

Status valueIs(const OpCheck &c, const Value &v, DType type, const Shape &shape) {
  return c.expect(v.type == type && c.sameInRuns(v.shape, shape),
                  "%" + v.name + " is " + typeText(v, c.graph.symbols) + ", it must be " +
                      typeText(type, shape, c.graph.symbols));
}

/// Value v is carried on as one of this type.
Status keepsType(const OpCheck &c, const Value &v, DType type, const Shape &shape) {
  if (v.type != type || v.shape.size() != shape.size())
    return valueIs(c, v, type, shape);
  return c.sizes.sameShape(
      v.shape, shape, "a trip must leave the sizes of what is carried as they are", Need::Tested);
}

/// Whether a branch's shape is that of the result in all sampled runs that take it, as the condition's expression says.
bool isWhereTaken(const OpCheck &c, const Shape &own, const Shape &result, bool taken) {
  const Shape &condition = c.in(0).known;
  if (condition.size() != 1 || own.size() != result.size())
    return false;
  for (const std::vector<int64_t> &symbols : sampleSymbols(c.graph.symbols)) {
    const auto which = condition[0].evaluate(symbols);
    for (size_t d = 0; which && (*which != 0) == taken && d < own.size(); ++d)
      if (own[d].evaluate(symbols) != result[d].evaluate(symbols))
        return false;
  }
  return true;
}

Status oneOfType(const OpCheck &c, const Value &v, DType type) {
  return c.expect(v.type == type && numElements(v.shape).isConst(1),
                  "%" + v.name + " must be one " + std::string(name(type)));
}

Result<Types> ifElse(const OpCheck &c) {
  FUSEC_CHECK(truth(c, 0));
  const Region &first = c.node.regions[0], &second = c.node.regions[1];
  FUSEC_CHECK(c.expect(first.inputs.empty() && second.inputs.empty(), "a branch has no inputs"));
  FUSEC_CHECK(c.expect(first.outputs.size() >= c.numOutputs() &&
                           second.outputs.size() >= first.outputs.size(),
                       "a branch makes fewer values than the node has outputs"));
  Types types;
  for (size_t i = 0; i < first.outputs.size(); ++i) {
    const Value &a = outputOf(c, 0, i), &b = outputOf(c, 1, i);
    const bool isLeftOut =
        i >= c.numOutputs() || (i < c.node.outputs.size() && !c.node.hasOutput(i));
    const Shape &result =
        isLeftOut || c.outShape(i).size() != a.shape.size() ? a.shape : c.outShape(i);
    for (const Value *v : {&a, &b})
      if (v->type != a.type || v->shape.size() != result.size())
        FUSEC_CHECK(valueIs(c, *v, a.type, result));
      else if (!c.sameInRuns(v->shape, result) && !isWhereTaken(c, v->shape, result, v == &a))
        FUSEC_CHECK(c.sizes.sameShape(v->shape, result, "both branches must make equal sizes",
                                      Need::Tested));
    types.push_back({a.type, result});
  }
  return types;
}

/// Node: trip?, condition?, carried...; body: iteration, condition, carried... to condition, carried..., stacked...
/// How long the stacked ones are is the first size that the outputs are said to have: whether the condition ends the
/// loop early is more than a rule knows.
Result<Types> loop(const OpCheck &c) {
  const Region &body = c.node.regions[0];
  size_t carried = c.node.inputs.size() - 2;
  FUSEC_CHECK(c.expect(body.inputs.size() == carried + 2 && body.outputs.size() >= carried + 1 &&
                           c.numOutputs() <= body.outputs.size() - 1,
                       "the body's inputs and outputs do not fit the node's"));
  FUSEC_CHECK(c.expect(!c.has(0) || c.type(0) == DType::I64, "the trip count must be i64"));
  FUSEC_CHECK(c.oneNumber(0));
  FUSEC_CHECK(truth(c, 1));
  FUSEC_CHECK(oneOfType(c, inputOf(c, 0), DType::I64));
  FUSEC_CHECK(oneOfType(c, inputOf(c, 1), DType::Bool));
  FUSEC_CHECK(oneOfType(c, outputOf(c, 0, 0), DType::Bool));
  Types types;
  for (size_t i = 0; i < carried; ++i) {
    const Value &init = c.in(i + 2);
    FUSEC_CHECK(valueIs(c, inputOf(c, i + 2), init.type, init.shape));
    FUSEC_CHECK(keepsType(c, outputOf(c, 0, i + 1), init.type, init.shape));
    types.push_back({init.type, init.shape});
  }
  for (size_t i = carried; i < c.numOutputs(); ++i) {
    TypedShape stacked{outputOf(c, 0, i + 1).type, outputOf(c, 0, i + 1).shape};
    const bool isLeftOut = i < c.node.outputs.size() && !c.node.hasOutput(i);
    FUSEC_CHECK(c.expect(isLeftOut || !c.outShape(i).empty(), "a stacked output needs an axis"));
    if (!isLeftOut)
      stacked.shape.insert(stacked.shape.begin(), c.outShape(i)[0]);
    types.push_back(std::move(stacked));
  }
  return types;
}

Result<Types> scan(const OpCheck &c) {
  const Region &body = c.node.regions[0];
  int64_t given = c.number("num_scan_inputs");
  FUSEC_CHECK(c.expect(given >= 1 && given <= static_cast<int64_t>(c.node.inputs.size()),
                       "num_scan_inputs must be between 1 and the number of inputs"));
  auto scanned = static_cast<size_t>(given);
  size_t states = c.node.inputs.size() - scanned;
  FUSEC_CHECK(c.expect(body.inputs.size() == c.node.inputs.size() &&
                           body.outputs.size() >= states && c.numOutputs() <= body.outputs.size(),
                       "the body's inputs and outputs do not fit the node's"));
  size_t stacked = body.outputs.size() - states;
  const auto &inAxes = c.list("scan_input_axes"), &outAxes = c.list("scan_output_axes");
  FUSEC_CHECK(
      c.expect(inAxes.size() == scanned && c.list("scan_input_directions").size() == scanned &&
                   outAxes.size() == stacked && c.list("scan_output_directions").size() == stacked,
               "axes and directions need one entry a scan input or output"));
  Types types;
  for (size_t i = 0; i < states; ++i) {
    FUSEC_CHECK(valueIs(c, inputOf(c, i), c.type(i), c.shape(i)));
    FUSEC_CHECK(keepsType(c, outputOf(c, 0, i), c.type(i), c.shape(i)));
    types.push_back({c.type(i), c.shape(i)});
  }
  std::optional<DimExpr> length;
  for (size_t i = 0; i < scanned; ++i) {
    Shape slice = c.shape(states + i);
    FUSEC_CHECK(c.expect(inAxes[i] >= 0 && inAxes[i] < static_cast<int64_t>(slice.size()),
                         "an axis to scan is out of range"));
    auto at = slice.begin() + static_cast<std::ptrdiff_t>(inAxes[i]);
    if (length)
      FUSEC_CHECK(c.sameDim(*length, *at, "the lengths to scan"));
    length = *at;
    slice.erase(at);
    FUSEC_CHECK(valueIs(c, inputOf(c, states + i), c.type(states + i), slice));
  }
  for (size_t i = 0; i < stacked; ++i) {
    const Value &slice = outputOf(c, 0, states + i);
    FUSEC_CHECK(c.expect(outAxes[i] >= 0 && outAxes[i] <= static_cast<int64_t>(slice.shape.size()),
                         "an axis to stack along is out of range"));
    Shape whole = slice.shape;
    whole.insert(whole.begin() + static_cast<std::ptrdiff_t>(outAxes[i]), *length);
    types.push_back({slice.type, std::move(whole)});
  }
  return types;
}

} // namespace

void addControlFlow(RuleTable &table) {
  entry(table, OpKind::If) = ifElse;
  entry(table, OpKind::Loop) = loop;
  entry(table, OpKind::Scan) = scan;
}

} // namespace fusec::rules
