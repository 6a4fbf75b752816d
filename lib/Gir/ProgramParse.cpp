// Reads the text that ProgramPrint.cpp describes.
#include "Gir/Program.h"
#include "Graph/ConstantText.h"
#include "Support/TypeText.h"

#include <map>

namespace fusec {
namespace {

constexpr int kMaxDepth = 64;

class Parser {
public:
  Parser(TextReader &in, const ConstantStore &store) : in(in), store(store) {}

  Result<GirProgram> run() {
    FUSEC_CHECK(in.expect("program"));
    FUSEC_TRY(program.name, in.nameText());
    FUSEC_CHECK(in.expect("target"));
    FUSEC_TRY(program.target, in.string());
    FUSEC_TRY(program.symbols, parseSymbols(in));
    while (!in.peekIs("inputs"))
      FUSEC_CHECK(tensor());
    FUSEC_CHECK(in.expect("inputs"));
    FUSEC_TRY(program.inputs, list());
    FUSEC_CHECK(in.expect("outputs"));
    FUSEC_TRY(program.outputs, list());
    while (in.peekIs("kernel"))
      FUSEC_CHECK(kernel());
    while (in.accept("step"))
      FUSEC_CHECK(step(program.steps, 0));
    if (!in.atEnd())
      return in.error("expected a step or the end of the program");
    return std::move(program);
  }

private:
  Status tensor() {
    constexpr std::string_view kinds[] = {"input", "constant", "temp", "output"};
    FUSEC_TRY(std::string word, in.identifier());
    Tensor t;
    int kind = 0;
    while (kind < 4 && kinds[kind] != word)
      ++kind;
    if (kind == 4)
      return in.error("'" + word +
                      "' begins no tensor; expected input, constant, temp, output or inputs");
    t.kind = static_cast<TensorKind>(kind);
    FUSEC_TRY(t.name, in.nameAfter("%"));
    FUSEC_CHECK(parseType(in, program.symbols, t.type, t.shape));
    const bool hasDefault = t.kind == TensorKind::Input && in.accept("default");
    if (t.kind == TensorKind::Constant || hasDefault) {
      FUSEC_TRY(ConstantRef data, parseConstantData(in, t.type, t.shape, store));
      (hasDefault ? t.defaultValue : t.constant) = std::move(data);
    }
    if (!tensorIds.emplace(t.name, static_cast<TensorId>(program.tensors.size())).second)
      return in.error("%" + t.name + " is defined twice");
    program.tensors.push_back(std::move(t));
    return success();
  }

  Result<TensorId> ref() {
    FUSEC_TRY(std::string tensorName, in.nameAfter("%"));
    auto it = tensorIds.find(tensorName);
    if (it == tensorIds.end())
      return in.error("there is no tensor %" + nameToText(tensorName));
    return it->second;
  }

  Result<std::vector<TensorId>> list() {
    FUSEC_CHECK(in.expect("("));
    return in.list(")", [&] { return ref(); });
  }

  Status kernel() {
    FUSEC_TRY(GirKernel k, parseGirKernel(in, program.symbols));
    if (!kernelIds.emplace(k.name, static_cast<int>(program.kernels.size())).second)
      return in.error("kernel @" + nameToText(k.name) + " is defined twice");
    program.kernels.push_back(std::move(k));
    return success();
  }

  Result<std::vector<ExecStep::Copy>> copies(std::string_view keyword) {
    if (!in.accept(keyword))
      return std::vector<ExecStep::Copy>();
    FUSEC_CHECK(in.expect("("));
    return in.list(")", [&]() -> Result<ExecStep::Copy> {
      FUSEC_TRY(TensorId from, ref());
      FUSEC_CHECK(in.expect("->"));
      FUSEC_TRY(TensorId to, ref());
      return ExecStep::Copy{from, to};
    });
  }

