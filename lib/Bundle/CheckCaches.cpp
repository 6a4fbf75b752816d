#include "Bundle/CheckCaches.h"

#include "Support/Diag.h"

#include <algorithm>
#include <set>

namespace fusec::bundle {

namespace {

bool isIndex(int32_t i, size_t count) { return i >= 0 && static_cast<size_t>(i) < count; }

/// Equal, but for one dimension; -1: for none.
bool areAlike(const std::vector<DimCode> &a, const std::vector<DimCode> &b, int32_t without) {
  if (a.size() != b.size())
    return false;
  for (size_t d = 0; d < a.size(); ++d)
    if (static_cast<int32_t>(d) != without && !(a[d] == b[d]))
      return false;
  return true;
}

} // namespace

Status checkCaches(const Model &model) {
  std::set<int32_t> inputs, outputs;
  for (size_t i = 0; i < model.caches.size(); ++i) {
    const Cache &c = model.caches[i];
    auto bad = [&](std::string text) -> Status {
      return Diagnostic{Diag::BadBundle, "cache " + std::to_string(i), std::move(text)};
    };
    auto isRoom = [&](SymbolId s) {
      return isIndex(s, model.symbols.size()) && model.symbols[s].definition;
    };
    if (!isIndex(c.input, model.inputs.size()) || !isIndex(c.output, model.outputs.size()) ||
        !inputs.insert(c.input).second || !outputs.insert(c.output).second)
      return bad("its input or output does not exist or is another one's too");
    const Value &in = model.inputs[c.input], &out = model.outputs[c.output];
    if (in.type != out.type || in.weight != -1 || !isIndex(c.axis, in.shape.size()) ||
        !areAlike(in.shape, out.shape, c.grows() ? c.axis : -1))
      return bad("input and output are not alike");
    if (!isRoom(c.kept) || (c.grows() && (!isRoom(c.inputRoom) || !isRoom(c.outputRoom))))
      return bad("its rows are no sizes that are computed");
    for (const Program &p : model.programs) {
      const int32_t tensor = p.outputs[c.output];
      if (p.tensors[tensor].kind != TensorKind::Output ||
          std::count(p.outputs.begin(), p.outputs.end(), tensor) != 1)
        return bad("its output is not written as one");
    }
  }
  return success();
}

bool fitsValue(const Model &model, bool input, size_t index, const std::vector<DimCode> &shape) {
  const Value &value = (input ? model.inputs : model.outputs)[index];
  const auto cache = std::find_if(model.caches.begin(), model.caches.end(), [&](const Cache &c) {
    return c.grows() && static_cast<int32_t>(index) == (input ? c.input : c.output);
  });
  return areAlike(shape, value.shape, cache == model.caches.end() ? -1 : cache->axis);
}

} // namespace fusec::bundle
