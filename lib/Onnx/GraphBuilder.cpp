#include "Onnx/GraphBuilder.h"
#include "Onnx/DimTools.h"
#include "Onnx/Tensors.h"
#include "Support/Diag.h"
#include "Support/TunedSizes.h"

#include <algorithm>

namespace fusec {

GraphBuilder::GraphBuilder(const std::string &path, const ImportOptions &options,
                           ImportMemory &memory)
    : knownValues(graph, memory.sizes), options(options), path(path),
      files(path, options.outputPath), memory(memory) {
  memory.sizes.beginRound();
  graph.symbols = memory.sizes.symbols();
}

Result<Graph> GraphBuilder::run(onnx::ModelProto &model) {
  FUSEC_CHECK(header(model));
  const onnx::GraphProto &proto = model.graph();
  graph.name = proto.name().empty() ? "main" : proto.name();
  NameScope scope;
  ImportFrame top;
  top.scope = &scope;
  top.region = &graph.body;
  top.opsets = &opsets;
  frame = &top;
  reserveNames(proto);
  FUSEC_CHECK(readSetInputs(proto));
  // Before version 4 every initialiser had to be an input as well: that it is one says nothing.
  if (model.ir_version() >= 4 && !options.constantInitialisers)
    for (const auto &input : proto.input())
      inputNames.insert(input.name());
  initialisers(proto, "");
  FUSEC_CHECK(checkOptions(proto, graphInputs(proto, scope)));
  auto declared = declarations(proto); // refers to the sizes that inputs have named
  top.declared = &declared;
  top.nodes = &proto.node();
  usable = errors.empty();
  importNodes(proto.node());
  if (Diagnostics unknown = unknownDims(); !unknown.empty())
    return unknown;
  if (!errors.empty())
    return groupedRefusals();
  warnOfFixedInputs(proto);
  checkDeclarations(declared);
  if (untold)
    warnings.push_back({Diag::WrongDeclaration, path,
                        std::to_string(untold) +
                            " more tensors are declared otherwise than their nodes make them"});
  FUSEC_CHECK(graphOutputs(proto, scope));
  FUSEC_CHECK(markOutputs());
  warnOfDefaultInputs();
  settleSizes();
  frame = nullptr;
  computeCaptures(graph);
  return std::move(graph);
}

Status GraphBuilder::header(const onnx::ModelProto &model) {
  auto bad = [&](std::string text) {
    return Diagnostic{Diag::BadModelHeader, path, std::move(text)};
  };
  if (!model.has_ir_version() || model.ir_version() < 1 || model.ir_version() > 1000)
    return bad("IR version " + std::to_string(model.ir_version()) + " does not exist");
  if (!model.has_graph())
    return bad("the model has no graph");
  if (model.opset_import_size() == 0)
    return bad("the model does not say which operator set it uses (opset_import)");
  for (const auto &o : model.opset_import()) {
    std::string domain = o.domain() == "ai.onnx" ? "" : o.domain();
    if (o.version() < 1 || (domain.empty() && o.version() > kNewestOpset))
      return bad("opset " + std::to_string(o.version()) + " of domain '" + o.domain() +
                 "' is not known; 1 to " + std::to_string(kNewestOpset) + " are supported");
    int version = static_cast<int>(std::min<int64_t>(o.version(), INT32_MAX));
    if (int first = opsets.emplace(domain, version).first->second; first != version)
      return bad("domain '" + domain + "' is imported twice, as opset " + std::to_string(first) +
                 " and as opset " + std::to_string(version));
  }
  for (const auto &f : model.functions()) {
    if (f.name().empty())
      return bad("a function has no name");
    if (!functions.emplace(functionKey(f.domain(), f.name(), f.overload()), &f).second)
      return bad("function '" + f.name() + "' is defined twice");
  }
  return checkFunctions(model, functions, options.limits, path);
}

DimExpr GraphBuilder::sizeNamed(const std::string &name) {
  if (auto known = sizes.find(name); known != sizes.end())
    return known->second;
  Symbol s;
  s.min = 0;
  s.opt = static_cast<int64_t>(SymbolKind::Any);
  const auto range = options.dims.find(name);
  if (range != options.dims.end())
    s = range->second;
  s.name = name;
  if (s.min == s.max)
    return sizes.emplace(name, s.min).first->second;
  const SymbolId id = solver().symbol(s, range != options.dims.end());
  if (static_cast<size_t>(id) == graph.symbols.size())
    graph.symbols.push_back(solver().symbols()[static_cast<size_t>(id)]);
  return sizes.emplace(name, solver().valueOf(id)).first->second;
}

/// Definitions over the numbers that symbols get, and numbers of their own for those that have one. What an earlier
/// round has made may stand on symbols that are solved since.
static void renumberDefinitions(std::vector<Symbol> &symbols, const std::vector<SymbolId> &newIds,
                                const SizeSolver &solver) {
  int number = 0;
  for (Symbol &s : symbols) {
    if (!s.definition)
      continue;
    DimProgram program = canonical(*s.definition, solver);
    for (DimProgram::Instr &i : program.code)
      if (i.op == DimProgram::Op::Symbol)
        i.value = newIds[static_cast<size_t>(i.value)];
    s.definition = std::make_shared<DimProgram>(std::move(program));
    do
      s.name = "computed." + std::to_string(number++);
    while (std::any_of(symbols.begin(), symbols.end(),
                       [&](const Symbol &o) { return &o != &s && o.name == s.name; }));
  }
}

void GraphBuilder::settleSizes() {
  knownValues.settle();
  std::vector<bool> isLeft(graph.symbols.size(), false);
  for (const auto &[name, size] : sizes)
    for (SymbolId s : symbolsOf({size}))
      isLeft[static_cast<size_t>(s)] = true;
  std::vector<SymbolId> newIds(graph.symbols.size(), -1);
  std::vector<Symbol> left;
  std::vector<InferredSize> inferred;
  auto keep = [&](size_t s) {
    newIds[s] = static_cast<SymbolId>(left.size());
    left.push_back(graph.symbols[s]);
  };
  for (size_t s = 0; s < graph.symbols.size(); ++s)
    if (isLeft[s])
      keep(s);
  std::set<SymbolId> computed = knownValues.numbers.made();
  for (const Value &v : graph.values)
    for (const Shape *list : {&v.shape, &v.known})
      for (SymbolId s : symbolsOf(*list))
        if (graph.symbols[static_cast<size_t>(s)].definition)
          computed.insert(s);
  for (SymbolId s : computed)
    keep(static_cast<size_t>(s));
  for (SymbolId s : dataSizes)
    keep(static_cast<size_t>(s));
  renumberDefinitions(left, newIds, solver());
  std::set<std::string> inputs;
  for (ValueId id : graph.body.inputs)
    inputs.insert(graph.value(id).name);
  for (size_t s = 0; s < graph.symbols.size(); ++s) {
    if (isLeft[s] || graph.symbols[s].definition || graph.symbols[s].bound)
      continue;
    const DimExpr value = solver().valueOf(static_cast<SymbolId>(s));
    const std::set<SymbolId> used = symbolsOf({value});
    // The others are of inputs that have become constants.
    if (!std::all_of(used.begin(), used.end(),
                     [&](SymbolId u) { return isLeft[static_cast<size_t>(u)]; }))
      continue;
    const std::string &name = graph.symbols[s].name;
    newIds[s] = static_cast<SymbolId>(left.size() + inferred.size());
    inferred.push_back({name, value, dimPlaces[name]});
    std::erase_if(inferred.back().places,
                  [&](const InferredSize::Place &p) { return !inputs.count(p.input); });
  }
  graph.sizeRules = solver().rules(newIds, std::move(inferred));
  graph.symbols = std::move(left);
  for (Symbol &s : graph.symbols)
    if (s.bound)
      s.bound = solver().canonical(*s.bound);
  bool stay = true;
  for (size_t s = 0; s < newIds.size(); ++s)
    stay = stay && newIds[s] == static_cast<SymbolId>(s);
  if (stay)
    return;
  const auto renumbered = [&](SymbolId s) {
    return std::optional(DimExpr::symbol(newIds[static_cast<size_t>(s)]));
  };
  for (Symbol &s : graph.symbols)
    if (s.bound)
      s.bound = s.bound->substitute(renumbered);
  for (Value &v : graph.values)
    for (auto *list : {&v.shape, &v.known})
      for (DimExpr &d : *list)
        d = d.substitute(renumbered);
}

DimExpr GraphBuilder::newDataSize(const std::string &name, const DimExpr &bound) {
  return addDataSize(name, "", bound, std::nullopt);
}

DimExpr GraphBuilder::newTest(const std::string &node, DataTest test) {
  return addDataSize(node, ending(test), 0, TestOfData{test, node});
}

/// Names that are taken get a longer stem.
DimExpr GraphBuilder::addDataSize(std::string name, std::string_view ending, const DimExpr &bound,
                                  const std::optional<TestOfData> &test) {
  auto isTaken = [&](const std::string &wanted) {
    return dimNames.count(wanted) != 0 ||
           std::any_of(dataSizes.begin(), dataSizes.end(), [&](SymbolId s) {
             return graph.symbols[static_cast<size_t>(s)].name == wanted;
           });
  };
  while (isTaken(name + std::string(ending)))
    name += "_";
  const std::string own = name + std::string(ending);
  Symbol s = dataDependentSymbol(own, bound, graph.symbols);
  s.test = test;
  const auto range = options.dims.find(own);
  if (range != options.dims.end()) {
    s.min = std::min(range->second.min, s.max);
    s.max = std::min(range->second.max, s.max);
    s.divisor = range->second.divisor;
    if (isFavoured(range->second))
      s.opt = std::clamp(range->second.opt, s.min, s.max);
  }
  const SymbolId id = solver().symbol(s, range != options.dims.end());
  if (static_cast<size_t>(id) == graph.symbols.size())
    graph.symbols.push_back(std::move(s));
  graph.symbols[static_cast<size_t>(id)] = solver().symbols()[static_cast<size_t>(id)];
  graph.symbols[static_cast<size_t>(id)].bound = bound; // as this round writes it
  dataSizes.push_back(id);
  return DimExpr::symbol(id);
}

std::optional<std::string> GraphBuilder::boundAdvice(const DimExpr &a, const DimExpr &b) const {
  for (auto [bounded, plain] : {std::pair(&a, &b), std::pair(&b, &a)}) {
    if (bounded->op() != DimExpr::Op::Min || plain->op() != DimExpr::Op::Symbol)
      continue;
    const auto &parts = bounded->operands();
    if (parts.size() != 2 || !parts[1].isConst() || parts[0] != *plain || parts[1].constValue() < 1)
      continue;
    const std::string &name = graph.symbols[static_cast<size_t>(plain->symbolId())].name;
    int64_t bound = parts[1].constValue();
    if (options.dims.count(name))
      return "the model allows at most " + std::to_string(bound) + " for " + name +
             "; pass a --dim range within that";
  }
  return std::nullopt;
}

DeclaredType GraphBuilder::readType(const onnx::TypeProto &type) {
  DeclaredType d;
  if (!type.has_tensor_type())
    return d;
  d.type = dtypeOfOnnx(type.tensor_type().elem_type());
  d.hasShape = type.tensor_type().has_shape();
  for (const auto &dim : type.tensor_type().shape().dim()) {
    std::optional<DimExpr> size;
    if (dim.has_dim_value() && dim.dim_value() != -1)
      size = DimExpr(dim.dim_value());
    else if (auto named = sizes.find(dim.dim_param()); named != sizes.end())
      size = named->second;
    if (auto given = givenSizes.find(dim.dim_param()); given != givenSizes.end())
      size = size && given->second != size ? std::nullopt : given->second;
    d.dims.push_back(std::move(size));
  }
  return d;
}

std::map<std::string, DeclaredType> GraphBuilder::declarations(const onnx::GraphProto &proto) {
  std::map<std::string, DeclaredType> map;
  for (const auto &v : proto.value_info())
    map[v.name()] = readType(v.type());
  for (const auto &v : proto.output()) {
    DeclaredType &d = map[v.name()];
    d = readType(v.type());
    d.isOutput = true;
  }
  return map;
}

const DeclaredType *GraphBuilder::declaredType(const std::string &name) const {
  if (!frame->declared || staleSizes)
    return nullptr;
  auto it = frame->declared->find(name);
  return it == frame->declared->end() ? nullptr : &it->second;
}

Result<ConstantRef> GraphBuilder::readOnce(const onnx::TensorProto &t, const std::string &place,
                                           const std::function<Result<ConstantRef>()> &read) {
  auto known = memory.tensors.find(&t);
  if (known == memory.tensors.end())
    known = memory.tensors.emplace(&t, read()).first;
  Result<ConstantRef> result = known->second;
  if (!result.ok())
    for (Diagnostic &d : result.errors())
      if (d.id != Diag::BadOption) // whose place is the option
        d.where = place;           // of this call of a function, say, and not of the first
  return result;
}

Result<ConstantRef> GraphBuilder::tensor(const onnx::TensorProto &t, const std::string &place) {
  return readOnce(t, place, [&] {
    return readTensor(const_cast<onnx::TensorProto &>(t), &files, options.limits, place);
  });
}

Result<ConstantRef> GraphBuilder::sparseTensor(const onnx::SparseTensorProto &t,
                                               const std::string &place) {
  return readOnce(t.values(), place, [&] {
    return readSparseTensor(const_cast<onnx::SparseTensorProto &>(t), &files, options.limits,
                            place);
  });
}

void GraphBuilder::initialisers(const onnx::GraphProto &proto, const std::string &prefix) {
  auto add = [&](const std::string &name, auto &&read) {
    std::string place = where("initialiser" + (name.empty() ? "" : " '" + name + "'"));
    auto bound = [&]() -> Status {
      if (name.empty())
        return Diagnostic{Diag::BadGraph, place, "it has no name"};
      FUSEC_TRY(ConstantRef constant, read(place));
      if (isDefault(name))
        return defaults.emplace(name, std::move(constant)).second
                   ? success()
                   : Status(Diagnostic{Diag::BadGraph, place,
                                       "tensor '" + name + "' is defined a second time"});
      return bind(name, constantValue(std::move(constant), prefix + name), place);
    };
    if (!note(bound()))
      frame->scope->names.emplace(name, kPoisoned);
  };
  for (const auto &t : proto.initializer())
    add(t.name(), [&](const std::string &place) { return tensor(t, place); });
  for (const auto &t : proto.sparse_initializer())
    add(t.values().name(), [&](const std::string &place) { return sparseTensor(t, place); });
}

void GraphBuilder::noteBeyondLimit(const Node &node, const std::vector<DimExpr> &elements) {
  if (elements.empty() && symbolsBeyondLimit.empty())
    return;
  std::set<SymbolId> used = symbolsOf(elements);
  bool found = !elements.empty();
  for (ValueId id : node.inputs) {
    if (id < 0)
      continue;
    const Value &v = graph.value(id);
    std::set<SymbolId> more = symbolsOf(v.known);
    if (const std::set<SymbolId> *beyond = beyondLimit(id)) {
      found = true;
      more = *beyond;
    } else if (elements.empty() && !v.constant && v.known.empty()) {
      return;
    }
    used.merge(more);
  }
  if (found)
    symbolsBeyondLimit.emplace(node.outputs[0], std::move(used));
}

const std::set<SymbolId> *GraphBuilder::beyondLimit(ValueId id) const {
  auto found = symbolsBeyondLimit.find(id);
  return found == symbolsBeyondLimit.end() ? nullptr : &found->second;
}

} // namespace fusec
