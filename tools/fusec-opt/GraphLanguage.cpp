#include "Language.h"

#include "Graph/Passes.h"
#include "Reference/GraphInterpreter.h"

namespace fusec::opt {

Status runPass(Graph &graph, const std::string &name) {
  return runNamed(graph, graphPasses({referenceEvaluator()}), name, "graph");
}

std::vector<std::string> inputNames(const Graph &graph) {
  std::vector<std::string> names;
  for (ValueId id : graph.body.inputs)
    names.push_back(graph.value(id).name);
  return names;
}

Result<std::vector<NamedTensor>>
interpret(const Graph &graph, const std::vector<NamedTensor> &inputs, bool roundEachValue) {
  std::vector<TensorValue> values;
  for (ValueId id : graph.body.inputs) {
    const Value &given = graph.value(id);
    FUSEC_TRY(TensorValue v, findInput(inputs, given.name, given.defaultValue));
    values.push_back(std::move(v));
  }
  GraphInterpreterOptions options;
  options.roundEachValue = roundEachValue;
  FUSEC_TRY(std::vector<TensorValue> results, evaluate(graph, values, options));
  std::vector<NamedTensor> outputs;
  for (size_t i = 0; i < results.size(); ++i)
    outputs.push_back({graph.value(graph.body.outputs[i]).name, std::move(results[i])});
  return outputs;
}

namespace {

Result<std::unique_ptr<Program>> parse(const std::string &text, const std::string &path,
                                       const ConstantStore &store) {
  FUSEC_TRY(Graph graph, parseGraph(text, path, store));
  return std::unique_ptr<Program>(std::make_unique<ProgramOf<Graph>>(std::move(graph)));
}

std::vector<PassHelp> passes() { return helpOf(graphPasses({})); }

} // namespace

const Language graphLanguage = {"graph", "graph", parse, passes};

Result<std::unique_ptr<Program>> importModel(const std::string &path,
                                             const ImportOptions &options) {
  FUSEC_TRY(Graph graph, importOnnx(path, options));
  return std::unique_ptr<Program>(std::make_unique<ProgramOf<Graph>>(std::move(graph)));
}

} // namespace fusec::opt
