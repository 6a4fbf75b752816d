#include "Onnx/Schemas.h"

#include <algorithm>
#include <charconv>

namespace fusec {
namespace {

struct Schema {
  std::string_view op, attributes;
};

constexpr Schema kSchemas[] = {
#define FUSEC_SCHEMA(op, attributes) {#op, attributes},
#include "Onnx/SchemaAttributes.def"
};

/// "first-last", either of which may be left out.
OpsetSpan parseSpan(std::string_view text) {
  OpsetSpan span;
  const size_t dash = text.find('-');
  std::from_chars(text.data(), text.data() + dash, span.first);
  std::from_chars(text.data() + dash + 1, text.data() + text.size(), span.last);
  return span;
}

} // namespace

std::optional<OpsetSpan> attributeSpan(std::string_view op, std::string_view attribute) {
  for (const Schema &schema : kSchemas) {
    if (schema.op != op)
      continue;
    for (std::string_view rest = schema.attributes; !rest.empty();) {
      std::string_view word = rest.substr(0, rest.find(' '));
      rest.remove_prefix(std::min(word.size() + 1, rest.size()));
      const size_t colon = word.find(':');
      if (word.substr(0, colon) == attribute)
        return colon == std::string_view::npos ? OpsetSpan{} : parseSpan(word.substr(colon + 1));
    }
  }
  return std::nullopt;
}

} // namespace fusec
