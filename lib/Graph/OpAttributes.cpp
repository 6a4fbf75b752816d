#include "Graph/OpAttributes.h"

#include <array>

namespace fusec {

/// In the order of Attribute's alternatives.
static constexpr std::string_view kTypes[] = {"int",    "float",   "string", "ints",
                                              "floats", "strings", "dtype",  "constant"};

namespace {

/// The parts of "name:type(word|word)=value" or "name:type?"; `rest` is what stands behind it.
struct Entry {
  std::string_view name, type, words, value, rest;
  bool optional = false, hasValue = false;
};

constexpr Entry firstEntry(std::string_view text) {
  Entry e;
  size_t end = std::min(text.find(' '), text.size());
  e.rest = text.substr(std::min(end + 1, text.size()));
  text = text.substr(0, end);
  size_t colon = text.find(':');
  e.name = text.substr(0, colon);
  text.remove_prefix(colon == std::string_view::npos ? text.size() : colon + 1);
  if (size_t equals = text.find('='); equals != std::string_view::npos) {
    e.hasValue = true;
    e.value = text.substr(equals + 1);
    text = text.substr(0, equals);
  }
  if (text.ends_with('?')) {
    e.optional = true;
    text.remove_suffix(1);
  }
  if (text.ends_with(')')) {
    size_t open = text.find('(');
    e.words = text.substr(open + 1, text.size() - open - 2);
    text = text.substr(0, open);
  }
  e.type = text;
  return e;
}

constexpr size_t kindOf(std::string_view type) {
  size_t kind = 0;
  while (kind < std::size(kTypes) && kTypes[kind] != type)
    ++kind;
  return kind;
}

/// Values stand for numbers and strings, words for strings; an optional attribute has neither.
constexpr bool isWellFormed(std::string_view text) {
  while (!text.empty()) {
    Entry e = firstEntry(text);
    size_t kind = kindOf(e.type);
    if (e.name.empty() || kind == std::size(kTypes) || (e.hasValue && (kind > 2 || e.optional)) ||
        (!e.words.empty() && kind != 2))
      return false;
    text = e.rest;
  }
  return true;
}

#define FUSEC_OP(name, minIn, maxIn, minOut, maxOut, attributes)                                   \
  static_assert(isWellFormed(attributes), "the attributes of " #name);
#include "Graph/Ops.def"

/// A float's default is a float32 constant in ONNX's text.
Attribute valueOf(const Entry &e) {
  const std::string text(e.value);
  switch (kindOf(e.type)) {
  case 0: return static_cast<int64_t>(std::stoll(text));
  case 1: return static_cast<double>(std::stof(text));
  default: return text;
  }
}

std::vector<AttributeRule> read(std::string_view text) {
  std::vector<AttributeRule> rules;
  while (!text.empty()) {
    Entry e = firstEntry(text);
    AttributeRule rule{e.name, kindOf(e.type), e.optional, {}, std::nullopt};
    for (std::string_view words = e.words; !words.empty();) {
      size_t end = std::min(words.find('|'), words.size());
      rule.words.push_back(words.substr(0, end));
      words.remove_prefix(std::min(end + 1, words.size()));
    }
    if (e.hasValue)
      rule.fallback = valueOf(e);
    rules.push_back(std::move(rule));
    text = e.rest;
  }
  return rules;
}

} // namespace

const std::vector<AttributeRule> &attributeRules(OpKind op) {
  static const auto all = [] {
    std::array<std::vector<AttributeRule>, kNumOpKinds> list;
    for (size_t i = 0; i < list.size(); ++i)
      list[i] = read(info(static_cast<OpKind>(i)).attributes);
    return list;
  }();
  return all[static_cast<size_t>(op)];
}

} // namespace fusec
