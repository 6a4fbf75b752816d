// Text of a program.
//
//   program main target "x86-64-v3"
//   symbol batch = 1..64 opt 8 divisor 1
//   input %x f32[batch,768]
//   constant %w f32[2] {1, 0.5}
//   constant %big f32[768,768] digest "00112233445566778899aabbccddeeff"
//   temp %t f32[batch,768]
//   output %y f32[batch,768]
//   inputs (%x)
//   outputs (%y)
//   kernel @mm_0 ... { ... }
//   step fc1 launch {
//     when (batch - 16 >= 0) (batch % 8 == 0) @mm_1(%x, %big, %t)
//     else @mm_0(%x, %big, %t)
//   }
//   step if_1 if %c { steps } copies (%a -> %y) else { steps } copies (%b -> %y)
//   step n size %total symbol s
//   step "n = 1" where (1 - n >= 0) { steps } else { steps }
//   step loop_1 loop trip %n condition %c iteration %i next %k before (%x -> %s) {
//     steps
//   } copies (%s2 -> %s) after (%s -> %y)
#include "Gir/Program.h"
#include "Graph/ConstantText.h"
#include "Support/TypeText.h"

namespace fusec {
namespace {

std::string_view kindName(TensorKind kind) {
  constexpr std::string_view table[] = {"input", "constant", "temp", "output"};
  return table[static_cast<int>(kind)];
}

class Printer {
public:
  Printer(const GirProgram &program, ConstantStore *store) : program(program), store(store) {}

  std::string run() {
    out = "program " + nameToText(program.name) + " target " + quoted(program.target) + "\n";
    out += symbolsText(program.symbols);
    for (size_t t = 0; t < program.tensors.size(); ++t)
      tensor(static_cast<TensorId>(t));
    out += "inputs " + list(program.inputs) + "\noutputs " + list(program.outputs) + "\n";
    for (const GirKernel &k : program.kernels)
      out += print(k);
    steps(program.steps, 0);
    return std::move(out);
  }

private:
  std::string ref(TensorId t) const { return "%" + nameToText(program.tensors[t].name); }

  std::string list(const std::vector<TensorId> &ids) const {
    std::string text = "(";
    for (size_t i = 0; i < ids.size(); ++i)
      text += (i ? ", " : "") + ref(ids[i]);
    return text + ")";
  }

  void tensor(TensorId id) {
    const Tensor &t = program.tensors[id];
    out += std::string(kindName(t.kind)) + " %" + nameToText(t.name) + " " +
           typeText(t.type, t.shape, program.symbols);
    if (t.kind == TensorKind::Constant)
      out += " " + constantDataText(dataOf(program, id), store);
    if (t.defaultValue)
      out += " default " + constantDataText(t.defaultValue, store);
    out += "\n";
  }

  std::string copies(std::string_view keyword, const std::vector<ExecStep::Copy> &list) const {
    if (list.empty())
      return "";
    std::string text = " " + std::string(keyword) + " (";
    for (size_t i = 0; i < list.size(); ++i)
      text += (i ? ", " : "") + ref(list[i].from) + " -> " + ref(list[i].to);
    return text + ")";
  }

  void steps(const std::vector<ExecStep> &list, int indent) {
    for (const ExecStep &s : list)
      step(s, indent);
  }

  void block(const std::vector<ExecStep> &list, int indent) {
    out += " {\n";
    steps(list, indent + 2);
    out += std::string(static_cast<size_t>(indent), ' ') + "}";
  }

  void step(const ExecStep &s, int indent) {
    out += std::string(static_cast<size_t>(indent), ' ') + "step " + nameToText(s.name);
    auto optional = [&](std::string_view keyword, TensorId t) {
      if (t >= 0)
        out += " " + std::string(keyword) + " " + ref(t);
    };
    switch (s.kind) {
    case ExecStep::Kind::Launch: launch(s, indent); break;
    case ExecStep::Kind::If:
      out += " if " + ref(s.condition);
      block(s.thenSteps, indent);
      out += copies("copies", s.thenCopies) + " else";
      block(s.elseSteps, indent);
      out += copies("copies", s.elseCopies);
      break;
    case ExecStep::Kind::Size:
      out += " size " + ref(s.tripCount) + " symbol " + nameToText(program.symbols[s.symbol].name);
      break;
    case ExecStep::Kind::Where:
      out += " where";
      for (const Guard &g : s.guards)
        out += " " + guardText(g, program.symbols);
      block(s.thenSteps, indent);
      out += " else";
      block(s.elseSteps, indent);
      break;
    case ExecStep::Kind::Loop:
      out += " loop";
      optional("trip", s.tripCount);
      optional("condition", s.condition);
      optional("iteration", s.iteration);
      optional("next", s.nextCondition);
      out += copies("before", s.before);
      block(s.thenSteps, indent);
      out += copies("copies", s.thenCopies) + copies("after", s.after);
      break;
    }
    out += "\n";
  }

  void launch(const ExecStep &s, int indent) {
    std::string space(static_cast<size_t>(indent), ' ');
    out += " launch {\n";
    for (const LaunchVariant &v : s.variants) {
      out += space + (v.guards.empty() ? "  else" : "  when");
      for (const Guard &g : v.guards)
        out += " " + guardText(g, program.symbols);
      out += " @" + nameToText(program.kernels[v.kernel].name) + list(v.arguments) + "\n";
    }
    out += space + "}";
  }

  const GirProgram &program;
  ConstantStore *store;
  std::string out;
};

} // namespace

std::string print(const GirProgram &program, ConstantStore *store) {
  return Printer(program, store).run();
}

} // namespace fusec
