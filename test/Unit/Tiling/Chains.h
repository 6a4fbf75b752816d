#pragma once
// Loop spaces of chains of matrix products, from the text of their equations.
#include "../ParseProgram.h"
#include "../ProgramText.h"
#include "Tiling/space/Operands.h"

namespace fusec::test {

/// The space of all equations of a program.
struct ChainSpace {
  explicit ChainSpace(const std::string &text)
      : program(parse(text)),
        operands(tiling::spaceOperands(loopSpace(equationsOf(program)), program)),
        space(operands.space) {}
  ChainSpace(const ChainSpace &) = delete;

  int loop(const std::string &name) const {
    for (size_t l = 0; l < space.loops.size(); ++l)
      if (space.loops[l].name == name)
        return static_cast<int>(l);
    FAIL("no loop " << name);
    return -1;
  }
  std::vector<int> loops(const std::string &names) const { // of one letter each
    std::vector<int> found;
    for (char name : names)
      found.push_back(loop(std::string(1, name)));
    return found;
  }
  /// Values by the letters of the loops, in the order of the space.
  std::vector<double> byLoop(const std::string &names, const std::vector<double> &values) const {
    std::vector<double> found(space.loops.size(), 1);
    for (size_t i = 0; i < names.size(); ++i)
      found[static_cast<size_t>(loop(names.substr(i, 1)))] = values[i];
    return found;
  }
  /// What the equation reads or makes of a tensor.
  size_t operand(const std::string &tensor) const {
    for (size_t o = 0; o < operands.operands.size(); ++o)
      if (program.tensors[static_cast<size_t>(operands.operands[o].tensor)].name == tensor)
        return o;
    FAIL("no operand " << tensor);
    return 0;
  }
  std::vector<double> extents() const { return tiling::spaceExtents(space, program.symbols).usual; }

  const ExprProgram program;
  const tiling::SpaceOperands operands;
  const LoopSpace &space;

private:
  static std::vector<const Equation *> equationsOf(const ExprProgram &program) {
    std::vector<const Equation *> equations;
    for (const Item &item : program.items)
      equations.push_back(&std::get<Equation>(item.value));
    return equations;
  }
};

/// MCFuser's names: E[m,h] = sum over n of C[m,n] D[n,h], C[m,n] = sum over k of A[m,k] B[k,n].
inline ProgramText mcfuserChain(int m, int n, int k, int h, const std::string &type = "f16") {
  auto s = [](int size) { return std::to_string(size); };
  return ProgramText("chain", "", type)
      .input("A", s(m) + "," + s(k))
      .input("B", s(k) + "," + s(n))
      .input("D", s(n) + "," + s(h))
      .reduction("C", "m:" + s(m) + ", n:" + s(n) + "; k:" + s(k), "sum", "mul(%A[m, k], %B[k, n])")
      .reduction("E", "m:" + s(m) + ", h:" + s(h) + "; n:" + s(n), "sum",
                 "mul(%C[m, n], %D[n, h])");
}

/// Chimera's names: E[m,n] = sum over l of C[m,l] D[l,n], C[m,l] = sum over k of A[m,k] B[k,l].
inline ProgramText chimeraChain(int m, int n, int k, int l, const std::string &type = "f16") {
  auto s = [](int size) { return std::to_string(size); };
  return ProgramText("chain", "", type)
      .input("A", s(m) + "," + s(k))
      .input("B", s(k) + "," + s(l))
      .input("D", s(l) + "," + s(n))
      .reduction("C", "m:" + s(m) + ", l:" + s(l) + "; k:" + s(k), "sum", "mul(%A[m, k], %B[k, l])")
      .reduction("E", "m:" + s(m) + ", n:" + s(n) + "; l:" + s(l), "sum",
                 "mul(%C[m, l], %D[l, n])");
}

} // namespace fusec::test
