#pragma once
#include "Fusion/CutPattern.h"

#include <unordered_map>

namespace fusec {

/// Recognises equal patterns without cutting them, since the layers of a network ask for the same few. Two groups of
/// one program have equal keys if cutPattern makes equal patterns of them: their equations are equal one by one, their
/// tensors stand at the same positions, and the same values are used outside.
class PatternKeys {
public:
  /// `uses`: equations and control items that read each tensor; an output of the model counts as one.
  PatternKeys(const ExprProgram &program, const std::map<TensorId, int> &uses)
      : program(program), uses(uses), table(program.tensors.size()) {}

  Hash128 key(const Group &group);
  /// A hash of what the equation computes, independent of its name and position.
  Hash128 key(const Equation &equation) { return alone(equation).signature; }

private:
  struct Alone {
    Hash128 signature;               // signature of the equation as a pattern of its own
    std::vector<TensorId> arguments; // arguments of that pattern
    size_t inputs;                   // how many of the arguments, the first ones, are inputs
  };
  const Alone &alone(const Equation &equation);

  /// A tensor in the group that a key is made for.
  struct Use {
    uint64_t group = 0;  // the last group that used it
    uint64_t number = 0; // in order of first use
    int readers = 0;
  };

  const ExprProgram &program;
  const std::map<TensorId, int> &uses;
  std::unordered_map<const Equation *, Alone> known;
  std::vector<Use> table; // by tensor
  uint64_t groups = 0;
};

} // namespace fusec
