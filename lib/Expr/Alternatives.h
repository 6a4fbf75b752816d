#pragma once
#include "Expr/Expr.h"
#include "Target/Target.h"

namespace fusec {

/// Another way to compute a kernel's equations, which the search weighs against them as they are: its values differ by
/// rounding at most. A pattern is rewritten into one with the same arguments: tensors that are no temps keep their
/// numbers, and so do equations and temps their names; what is new is named after what it stands for ("e0.part").
struct Alternative {
  std::string_view name; // as schedules tell it: via "defer-division"
  std::string_view help;
  /// Parameters worth trying on the target, such as the length of a part; none where it does not apply. Null: the
  /// alternative has no parameter.
  std::vector<int64_t> (*choices)(const ExprProgram &pattern, const Target &target);
  /// The rewritten pattern; nullopt where it does not apply with this parameter (0: none).
  std::optional<ExprProgram> (*apply)(const ExprProgram &pattern, int64_t choice);
  /// The equations of a rewritten pattern in front of which all blocks may have to wait for each other, since they run
  /// on more or on fewer blocks than those before. Null: there are none.
  std::vector<int> (*phaseStarts)(const ExprProgram &pattern, const ExprProgram &made) = nullptr;
  /// Names of the alternatives that are worth trying on what this one made, since they save more there than alone.
  std::vector<std::string_view> behind = {};
};
const std::vector<Alternative> &alternatives();

/// One alternative taken: what a schedule remembers. With a count it is about these equations alone, as if they were
/// the pattern.
struct Rewrite {
  std::string alternative;
  int64_t choice = 0;
  int first = 0, count = 0; // of equations, as they are before this rewriting; count 0: all
  bool operator==(const Rewrite &) const = default;
};
/// "defer-division", "two-phase 64 of e2 to e4"
std::string print(const Rewrite &rewrite);

/// The pattern after all of them, in order; nullopt where one does not exist or does not apply.
std::optional<ExprProgram> rewritten(const ExprProgram &pattern,
                                     const std::vector<Rewrite> &rewrites);

/// Everything that applies to the pattern on the target, with what it makes of it.
struct RewrittenPattern {
  Rewrite rewrite;
  ExprProgram program;
  std::vector<int> phaseStarts; // ascending, without 0; see Alternative
};
std::vector<RewrittenPattern> applicableAlternatives(const ExprProgram &pattern,
                                                     const Target &target);
/// The alternatives worth trying behind `first` that apply to what it made, with what they make of it.
std::vector<RewrittenPattern> alternativesBehind(const RewrittenPattern &first,
                                                 const Target &target);

/// For rewritings: drops equations that make nothing that an output needs, and temps that nobody writes any more.
void dropUnneeded(ExprProgram &pattern);

// One file each in transforms/.
std::optional<ExprProgram> deferDivision(const ExprProgram &pattern, int64_t);
std::vector<int64_t> twoPhaseChoices(const ExprProgram &pattern, const Target &target);
std::optional<ExprProgram> twoPhase(const ExprProgram &pattern, int64_t parts);
std::vector<int> twoPhaseStarts(const ExprProgram &pattern, const ExprProgram &made);
std::vector<int64_t> recomputeChoices(const ExprProgram &pattern, const Target &target);
std::optional<ExprProgram> recompute(const ExprProgram &pattern, int64_t position);
std::optional<ExprProgram> copyOperands(const ExprProgram &pattern, int64_t);
std::vector<int> copyOperandsStarts(const ExprProgram &pattern, const ExprProgram &made);
std::optional<ExprProgram> separateWindows(const ExprProgram &pattern, int64_t);
std::optional<ExprProgram> wavefront(const ExprProgram &pattern, int64_t);

} // namespace fusec
