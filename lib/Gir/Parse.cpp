// Reads the text that Print.cpp describes. The result is canonical (Passes.h).
#include "Expr/BodyText.h"
#include "Gir/Walk.h"
#include "Support/TypeText.h"

#include <map>

namespace fusec {
namespace {

constexpr int kMaxDepth = 64;
constexpr int kMaxThreads = 4096;

template <typename E> std::optional<E> enumNamed(std::string_view word, E last) {
  for (int i = 0; i <= static_cast<int>(last); ++i)
    if (name(static_cast<E>(i)) == word)
      return static_cast<E>(i);
  return std::nullopt;
}

class Parser {
public:
  Parser(TextReader &in, const std::vector<Symbol> &symbols) : in(in), standalone(symbols.empty()) {
    kernel.symbols = symbols;
    names.symbols = &kernel.symbols;
    names.axis = [this](std::string_view word) -> std::optional<int32_t> {
      auto it = scope.find(std::string(word));
      return it == scope.end() ? std::nullopt : std::optional(it->second);
    };
    names.tensor = [this](std::string_view word) -> std::optional<std::pair<int32_t, DType>> {
      auto it = bufferIds.find(std::string(word));
      if (it == bufferIds.end())
        return std::nullopt;
      return std::make_pair(it->second, kernel.buffers[it->second].type);
    };
  }

  Result<GirKernel> run() {
    FUSEC_CHECK(in.expect("kernel"));
    FUSEC_TRY(kernel.name, in.nameAfter("@"));
    FUSEC_TRY(kernel.units, count("units"));
    FUSEC_TRY(kernel.lanes, count("lanes"));
    if (in.accept("shared")) {
      FUSEC_TRY(kernel.sharedBytes, in.integer());
    }
    if (in.accept("for")) {
      FUSEC_CHECK(in.expect("("));
      FUSEC_TRY(kernel.onnxNodes, in.list(")", [&] { return in.string(); }));
    }
    FUSEC_CHECK(in.expect("{"));
    while (in.accept("symbol"))
      FUSEC_CHECK(symbolFacts());
    while (in.peekIs("param") || in.peekIs("register") || in.peekIs("shared"))
      FUSEC_CHECK(buffer());
    while (in.accept("counters"))
      FUSEC_CHECK(counters());
    if (in.accept("resident")) {
      FUSEC_CHECK(in.expect("("));
      FUSEC_TRY(kernel.resident, bind(LoopKind::Seq));
      FUSEC_CHECK(in.expect(")"));
    }
    const auto around = scope;
    while (in.peekIs("phase") || in.peekIs("rounds")) {
      if (in.accept("rounds"))
        FUSEC_CHECK(rounds());
      else
        FUSEC_CHECK(phase());
      scope = around;
    }
    FUSEC_CHECK(in.expect("}"));
    setRanges(kernel);
    return std::move(kernel);
  }

private:
  Result<int> count(std::string_view keyword) {
    FUSEC_CHECK(in.expect(keyword));
    FUSEC_TRY(int64_t v, in.integer());
    if (v < 1 || v > kMaxThreads)
      return in.error(std::string(keyword) + " must be in 1.." + std::to_string(kMaxThreads));
    return static_cast<int>(v);
  }

  Status symbolFacts() {
    FUSEC_TRY(Symbol facts, parseSymbol(in));
    if (const std::optional<SymbolId> known = symbolNamed(facts.name, kernel.symbols)) {
      Symbol &s = kernel.symbols[static_cast<size_t>(*known)];
      facts.definition = s.definition;
      facts.bound = s.bound;
      facts.test = s.test;
      s = std::move(facts);
      return success();
    }
    if (standalone) {
      kernel.symbols.push_back(std::move(facts));
      return success();
    }
    return in.error("there is no symbol '" + facts.name + "'");
  }

  Status buffer() {
    GirBuffer b;
    if (in.accept("param")) {
      b.level = MemLevel::Global;
      b.scratch = in.accept("scratch");
      b.written = b.scratch || in.accept("out");
    } else if (in.accept("register")) {
      b.level = MemLevel::Register;
      b.perLane = !in.accept("uniform");
    } else {
      in.next();
      b.level = MemLevel::Shared;
    }
    FUSEC_TRY(b.name, in.nameAfter("%"));
    FUSEC_CHECK(parseType(in, kernel.symbols, b.type, b.shape));
    if (in.accept("align")) {
      FUSEC_TRY(b.alignBytes, in.integer());
    }
    if (in.accept("at")) {
      FUSEC_TRY(b.offsetBytes, in.integer());
    }
    if (!bufferIds.emplace(b.name, static_cast<BufferId>(kernel.buffers.size())).second)
      return in.error("%" + b.name + " is declared twice");
    kernel.buffers.push_back(std::move(b));
    return success();
  }

