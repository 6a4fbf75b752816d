#pragma once
#include "Expr/Tensor.h"
#include "Gir/Gir.h"
#include "Gir/PackedConstant.h"
#include "Support/Guard.h"

#include <map>

namespace fusec {

/// One choice for a launch: taken when all guards hold. The last variant of a launch has none.
struct LaunchVariant {
  int kernel; // index into GirProgram::kernels
  std::vector<Guard> guards;
  std::vector<TensorId> arguments; // one a parameter of the kernel
};

struct ExecStep;

/// What the runtime walks.
struct ExecStep {
  enum class Kind : uint8_t { Launch, If, Loop, Size, Where } kind = Kind::Launch;
  std::string name;
  std::vector<LaunchVariant> variants; // Launch
  std::vector<Guard> guards; // Where: of thenSteps; elseSteps where one of them does not hold
  // If, Loop and Size as in expr's Control, but results and carried values are moved by copies:
  TensorId condition = -1;
  SymbolId symbol = -1;
  TensorId tripCount = -1, iteration = -1, nextCondition = -1;
  std::vector<ExecStep> thenSteps, elseSteps; // Loop: body in thenSteps
  struct Copy {
    TensorId from, to; // equal type and shape
  };
  std::vector<Copy> before;                 // Loop: initial values -> carried
  std::vector<Copy> thenCopies, elseCopies; // at the end of a branch or iteration
  std::vector<Copy> after;                  // Loop: carried -> results
};

/// Everything one target needs: kernels, tensors (temps get memory by liveness in the runtime), steps.
/// Constants are in the layout that the kernels read (packed weights are constants of their own). Their data is in
/// their tensors, or in `packed` until it is written.
struct GirProgram {
  std::string name;
  std::string target;
  std::vector<Symbol> symbols;
  std::vector<Tensor> tensors;
  std::map<TensorId, PackedConstant> packed;
  std::vector<TensorId> inputs, outputs;
  std::vector<GirKernel> kernels;
  std::vector<ExecStep> steps;
};

/// The data of a constant, made if need be.
ConstantRef dataOf(const GirProgram &program, TensorId constant);
std::string print(const GirProgram &program, ConstantStore *store);
Result<GirProgram> parseGirProgram(TextReader &in, const ConstantStore &store);
Status verify(const GirProgram &program);

} // namespace fusec
