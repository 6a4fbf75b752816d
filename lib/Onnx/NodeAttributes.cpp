#include "Onnx/GraphBuilder.h"
#include "Onnx/NodeImporter.h"
#include "Onnx/Schemas.h"
#include "Onnx/Tensors.h"
#include "Support/Diag.h"

#include <algorithm>

// The attribute accessors of NodeImporter.

namespace fusec {

using onnx::AttributeProto;

void NodeImporter::attributeError(const std::string &key, const std::string &text) {
  errors.push_back(fail(Diag::BadAttribute, "attribute '" + key + "' " + text));
}

const AttributeProto *NodeImporter::attribute(const std::string &key, int type) {
  used.push_back(key);
  auto it = attributes.find(key);
  if (it == attributes.end())
    return nullptr;
  const AttributeProto *a = it->second;
  int given = a->type();
  if (given == AttributeProto::UNDEFINED) { // IR version 1 left the type out
    given = a->has_f()          ? AttributeProto::FLOAT
            : a->has_i()        ? AttributeProto::INT
            : a->has_s()        ? AttributeProto::STRING
            : a->has_t()        ? AttributeProto::TENSOR
            : a->has_g()        ? AttributeProto::GRAPH
            : a->floats_size()  ? AttributeProto::FLOATS
            : a->ints_size()    ? AttributeProto::INTS
            : a->strings_size() ? AttributeProto::STRINGS
                                : type;
  }
  if (given != type) {
    auto kind = [](int t) {
      std::string text = onnx::AttributeProto_AttributeType_Name(
          static_cast<onnx::AttributeProto_AttributeType>(t));
      std::transform(text.begin(), text.end(), text.begin(),
                     [](char c) { return static_cast<char>(std::tolower(c)); });
      return text;
    };
    attributeError(key, "must be of type " + kind(type) + ", not " + kind(given));
    return nullptr;
  }
  return a;
}

int64_t NodeImporter::attrInt(const std::string &key, std::optional<int64_t> defaultValue) {
  const AttributeProto *a = attribute(key, AttributeProto::INT);
  if (!a && !defaultValue && !hasAttribute(key))
    attributeError(key, "is missing");
  return a ? a->i() : defaultValue.value_or(0);
}

double NodeImporter::attrFloat(const std::string &key, std::optional<double> defaultValue) {
  const AttributeProto *a = attribute(key, AttributeProto::FLOAT);
  if (!a && !defaultValue && !hasAttribute(key))
    attributeError(key, "is missing");
  return a ? static_cast<double>(a->f()) : defaultValue.value_or(0);
}

std::string NodeImporter::attrString(const std::string &key, const std::string &defaultValue) {
  const AttributeProto *a = attribute(key, AttributeProto::STRING);
  return a ? a->s() : defaultValue;
}

std::vector<int64_t> NodeImporter::attrInts(const std::string &key,
                                            std::vector<int64_t> defaultValue) {
  const AttributeProto *a = attribute(key, AttributeProto::INTS);
  return a ? std::vector<int64_t>(a->ints().begin(), a->ints().end()) : defaultValue;
}

std::vector<double> NodeImporter::attrFloats(const std::string &key) {
  const AttributeProto *a = attribute(key, AttributeProto::FLOATS);
  return a ? std::vector<double>(a->floats().begin(), a->floats().end()) : std::vector<double>{};
}

std::vector<std::string> NodeImporter::attrStrings(const std::string &key,
                                                   std::vector<std::string> defaultValue) {
  const AttributeProto *a = attribute(key, AttributeProto::STRINGS);
  return a ? std::vector<std::string>(a->strings().begin(), a->strings().end()) : defaultValue;
}

std::optional<DType> NodeImporter::attrType(const std::string &key) {
  const AttributeProto *a = attribute(key, AttributeProto::INT);
  if (!a)
    return std::nullopt;
  if (a->i() < 0 || a->i() > INT32_MAX ||
      !onnx::TensorProto_DataType_IsValid(static_cast<int>(a->i()))) {
    attributeError(key, "is " + std::to_string(a->i()) + ", which is no element type");
    return std::nullopt;
  }
  auto type = dtypeOfOnnx(static_cast<int32_t>(a->i()));
  if (!type)
    errors.push_back(
        fail(Diag::UnsupportedType, "element type " + onnxTypeName(static_cast<int32_t>(a->i())) +
                                        " of attribute '" + key + "' is not supported"));
  return type;
}

ConstantRef NodeImporter::read(Result<ConstantRef> c) {
  if (c.ok())
    return *c;
  errors.insert(errors.end(), c.errors().begin(), c.errors().end());
  return nullptr;
}

ConstantRef NodeImporter::attrTensor(const std::string &key) {
  const AttributeProto *a = attribute(key, AttributeProto::TENSOR);
  return a ? read(builder.tensor(a->t(), attributePlace(key))) : nullptr;
}

ConstantRef NodeImporter::attrSparseTensor(const std::string &key) {
  const AttributeProto *a = attribute(key, AttributeProto::SPARSE_TENSOR);
  return a ? read(builder.sparseTensor(a->sparse_tensor(), attributePlace(key))) : nullptr;
}

std::string NodeImporter::attributePlace(const std::string &key) const {
  return builder.where("attribute '" + key + "' of node '" + nodeName + "'");
}

const onnx::GraphProto *NodeImporter::attrGraph(const std::string &key) {
  const AttributeProto *a = attribute(key, AttributeProto::GRAPH);
  if (!a && !hasAttribute(key))
    attributeError(key, "is missing");
  return a ? &a->g() : nullptr;
}

std::string NodeImporter::unusedAttribute() const {
  for (const auto &[key, value] : attributes)
    if (std::find(used.begin(), used.end(), key) == used.end())
      return key;
  return "";
}

Diagnostic NodeImporter::unreadAttribute(const std::string &key) const {
  auto span = attributeSpan(opType, key);
  if (!span)
    return fail(Diag::BadAttribute, "the operator has no attribute '" + key + "'");
  if (opsetVersion > span->last)
    return fail(Diag::BadAttribute, "the operator has no attribute '" + key + "' since opset " +
                                        std::to_string(span->last + 1));
  std::string text = "attribute '" + key + "' is not supported";
  if (opsetVersion < span->first)
    text += " before opset " + std::to_string(span->first) + ", which adds it";
  return fail(Diag::UnsupportedOp, text);
}

} // namespace fusec