  Status block(std::vector<ExecStep> &out, int depth) {
    if (depth > kMaxDepth)
      return in.error("steps are nested more than " + std::to_string(kMaxDepth) + " deep");
    FUSEC_CHECK(in.expect("{"));
    while (in.accept("step"))
      FUSEC_CHECK(step(out, depth));
    return in.expect("}");
  }

  Status step(std::vector<ExecStep> &out, int depth) {
    ExecStep s;
    FUSEC_TRY(s.name, in.nameText());
    if (in.accept("launch")) {
      FUSEC_CHECK(launch(s));
    } else if (in.accept("if")) {
      s.kind = ExecStep::Kind::If;
      FUSEC_TRY(s.condition, ref());
      FUSEC_CHECK(block(s.thenSteps, depth + 1));
      FUSEC_TRY(s.thenCopies, copies("copies"));
      FUSEC_CHECK(in.expect("else"));
      FUSEC_CHECK(block(s.elseSteps, depth + 1));
      FUSEC_TRY(s.elseCopies, copies("copies"));
    } else if (in.accept("where")) {
      s.kind = ExecStep::Kind::Where;
      FUSEC_TRY(s.guards, guards());
      FUSEC_CHECK(block(s.thenSteps, depth + 1));
      FUSEC_CHECK(in.expect("else"));
      FUSEC_CHECK(block(s.elseSteps, depth + 1));
    } else if (in.accept("size")) {
      s.kind = ExecStep::Kind::Size;
      FUSEC_TRY(s.tripCount, ref());
      FUSEC_CHECK(in.expect("symbol"));
      FUSEC_TRY(const std::string name, in.nameText());
      const std::optional<SymbolId> symbol = symbolNamed(name, program.symbols);
      if (!symbol)
        return in.error("there is no symbol '" + name + "'");
      s.symbol = *symbol;
    } else {
      FUSEC_CHECK(in.expect("loop"));
      s.kind = ExecStep::Kind::Loop;
      FUSEC_TRY(s.tripCount, optional("trip"));
      FUSEC_TRY(s.condition, optional("condition"));
      FUSEC_TRY(s.iteration, optional("iteration"));
      FUSEC_TRY(s.nextCondition, optional("next"));
      FUSEC_TRY(s.before, copies("before"));
      FUSEC_CHECK(block(s.thenSteps, depth + 1));
      FUSEC_TRY(s.thenCopies, copies("copies"));
      FUSEC_TRY(s.after, copies("after"));
    }
    out.push_back(std::move(s));
    return success();
  }

  Result<TensorId> optional(std::string_view keyword) {
    if (!in.accept(keyword))
      return -1;
    return ref();
  }

  /// One or more.
  Result<std::vector<Guard>> guards() {
    std::vector<Guard> list;
    do {
      FUSEC_TRY(Guard g, parseGuard(in, program.symbols));
      list.push_back(std::move(g));
    } while (in.peekIs("("));
    return list;
  }

  Status launch(ExecStep &s) {
    FUSEC_CHECK(in.expect("{"));
    while (!in.accept("}")) {
      LaunchVariant v;
      if (!in.accept("else")) {
        FUSEC_CHECK(in.expect("when"));
        FUSEC_TRY(v.guards, guards());
      }
      FUSEC_TRY(std::string kernelName, in.nameAfter("@"));
      auto it = kernelIds.find(kernelName);
      if (it == kernelIds.end())
        return in.error("there is no kernel @" + nameToText(kernelName));
      v.kernel = it->second;
      FUSEC_TRY(v.arguments, list());
      s.variants.push_back(std::move(v));
    }
    return success();
  }

  TextReader &in;
  const ConstantStore &store;
  GirProgram program;
  std::map<std::string, TensorId> tensorIds;
  std::map<std::string, int> kernelIds;
};

} // namespace

Result<GirProgram> parseGirProgram(TextReader &in, const ConstantStore &store) {
  FUSEC_TRY(GirProgram program, Parser(in, store).run());
  FUSEC_CHECK(verify(program));
  return program;
}

} // namespace fusec
