// The rules of a program: what its steps name exists and fits.
#include "Gir/Program.h"
#include "Support/Diag.h"

#include <set>
#include <utility>

namespace fusec {
namespace {

class Verifier {
public:
  explicit Verifier(const GirProgram &program) : program(program) {}

  Status run() {
    std::set<std::string> names;
    for (TensorId id = 0; known(id); ++id) {
      const Tensor &t = program.tensors[id];
      need(names.insert(t.name).second, "tensors have different names", t.name);
      const bool isPacked = program.packed.count(id) != 0;
      need((t.kind == TensorKind::Constant) == (isPacked != (t.constant != nullptr)),
           "constants, and no others, have data", t.name);
      need(!t.defaultValue || t.kind == TensorKind::Input, "only inputs have a default value",
           t.name);
    }
    names.clear();
    for (const GirKernel &k : program.kernels) {
      need(names.insert(k.name).second, "kernels have different names", k.name);
      if (auto status = verify(k); !status.ok())
        errors.insert(errors.end(), status.errors().begin(), status.errors().end());
    }
    for (TensorId t : program.inputs)
      need(known(t) && program.tensors[t].kind == TensorKind::Input, "inputs are input tensors");
    for (TensorId t : program.outputs)
      need(known(t), "outputs are tensors");
    steps(program.steps);
    if (!errors.empty())
      return std::move(errors);
    return success();
  }

private:
  void need(bool holds, const std::string &rule, const std::string &given = "") {
    if (!holds)
      errors.push_back(
          {Diag::BadIr, "program " + program.name, rule + (given.empty() ? "" : "; " + given)});
  }

  bool known(TensorId t) const {
    return t >= 0 && t < static_cast<TensorId>(program.tensors.size());
  }

  void steps(const std::vector<ExecStep> &list) {
    for (const ExecStep &s : list) {
      if (s.kind == ExecStep::Kind::Launch) {
        launch(s);
        continue;
      }
      if (s.kind == ExecStep::Kind::Size) {
        scalar(s.tripCount, DType::I64, s.name + ": a size is i64 []");
        need(s.symbol >= 0 && static_cast<size_t>(s.symbol) < program.symbols.size() &&
                 program.symbols[s.symbol].isDataDependent() && sized.insert(s.symbol).second,
             "one step of a run gives a symbol that depends on data its value", s.name);
        continue;
      }
      if (s.kind == ExecStep::Kind::Where) {
        need(!s.guards.empty(), "a where has a guard", s.name);
        const auto before = sized;
        steps(s.thenSteps);
        const auto inThen = std::exchange(sized, before); // a run takes one of the two
        steps(s.elseSteps);
        sized.insert(inThen.begin(), inThen.end());
        continue;
      }
      bool isIf = s.kind == ExecStep::Kind::If;
      if (isIf || s.condition >= 0)
        scalar(s.condition, DType::Bool, s.name + ": a condition is bool []");
      if (!isIf && s.tripCount >= 0)
        scalar(s.tripCount, DType::I64, s.name + ": a trip count is i64 []");
      if (!isIf && s.iteration >= 0)
        scalar(s.iteration, DType::I64, s.name + ": an iteration is i64 []");
      if (!isIf && s.nextCondition >= 0)
        scalar(s.nextCondition, DType::Bool, s.name + ": a condition is bool []");
      steps(s.thenSteps);
      steps(s.elseSteps);
      for (const auto *copies : {&s.before, &s.thenCopies, &s.elseCopies, &s.after})
        for (const ExecStep::Copy &c : *copies)
          copy(c, s.name);
    }
  }

  void scalar(TensorId t, DType type, const std::string &rule) {
    need(known(t) && program.tensors[t].type == type &&
             numElements(program.tensors[t].shape).isConst(1),
         rule);
  }

  void copy(const ExecStep::Copy &c, const std::string &step) {
    if (!known(c.from) || !known(c.to))
      return need(false, "copies name tensors", step);
    const Tensor &from = program.tensors[c.from], &to = program.tensors[c.to];
    need(from.type == to.type && from.shape == to.shape,
         "copies are between tensors of one type and shape",
         step + ": " + from.name + " -> " + to.name);
    need(to.kind == TensorKind::Temp || to.kind == TensorKind::Output,
         "copies go to temps and outputs", step + ": " + to.name);
  }

  void launch(const ExecStep &s) {
    need(!s.variants.empty() && s.variants.back().guards.empty(), "the last variant has no guard",
         s.name);
    for (size_t i = 0; i + 1 < s.variants.size(); ++i)
      need(!s.variants[i].guards.empty(), "only the last variant has no guard", s.name);
    for (const LaunchVariant &v : s.variants) {
      if (v.kernel < 0 || v.kernel >= static_cast<int>(program.kernels.size())) {
        need(false, "a launch names a kernel", s.name);
        continue;
      }
      const GirKernel &k = program.kernels[v.kernel];
      std::string given = s.name + ": @" + k.name;
      need(static_cast<int>(v.arguments.size()) == k.numParams(),
           "a launch has one argument a parameter", given);
      for (size_t i = 0; i < v.arguments.size() && i < k.buffers.size(); ++i)
        argument(v.arguments[i], k.buffers[i], given);
    }
  }

  void argument(TensorId id, const GirBuffer &param, const std::string &given) {
    if (!known(id))
      return need(false, "arguments are tensors", given);
    const Tensor &t = program.tensors[id];
    // A variant may know more of its shapes than the model's table does, so only ranks of static shapes compare.
    bool bothStatic = isStatic(t.shape) && isStatic(param.shape);
    need(t.type == param.type && (!bothStatic || numElements(t.shape) == numElements(param.shape)),
         "an argument has its parameter's type and size",
         given + " %" + param.name + " = %" + t.name);
    need(!param.written || t.kind == TensorKind::Temp || t.kind == TensorKind::Output,
         "kernels write temps and outputs", given + " %" + param.name + " = %" + t.name);
  }

  const GirProgram &program;
  std::set<SymbolId> sized;
  Diagnostics errors;
};

} // namespace

ConstantRef dataOf(const GirProgram &program, TensorId constant) {
  const Tensor &tensor = program.tensors[constant];
  const auto packed = program.packed.find(constant);
  return packed == program.packed.end() ? tensor.constant
                                        : makeWhole(packed->second, staticDims(tensor.shape));
}

Status verify(const GirProgram &program) { return Verifier(program).run(); }

} // namespace fusec
