#include "Bundle/CheckSizes.h"

#include "Bundle/CheckSymbols.h"
#include "Support/Diag.h"
#include "Support/DimProgram.h"

#include <algorithm>
#include <set>
#include <utility>

namespace fusec::bundle {

namespace {

Status bad(const std::string &where, std::string text) {
  return Diagnostic{Diag::BadBundle, where, std::move(text)};
}

class StepChecker {
public:
  StepChecker(const Model &model, const Program &program, const std::string &where)
      : model(model), program(program), where(where), isDataSize(model.symbols.size(), false) {
    for (const DataSize &d : model.dataSizes)
      isDataSize[static_cast<size_t>(d.symbol)] = true;
  }

  Status run() {
    FUSEC_CHECK(steps(program.steps));
    for (int32_t t : program.outputs)
      FUSEC_CHECK(tensor(t, where));
    return success();
  }

private:
  Status known(SymbolId symbol, const std::string &place) const {
    if (isDataSize[static_cast<size_t>(symbol)] && !sized.count(symbol))
      return bad(place, "uses the size '" + model.symbols[static_cast<size_t>(symbol)].name +
                            "' where no step has given it a value");
    return success();
  }
  Status known(const DimCode &code, const std::string &place) const {
    for (const DimCode::Instr &i : code.code)
      if (i.op == DimCode::Op::Symbol)
        FUSEC_CHECK(known(static_cast<SymbolId>(i.value), place));
    return success();
  }
  /// Known when shapes are set.
  Status set(const DimCode &code, const std::string &place) const {
    for (const DimCode::Instr &i : code.code)
      if (i.op == DimCode::Op::Symbol && isDataSize[static_cast<size_t>(i.value)])
        return bad(place, "asks for a size of the data when shapes are set");
    return success();
  }
  Status tensor(int32_t t, const std::string &place) const {
    for (const DimCode &d : program.tensors[static_cast<size_t>(t)].shape)
      FUSEC_CHECK(known(d, place));
    return success();
  }
  Status copies(const std::vector<Copy> &list, const std::string &place) const {
    for (const Copy &c : list) {
      FUSEC_CHECK(tensor(c.from, place));
      FUSEC_CHECK(tensor(c.to, place));
    }
    return success();
  }

  Status launch(const Step &s, const std::string &place) const {
    for (const Variant &v : s.variants) {
      for (const Guard &g : v.guards)
        FUSEC_CHECK(known(g.value, place));
      for (int32_t t : v.arguments)
        FUSEC_CHECK(tensor(t, place));
      const Kernel &k = program.kernels[static_cast<size_t>(v.kernel)];
      for (SymbolId d : k.dims)
        FUSEC_CHECK(known(d, place));
      for (const DimCode &g : k.grids)
        FUSEC_CHECK(known(g, place));
      FUSEC_CHECK(known(k.rounds, place));
    }
    return success();
  }

  Status size(const Step &s, const std::string &place) {
    if (s.symbol < 0 || static_cast<size_t>(s.symbol) >= isDataSize.size() ||
        !isDataSize[static_cast<size_t>(s.symbol)])
      return bad(place, "gives a value to what is no size of the data");
    for (const DataSize &d : model.dataSizes)
      if (d.symbol == s.symbol) {
        FUSEC_CHECK(known(d.bound, place));
        // Runs work out what hangs on a size in one order; on a test of the data nothing does.
        if (!given.insert(s.symbol).second || (givenBeside.count(s.symbol) != 0 && !d.testsData()))
          return bad(place, "gives a value to a size that has one from another step");
        if (!d.testsData())
          sized.insert(s.symbol);
      }
    return success();
  }

  /// What a branch or a body learns is not known behind it: it may not have run.
  Status inner(const std::vector<Step> &list, const std::vector<Copy> &atEnd,
               const std::string &place) {
    const std::set<SymbolId> before = sized;
    FUSEC_CHECK(steps(list));
    FUSEC_CHECK(copies(atEnd, place));
    sized = before;
    return success();
  }

