#include "Onnx/DimTools.h"
#include "Onnx/GraphBuilder.h"
#include "Onnx/Tensors.h"

#include <algorithm>

// The inputs of the main graph and the names of their symbolic sizes.

namespace fusec {

/// The names that the dims of `graph` and its subgraphs have. WireScan bounds the nesting.
static void collectDimNames(const onnx::GraphProto &graph, std::set<std::string> &names) {
  for (const auto *list : {&graph.input(), &graph.output(), &graph.value_info()})
    for (const auto &value : *list)
      for (const auto &dim : value.type().tensor_type().shape().dim())
        if (!dim.dim_param().empty())
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

void GraphBuilder::graphInputs(const onnx::GraphProto &proto, NameScope &scope) {
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
    if (scope.names.count(name))
      continue; // an initialiser of the same name is its default value, which we take as fixed
    if (!note(graphInput(input)))
      scope.names.emplace(name, kPoisoned);
  }
  for (const std::string &name : unusedShapes)
    errors.push_back({Diag::BadOption, "--shape " + name, "the model has no input of this name"});
}

Status GraphBuilder::graphInput(const onnx::ValueInfoProto &input) {
  const std::string &name = input.name();
  std::string place = where("input '" + name + "'");
  if (!input.type().has_tensor_type())
    return Diagnostic{Diag::UnsupportedType, place, "only tensors are supported as inputs"};
  const auto &tensor = input.type().tensor_type();
  auto type = dtypeOfOnnx(tensor.elem_type());
  if (!type)
    return Diagnostic{tensor.elem_type() == 0 ? Diag::BadGraph : Diag::UnsupportedType, place,
                      "element type " + onnxTypeName(tensor.elem_type()) + " is not supported"};
  auto given = options.shapes.find(name);
  FUSEC_TRY(Shape shape, given == options.shapes.end() ? declaredShape(input, place)
                                                       : givenShape(tensor, name, given->second));
  if (std::string size = tooLarge(*type, shape, graph.symbols, options.limits); !size.empty())
    return Diagnostic{Diag::LimitExceeded, place, size};
  ValueId id = mainValue(name, *type, std::move(shape));
  graph.body.inputs.push_back(id);
  return bind(name, id, place);
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
      continue;
    }
    const auto &symbol = std::get<std::string>(e);
    if (!isIdentifier(symbol) && !dimNames.count(symbol))
      return bad("'" + symbol +
                 "' is neither a size nor a name (letters, digits, _); a range is given to a name: "
                 "--shape " +
                 name + ":[b,...] --dim b=1..4");
    shape.push_back(sizeNamed(symbol));
  }
  return shape;
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
    if (dim.has_dim_value()) {
      if (dim.dim_value() < 0 || dim.dim_value() > (int64_t(1) << 48))
        return Diagnostic{Diag::BadGraph, place,
                          "dimension " + std::to_string(dim.dim_value()) + " is not a size"};
      shape.push_back(dim.dim_value());
      continue;
    }
    std::string symbol = dim.dim_param();
    if (symbol.empty()) {
      // A name of the model's would make the two sizes equal.
      symbol = input.name() + "_d" + std::to_string(shape.size());
      while (dimNames.count(symbol))
        symbol += "_";
    }
    shape.push_back(sizeNamed(symbol));
  }
  return shape;
}

} // namespace fusec
