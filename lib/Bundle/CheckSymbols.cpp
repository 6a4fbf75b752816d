#include "Bundle/CheckSymbols.h"

#include "Support/Diag.h"

#include <algorithm>
#include <functional>

namespace fusec::bundle {

bool usableName(const std::string &name) {
  return !name.empty() && name.size() <= (64 << 10) && name.find('\0') == std::string::npos;
}

Status checkSymbols(const Model &model, std::set<std::string> &names) {
  const size_t given = numGiven(model);
  std::set<SymbolId> ofRuns;
  for (const DataSize &d : model.dataSizes)
    ofRuns.insert(d.symbol);
  for (size_t i = 0; i < model.symbols.size(); ++i) {
    const Symbol &s = model.symbols[i];
    auto bad = [&](std::string text) -> Status {
      return Diagnostic{Diag::BadBundle, "symbol '" + s.name + "'", std::move(text)};
    };
    if (!usableName(s.name) || !names.insert(s.name).second)
      return bad("the name is empty, longer than 64 KiB, holds a zero byte or stands twice");
    if ((s.min < 0 && !s.definition) || s.min > s.opt || s.opt > s.max || s.divisor < 1)
      return bad("needs 0 <= min <= opt <= max and a divisor >= 1");
    const std::span<const int64_t> tuned = tunedSizesOf(model, i);
    if (tuned.front() < s.min || tuned.back() > s.max || tuned.size() > kMostTunedSizes ||
        std::ranges::adjacent_find(tuned, std::ranges::greater_equal()) != tuned.end() ||
        !std::ranges::binary_search(tuned, s.opt))
      return bad(
          "the sizes that kernels are tuned for must ascend, from min to max, opt among them");
    if (i < given || ofRuns.count(static_cast<SymbolId>(i)))
      continue;
    if (!s.definition || !s.definition->valid(i))
      return bad("behind a computed symbol each needs a well-formed definition");
    for (const DimProgram::Instr &instr : s.definition->code)
      if (instr.op == DimProgram::Op::Symbol && ofRuns.count(static_cast<SymbolId>(instr.value)))
        return bad("its definition uses a size that depends on data");
    if (s.definition->node.find('\0') != std::string::npos)
      return bad("the name of its node holds a zero byte");
  }
  return success();
}

Status checkSizeRules(const Model &model, std::set<std::string> &names) {
  auto bad = [](const std::string &place, std::string text) -> Status {
    return Diagnostic{Diag::BadBundle, place, std::move(text)};
  };
  if (model.inferred.size() > kMaxValues || model.rules.size() > kMaxValues)
    return bad("rules of sizes", "too many");
  for (const InferredDim &s : model.inferred) {
    const std::string place = "inferred size '" + s.name + "'";
    if (!usableName(s.name) || !names.insert(s.name).second)
      return bad(place, "the name is empty, longer than 64 KiB, holds a zero byte or stands twice");
    if (!s.value.valid(model.symbols.size()))
      return bad(place, "its value is malformed");
    for (const InferredDim::Place &p : s.places)
      if (p.input < 0 || static_cast<size_t>(p.input) >= model.inputs.size() || p.axis < 0 ||
          static_cast<size_t>(p.axis) >= model.inputs[p.input].shape.size())
        return bad(place, "it stands where no input has a dimension");
  }
  const size_t all = model.symbols.size() + model.inferred.size();
  for (const DimRule &r : model.rules) {
    const std::string place = "rule of node '" + r.node + "'";
    if (r.kind > fusec::SizeRule::Kind::Either || !r.left.valid(all) || !r.right.valid(all))
      return bad(place, "it is malformed");
    for (const std::string *text : {&r.node, &r.op, &r.text})
      if (text->find('\0') != std::string::npos)
        return bad(place, "it holds a zero byte");
  }
  return success();
}

} // namespace fusec::bundle
