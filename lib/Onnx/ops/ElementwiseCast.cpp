#include "Onnx/Compose.h"
#include "Onnx/OpTable.h"
#include "Support/Diag.h"

// Operators that change the element type.

namespace fusec {
namespace {

Status cast(NodeImporter &n) {
  DType to;
  if (n.op() == "CastLike") {
    to = n.type(1);
  } else if (n.opset() < 6) {
    std::string text = n.attrString("to", "");
    static const std::map<std::string, DType> names = {
        {"FLOAT", DType::F32},  {"DOUBLE", DType::F64},  {"INT32", DType::I32},
        {"INT64", DType::I64},  {"FLOAT16", DType::F16}, {"BOOL", DType::Bool},
        {"INT8", DType::I8},    {"UINT8", DType::U8},    {"INT16", DType::I16},
        {"UINT16", DType::U16}, {"UINT32", DType::U32},  {"UINT64", DType::U64}};
    auto it = names.find(text);
    if (it == names.end())
      return n.fail(Diag::BadAttribute, "'to' is '" + text + "', which is no element type");
    to = it->second;
  } else {
    if (!n.hasAttribute("to"))
      return n.fail(Diag::BadAttribute, "attribute 'to' is missing");
    auto type = n.attrType("to");
    if (!type)
      return success(); // recorded in n.errors
    to = *type;
  }
  int64_t saturate = n.attrInt("saturate", 1);
  n.attrString("round_mode", "up"); // of float8e8m0 only
  if (to == n.type(0) && !n.in(0).constant)
    return n.finish(OpKind::Identity, {n.id(0)});
  if (to == n.type(0)) {
    n.result(0, n.id(0));
    return success();
  }
  return n.finish(OpKind::Cast, {n.id(0)}, {{"to", to}, {"saturate", saturate}});
}

/// A bool is a byte of 0 or 1, and true what is not 0.
Status bitCast(NodeImporter &n) {
  if (!n.hasAttribute("to"))
    return n.fail(Diag::BadAttribute, "attribute 'to' is missing");
  auto to = n.attrType("to");
  if (!to)
    return success(); // recorded in n.errors
  const DType from = n.type(0);
  if (sizeInBytes(from) != sizeInBytes(*to))
    return n.mismatch("'to' is " + std::string(name(*to)) +
                      ", whose width is another than that of " + std::string(name(from)));
  if (from == *to)
    return n.finish(OpKind::Identity, {n.id(0)});
  Compose c(n);
  ValueId x = from == DType::Bool ? c.cast(n.id(0), DType::U8) : n.id(0);
  const DType bits = *to == DType::Bool ? DType::U8 : *to;
  if (n.typeOf(x) != bits)
    x = c.like(OpKind::BitCast, {x}, {{"to", bits}});
  n.result(0, c.cast(x, *to));
  return success();
}

constexpr OpRow kRows[] = {
    {"BitCast", 26, kNewestOpset, 1, 1, 1, bitCast},
    {"Cast", 1, kNewestOpset, 1, 1, 1, cast},
    {"CastLike", 15, kNewestOpset, 2, 2, 1, cast},
};

} // namespace

std::span<const OpRow> elementwiseCastOps() { return kRows; }

} // namespace fusec
