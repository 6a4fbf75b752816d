#include "Expr/PatternPart.h"

#include "Expr/Alternatives.h"
#include "Expr/transforms/Walk.h"

#include <map>
#include <set>

namespace fusec {

ExprProgram partOfPattern(const ExprProgram &pattern, int first, int last) {
  ExprProgram part = pattern;
  part.items.assign(pattern.items.begin() + first, pattern.items.begin() + last);
  part.inputs.clear();
  part.outputs.clear();
  std::set<TensorId> made, read, readOutside;
  for (size_t i = 0; i < pattern.items.size(); ++i) {
    const Equation &e = std::get<Equation>(pattern.items[i].value);
    const bool inside = static_cast<int>(i) >= first && static_cast<int>(i) < last;
    if (inside)
      made.insert(e.outputs.begin(), e.outputs.end());
    for (NodeId id : e.body.reachable(bodyRoots(e)))
      if (isRead(e.body[id]))
        (inside ? read : readOutside).insert(e.body[id].index);
  }
  for (size_t t = 0; t < part.tensors.size(); ++t) {
    Tensor &tensor = part.tensors[t];
    const auto id = static_cast<TensorId>(t);
    if (made.count(id)) {
      if (tensor.kind == TensorKind::Temp && readOutside.count(id))
        tensor.kind = TensorKind::Output;
      if (tensor.kind == TensorKind::Output)
        part.outputs.push_back(id);
    } else if (read.count(id)) {
      if (tensor.kind != TensorKind::Constant)
        tensor.kind = TensorKind::Input;
      part.inputs.push_back(id);
    } else {
      tensor.kind = TensorKind::Input; // of what is outside
    }
  }
  return part;
}

std::optional<ExprProgram> withPart(const ExprProgram &pattern, int first, int last,
                                    const ExprProgram &part) {
  ExprProgram whole = pattern;
  std::map<std::string, TensorId> known;
  for (size_t t = 0; t < whole.tensors.size(); ++t)
    known[whole.tensors[t].name] = static_cast<TensorId>(t);
  std::vector<TensorId> number;
  for (const Tensor &tensor : part.tensors) {
    auto [it, isNew] = known.emplace(tensor.name, static_cast<TensorId>(whole.tensors.size()));
    if (isNew)
      whole.tensors.push_back(tensor);
    number.push_back(it->second);
  }
  std::vector<Item> items(pattern.items.begin(), pattern.items.begin() + first);
  for (Item item : part.items) {
    Equation &e = std::get<Equation>(item.value);
    for (Scalar &s : e.body.nodes)
      if (isRead(s))
        s.index = number[s.index];
    for (TensorId &t : e.outputs)
      t = number[t];
    items.push_back(std::move(item));
  }
  items.insert(items.end(), pattern.items.begin() + last, pattern.items.end());
  const size_t count = items.size();
  whole.items = std::move(items);
  dropUnneeded(whole);
  if (whole.items.size() != count)
    return std::nullopt;
  return whole;
}

} // namespace fusec
