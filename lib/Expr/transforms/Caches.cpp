// Caches whose input and output may share memory. An output that a decoder makes by
//
//   map present [b:batch, h:2, r:past + length, d:8]
//     %present = if(lt(past - 1, r), %new[b, h, r - past, d], %past[b, h, r, d])
//
// has in memory room for `o` rows more, as %past has for `i` rows, and its first `k` rows are not stored:
//
//   tensor %past: f32[batch,2,past + i,8]       tensor %present: f32[batch,2,past + length + o,8]
//   map present [b:batch, h:2, r:past + length, d:8]
//     %present = if(...) where le(k, r)
//
// In a run that shares no memory i = o = k = 0, and all is as without them. With i = o + length the two are equally
// long; then both may be one memory, and k = past says that the old rows are in place. Whoever reads %present, in the
// same kernel or behind it, finds old rows and new ones there, and whoever reads %past finds old rows, which nothing
// writes: no order of kernels beside that of the values matters.
//
// A scatter whose base is an input begins with a copy of it. Here `k` indices of the first dimension are in place, and
// all of them are where base and output are one memory. Nothing else may read the base then, since it changes.
#include "Expr/Caches.h"

#include "Expr/transforms/Walk.h"
#include "Support/DimProgram.h"
#include "Support/Text.h"
#include "Support/TypeText.h"

#include <algorithm>
#include <set>

namespace fusec {

namespace {

DimProgram noRows() {
  DimProgram zero;
  zero.code = {{DimProgram::Op::Integer, DType::I64, {-1, -1, -1}, 0}};
  return zero;
}

class Opener {
public:
  Opener(const Graph &graph, ExprProgram &program) : graph(graph), program(program) {
    for (const Symbol &s : program.symbols)
      names.insert(s.name);
    for (const InferredSize &s : graph.sizeRules.inferred)
      names.insert(s.name);
    countUses();
  }

  std::vector<CachePair> run() {
    for (size_t o = 0; o < program.outputs.size(); ++o) {
      const TensorId output = program.outputs[o];
      if (program.tensors[output].kind != TensorKind::Output ||
          std::ranges::count(program.outputs, output) != 1)
        continue;
      if (Equation *maker = makerOf(output)) {
        if (maker->kind == EquationKind::Scatter)
          openScatter(*maker, output);
        else if (maker->kind == EquationKind::Map)
          openConcat(*maker, output, graph.body.outputs[o]);
      }
    }
    forEachEquation(program.items, [&](Equation &e, const DimExpr *steps) {
      if (!caches.empty())
        setRanges(e, program.symbols, steps);
    });
    return std::move(caches);
  }

private:
  struct Uses {
    int whole = 0, reads = 0;
  };

  void countUses() {
    uses.resize(program.tensors.size());
    auto whole = [&](TensorId &id) {
      if (id >= 0)
        ++uses[id].whole;
    };
    forEachEquation(program.items, [&](Equation &e, const DimExpr *) {
      forEachWholeUse(e, whole);
      for (NodeId id : e.body.reachable(bodyRoots(e)))
        if (isRead(e.body[id]))
          ++uses[e.body[id].index].reads;
    });
    forEachControl(program.items, [&](Control &c) { forEachWholeUse(c, whole); });
  }

  /// The equation that makes the tensor and no other, in every run.
  Equation *makerOf(TensorId tensor) {
    for (Item &item : program.items)
      if (auto *e = std::get_if<Equation>(&item.value);
          e && e->outputs == std::vector<TensorId>{tensor})
        return e;
    return nullptr;
  }

  /// An input that a run gives and that is no output and no other pair's.
  bool mayBeCache(TensorId id) const {
    const Tensor &t = program.tensors[id];
    return t.kind == TensorKind::Input && !t.defaultValue &&
           std::ranges::count(program.outputs, id) == 0 &&
           std::ranges::none_of(caches, [&](const CachePair &c) { return c.input == t.name; });
  }

  SymbolId addSymbol(const std::string &name, const std::string &node) {
    std::string unique = name;
    while (!names.insert(unique).second)
      unique += "_";
    auto zero = std::make_shared<DimProgram>(noRows());
    zero->node = node;
    program.symbols.push_back({unique, 0, 0, INT64_MAX, 1, std::move(zero)});
    return static_cast<SymbolId>(program.symbols.size() - 1);
  }

  /// Caches of equal sizes have their symbols in common, so that layers are alike.
  const CachePair *known(const DimExpr &before, const DimExpr &after, bool grows) const {
    for (size_t c = 0; c < caches.size(); ++c)
      if (caches[c].grows() == grows && sizes[c].first == before && sizes[c].second == after)
        return &caches[c];
    return nullptr;
  }

  void openScatter(Equation &e, TensorId output) {
    const TensorId base = e.base;
    const Shape &shape = program.tensors[output].shape;
    if (!mayBeCache(base) || uses[base].whole != 1 || uses[base].reads != 0 || shape.empty())
      return;
    CachePair cache{program.tensors[base].name, program.tensors[output].name};
    const CachePair *same = known(shape[0], shape[0], false);
    cache.kept = same ? same->kept : addSymbol(cache.output + ".kept", nodeOf(e));
    e.steps = DimExpr::symbol(cache.kept);
    sizes.emplace_back(shape[0], shape[0]);
    caches.push_back(std::move(cache));
  }

