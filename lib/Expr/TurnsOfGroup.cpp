#include "Expr/TurnsOfGroup.h"

#include <algorithm>

namespace fusec {

static constexpr int64_t kMostMultiple = int64_t{1} << 20; // more is of no use to anybody

static int64_t powerIn(int64_t number) {
  return number == 0 ? kMostMultiple : std::min(number & -number, kMostMultiple);
}

static int64_t product(int64_t a, int64_t b) { return std::min(a * b, kMostMultiple); }

Progress operator+(const Progress &a, const Progress &b) {
  return {a.step + b.step, std::min(a.multiple, b.multiple)};
}

std::optional<Progress> remainder(const Progress &a, const Progress &divisor, int64_t size) {
  const bool stays = a.step == 1 && a.multiple >= size && divisor.multiple >= size;
  if (!divisor.isSame() || (!a.isSame() && !stays))
    return std::nullopt;
  return Progress{a.step, std::min(a.multiple, divisor.multiple)};
}

std::optional<Progress> quotient(const Progress &a, const Progress &divisor, int64_t size) {
  return remainder(a, divisor, size) ? std::optional(Progress{}) : std::nullopt;
}

std::optional<Progress> TurnsOfGroup::of(NodeId id) {
  if (const auto it = known.find(id); it != known.end())
    return it->second;
  return known[id] = find(body[id]);
}

bool TurnsOfGroup::isSame(NodeId id) {
  const std::optional<Progress> progress = of(id);
  return progress && progress->isSame();
}

Progress TurnsOfGroup::of(const DimExpr &d) const {
  if (d.isConst())
    return {0, powerIn(d.constValue())};
  int64_t multiple = 1;
  while (multiple < size && d.divisibleBy(2 * multiple, symbols))
    multiple *= 2;
  return {0, multiple};
}

std::optional<Progress> TurnsOfGroup::scaled(NodeId id, const DimExpr &times) {
  const std::optional<Progress> place = of(id);
  if (!place || (!place->isSame() && !times.isConst()))
    return std::nullopt;
  return Progress{place->isSame() ? 0 : place->step * times.constValue(),
                  product(place->multiple, of(times).multiple)};
}

std::optional<Progress> TurnsOfGroup::find(const Scalar &s) {
  if (s.op == ScalarOp::Const)
    return Progress{0, isFloat(s.type) ? 1 : powerIn(s.imm)};
  if (s.op == ScalarOp::Axis)
    return axis(s.index);
  if (s.op == ScalarOp::Dim)
    return of(s.dim);
  if ((s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf) && changes(s))
    return std::nullopt;
  std::vector<Progress> args;
  for (NodeId arg : s.args) {
    const std::optional<Progress> progress = of(arg);
    if (!progress)
      return std::nullopt;
    args.push_back(*progress);
  }
  if (args.size() == 2 && s.type == DType::I64)
    if (const std::optional<Progress> found = ofIndex(s, args[0], args[1]))
      return found;
  if (std::ranges::all_of(args, &Progress::isSame) ||
      (args.size() == 2 && comparesAlike(s, args[0], args[1])))
    return Progress{};
  return std::nullopt;
}

/// Sums, products, quotients and remainders.
std::optional<Progress> TurnsOfGroup::ofIndex(const Scalar &s, const Progress &a,
                                              const Progress &b) const {
  switch (s.op) {
  case ScalarOp::Add: return a + b;
  case ScalarOp::Sub: return a + Progress{-b.step, b.multiple};
  case ScalarOp::Mul:
    for (size_t i : {0, 1})
      if (const Scalar &factor = body[s.args[i]]; factor.op == ScalarOp::Const)
        return Progress{(i == 0 ? b : a).step * factor.imm, product(a.multiple, b.multiple)};
    if (a.isSame() && b.isSame())
      return Progress{0, product(a.multiple, b.multiple)};
    return std::nullopt;
  case ScalarOp::FloorDiv: return quotient(a, b, size);
  case ScalarOp::FloorMod: return remainder(a, b, size);
  default: return std::nullopt;
  }
}

/// A comparison that has one answer for all turns: no bound lies between the first one and those behind it.
bool TurnsOfGroup::comparesAlike(const Scalar &s, const Progress &a, const Progress &b) const {
  const auto walks = [&](const Progress &x) { return x.step == 1 && x.multiple >= size; };
  const auto bounds = [&](const Progress &x) { return x.isSame() && x.multiple >= size; };
  // One below such a multiple: 7 < x is 8 <= x.
  const auto endsBelow = [&](NodeId id) {
    return body[id].op == ScalarOp::Const && (body[id].imm + 1) % size == 0;
  };
  switch (s.op) {
  case ScalarOp::Lt: return (walks(a) && bounds(b)) || (endsBelow(s.args[0]) && walks(b));
  case ScalarOp::Le: return (bounds(a) && walks(b)) || (walks(a) && endsBelow(s.args[1]));
  default: return false;
  }
}

} // namespace fusec
