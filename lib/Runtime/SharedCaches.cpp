#include "Runtime/SharedCaches.h"

namespace fusec::rt {

std::string shareCaches(const bundle::Model &model, int64_t rows, std::vector<int64_t> &values) {
  const std::vector<int64_t> dense = values;
  auto rowsOf = [&](const bundle::Value &value, int32_t axis) {
    return value.shape[static_cast<size_t>(axis)].evaluate(dense).value_or(-1);
  };
  for (const bundle::Cache &c : model.caches) {
    const bundle::Value &in = model.inputs[static_cast<size_t>(c.input)],
                        &out = model.outputs[static_cast<size_t>(c.output)];
    const int64_t before = rowsOf(in, c.axis), after = rowsOf(out, c.axis);
    if (before < 0 || after < before)
      return "under these shapes output '" + out.name + "' has " + std::to_string(after) +
             " rows, fewer than the " + std::to_string(before) + " of its cache '" + in.name + "'";
    if (c.grows() && rows < after)
      return "the shared caches have room for " + std::to_string(rows) +
             " rows, and under these shapes output '" + out.name + "' has " +
             std::to_string(after) + " along dimension " + std::to_string(c.axis) +
             ": share them with room for more";
    if (c.grows()) {
      values[static_cast<size_t>(c.inputRoom)] = rows - before;
      values[static_cast<size_t>(c.outputRoom)] = rows - after;
    }
    values[static_cast<size_t>(c.kept)] = before;
  }
  return "";
}

} // namespace fusec::rt
