#include "Onnx/DimTools.h"
#include "Onnx/GraphBuilder.h"
#include "Onnx/Tensors.h"
#include "Onnx/ValueText.h"
#include "Support/Diag.h"
#include "Support/NamedText.h"
#include "Support/TypeText.h"

#include <algorithm>

// The inputs of the main graph and the names of their symbolic sizes.

namespace fusec {

/// Exporters write "?" for sizes that they do not know: no two of them are one.
static bool isName(const std::string &size) { return !size.empty() && size != "?"; }

/// The names that the dims of `graph` and its subgraphs have. WireScan bounds the nesting.
static void collectDimNames(const onnx::GraphProto &graph, std::set<std::string> &names) {
  for (const auto *list : {&graph.input(), &graph.output(), &graph.value_info()})
    for (const auto &value : *list)
      for (const auto &dim : value.type().tensor_type().shape().dim())
        if (isName(dim.dim_param()))
          names.insert(dim.dim_param());
  for (const auto &node : graph.node())
    for (const auto &a : node.attribute()) {
      if (a.has_g())
        collectDimNames(a.g(), names);
      for (const auto &g : a.graphs())
        collectDimNames(g, names);
    }
}

static bool isIdentifier(std::string_view name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9');
  });
}

std::set<std::string> GraphBuilder::graphInputs(const onnx::GraphProto &proto, NameScope &scope) {
  collectDimNames(proto, dimNames);
  std::set<std::string> unusedShapes, seen;
  for (const auto &[name, shape] : options.shapes)
    unusedShapes.insert(name);
  for (const auto &input : proto.input()) {
    const std::string &name = input.name();
    unusedShapes.erase(name);
    if (!seen.insert(name).second) {
      errors.push_back({Diag::BadGraph, where("input '" + name + "'"), "is listed twice"});
      continue;
    }
    if (auto set = setInputs.find(name); set != setInputs.end()) {
      scope.names[name] = constantValue(set->second, name);
      continue;
    }
    if (auto initialiser = scope.names.find(name); initialiser != scope.names.end()) {
      if (initialiser->second >= 0) // else refused
        note(constantInput(input, *graph.value(initialiser->second).constant));
      continue;
    }
    if (!note(graphInput(input)))
      scope.names.emplace(name, kPoisoned);
  }
  return unusedShapes;
}

/// "'a', 'b' and 20 more"; few enough to read.
static std::string listed(const std::vector<std::string> &names) {
  constexpr size_t kMost = 20;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i)
    text += (i ? ", '" : "'") + names[i] + "'";
  return names.size() > kMost ? text + " and " + std::to_string(names.size() - kMost) + " more"
                              : text;
}

Status GraphBuilder::checkOptions(const onnx::GraphProto &proto,
                                  const std::set<std::string> &unknownInputs) {
  Diagnostics bad;
  for (const Diagnostic &d : errors)
    if (d.id == Diag::BadOption)
      bad.push_back(d);
  std::vector<std::string> inputs;
  for (const auto &input : proto.input())
    if (auto it = frame->scope->names.find(input.name());
        it != frame->scope->names.end() && (it->second < 0 || !graph.value(it->second).constant))
      inputs.push_back(input.name());
  for (const std::string &name : unknownInputs)
    bad.push_back({Diag::BadOption, "--shape " + name,
                   "the model has no input of this name; its inputs are " + listed(inputs)});
  if (bad.empty())
    return success();
  // Behind the nodes comes nothing then; a name like "y_d0" may be a size that these make.
  for (const Diagnostic &d : unknownDims())
    if (!mayNameSize(d.where))
      bad.push_back(d);
  return bad;
}

Diagnostics GraphBuilder::unknownDims() const {
  std::vector<std::string> named;
  for (const auto &[name, size] : sizes)
    named.push_back(name);
  for (const Symbol &s : graph.symbols)
    if (s.isDataDependent())
      named.push_back(s.name);
  Diagnostics bad;
  for (const auto &[name, range] : options.dims)
    if (std::find(named.begin(), named.end(), name) == named.end())
      bad.push_back({Diag::BadOption, "--dim " + name,
                     "no input of the model has a size of this name; " +
                         (named.empty() ? "all of them are fixed, which --shape can change"
                                        : "names are " + listed(named))});
  return bad;
}

Status GraphBuilder::readSetInputs(const onnx::GraphProto &proto) {
  std::vector<std::string> names;
  for (const auto &input : proto.input())
    names.push_back(input.name());
  for (const std::string &text : options.setInputs) {
    auto bad = [&](std::string what) {
      return Diagnostic{Diag::BadOption, "--set-input " + text, std::move(what)};
    };
    const auto pair = splitNamed(text, names);
    if (!pair)
      return bad("expected NAME=VALUE, where VALUE is a number, a list such as [1,2] or @FILE.npy");
    const auto at = std::find(names.begin(), names.end(), pair->first);
    if (at == names.end())
      return bad("the model has no input '" + pair->first + "'" +
                 (names.empty() ? "" : "; its inputs are " + listed(names)));
    if (setInputs.count(pair->first))
      return bad("the input '" + pair->first + "' is given twice");
    FUSEC_CHECK(readSetInput(proto.input(static_cast<int>(at - names.begin())), pair->second));
  }
  return success();
}

