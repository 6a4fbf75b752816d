#pragma once
#include "Fusion/Plan.h"
#include "Tiling/schedule/Schedule.h"

#include <map>

namespace fusec {

/// What the model calls the equations and tensors of a schedule, whose pattern numbers them.
struct ScheduleNames {
  struct Named {
    std::string name;
    std::vector<std::string> onnxNodes;
  };
  std::vector<Named> equations;     // by position in the pattern as it is scheduled
  std::vector<std::string> tensors; // of that pattern, by id

  /// The names of what equations make, a comment line each: # e0 = softmax.max, t28 = softmax.max
  std::string comments(const Schedule &schedule, const ExprProgram &pattern) const;
  /// `text` with the names behind each e0 in it: "e0 (softmax.max, node 'Softmax_3')".
  std::string inserted(const std::string &text) const;
};

/// Finds them for the launches of a plan.
class ModelNames {
public:
  explicit ModelNames(const ExprProgram &program);

  /// What an alternative adds to "e0" is called "e0.part", and so is what it adds to the model's equation.
  ScheduleNames of(const PlanStep &launch, const Pattern &pattern, const Schedule &schedule) const;
  /// `text` tells rewritings of some equations: these, which have other numbers behind each, by their names.
  std::string withNames(std::string text, const std::vector<Rewrite> &via, const PlanStep &launch,
                        const Pattern &pattern) const;
  /// The model's equation of this name, which must be one.
  const Equation &equation(const std::string &name) const { return *equations.at(name); }
  /// The ONNX nodes of an equation, a branch or a loop.
  const std::vector<std::string> &onnxNodes(const std::string &name) const {
    return *nodes.at(name);
  }

private:
  /// By the pattern's names.
  struct Found {
    std::map<std::string, std::string> equations, tensors;
    std::map<std::string, std::vector<std::string>> onnxNodes; // of equations
  };
  void find(const Equation &theirs, const Equation &own, const ExprProgram &pattern,
            Found &found) const;
  void note(const std::vector<Item> &items);

  const ExprProgram &program;
  std::map<std::string, const Equation *> equations;
  std::map<std::string, const std::vector<std::string> *> nodes; // of all items
};

/// The first launch of each pattern, in the order of the patterns; null where there is none.
std::vector<const PlanStep *> firstLaunches(const Plan &plan);

/// Inputs come first, in the pattern's order, then outputs.
TensorId argumentOf(const Pattern &pattern, size_t position);

} // namespace fusec
