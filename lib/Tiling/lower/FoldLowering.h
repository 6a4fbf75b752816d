#pragma once
#include "Tiling/lower/EquationLowering.h"

namespace fusec::lowering {

/// What lanes, units and Unroll loops have folded into one register by a monoid, perhaps with an index beside it.
class FoldLowering : public EquationLowering {
public:
  FoldLowering(LoweringParts &parts, int number, Monoid monoid)
      : EquationLowering(parts, number), monoid(monoid) {}
  void combine(Stmts &result) override;

protected:
  /// Sets the registers to the neutral element.
  virtual void reset(Stmts &result) = 0;

  const Monoid monoid;
  BufferId folded = -1, index = -1;

private:
  void foldParts(Stmts &result);
};

} // namespace fusec::lowering
