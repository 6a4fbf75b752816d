// expr "bert"
// symbol n = 1..64 opt 8 divisor 1
// tensor %x: f32[n,768] input
// tensor %w: f32[768,768] constant digest "00112233445566778899aabbccddeeff"
// tensor %c: f32[n,768] temp
// tensor %y: f32[n,768] output
// inputs (%x)
// outputs (%y)
// reduction mm [i:n, j:768; k:768] sum f32 @"MatMul_3"
//   %c = mul(%x[i, k], %w[k, j])
// reduction softmax [i:n; k:768] cascade f32
//   %max = max %x[i, k]
//   %sum = sum exp(sub(%x[i, k], state(0)))
//   correct 1 = mul(part(1), exp(sub(part(0), state(0))))
// reduction lse [i:n; k:768] cascade f32          # a state without an output
//   state max %x[i, k]
//   ...
// map gelu [i:n, j:768] @"Gelu_4"
//   let t0 = %c[i, j];
//   %y = mul(t0, sigmoid(t0))
// scatter s [i:4] add base %b
//   %o[%idx[i]] = %u[i] where lt(0, %idx[i])
// scan rnn steps(100) reversed
//   carry %h = %h0 next %hn final %h1
//   stack %o -> %y                     # "from 2": step 2 is the first that is stacked
//   <equations>
// end
// opaque top [i:4, k:5; j:n] topk {largest = 1} (%x) -> (%v, %i)
// if branch %cond
//   <items>
//   yield (%a)
// else
//   <items>
//   yield (%b)
// end -> (%r)
// size count %total symbol s @"NonZero_7"
// loop repeat trip %m condition %c0 iteration %it next %c1
//   carry %in = %init next %out final %r
//   <items>
// end
#include "Expr/BodyText.h"
#include "Expr/Expr.h"
#include "Graph/ConstantText.h"
#include "Support/TypeText.h"

namespace fusec {
namespace {

class Printer {
public:
  Printer(const ExprProgram &program, ConstantStore *store) : program(program), store(store) {}

  std::string run() {
    out = "expr " + nameToText(program.name) + "\n";
    out += symbolsText(program.symbols);
    for (const Tensor &t : program.tensors)
      tensor(t);
    out += "inputs " + list(program.inputs) + "\noutputs " + list(program.outputs) + "\n";
    for (const Item &item : program.items)
      print(item, 0);
    return std::move(out);
  }

private:
  static constexpr std::string_view kKinds[] = {"input", "constant", "temp", "output"};

  std::string ref(TensorId id) const { return "%" + nameToText(program.tensors[id].name); }
  std::string list(const std::vector<TensorId> &ids) const {
    std::string text = "(";
    for (size_t i = 0; i < ids.size(); ++i)
      text += (i ? ", " : "") + ref(ids[i]);
    return text + ")";
  }
  static std::string pad(int indent) { return std::string(static_cast<size_t>(indent), ' '); }
  static std::string origin(const std::vector<std::string> &onnxNodes) {
    std::string text;
    for (const std::string &n : onnxNodes)
      text += " @" + quoted(n);
    return text;
  }

  void tensor(const Tensor &t) {
    out += "tensor %" + nameToText(t.name) + ": " + typeText(t.type, t.shape, program.symbols) +
           " " + std::string(kKinds[static_cast<int>(t.kind)]);
    if (t.constant)
      out += " " + constantDataText(t.constant, store);
    if (t.defaultValue)
      out += " default " + constantDataText(t.defaultValue, store);
    out += "\n";
  }

  void print(const Item &item, int indent) {
    if (const auto *e = std::get_if<Equation>(&item.value))
      equation(*e, indent);
    else
      control(std::get<Control>(item.value), indent);
  }

  std::string axes(const Equation &e) const {
    std::string text = " [";
    for (int i = 0; i < static_cast<int>(e.axes.size()); ++i) {
      text += i == e.numSpatial ? "; " : i ? ", " : "";
      text += e.axes[i].name + ":" + e.axes[i].extent.str(program.symbols);
    }
    return text + "]";
  }

  void assignments(const Equation &e, int indent) {
    BodyNames names{[&](int32_t a) { return e.axes[a].name; },
                    [&](int32_t t) { return ref(t); },
                    &program.symbols,
                    {}};
    if (!e.states.empty())
      return cascade(e, names, indent);
    for (size_t i = 0; i < e.results.size(); ++i)
      names.rootTypes.push_back(e.kind == EquationKind::Reduction && i == 0
                                    ? e.accumulateType
                                    : program.tensors[e.outputs[i]].type);
    names.rootTypes.resize(e.results.size() + e.scatterIndex.size(), DType::I64);
    names.rootTypes.push_back(DType::Bool);
    BodyText text = textOf(e.body, bodyRoots(e), names, indent);
    out += text.lets;
    for (size_t i = 0; i < e.results.size(); ++i) {
      out += pad(indent) + ref(e.outputs[i]);
      if (e.kind == EquationKind::Scatter) {
        out += "[";
        for (size_t d = 0; d < e.scatterIndex.size(); ++d)
          out += (d ? ", " : "") + text.roots[1 + d];
        out += "]";
      }
      out += " = " + text.roots[i];
      if (e.scatterPredicate != kNoNode)
        out += " where " + text.roots.back();
      out += "\n";
    }
  }

