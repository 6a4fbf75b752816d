#pragma once
// What consecutive turns of a loop make of expressions over its variable: whether they come to places side by side.
#include "Expr/Body.h"

#include <functional>
#include <map>
#include <optional>

namespace fusec {

constexpr int64_t kWidestAccess = 16; // bytes that a GPU's thread moves with one instruction

/// A value in the turns of a group: first, first + step, first + 2 step, ..; first is a multiple of `multiple`, a
/// power of two.
struct Progress {
  int64_t step = 0, multiple = 1;
  bool isSame() const { return step == 0; }
};

/// Groups of `size` turns, a power of two, that begin at multiples of it, whatever the values of other leaves are.
class TurnsOfGroup {
public:
  /// `axis`: of an Axis leaf; a loop variable's own progress is {1, size}. `changes`: of a Read or ReadIf, whether it
  /// may find something else in another turn, at the same place.
  TurnsOfGroup(const Body &body, const std::vector<Symbol> &symbols, int64_t size,
               std::function<Progress(int32_t)> axis, std::function<bool(const Scalar &)> changes)
      : body(body), symbols(symbols), size(size), axis(std::move(axis)),
        changes(std::move(changes)) {}

  /// nullopt where the steps are unknown or differ.
  std::optional<Progress> of(NodeId id);
  bool isSame(NodeId id);
  Progress of(const DimExpr &size) const;
  /// The progress of a place, where each of what the node counts is `times` elements.
  std::optional<Progress> scaled(NodeId id, const DimExpr &times);
  /// Turns find elements side by side behind a multiple of their number.
  bool liesTogether(const std::optional<Progress> &place) const {
    return place && place->step == 1 && place->multiple >= size;
  }

private:
  std::optional<Progress> find(const Scalar &s);
  std::optional<Progress> ofIndex(const Scalar &s, const Progress &a, const Progress &b) const;
  bool comparesAlike(const Scalar &s, const Progress &a, const Progress &b) const;

  const Body &body;
  const std::vector<Symbol> &symbols;
  const int64_t size;
  const std::function<Progress(int32_t)> axis;
  const std::function<bool(const Scalar &)> changes;
  std::map<NodeId, std::optional<Progress>> known;
};

Progress operator+(const Progress &a, const Progress &b);
/// What a Div or Mod of an axis' value leaves of its progress, as where a fused axis is taken apart: nullopt where
/// turns may reach the next multiple of the divisor.
std::optional<Progress> quotient(const Progress &a, const Progress &divisor, int64_t size);
std::optional<Progress> remainder(const Progress &a, const Progress &divisor, int64_t size);

} // namespace fusec
