#pragma once
#include "Fusion/CutPattern.h"

#include <unordered_map>

namespace fusec {

/// Tells equal patterns without cutting them: the search asks for the same few again and again, layer after layer.
/// Groups of one program have equal keys where cutPattern makes equal patterns of them: their equations are equal one
/// by one, a tensor of one stands where the other has its own, and the same values are used outside.
class PatternKeys {
public:
  /// `uses`: equations and control items that read each tensor; an output of the model counts as one.
  PatternKeys(const ExprProgram &program, const std::map<TensorId, int> &uses)
      : program(program), uses(uses), table(program.tensors.size()) {}

  Hash128 key(const Group &group);
  /// What the equation computes, whatever the model calls it and wherever it stands.
  Hash128 key(const Equation &equation) { return alone(equation).signature; }

private:
  struct Alone {
    Hash128 signature;               // of the equation as a pattern of its own
    std::vector<TensorId> arguments; // of that pattern
    size_t inputs;                   // of the arguments, the first ones
  };
  const Alone &alone(const Equation &equation);

  /// A tensor in the group that a key is made for.
  struct Use {
    uint64_t group = 0;  // the last one that it stood in
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
