#include "Tiling/lower/Lower.h"

#include "Support/Diag.h"
#include "Tiling/lower/PhaseLowering.h"

namespace fusec {

Result<LoweredKernel> lowerSchedule(const ExprProgram &pattern, const Schedule &schedule,
                                    const std::vector<Symbol> &symbols) {
  const tiling::ScheduledProgram program(pattern, schedule.via);
  const Schedule stored = lowering::withStores(schedule, program);
  const tiling::BoundSchedule bound(stored, program);
  lowering::LoweringParts parts(bound, symbols);
  lowering::PhaseLowering phases(parts);
  if (parts.writer.problems.empty())
    phases.lowerAll();
  Diagnostics errors;
  for (const std::string &text : parts.writer.problems)
    errors.push_back({Diag::BadIr, "schedule " + schedule.name, text});
  if (!errors.empty())
    return errors;
  return std::move(parts.writer.out);
}

Shape packedShape(const Schedule &schedule, const Operand &operand) {
  Shape shape;
  for (const LayoutDigit &digit : operand.digits)
    shape.push_back(digit.modulus != 0
                        ? DimExpr(digit.modulus)
                        : ceilDiv(schedule.axes[digit.axis].extent, DimExpr(digit.divide)));
  return shape;
}

} // namespace fusec