  Status counters() {
    GirCounters c;
    FUSEC_TRY(c.name, in.nameAfter("%"));
    FUSEC_CHECK(in.expect("["));
    FUSEC_TRY(c.count, DimExpr::parse(in.rawUntil("]"), kernel.symbols));
    FUSEC_CHECK(in.expect("]"));
    kernel.counters.push_back(std::move(c));
    return success();
  }

  Result<VarId> bind(LoopKind kind) {
    FUSEC_TRY(std::string varName, in.identifier());
    VarId var = static_cast<VarId>(kernel.vars.size());
    if (!scope.emplace(varName, var).second)
      return in.error("a loop around this one is named '" + varName + "' too");
    kernel.vars.push_back({std::move(varName), kind});
    return var;
  }

  Status rounds() {
    if (kernel.rounds)
      return in.error("a kernel has rounds once");
    Rounds r;
    FUSEC_CHECK(in.expect("("));
    FUSEC_TRY(r.var, bind(LoopKind::Seq));
    FUSEC_CHECK(in.expect(":"));
    FUSEC_TRY(r.count, DimExpr::parse(in.rawUntil(")"), kernel.symbols));
    FUSEC_CHECK(in.expect(")"));
    FUSEC_CHECK(in.expect("{"));
    r.first = kernel.phases.size();
    const auto around = scope;
    while (in.peekIs("phase")) {
      FUSEC_CHECK(phase());
      scope = around;
    }
    r.last = kernel.phases.size();
    kernel.rounds = std::move(r);
    return in.expect("}");
  }

  Result<Phase::Block> block() {
    FUSEC_TRY(VarId var, bind(LoopKind::Block));
    FUSEC_CHECK(in.expect(":"));
    FUSEC_TRY(DimExpr trip, DimExpr::parse(in.rawUntil(",)"), kernel.symbols));
    return Phase::Block{var, std::move(trip)};
  }

  Status phase() {
    FUSEC_CHECK(in.expect("phase"));
    Phase p;
    p.waiting = in.accept("waiting");
    FUSEC_CHECK(in.expect("("));
    FUSEC_TRY(p.blocks, in.list(")", [&] { return block(); }));
    FUSEC_CHECK(statements(p.body, 0));
    kernel.phases.push_back(std::move(p));
    return success();
  }

  Status statements(std::vector<Stmt> &out, int depth) {
    if (depth > kMaxDepth)
      return in.error("statements are nested more than " + std::to_string(kMaxDepth) + " deep");
    FUSEC_CHECK(in.expect("{"));
    while (!in.accept("}")) {
      FUSEC_TRY(Stmt s, statement(depth));
      out.push_back(std::move(s));
    }
    return success();
  }

  Result<NodeId> expr(BodyReader &reader, DType type) {
    FUSEC_TRY(NodeId root, reader.expression(type));
    if (DType given = kernel.body[root].type; given != type)
      return in.error("expected a value of type " + std::string(name(type)) + ", this one is " +
                      std::string(name(given)));
    return root;
  }

  Result<BufferId> bufferRef() {
    FUSEC_TRY(std::string bufferName, in.nameAfter("%"));
    auto it = bufferIds.find(bufferName);
    if (it == bufferIds.end())
      return in.error("there is no buffer %" + nameToText(bufferName));
    return it->second;
  }

  Status element(BodyReader &reader, Stmt &s) {
    FUSEC_TRY(s.buffer, bufferRef());
    FUSEC_TRY(s.indices, reader.indices());
    if (in.accept(",")) {
      FUSEC_TRY(s.indexBuffer, bufferRef());
    }
    return success();
  }

  Result<Monoid> monoid() {
    FUSEC_TRY(std::string word, in.identifier());
    auto m = enumNamed(word, Monoid::ArgMinLast);
    if (!m)
      return in.error("'" + word + "' is no monoid");
    return *m;
  }

