// Text of a kernel.
//
//   kernel @mm_0 units 1 lanes 8 shared 4352 for ("fc1") {
//     symbol batch = 1..64 opt 8 divisor 1
//     param %a f32[batch,768]
//     param out %c f32[batch,48]
//     register %acc f32[6,2]
//     register uniform %m f32[]
//     shared %as f32[16,68] at 0
//     phase (bm: ceildiv(batch, 6), bn: 3) {
//       seq k in 768 {
//         unroll i in 6 {
//           lane l in 8 {
//             %acc[i, 0] sum= mul(%a[bm*6 + i, k], %as[k, l])
//           }
//         }
//       }
//       sync block
//     }
//   }
//
// "shared %as f32[16,64] align 1024" asks for more than kSharedAlignment.
// "counters %done[8]" declares counters, "signal %done[bm]" and "wait %done[first, last] for 3" use them, and "phase
// waiting (..)" has no barrier in front. Phases that run several times stand in "rounds (t: 109) { .. }".
// "resident (r)" names the variable that is 1 where all blocks are resident. "sum=" and its kin are Accumulate; "%v[i],
// %ix argmax= value, index" is its form with an index buffer; "lanereduce max %acc[i]" is LaneReduce, "exchange
// %acc[i] xor 4" Exchange. Lets stand before the statement that uses them. The symbol lines say
// what this kernel may assume of the symbols that it uses: a variant's guards can promise more than the model's table
// does. "unroll i in 6 kernel avx2.f32 { .. }" is the product that this micro-kernel makes.
#include "Expr/BodyText.h"
#include "Gir/Walk.h"
#include "Support/TypeText.h"

namespace fusec {
namespace {

class Printer {
public:
  explicit Printer(const GirKernel &kernel) : kernel(kernel) {
    names.axis = [&kernel](int32_t v) { return kernel.vars[v].name; };
    names.tensor = [&kernel](int32_t b) { return "%" + nameToText(kernel.buffers[b].name); };
    names.symbols = &kernel.symbols;
  }

  std::string run() {
    out = "kernel @" + nameToText(kernel.name) + " units " + std::to_string(kernel.units) +
          " lanes " + std::to_string(kernel.lanes);
    if (kernel.sharedBytes >= 0)
      out += " shared " + std::to_string(kernel.sharedBytes);
    for (size_t i = 0; i < kernel.onnxNodes.size(); ++i)
      out += (i ? ", " : " for (") + quoted(kernel.onnxNodes[i]);
    out += kernel.onnxNodes.empty() ? " {\n" : ") {\n";
    for (SymbolId id : kernel.usedSymbols())
      out += "  symbol " + symbolText(kernel.symbols[id]) + "\n";
    for (const GirBuffer &b : kernel.buffers)
      out += "  " + buffer(b) + "\n";
    for (const GirCounters &c : kernel.counters)
      out += "  counters %" + nameToText(c.name) + "[" + c.count.str(kernel.symbols) + "]\n";
    if (kernel.resident >= 0)
      out += "  resident (" + kernel.vars[kernel.resident].name + ")\n";
    for (size_t p = 0; p < kernel.phases.size(); ++p) {
      if (kernel.rounds && p == kernel.rounds->first)
        out += "  rounds (" + kernel.vars[kernel.rounds->var].name + ": " +
               kernel.rounds->count.str(kernel.symbols) + ") {\n";
      const bool again = kernel.rounds && p >= kernel.rounds->first && p < kernel.rounds->last;
      phase(kernel.phases[p], again ? 4 : 2);
      if (kernel.rounds && p + 1 == kernel.rounds->last)
        out += "  }\n";
    }
    return out + "}\n";
  }

  std::string head(Stmt s) {
    s.body.clear();
    s.elseBody.clear();
    statement(s, 0);
    return out.substr(0, out.find_last_not_of(" {}\n") + 1);
  }

private:
  std::string buffer(const GirBuffer &b) const {
    std::string text = b.level != MemLevel::Global ? std::string(name(b.level))
                       : b.scratch                 ? "param scratch"
                       : b.written                 ? "param out"
                                                   : "param";
    if (b.level == MemLevel::Register && !b.perLane)
      text += " uniform";
    text += " %" + nameToText(b.name) + " " + typeText(b.type, b.shape, kernel.symbols);
    if (b.alignBytes != kSharedAlignment)
      text += " align " + std::to_string(b.alignBytes);
    if (b.offsetBytes >= 0)
      text += " at " + std::to_string(b.offsetBytes);
    return text;
  }

