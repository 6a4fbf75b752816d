#include "Onnx/GraphBuilder.h"
#include "Onnx/DimTools.h"
#include "Onnx/Tensors.h"

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
  initialisers(proto, "");
  graphInputs(proto, scope);
  auto declared = declarations(proto); // refers to the sizes that inputs have named
  top.declared = &declared;
  bool usable = errors.empty();
  importNodes(proto.node());
  if (!errors.empty()) {
    // What nodes imply about the sizes does not help where an input or an initialiser was refused.
    foundBound = foundBound && usable;
    return std::move(errors);
  }
  FUSEC_CHECK(graphOutputs(proto, scope));
  FUSEC_CHECK(markOutputs(scope));
  for (const auto &[name, range] : options.dims)
    if (!sizes.count(name))
      return Diagnostic{Diag::BadOption, "--dim " + name,
                        "no input of the model has a dimension of this name"};
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
    if (o.version() < 1 || (domain.empty() && o.version() > 28))
      return bad("opset " + std::to_string(o.version()) + " of domain '" + o.domain() +
                 "' is not known; 1 to 28 are supported");
    if (!opsets.emplace(domain, static_cast<int>(std::min<int64_t>(o.version(), INT32_MAX))).second)
      return bad("domain '" + o.domain() + "' is imported twice");
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
    if (dim.has_dim_value())
      size = DimExpr(dim.dim_value());
    else if (auto named = sizes.find(dim.dim_param()); named != sizes.end())
      size = named->second;
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
  // Sizes given on the command line make the sizes in the file stale.
  if (!frame->declared || !options.shapes.empty())
    return nullptr;
  auto it = frame->declared->find(name);
  return it == frame->declared->end() ? nullptr : &it->second;
}

Result<ConstantRef> GraphBuilder::tensor(const onnx::TensorProto &t, const std::string &place) {
  if (auto it = memory.tensors.find(&t); it != memory.tensors.end())
    return it->second;
  // The data moves out of the message, which belongs to this builder's caller for the whole import.
  FUSEC_TRY(ConstantRef c,
            readTensor(const_cast<onnx::TensorProto &>(t), &files, options.limits, place));
  memory.tensors.emplace(&t, c);
  return c;
}

Result<ConstantRef> GraphBuilder::sparseTensor(const onnx::SparseTensorProto &t,
                                               const std::string &place) {
  if (auto it = memory.tensors.find(&t.values()); it != memory.tensors.end())
    return it->second;
  FUSEC_TRY(ConstantRef c, readSparseTensor(const_cast<onnx::SparseTensorProto &>(t), &files,
                                            options.limits, place));
  memory.tensors.emplace(&t.values(), c);
  return c;
}

void GraphBuilder::initialisers(const onnx::GraphProto &proto, const std::string &prefix) {
  auto add = [&](const std::string &name, auto &&read) {
    std::string place = where("initialiser" + (name.empty() ? "" : " '" + name + "'"));
    auto bound = [&]() -> Status {
      if (name.empty())
        return Diagnostic{Diag::BadGraph, place, "it has no name"};
      FUSEC_TRY(ConstantRef constant, read(place));
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

Status GraphBuilder::checkDeclared(ValueId id, const DeclaredType &declared,
                                   const std::string &name) {
  const Value &v = graph.value(id);
  bool wrong = declared.type && *declared.type != v.type;
  if (options.shapes.empty() && declared.hasShape) {
    wrong = wrong || declared.dims.size() != v.shape.size();
    for (size_t i = 0; !wrong && i < v.shape.size(); ++i)
      wrong = declared.dims[i] && declared.dims[i]->isConst() && v.shape[i].isConst() &&
              *declared.dims[i] != v.shape[i];
  }
  if (!wrong)
    return success();
  std::string dims;
  for (size_t i = 0; i < declared.dims.size(); ++i)
    dims += (i ? "," : "") +
            (declared.dims[i] ? declared.dims[i]->str(graph.symbols) : std::string("?"));
  return Diagnostic{Diag::ShapeMismatch, where("output '" + name + "'"),
                    "the model declares " +
                        (declared.type ? std::string(fusec::name(*declared.type)) : "?") + "[" +
                        dims + "], its nodes make " + typeText(v, graph.symbols)};
}

Status GraphBuilder::graphOutputs(const onnx::GraphProto &proto, const NameScope &scope) {
  if (proto.output_size() == 0)
    return Diagnostic{Diag::BadGraph, path, "the graph has no outputs"};
  std::set<ValueId> taken(graph.body.inputs.begin(), graph.body.inputs.end());
  std::set<std::string_view> listed;
  for (const auto &output : proto.output()) {
    if (!listed.insert(output.name()).second)
      return Diagnostic{Diag::BadGraph, where("output '" + output.name() + "'"),
                        "is listed twice; give the copy a name of its own with an Identity node"};
    auto it = scope.names.find(output.name());
    if (it == scope.names.end() || output.name().empty())
      return Diagnostic{Diag::BadGraph, where("output '" + output.name() + "'"),
                        "no node makes it"};
    ValueId id = it->second;
    FUSEC_CHECK(checkDeclared(id, readType(output.type()), output.name()));
    Value &v = graph.value(id);
    if (v.name != output.name() && !taken.count(id) && !v.constant && mainName(output.name()))
      v.name = output.name();
    bool isInput = std::find(graph.body.inputs.begin(), graph.body.inputs.end(), id) !=
                   graph.body.inputs.end();
    if (v.constant || (v.name != output.name() && !isInput) ||
        (isInput && v.name != output.name())) {
      // An output is a value with the output's name: copy where the value has another one already.
      Node copy;
      copy.op = OpKind::Identity;
      copy.name = "output_" + output.name();
      copy.onnxOp = "Identity";
      copy.inputs = {id};
      if (v.constant && v.name == output.name()) {
        v.name = uniqueName(output.name());
        mainNames.insert(output.name());
      }
      DType type = v.type;
      Shape shape = v.shape;
      id = mainValue(output.name(), type, std::move(shape));
      copy.outputs = {id};
      graph.body.nodes.push_back(std::move(copy));
    }
    taken.insert(id);
    graph.body.outputs.push_back(id);
  }
  return success();
}

Status GraphBuilder::markOutputs(const NameScope &scope) {
  for (const std::string &name : options.markOutputs) {
    ValueId id = kNoValue;
    if (auto it = scope.names.find(name); it != scope.names.end())
      id = it->second;
    for (const Node &n : graph.body.nodes)
      for (ValueId out : n.outputs)
        if (id == kNoValue && out != kNoValue && graph.value(out).name == name)
          id = out;
    if (id == kNoValue || graph.value(id).constant)
      return Diagnostic{Diag::BadOption, "--mark-output " + name,
                        "no node of the main graph computes a tensor of this name"};
    auto &outputs = graph.body.outputs;
    if (std::find(outputs.begin(), outputs.end(), id) == outputs.end())
      outputs.push_back(id);
  }
  return success();
}

} // namespace fusec