  void cascade(const Equation &e, BodyNames &names, int indent) {
    const std::vector<NodeId> roots = bodyRoots(e);
    names.rootTypes.assign(roots.size(), e.accumulateType);
    BodyText text = textOf(e.body, roots, names, indent);
    out += text.lets;
    const size_t hidden = e.states.size() - e.outputs.size();
    for (size_t s = 0; s < e.states.size(); ++s)
      out += pad(indent) + (s < hidden ? "state" : ref(e.outputs[s - hidden]) + " =") + " " +
             std::string(name(e.states[s].monoid)) + " " + text.roots[s] + "\n";
    size_t root = e.states.size();
    for (size_t s = 0; s < e.states.size(); ++s)
      if (e.states[s].correction != kNoNode)
        out += pad(indent) + "correct " + std::to_string(s) + " = " + text.roots[root++] + "\n";
  }

  void equation(const Equation &e, int indent) {
    out += pad(indent);
    std::string head = nameToText(e.name);
    switch (e.kind) {
    case EquationKind::Map: out += "map " + head + axes(e); break;
    case EquationKind::Reduction:
      out += "reduction " + head + axes(e) + " " + std::string(name(e.monoid)) + " " +
             std::string(name(e.accumulateType));
      break;
    case EquationKind::Scatter:
      out += "scatter " + head + axes(e) + " " + std::string(name(e.combiner)) + " base " +
             ref(e.base);
      if (!e.steps.isConst(0))
        out += " kept(" + e.steps.str(program.symbols) + ")";
      break;
    case EquationKind::Scan:
      out += "scan " + head + " steps(" + e.steps.str(program.symbols) + ")" +
             (e.reversed ? " reversed" : "");
      out += origin(e.onnxNodes) + "\n";
      scanBody(e, indent + 2);
      out += pad(indent) + "end\n";
      return;
    case EquationKind::Opaque:
      out += "opaque " + head + axes(e) + " " + nameToText(e.opaque) + attributes(e) + " " +
             list(e.opaqueInputs) + " -> " + list(e.outputs) + origin(e.onnxNodes) + "\n";
      return;
    }
    out += origin(e.onnxNodes) + "\n";
    assignments(e, indent + 2);
  }

  std::string attributes(const Equation &e) const {
    std::string text = " {";
    for (const auto &[key, value] : e.opaqueAttributes)
      text += (text.size() > 2 ? ", " : "") + nameToText(key) + " = " + std::to_string(value);
    return text + "}";
  }

  void scanBody(const Equation &e, int indent) {
    for (const ScanCarry &c : e.carries)
      out += pad(indent) + "carry " + ref(c.previous) + " = " + ref(c.init) + " next " +
             ref(c.next) + (c.final >= 0 ? " final " + ref(c.final) : "") + "\n";
    for (const ScanOutput &o : e.scanOutputs)
      out += pad(indent) + "stack " + ref(o.perStep) + " -> " + ref(o.stacked) +
             (o.first >= 0 ? " from " + std::to_string(o.first) : "") + "\n";
    for (const Equation &inner : e.scanBody)
      equation(inner, indent);
  }

  void branch(const std::vector<Item> &items, const std::vector<TensorId> &yields, int indent) {
    for (const Item &item : items)
      print(item, indent);
    out += pad(indent) + "yield " + list(yields) + "\n";
  }

  void control(const Control &c, int indent) {
    if (c.kind == Control::Kind::If) {
      out += pad(indent) + "if " + nameToText(c.name) + " " + ref(c.condition) +
             origin(c.onnxNodes) + "\n";
      branch(c.thenItems, c.thenYields, indent + 2);
      out += pad(indent) + "else\n";
      branch(c.elseItems, c.elseYields, indent + 2);
      out += pad(indent) + "end -> " + list(c.results) + "\n";
      return;
    }
    if (c.kind == Control::Kind::Size) {
      out += pad(indent) + "size " + nameToText(c.name) + " " + ref(c.tripCount) + " symbol " +
             nameToText(program.symbols[c.symbol].name) + (c.isTested ? " tested" : "") +
             origin(c.onnxNodes) + "\n";
      return;
    }
    out += pad(indent) + "loop " + nameToText(c.name);
    auto optional = [&](const char *word, TensorId id) {
      if (id >= 0)
        out += std::string(" ") + word + " " + ref(id);
    };
    optional("trip", c.tripCount);
    optional("condition", c.condition);
    optional("iteration", c.iteration);
    optional("next", c.nextCondition);
    out += origin(c.onnxNodes) + "\n";
    for (size_t i = 0; i < c.carriedIn.size(); ++i)
      out += pad(indent + 2) + "carry " + ref(c.carriedIn[i]) + " = " + ref(c.carriedInit[i]) +
             " next " + ref(c.carriedOut[i]) + " final " + ref(c.results[i]) + "\n";
    for (const Item &item : c.thenItems)
      print(item, indent + 2);
    out += pad(indent) + "end\n";
  }

  const ExprProgram &program;
  ConstantStore *store;
  std::string out;
};

} // namespace

std::string print(const ExprProgram &program, ConstantStore *store) {
  return Printer(program, store).run();
}

} // namespace fusec