  Result<Stmt> statement(int depth) {
    Stmt s;
    BodyReader reader(in, kernel.body, names);
    FUSEC_CHECK(reader.readLets());
    if (in.peekIs("%"))
      return assignment(reader);
    FUSEC_TRY(std::string word, in.identifier());
    if (auto kind = enumNamed(word, LoopKind::Unroll); kind && *kind != LoopKind::Block)
      return loop(reader, *kind, depth);
    if (word == "if" || word == "while") {
      s.kind = word == "if" ? StmtKind::If : StmtKind::While;
      FUSEC_TRY(s.predicate, expr(reader, DType::Bool));
      FUSEC_CHECK(statements(s.body, depth + 1));
      if (s.kind == StmtKind::If && in.accept("else"))
        FUSEC_CHECK(statements(s.elseBody, depth + 1));
      return s;
    }
    if (word == "lanereduce") {
      s.kind = StmtKind::LaneReduce;
      FUSEC_TRY(s.monoid, monoid());
      FUSEC_CHECK(element(reader, s));
      return s;
    }
    if (word == "exchange") {
      s.kind = StmtKind::Exchange;
      FUSEC_CHECK(element(reader, s));
      FUSEC_CHECK(in.expect("xor"));
      FUSEC_TRY(int64_t distance, in.integer());
      if (distance < 1 || distance > INT32_MAX)
        return in.error("lanes exchange over a distance of at least 1");
      s.distance = static_cast<int>(distance);
      return s;
    }
    if (word == "sync") {
      s.kind = StmtKind::Sync;
      s.scope = in.accept("unit") ? SyncScope::Unit : SyncScope::Block;
      if (s.scope == SyncScope::Block)
        FUSEC_CHECK(in.expect("block"));
      return s;
    }
    if (word == "signal" || word == "wait")
      return counting(reader, word == "wait");
    return in.error("'" + word + "' begins no statement");
  }

  Result<Stmt> counting(BodyReader &reader, bool waits) {
    Stmt s;
    s.kind = waits ? StmtKind::Wait : StmtKind::Signal;
    FUSEC_TRY(std::string counterName, in.nameAfter("%"));
    for (size_t c = 0; c < kernel.counters.size(); ++c)
      if (kernel.counters[c].name == counterName)
        s.counter = static_cast<CounterId>(c);
    if (s.counter < 0)
      return in.error("there are no counters %" + nameToText(counterName));
    FUSEC_TRY(s.indices, reader.indices());
    if (s.indices.size() != (waits ? 2 : 1))
      return in.error(waits ? "wait takes the first and the last counter"
                            : "signal takes one counter");
    if (waits) {
      FUSEC_CHECK(in.expect("for"));
      FUSEC_TRY(s.value, expr(reader, DType::I64));
    }
    return s;
  }

  Result<Stmt> loop(BodyReader &reader, LoopKind kind, int depth) {
    Stmt s;
    s.kind = StmtKind::Loop;
    s.loop = kind;
    std::string varName(in.peek().text);
    FUSEC_TRY(s.var, bind(kind));
    FUSEC_CHECK(in.expect("in"));
    FUSEC_TRY(s.trip, expr(reader, DType::I64));
    if (in.accept("kernel")) {
      FUSEC_TRY(s.kernel, in.nameText());
    }
    FUSEC_CHECK(statements(s.body, depth + 1));
    scope.erase(varName);
    return s;
  }

  Result<Stmt> assignment(BodyReader &reader) {
    Stmt s;
    FUSEC_CHECK(element(reader, s));
    s.kind = in.peekIs("=") ? StmtKind::Store : StmtKind::Accumulate;
    if (s.kind == StmtKind::Accumulate) {
      FUSEC_TRY(s.monoid, monoid());
    }
    FUSEC_CHECK(in.expect("="));
    FUSEC_TRY(s.value, expr(reader, kernel.buffers[s.buffer].type));
    if (s.kind == StmtKind::Accumulate && s.indexBuffer >= 0) {
      FUSEC_CHECK(in.expect(","));
      FUSEC_TRY(s.indexValue, expr(reader, kernel.buffers[s.indexBuffer].type));
    }
    return s;
  }

  TextReader &in;
  bool standalone; // no table of a model: the symbol lines make one
  GirKernel kernel;
  BodyParser names;
  std::map<std::string, BufferId> bufferIds;
  std::map<std::string, VarId> scope;
};

} // namespace

Result<GirKernel> parseGirKernel(TextReader &in, const std::vector<Symbol> &symbols) {
  FUSEC_TRY(GirKernel kernel, Parser(in, symbols).run());
  if (const Nesting most = nestingOf(kernel.body);
      most.operations > kMostNested || most.guardedReads > kMostNestedReads)
    return in.error("kernel @" + kernel.name + ": more than " + nestedText());
  FUSEC_CHECK(verify(kernel));
  return kernel;
}

} // namespace fusec
