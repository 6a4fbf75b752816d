#include "Expr/lower/Lowering.h"

#include "Expr/SymbolSteps.h"
#include "Graph/SymbolKinds.h"
#include "Support/Diag.h"

#include <cassert>

namespace fusec {
namespace lower {
namespace {

const HandlerTable &handlers() {
  static const HandlerTable table = [] {
    HandlerTable t;
    addElementwise(t);
    addReductions(t);
    addReductionsCumulative(t);
    addReductionsSoftmax(t);
    addContractions(t);
    addWindowsConv(t);
    addWindowsPool(t);
    addNormalisations(t);
    addMovement(t);
    addGenerators(t);
    addGathers(t);
    addGathersChosen(t);
    addGathersScatter(t);
    addImagesResize(t);
    addImagesGridSample(t);
    addImagesKeptBoxes(t);
    addImagesRoiAlign(t);
    addQuantisation(t);
    addRecurrent(t);
    addReductionsTopK(t);
    addControlFlow(t);
    addMisc(t);
    return t;
  }();
  return table;
}

} // namespace

Lowering::Lowering(const Graph &graph)
    : graph(graph), isRounded(roundedValues(graph)), items(&program.items),
      tensorOf(graph.values.size(), -1), isOutput(graph.values.size()) {
  program.name = graph.name;
  program.symbols = withKinds(graph);
  // Values keep the names of the model; temps get what is left.
  for (const Value &v : graph.values)
    names.insert(v.name);
}

TensorId Lowering::tensor(ValueId id) {
  assert(id >= 0);
  if (tensorOf[id] < 0) {
    const Value &v = graph.value(id);
    TensorKind kind = v.constant     ? TensorKind::Constant
                      : isOutput[id] ? TensorKind::Output
                                     : TensorKind::Temp;
    tensorOf[id] = program.addTensor({v.name, kind, v.type, v.shape, v.constant});
  }
  return tensorOf[id];
}

TensorId Lowering::temp(const std::string &base, DType type, Shape shape) {
  return program.addTensor({uniqueName(base), TensorKind::Temp, type, std::move(shape), nullptr});
}

TensorId Lowering::constant(const std::string &base, ConstantRef data) {
  Shape shape(data->dims.begin(), data->dims.end());
  DType type = data->type;
  return program.addTensor(
      {uniqueName(base), TensorKind::Constant, type, std::move(shape), std::move(data)});
}

std::string Lowering::uniqueName(const std::string &base) {
  std::string name = base;
  if (names.insert(name).second)
    return name;
  int &suffix = lastSuffix[base]; // all smaller ones are taken
  do
    name = base + "." + std::to_string(++suffix);
  while (!names.insert(name).second);
  return name;
}

Result<ExprProgram> Lowering::run() {
  for (ValueId id : graph.body.inputs) {
    const Value &v = graph.value(id);
    tensorOf[id] =
        program.addTensor({v.name, TensorKind::Input, v.type, v.shape, nullptr, v.defaultValue});
    program.inputs.push_back(tensorOf[id]);
  }
  for (ValueId id : graph.body.outputs)
    isOutput[id] = tensorOf[id] < 0;
  std::vector<std::pair<TensorId, ConstantRef>> constantOutputs;
  for (ValueId id : graph.body.outputs) {
    const Value &v = graph.value(id);
    if (v.constant && tensorOf[id] < 0) {
      tensorOf[id] = program.addTensor({v.name, TensorKind::Output, v.type, v.shape, nullptr});
      constantOutputs.push_back({tensorOf[id], v.constant});
    }
    program.outputs.push_back(tensor(id));
  }
  Node none{OpKind::Identity, "", "", {}, {}, {}, {}};
  for (auto &[out, data] : constantOutputs) {
    NodeLowering n(*this, none);
    TensorId from = constant(program.tensors[out].name + ".value", data);
    n.copy(out, from);
  }
  lowerNodes(graph.body.nodes);
  if (!errors.empty())
    return std::move(errors);
  setSteps();
  return std::move(program);
}

/// Gives lengths of which nobody favours a size their steps: the equations say what runs over them.
void Lowering::setSteps() {
  for (size_t s = 0; s < program.symbols.size(); ++s) {
    Symbol &symbol = program.symbols[s];
    if (kindOf(graph.symbols[s]) == SymbolKind::Any && kindOf(symbol) == SymbolKind::Length &&
        !symbol.definition)
      symbol.opt = optOf(SymbolKind::Length, stepOfWork(program, static_cast<SymbolId>(s)));
  }
}

void Lowering::lowerNodes(const std::vector<Node> &nodes) {
  for (const Node &node : nodes) {
    NodeLowering n(*this, node);
    Handler handler = handlers().handlers[static_cast<size_t>(node.op)];
    Status status = handler ? handler(n) : Status(n.fail("the operator has no tensor equations"));
    if (!status.ok())
      errors.insert(errors.end(), status.errors().begin(), status.errors().end());
  }
}

TensorId NodeLowering::temp(const std::string &suffix, DType type, Shape shape) {
  size_t first = 0;
  while (!wants(first))
    ++first;
  return l.temp(outValue(first).name + "." + suffix, type, std::move(shape));
}

TensorId NodeLowering::constant(const std::string &suffix, ConstantRef data) {
  return l.constant(outValue().name + "." + suffix, std::move(data));
}

void NodeLowering::copy(TensorId out, TensorId from) {
  map(out, [&](EquationBuilder &b) { return cast(typeOf(out), b.read(from, b.axes)); });
}

void NodeLowering::reshape(TensorId out, TensorId from) {
  map(out, [&](EquationBuilder &b) {
    return cast(typeOf(out),
                b.read(from, reshapeIndices(shapeOf(from), shapeOf(out), b.axes, b.body())));
  });
}

Diagnostic NodeLowering::fail(std::string text) const {
  return fail(std::move(text), Diag::UnsupportedOp);
}

Diagnostic NodeLowering::fail(std::string text, Diag id) const {
  const Graph &g = l.graph;
  std::string types;
  for (ValueId v : node.inputs)
    types += (types.empty() ? "" : ", ") + (v == kNoValue ? "-" : typeText(g.value(v), g.symbols));
  return {id, g.name + ": node '" + node.name + "' (" + node.onnxOp + ")",
          text + "; inputs: " + types};
}

} // namespace lower

Result<ExprProgram> lowerGraph(const Graph &graph) { return lower::Lowering(graph).run(); }

bool hasLowering(OpKind op) { return lower::handlers().handlers[static_cast<size_t>(op)]; }

} // namespace fusec