Status GraphBuilder::readSetInput(const onnx::ValueInfoProto &input, const std::string &value) {
  const std::string place = "--set-input " + input.name() + "=" + value;
  auto bad = [&](std::string what) { return Diagnostic{Diag::BadOption, place, std::move(what)}; };
  const auto &tensor = input.type().tensor_type();
  const auto type = dtypeOfOnnx(tensor.elem_type());
  if (!type)
    return bad("the input has elements of type " + onnxTypeName(tensor.elem_type()) +
               ", which is not supported");
  // A size is fixed, or has a name, or neither.
  std::vector<ShapeEntry> dims;
  const auto given = options.shapes.find(input.name());
  const bool hasShape = given != options.shapes.end() || tensor.has_shape();
  if (given != options.shapes.end())
    dims = given->second;
  else
    for (const auto &dim : tensor.shape().dim())
      dims.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? ShapeEntry(dim.dim_value())
                                                                 : ShapeEntry(dim.dim_param()));
  const bool isFile = value[0] == '@';
  ConstantRef constant;
  if (isFile) {
    FUSEC_TRY(constant, readTensorFile(value.substr(1), *type, options.limits));
  } else {
    FUSEC_TRY(constant, readValueText(value, *type, options.limits, place));
  }
  const bool isOne = std::all_of(dims.begin(), dims.end(),
                                 [](const ShapeEntry &e) { return e == ShapeEntry(int64_t(1)); });
  if (!isFile && constant->dims.empty() && isOne) // a number alone serves [1] and [1,1] too
    constant = makeConstantView(*type, std::vector<int64_t>(dims.size(), 1), constant->bytes,
                                constant->sizeBytes, constant);
  bool fits = !hasShape || dims.size() == constant->dims.size();
  for (size_t d = 0; fits && hasShape && d < dims.size(); ++d)
    fits = std::holds_alternative<std::string>(dims[d]) || dims[d] == ShapeEntry(constant->dims[d]);
  if (constant->type != *type || !fits) {
    std::string wanted;
    for (const ShapeEntry &e : dims)
      wanted += (wanted.empty() ? "" : ",") +
                (std::holds_alternative<int64_t>(e) ? std::to_string(std::get<int64_t>(e))
                 : std::get<std::string>(e).empty() ? "?"
                                                    : std::get<std::string>(e));
    const Shape shape(constant->dims.begin(), constant->dims.end());
    return bad("the input is " + std::string(fusec::name(*type)) +
               (hasShape ? "[" + wanted + "]" : " of any shape") + ", given is " +
               typeText(constant->type, shape, {}));
  }
  for (size_t d = 0; d < dims.size(); ++d)
    if (const auto *name = std::get_if<std::string>(&dims[d]); name && isName(*name))
      FUSEC_CHECK(fixSize(*name, constant->dims[d], place));
  setInputs.emplace(input.name(), std::move(constant));
  return success();
}

Status GraphBuilder::fixSize(const std::string &name, int64_t size, const std::string &place) {
  auto bad = [&](std::string what) {
    return Diagnostic{Diag::BadOption, place,
                      "gives '" + name + "' the size " + std::to_string(size) + ", " +
                          std::move(what)};
  };
  if (auto range = options.dims.find(name);
      range != options.dims.end() &&
      (size < range->second.min || size > range->second.max || size % range->second.divisor != 0))
    return bad("which --dim does not allow");
  const auto [known, isNew] = sizes.emplace(name, size);
  if (!isNew && !known->second.isConst(size))
    return bad("another --set-input gives it " + known->second.str({}));
  return success();
}

Status GraphBuilder::graphInput(const onnx::ValueInfoProto &input) {
  const std::string &name = input.name();
  std::string place = where("input '" + name + "'");
  const auto &tensor = input.type().tensor_type();
  const auto value = defaults.find(name);
  const bool hasDefault = value != defaults.end();
  FUSEC_TRY(std::optional<Shape> shape,
            shapeOption(input, hasDefault ? value->second.get() : nullptr));
  if (hasDefault &&
      (!shape || *shape == Shape(value->second->dims.begin(), value->second->dims.end())))
    return defaultInput(input, value->second);
  if (!input.type().has_tensor_type())
    return Diagnostic{Diag::UnsupportedType, place, "only tensors are supported as inputs"};
  auto type = dtypeOfOnnx(tensor.elem_type());
  if (!type)
    return Diagnostic{tensor.elem_type() == 0 ? Diag::BadGraph : Diag::UnsupportedType, place,
                      "element type " + onnxTypeName(tensor.elem_type()) + " is not supported"};
  if (!shape) {
    FUSEC_TRY(shape, declaredShape(input, place));
  }
  if (std::string size = tooLarge(*type, *shape, graph.symbols, options.limits); !size.empty())
    return Diagnostic{Diag::LimitExceeded, place, size};
  ValueId id = mainValue(name, *type, std::move(*shape));
  if (hasDefault)
    loseDefault(id, *value->second);
  graph.body.inputs.push_back(id);
  return bind(name, id, place);
}

