#include "Onnx/GraphBuilder.h"
#include "Onnx/DimTools.h"
#include "Onnx/Tensors.h"
#include "Support/Diag.h"
#include "Support/TunedSizes.h"

#include <numeric>

namespace fusec {

GraphBuilder::GraphBuilder(const std::string &path, const ImportOptions &options,
                           ImportMemory &memory)
    : options(options), path(path), files(path, options.outputPath), memory(memory) {}

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
  usable = errors.empty();
  importNodes(proto.node());
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
  s.opt = static_cast<int64_t>(SymbolKind::Any);
  if (auto range = options.dims.find(name); range != options.dims.end())
    s = range->second;
  if (auto implied = memory.implied.find(name); implied != memory.implied.end())
    s = implied->second;
  s.name = name;
  if (s.min == s.max)
    return sizes.emplace(name, s.min).first->second;
  graph.symbols.push_back(std::move(s));
  return sizes.emplace(name, DimExpr::symbol(static_cast<SymbolId>(graph.symbols.size() - 1)))
      .first->second;
}

std::optional<std::string> GraphBuilder::noteImpliedBound(const DimExpr &a, const DimExpr &b) {
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
    noteImplied(*plain, [&](Symbol &s) { s.max = std::min(s.max, bound); });
  }
  return std::nullopt;
}

/// Multiples of the divisor only: the range shrinks to them. False where none is left.
static bool roundToDivisor(Symbol &s) {
  int64_t rest = s.min % s.divisor;
  if (rest && __builtin_add_overflow(s.min, s.divisor - rest, &s.min))
    return false;
  s.max -= s.max == INT64_MAX ? 0 : s.max % s.divisor;
  if (!kindOf(s))
    s.opt = std::max(s.min, std::min(s.max, s.opt) / s.divisor * s.divisor);
  return s.min <= s.max;
}

bool GraphBuilder::noteImplied(const DimExpr &size, const std::function<void(Symbol &)> &restrict) {
  if (size.op() != DimExpr::Op::Symbol)
    return false;
  const Symbol &now = graph.symbols[static_cast<size_t>(size.symbolId())];
  Symbol s = now;
  restrict(s);
  bool narrower = s.min != now.min || s.max != now.max || s.divisor != now.divisor;
  if (!narrower || !roundToDivisor(s))
    return false;
  memory.implied[s.name] = std::move(s);
  foundBound = true;
  return true;
}

bool GraphBuilder::noteImpliedMin(const DimExpr &size, int64_t least) {
  return noteImplied(size, [&](Symbol &s) { s.min = std::max(s.min, least); });
}

bool GraphBuilder::noteImpliedDivisor(const DimExpr &size, int64_t divisor) {
  return noteImplied(size, [&](Symbol &s) {
    int64_t common;
    if (!__builtin_mul_overflow(s.divisor / std::gcd(s.divisor, divisor), divisor, &common))
      s.divisor = common;
  });
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
  for (const auto &v : proto.output())
    map[v.name()] = readType(v.type());
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
