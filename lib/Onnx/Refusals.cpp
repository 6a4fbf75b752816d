#include "Onnx/GraphBuilder.h"

#include <algorithm>

// Errors of nodes, told once for all nodes that have operator and reason in common.

namespace fusec {

std::string GraphBuilder::describe(const std::vector<ValueId> &inputs) const {
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i) {
    text += i ? ", " : "";
    text += inputs[i] >= 0          ? typeText(graph.value(inputs[i]), graph.symbols)
            : inputs[i] == kNoValue ? "absent"
                                    : "unknown";
  }
  return text;
}

/// Where the text turns to the types of one node's operands, which the reason does not depend on.
static size_t operandsAt(const std::string &text) {
  return std::min({text.find("; the inputs are ("), text.find("; its inputs are ("), text.size()});
}

std::optional<SizeRule> GraphBuilder::firstRefusal() const {
  for (const Diagnostic &d : errors) {
    const auto place = nodePlaces.find(d.where);
    if (place == nodePlaces.end())
      continue;
    const auto &[name, kind] = place->second; // "(Conv, opset 18)"
    SizeRule rule;
    rule.node = name;
    rule.op = kind.substr(1, kind.find(',') - 1);
    rule.text = "no size may be 0, since else " + d.text.substr(0, d.text.find(';'));
    return rule;
  }
  return std::nullopt;
}

Diagnostics GraphBuilder::groupedRefusals() const {
  struct Group {
    Diagnostic first;
    const NodePlace *place;
    std::vector<std::string> names;
  };
  std::vector<Group> groups;
  std::map<std::string, size_t> known;
  for (const Diagnostic &d : errors) {
    auto place = nodePlaces.find(d.where);
    if (place == nodePlaces.end()) {
      groups.push_back({d, nullptr, {}});
      continue;
    }
    std::string key =
        std::string(code(d.id)) + place->second.kind + d.text.substr(0, operandsAt(d.text));
    auto [it, isNew] = known.emplace(std::move(key), groups.size());
    if (isNew)
      groups.push_back({d, &place->second, {}});
    groups[it->second].names.push_back("'" + place->second.name + "'");
  }
  Diagnostics list;
  for (Group &g : groups) {
    size_t count = g.names.size();
    if (count > 1) {
      std::string names =
          g.names[0] + (count > 2 ? ", " + g.names[1] : "") + " and " + g.names[count > 2 ? 2 : 1];
      g.first.where = where(std::to_string(count) + " nodes " + g.place->kind +
                            (count > 3 ? ", the first of them " : ", ") + names);
      size_t at = operandsAt(g.first.text);
      if (at < g.first.text.size())
        g.first.text.replace(at, g.first.text.find(" are (", at) - at, "; the inputs of the first");
    }
    list.push_back(std::move(g.first));
  }
  return list;
}

} // namespace fusec