  void phase(const Phase &p, int indent) {
    const std::string margin(static_cast<size_t>(indent), ' ');
    out += margin + (p.waiting ? "phase waiting (" : "phase (");
    for (size_t i = 0; i < p.blocks.size(); ++i)
      out += (i ? ", " : "") + kernel.vars[p.blocks[i].var].name + ": " +
             p.blocks[i].trip.str(kernel.symbols);
    out += ") {\n";
    statements(p.body, indent + 2);
    out += margin + "}\n";
  }

  void statements(const std::vector<Stmt> &stmts, int indent) {
    for (const Stmt &s : stmts)
      statement(s, indent);
  }

  void block(const std::vector<Stmt> &stmts, int indent) {
    out += " {\n";
    statements(stmts, indent + 2);
    out += std::string(static_cast<size_t>(indent), ' ') + "}";
  }

  /// Types that the context gives to exprRefs(s).
  std::vector<DType> rootTypes(const Stmt &s) const {
    if (s.kind == StmtKind::If || s.kind == StmtKind::While)
      return {DType::Bool};
    std::vector<DType> types(std::max<size_t>(s.indices.size(), 1), DType::I64);
    if (s.kind == StmtKind::Wait)
      types.push_back(DType::I64);
    if (s.kind == StmtKind::Store || s.kind == StmtKind::Accumulate) {
      types.resize(s.indices.size());
      types.push_back(kernel.buffers[s.buffer].type);
      if (s.indexBuffer >= 0)
        types.push_back(kernel.buffers[s.indexBuffer].type);
    }
    return types;
  }

  void statement(const Stmt &s, int indent) {
    names.rootTypes = rootTypes(s);
    BodyText text = textOf(kernel.body, exprRoots(s), names, indent);
    out += text.lets + std::string(static_cast<size_t>(indent), ' ');
    switch (s.kind) {
    case StmtKind::Loop:
      out += std::string(name(s.loop)) + " " + kernel.vars[s.var].name + " in " + text.roots[0];
      if (!s.kernel.empty())
        out += " kernel " + nameToText(s.kernel);
      block(s.body, indent);
      break;
    case StmtKind::If:
    case StmtKind::While:
      out += (s.kind == StmtKind::If ? "if " : "while ") + text.roots[0];
      block(s.body, indent);
      if (!s.elseBody.empty()) {
        out += " else";
        block(s.elseBody, indent);
      }
      break;
    case StmtKind::Sync: out += "sync " + std::string(name(s.scope)); break;
    case StmtKind::Signal: out += "signal " + counter(s) + "[" + text.roots[0] + "]"; break;
    case StmtKind::Wait:
      out += "wait " + counter(s) + "[" + text.roots[0] + ", " + text.roots[1] + "] for " +
             text.roots[2];
      break;
    case StmtKind::Store:
    case StmtKind::Accumulate:
    case StmtKind::LaneReduce:
    case StmtKind::Exchange: out += update(s, text.roots);
    }
    out += "\n";
  }

  std::string counter(const Stmt &s) const {
    return "%" + nameToText(kernel.counters[s.counter].name);
  }

  /// Store, Accumulate, LaneReduce or Exchange; `roots` are the texts of exprRefs(s).
  std::string update(const Stmt &s, const std::vector<std::string> &roots) const {
    size_t rank = s.indices.size();
    std::string target = names.tensor(s.buffer) + "[";
    for (size_t i = 0; i < rank; ++i)
      target += (i ? ", " : "") + roots[i];
    target += "]";
    if (s.indexBuffer >= 0)
      target += ", " + names.tensor(s.indexBuffer);
    if (s.kind == StmtKind::LaneReduce)
      return "lanereduce " + std::string(name(s.monoid)) + " " + target;
    if (s.kind == StmtKind::Exchange)
      return "exchange " + target + " xor " + std::to_string(s.distance);
    target += s.kind == StmtKind::Store ? " = " : " " + std::string(name(s.monoid)) + "= ";
    return target + roots[rank] + (s.indexBuffer >= 0 ? ", " + roots[rank + 1] : "");
  }

  const GirKernel &kernel;
  BodyNames names;
  std::string out;
};

} // namespace

std::string headText(const GirKernel &kernel, const Stmt &stmt) {
  return Printer(kernel).head(stmt);
}

std::string print(const GirKernel &kernel) { return Printer(kernel).run(); }

} // namespace fusec
