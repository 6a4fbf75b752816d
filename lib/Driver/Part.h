#pragma once
#include "Driver/State.h"

namespace fusec {

/// The part of a dump that --only leaves: what belongs to one node of the model, by its name, or to one kernel, by that
/// of its pattern. It is for people; nothing goes on from it.
class Part {
public:
  explicit Part(std::string name) : name(std::move(name)) {}

  /// nullopt where the state, which knows kernels from the plan on, has nothing of the name.
  std::optional<std::string> dump(Stage stage, const CompileState &state) const;
  bool has(const GirKernel &kernel) const;
  /// The kernels of a target that belong to it.
  std::vector<GirKernel> kernelsOf(const TargetState &target) const;

private:
  std::optional<std::string> ofGraph(const CompileState &state) const;
  std::optional<std::string> ofEquations(const CompileState &state) const;
  std::optional<std::string> ofTarget(Stage stage, const CompileState &state,
                                      const TargetState &target) const;
  bool has(const std::vector<std::string> &nodes) const;
  bool hasLaunch(const PlanStep &step, const Plan &plan) const;
  /// Nodes and equations of the kernel, if the name is that of one.
  void noteKernel(const CompileState &state, std::vector<std::string> &nodes,
                  std::vector<std::string> &equations) const;

  std::string name;
};

/// "nodes 'MatMul_0', 'Relu_1'", of which each text of a kernel tells.
std::string nodesText(const GirKernel &kernel);

} // namespace fusec