Result<std::optional<Shape>> GraphBuilder::shapeOption(const onnx::ValueInfoProto &input,
                                                       const Constant *initialiser) {
  const auto given = options.shapes.find(input.name());
  if (given == options.shapes.end())
    return std::optional<Shape>();
  const auto &tensor = input.type().tensor_type();
  // An initialiser of another rank contradicts what the model declares, and holds.
  const bool isVoid =
      initialiser && tensor.shape().dim_size() != static_cast<int>(initialiser->dims.size());
  FUSEC_TRY(Shape shape, givenShape(isVoid ? onnx::TypeProto_Tensor::default_instance() : tensor,
                                    input.name(), given->second));
  return std::optional(std::move(shape));
}

Status GraphBuilder::constantInput(const onnx::ValueInfoProto &input, const Constant &value) {
  FUSEC_TRY(std::optional<Shape> shape, shapeOption(input, &value));
  const Shape own(value.dims.begin(), value.dims.end());
  if (!shape || *shape == own)
    return success();
  return Diagnostic{Diag::BadOption, "--shape " + input.name(),
                    "gives " + typeText(value.type, *shape, graph.symbols) +
                        ", but the input is a constant, its initialiser of the type " +
                        typeText(value.type, own, graph.symbols) + "; " +
                        (options.constantInitialisers
                             ? "leave out --constant-initializers, and it is an input of that shape"
                             : "leave out --shape, or give the model IR version 4, in which such "
                               "an initialiser is a default value")};
}

Result<Shape> GraphBuilder::givenShape(const onnx::TypeProto_Tensor &type, const std::string &name,
                                       const std::vector<ShapeEntry> &entries) {
  auto bad = [&](std::string text) {
    return Diagnostic{Diag::BadOption, "--shape " + name, std::move(text)};
  };
  if (type.has_shape() && type.shape().dim_size() != static_cast<int>(entries.size()))
    return bad("gives " + std::to_string(entries.size()) + " dimensions; the model has " +
               std::to_string(type.shape().dim_size()));
  Shape shape;
  for (const ShapeEntry &e : entries) {
    if (const auto *n = std::get_if<int64_t>(&e)) {
      shape.push_back(*n);
      replaceSize(type, shape);
      continue;
    }
    const auto &symbol = std::get<std::string>(e);
    if (!isIdentifier(symbol) && !dimNames.count(symbol))
      return bad("'" + symbol +
                 "' is neither a size nor a name (letters, digits, _); a range is given to a name: "
                 "--shape " +
                 name + ":[b,...] --dim b=1..4");
    dimPlaces[symbol].push_back({name, static_cast<int64_t>(shape.size())});
    shape.push_back(sizeNamed(symbol));
    replaceSize(type, shape);
  }
  return shape;
}

void GraphBuilder::replaceSize(const onnx::TypeProto_Tensor &type, const Shape &given) {
  if (!type.has_shape())
    return;
  const auto &dim = type.shape().dim(static_cast<int>(given.size()) - 1);
  if (dim.has_dim_value() && dim.dim_value() != -1)
    staleSizes = staleSizes || given.back() != DimExpr(dim.dim_value());
  if (!isName(dim.dim_param()))
    return;
  auto [it, isNew] = givenSizes.emplace(dim.dim_param(), given.back());
  if (!isNew && it->second != given.back())
    it->second = std::nullopt;
}

Result<Shape> GraphBuilder::declaredShape(const onnx::ValueInfoProto &input,
                                          const std::string &place) {
  const auto &type = input.type().tensor_type();
  if (!type.has_shape())
    return Diagnostic{Diag::UnsupportedShape, place,
                      "the model does not give its shape; pass --shape " + input.name() + ":AxBxC"};
  if (type.shape().dim_size() > options.limits.rank)
    return Diagnostic{Diag::LimitExceeded, place,
                      "rank " + std::to_string(type.shape().dim_size())};
  Shape shape;
  for (const auto &dim : type.shape().dim()) {
    if (dim.has_dim_value() && dim.dim_value() != -1) { // -1 is no size, as exporters mean it
      if (dim.dim_value() < 0 || dim.dim_value() > (int64_t(1) << 48))
        return Diagnostic{Diag::BadGraph, place,
                          "dimension " + std::to_string(dim.dim_value()) + " is not a size"};
      shape.push_back(dim.dim_value());
      continue;
    }
    std::string symbol = dim.dim_param();
    if (!isName(dim.dim_param())) {
      // A name of the model's would make the two sizes equal.
      symbol = nameOfSize(input.name(), shape.size());
      while (dimNames.count(symbol))
        symbol += "_";
    }
    dimPlaces[symbol].push_back({input.name(), static_cast<int64_t>(shape.size())});
    shape.push_back(sizeNamed(symbol));
  }
  return shape;
}

} // namespace fusec