  Status steps(const std::vector<Step> &list) {
    for (const Step &s : list) {
      const std::string place = where + ", step '" + s.name + "'";
      if (s.kind == StepKind::Launch) {
        FUSEC_CHECK(launch(s, place));
        continue;
      }
      if (s.kind == StepKind::Size) {
        FUSEC_CHECK(size(s, place));
        continue;
      }
      for (const Guard &g : s.guards)
        FUSEC_CHECK(set(g.value, place));
      FUSEC_CHECK(copies(s.before, place));
      const std::set<SymbolId> givenBefore = given;
      FUSEC_CHECK(inner(s.thenSteps, s.thenCopies, place));
      std::set<SymbolId> givenThen;
      if (s.kind == StepKind::Where) { // one list of the two runs
        givenThen = std::exchange(given, givenBefore);
        givenBeside.insert(givenThen.begin(), givenThen.end());
      }
      FUSEC_CHECK(inner(s.elseSteps, s.elseCopies, place));
      given.insert(givenThen.begin(), givenThen.end());
      FUSEC_CHECK(copies(s.after, place));
    }
    return success();
  }

  const Model &model;
  const Program &program;
  const std::string &where;
  std::vector<bool> isDataSize;
  std::set<SymbolId> sized, given; // has a value here, or anywhere in a run
  std::set<SymbolId> givenBeside;  // in the thenSteps of a Where
};

} // namespace

std::span<const int64_t> tunedSizesOf(const Model &model, size_t symbol) {
  if (symbol < model.tunedSizes.size() && !model.tunedSizes[symbol].empty())
    return model.tunedSizes[symbol];
  return {&model.symbols[symbol].opt, 1};
}

size_t numGiven(const Model &model) {
  const size_t given = numGiven(model.symbols);
  return model.dataSizes.empty()
             ? given
             : std::min(given, static_cast<size_t>(model.dataSizes.front().symbol));
}

/// By symbol: whether another size, or a rule, uses it.
static std::vector<bool> usedBySizes(const Model &model) {
  std::vector<bool> used(model.symbols.size(), false);
  const auto look = [&](const DimCode &code) {
    code.forEachSymbol([&](SymbolId s) {
      if (s >= 0 && static_cast<size_t>(s) < used.size())
        used[static_cast<size_t>(s)] = true;
    });
  };
  for (const DataSize &d : model.dataSizes)
    look(d.bound);
  for (const InferredDim &s : model.inferred)
    look(s.value);
  for (const DimRule &rule : model.rules) {
    look(rule.left);
    look(rule.right);
  }
  return used;
}

/// Each list of a where may tell a test, since nothing waits for it.
static Status checkTest(const DataSize &test, const std::string &place, bool isUsed) {
  if (!usableName(test.test->node))
    return bad(place, "the name of the node that it tests the data for is no usable one");
  if (static_cast<size_t>(test.test->kind) >= kNumDataTests)
    return bad(place, "tests what no version knows");
  if (test.bound != DimCode(0))
    return bad(place, "tests the data, and may be more than 0");
  return isUsed ? bad(place, "tests the data, and another size or a rule uses it") : success();
}

Status checkDataSizes(const Model &model) {
  SymbolId last = -1;
  const std::vector<bool> used = usedBySizes(model);
  for (const DataSize &d : model.dataSizes) {
    if (d.symbol <= last || static_cast<size_t>(d.symbol) >= model.symbols.size() ||
        model.symbols[static_cast<size_t>(d.symbol)].definition)
      return bad("data sizes", "must be ascending symbols of the model that have no definition");
    last = d.symbol;
    const std::string place = "size '" + model.symbols[static_cast<size_t>(d.symbol)].name + "'";
    if (!d.bound.valid(static_cast<size_t>(d.symbol)))
      return bad(place, "the bound is malformed or uses a symbol that is not in front of it");
    if (d.testsData())
      FUSEC_CHECK(checkTest(d, place, used[static_cast<size_t>(d.symbol)]));
  }
  return success();
}

Status checkSizesOfSteps(const Model &model, const Program &program, const std::string &where) {
  return StepChecker(model, program, where).run();
}

} // namespace fusec::bundle