  void openConcat(Equation &e, TensorId output, ValueId value) {
    const auto concat = std::ranges::find_if(graph.body.nodes, [&](const Node &n) {
      return n.op == OpKind::Concat && n.outputs[0] == value;
    });
    if (concat == graph.body.nodes.end())
      return;
    const auto given = std::ranges::find(graph.body.inputs, concat->inputs[0]);
    if (given == graph.body.inputs.end())
      return;
    const TensorId input = program.inputs[static_cast<size_t>(given - graph.body.inputs.begin())];
    const int axis = static_cast<int>(concat->intAttr("axis"));
    const auto at = static_cast<size_t>(axis);
    const DimExpr before = program.tensors[input].shape[at];
    const DimExpr after = program.tensors[output].shape[at];
    if (!mayBeCache(input) || before.isConst() || uses[input].whole != 0 || uses[output].whole != 0)
      return;
    CachePair cache{program.tensors[input].name, program.tensors[output].name, axis};
    if (const CachePair *same = known(before, after, true)) {
      cache.inputRoom = same->inputRoom;
      cache.outputRoom = same->outputRoom;
      cache.kept = same->kept;
    } else {
      cache.inputRoom = addSymbol(cache.input + ".room", concat->name);
      cache.outputRoom = addSymbol(cache.output + ".room", concat->name);
      cache.kept = addSymbol(cache.output + ".kept", concat->name);
    }
    program.tensors[input].shape[at] = before + DimExpr::symbol(cache.inputRoom);
    program.tensors[output].shape[at] = after + DimExpr::symbol(cache.outputRoom);
    setRanges(e, program.symbols);
    e.scatterPredicate =
        e.body.binary(ScalarOp::Le, e.body.dim(DimExpr::symbol(cache.kept)), e.body.axis(axis));
    compact(e);
    sizes.emplace_back(before, after);
    caches.push_back(std::move(cache));
  }

  static std::string nodeOf(const Equation &e) {
    return e.onnxNodes.empty() ? e.name : e.onnxNodes.front();
  }

  const Graph &graph;
  ExprProgram &program;
  std::set<std::string> names; // of sizes
  std::vector<Uses> uses;      // of each tensor
  std::vector<CachePair> caches;
  std::vector<std::pair<DimExpr, DimExpr>> sizes; // of each cache: rows before and after
};

} // namespace

std::vector<CachePair> openCaches(const Graph &graph, ExprProgram &program) {
  return Opener(graph, program).run();
}

Shape withoutRoom(Shape shape, const std::vector<Symbol> &symbols) {
  for (DimExpr &d : shape)
    d = d.substitute([&](SymbolId s) -> std::optional<DimExpr> {
      const auto &definition = symbols[static_cast<size_t>(s)].definition;
      return definition && definition->code == noRows().code ? std::optional(DimExpr(0))
                                                             : std::nullopt;
    });
  return shape;
}

std::string cachesText(const std::vector<CachePair> &caches, const std::vector<Symbol> &symbols) {
  auto symbol = [&](SymbolId s) { return nameToText(symbols[static_cast<size_t>(s)].name); };
  std::string out;
  for (const CachePair &c : caches)
    out += "cache " + quoted(c.input) + " to " + quoted(c.output) + " along " +
           std::to_string(c.axis) +
           (c.grows() ? " rooms " + symbol(c.inputRoom) + " " + symbol(c.outputRoom) : "") +
           " kept " + symbol(c.kept) + "\n";
  return out;
}

Result<std::vector<CachePair>> parseCaches(TextReader &in, const std::vector<Symbol> &symbols) {
  auto symbol = [&]() -> Result<SymbolId> {
    FUSEC_TRY(std::string name, in.nameText());
    const auto found =
        std::ranges::find_if(symbols, [&](const Symbol &s) { return s.name == name; });
    if (found == symbols.end() || !found->definition)
      return in.error("there is no size '" + name + "' that is computed");
    return static_cast<SymbolId>(found - symbols.begin());
  };
  std::vector<CachePair> out;
  while (in.accept("cache")) {
    CachePair c;
    FUSEC_TRY(c.input, in.string());
    FUSEC_CHECK(in.expect("to"));
    FUSEC_TRY(c.output, in.string());
    FUSEC_CHECK(in.expect("along"));
    FUSEC_TRY(const int64_t axis, in.integer());
    c.axis = static_cast<int>(axis);
    if (in.accept("rooms")) {
      FUSEC_TRY(c.inputRoom, symbol());
      FUSEC_TRY(c.outputRoom, symbol());
    }
    FUSEC_CHECK(in.expect("kept"));
    FUSEC_TRY(c.kept, symbol());
    out.push_back(std::move(c));
  }
  return out;
}

} // namespace fusec
