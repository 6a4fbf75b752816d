#include "Reference/RandomGraph.h"

#include "Reference/Random/Builder.h"

// A graph grows from inputs that broadcast with each other: each has a suffix of one master shape, with some dims
// replaced by 1. Nodes are added until the wanted count is reached; whatever nothing reads is an output.

namespace fusec {

using random::Builder;
using random::Rng;

static Shape masterShape(Builder &b) {
  Shape s;
  for (int64_t d = b.rng.between(0, 6); d > 0; --d) {
    if (!b.graph.symbols.empty() && b.rng.chance(30))
      s.push_back(DimExpr::symbol(
          static_cast<SymbolId>(b.rng.below(static_cast<int64_t>(b.graph.symbols.size())))));
    else
      s.push_back(b.rng.chance(2) ? 0 : b.rng.pick(std::vector<int64_t>{1, 2, 3, 4, 5, 7, 8}));
    if (!b.fits(s))
      s.back() = 1;
  }
  return s;
}

/// As networks have them: images, sequences, or any; one size is open at least.
static Shape openShape(Builder &b) {
  auto fixed = [&] { return DimExpr(b.rng.pick(std::vector<int64_t>{1, 2, 3, 4, 5, 7, 8})); };
  const auto symbols = static_cast<int64_t>(b.graph.symbols.size()) - (b.oneOr ? 1 : 0);
  auto open = [&] { return DimExpr::symbol(static_cast<SymbolId>(b.rng.below(symbols))); };
  auto any = [&](int percent) { return b.rng.chance(percent) ? open() : fixed(); };
  Shape s;
  switch (b.rng.below(3)) {
  case 0: s = {any(40), fixed(), any(60), any(60)}; break;
  case 1: s = {any(60), any(70), fixed()}; break;
  default:
    for (int64_t d = b.rng.between(1, 5); d > 0; --d)
      s.push_back(any(50));
  }
  if (isStatic(s))
    s[static_cast<size_t>(b.rng.below(static_cast<int64_t>(s.size())))] = open();
  while (!b.fits(s)) {
    // The largest goes, but for the last open one.
    const auto isOpen = [](const DimExpr &d) { return !d.isConst(); };
    const bool spares = std::count_if(s.begin(), s.end(), isOpen) == 1;
    DimExpr *largest = nullptr;
    for (DimExpr &d : s)
      if (!(spares && isOpen(d)) && (!largest || b.most(d) > b.most(*largest)))
        largest = &d;
    *largest = 1;
  }
  return s;
}

static void addInputs(Builder &b) {
  // f32 is common; every type occurs.
  auto type = [&] {
    return b.rng.chance(40) ? DType::F32 : static_cast<DType>(b.rng.below(kNumDTypes));
  };
  Shape master = b.options.openSizes ? openShape(b) : masterShape(b);
  DType mainType = type();
  for (int64_t i = b.rng.between(1, 4); i > 0; --i) {
    Shape s(master.begin() + b.rng.between(0, static_cast<int64_t>(master.size())), master.end());
    if (i == 1)
      s = master;
    for (DimExpr &d : s)
      if (i != 1 && b.rng.chance(20))
        d = 1;
      else if (i != 1 && b.oneOr && d == DimExpr::symbol(b.oneOr->other) && b.rng.chance(40))
        d = DimExpr::symbol(b.oneOr->symbol);
    b.addInput(b.rng.chance(60) ? mainType : type(), s);
  }
}

/// Drops symbols that no input has: their values could not be told from the inputs' shapes.
static void dropUnusedSymbols(Builder &b) {
  Graph &graph = b.graph;
  std::vector<SymbolId> used;
  for (ValueId id : graph.body.inputs)
    for (const DimExpr &d : graph.value(id).shape)
      d.collectSymbols(used);
  std::vector<Symbol> kept;
  std::vector<SymbolId> newIds(graph.symbols.size());
  for (size_t s = 0; s < graph.symbols.size(); ++s)
    if (std::find(used.begin(), used.end(), static_cast<SymbolId>(s)) != used.end()) {
      newIds[s] = static_cast<SymbolId>(kept.size());
      kept.push_back(graph.symbols[s]);
    }
  for (ValueId id : graph.body.inputs)
    for (DimExpr &d : graph.value(id).shape)
      d = d.substitute([&](SymbolId s) { return DimExpr::symbol(newIds[static_cast<size_t>(s)]); });
  graph.symbols = std::move(kept);
  const auto isUsed = [&](SymbolId s) {
    return std::find(used.begin(), used.end(), s) != used.end();
  };
  if (b.oneOr && isUsed(b.oneOr->symbol) && isUsed(b.oneOr->other))
    b.oneOr = {newIds[static_cast<size_t>(b.oneOr->symbol)],
               newIds[static_cast<size_t>(b.oneOr->other)]};
  else
    b.oneOr.reset();
}

/// One large one, or some smaller ones: tensors with all of them stay small.
static void addOpenSymbols(Builder &b) {
  const std::vector<int64_t> most =
      b.rng.pick(std::vector<std::vector<int64_t>>{{160}, {40}, {70, 20}, {24, 40}, {12, 12, 12}});
  for (size_t i = 0; i < most.size(); ++i) {
    Symbol s;
    s.name = "nmk"[i];
    s.min = b.rng.chance(80) ? b.rng.below(2) : b.rng.between(2, 4);
    s.max = most[i];
    s.opt = s.min;
    b.graph.symbols.push_back(s);
  }
  if (b.rng.chance(30)) {
    // Where 0 meets 1 the result is 0, and so not the larger one (Builder::broadcast).
    Symbol &other = b.graph.symbols[0];
    other.min = other.opt = std::max<int64_t>(other.min, 1);
    Symbol s = other;
    s.name = "r";
    s.min = s.opt = 1;
    b.graph.symbols.push_back(s);
    b.oneOr = {static_cast<SymbolId>(most.size()), 0};
  }
}

RandomGraph makeRandomGraph(uint64_t seed, const RandomGraphOptions &options) {
  Builder b(seed, options);
  b.graph.name = "random" + std::to_string(seed);
  if (options.openSizes)
    addOpenSymbols(b);
  else if (options.symbols && b.rng.chance(40))
    for (int64_t i = b.rng.between(1, 2); i > 0; --i) {
      Symbol s;
      s.name = i == 1 ? "n" : "m";
      s.min = b.rng.chance(15) ? 0 : 1;
      s.max = b.rng.between(s.min + 1, 6);
      s.opt = b.rng.between(s.min, s.max);
      b.graph.symbols.push_back(s);
    }
  addInputs(b);
  dropUnusedSymbols(b);
  int64_t wanted = b.rng.between(options.minNodes, options.maxNodes);
  for (int attempts = 0; b.nodes < wanted && attempts < 2000; ++attempts) {
    int64_t family = b.rng.below(options.openSizes ? 14 : 10);
    const auto &list = family < 5    ? random::mathsAttempts()
                       : family < 7  ? random::contractionAttempts()
                       : family < 10 ? random::movementAttempts()
                                     : random::openAttempts();
    b.rng.pick(list)(b);
  }
  RandomGraph out;
  for (const Node &n : b.graph.body.nodes)
    for (ValueId v : n.outputs)
      if (!b.consumed[static_cast<size_t>(v)] || b.rng.chance(5)) {
        b.graph.body.outputs.push_back(v);
        out.tolerance.push_back(isFloat(b.type(v)) ? b.facts[static_cast<size_t>(v)].error : 0);
      }
  // Constants that a rejected attempt left behind are read by nobody; they are legal and go with dead code.
  out.graph = std::move(b.graph);
  out.oneOr = b.oneOr;
  return out;
}

std::vector<int64_t> randomSymbolValues(const RandomGraph &random, uint64_t seed) {
  std::vector<int64_t> values = randomSymbolValues(random.graph, seed);
  if (random.oneOr)
    values[static_cast<size_t>(random.oneOr->symbol)] =
        Rng(seed).chance(50) ? 1 : values[static_cast<size_t>(random.oneOr->other)];
  return values;
}

std::vector<int64_t> randomSymbolValues(const Graph &graph, uint64_t seed) {
  Rng rng(seed);
  std::vector<int64_t> values;
  for (const Symbol &s : graph.symbols) {
    int64_t first = (s.min + s.divisor - 1) / s.divisor, last = s.max / s.divisor;
    values.push_back(rng.between(first, last) * s.divisor);
  }
  return values;
}

std::vector<TensorValue> randomInputs(const Graph &graph, const std::vector<int64_t> &symbols,
                                      uint64_t seed) {
  Rng rng(seed);
  std::vector<TensorValue> inputs;
  for (ValueId id : graph.body.inputs) {
    const Value &v = graph.value(id);
    std::vector<int64_t> dims;
    for (const DimExpr &d : v.shape)
      dims.push_back(*d.evaluate(symbols));
    TensorValue t(v.type, dims);
    for (double &x : t.floats)
      x = random::randomFloat(rng, v.type);
    for (int64_t &x : t.ints)
      x = random::randomInt(rng, v.type);
    inputs.push_back(std::move(t));
  }
  return inputs;
}

std::string compareOutputs(const RandomGraph &random, const std::vector<TensorValue> &expected,
                           const std::vector<TensorValue> &actual) {
  if (expected.size() != actual.size())
    return "different numbers of outputs";
  for (size_t i = 0; i < expected.size(); ++i) {
    const TensorValue &e = expected[i], &a = actual[i];
    std::string where = "output " + std::to_string(i) + " (" +
                        random.graph.value(random.graph.body.outputs[i]).name + ")";
    if (e.type != a.type || e.dims != a.dims)
      return where + ": type or shape differ";
    for (int64_t k = 0; k < e.numElements(); ++k) {
      auto p = static_cast<size_t>(k);
      bool equal = e.isFloating() ? e.floats[p] == a.floats[p] ||
                                        (std::isnan(e.floats[p]) && std::isnan(a.floats[p])) ||
                                        std::fabs(e.floats[p] - a.floats[p]) <= random.tolerance[i]
                                  : e.ints[p] == a.ints[p];
      if (!equal)
        return where + " element " + std::to_string(k) + ": expected " +
               std::to_string(e.number(k)) + ", got " + std::to_string(a.number(k)) +
               ", tolerance " + std::to_string(random.tolerance[i]);
    }
  }
  return "";
}

} // namespace fusec
