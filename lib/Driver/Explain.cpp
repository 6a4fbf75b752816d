#include "Driver/Explain.h"

#include "Driver/ExplainPlan.h"
#include "Driver/PatternOracle.h"
#include "Expr/SizeLimits.h"
#include "Support/DimProgram.h"
#include "Support/OptValues.h"
#include "Support/TunedSizes.h"

#include <algorithm>
#include <filesystem>

namespace fusec {

namespace {

/// A graph's name, unless the file's name says it already or PyTorch's exporters call every graph so.
std::string tellingName(const std::string &graph, const std::filesystem::path &file) {
  constexpr std::string_view kOfEveryGraph[] = {"main_graph", "torch_jit", "torch-jit-export"};
  return graph == file.stem() ||
                 std::count(std::begin(kOfEveryGraph), std::end(kOfEveryGraph), graph) != 0
             ? ""
             : graph;
}

class Explainer {
public:
  Explainer(const CompileState &compiled, const std::filesystem::path &path,
            const TargetState &state, const std::vector<std::string> &sizes)
      : path(path), program(programOf(compiled.program, state)), uncomposed(compiled.uncomposed),
        sizeRules(compiled.sizeRules), caches(compiled.caches), state(state), sizes(sizes),
        oracle(state.oracle ? state.oracle
                            : std::make_shared<PatternOracle>(state.target, PlanOptions())) {}

  Result<ExplainedTarget> run() {
    out.model = path.filename();
    out.graph = tellingName(program.name, path);
    out.target = state.target.name;
    out.onCpu = state.target.kind == TargetKind::Cpu;
    out.cores = state.target.cores;
    out.flopsPerSec = state.target.flopsPerSec * (out.onCpu ? out.cores : 1);
    const std::vector<std::vector<int64_t>> tuned = tunedSizes(program.symbols),
                                            ofEach = tunedSizesOfEach(program.symbols);
    const std::vector<int64_t> typical = optValues(program.symbols);
    for (size_t s = 0; s < program.symbols.size(); ++s) {
      const Symbol &symbol = program.symbols[s];
      if (isOfCache(static_cast<SymbolId>(s)))
        continue;
      if (symbol.definition) {
        out.computed.push_back({symbol.name,
                                symbol.definition->str(program.symbols),
                                symbol.definition->node,
                                "",
                                {}});
        continue;
      }
      if (symbol.bound)
        out.computed.push_back(
            {symbol.name, "", "", symbol.bound->str(program.symbols), symbol.test});
      if (ofEach[s].size() > 1)
        out.withoutSize.emplace_back(symbol.name, symbol.max == Symbol().max
                                                      ? "MIN..MAX"
                                                      : std::to_string(symbol.min) + ".." +
                                                            std::to_string(symbol.max));
    }
    for (const std::vector<int64_t> &values : tuned)
      out.tuned.push_back(predictAt(state, values));
    for (const std::string &text : sizes) {
      FUSEC_TRY(const std::vector<int64_t> values, parseSizes(text, program.symbols, "--at"));
      out.asked.push_back(predictAt(state, values));
    }
    addSizeRules();
    addCaches(typical);
    FUSEC_CHECK(addPlans(typical));
    if (uncomposed) {
      FUSEC_TRY(out.uncomposed, sumsApart(*uncomposed, state.target, *oracle));
    }
    return std::move(out);
  }

private:
  bool isOfCache(SymbolId s) const {
    return std::any_of(caches.begin(), caches.end(), [&](const CachePair &c) {
      return s == c.inputRoom || s == c.outputRoom || s == c.kept;
    });
  }

  /// All plans, each at sizes that it runs at.
  Status addPlans(const std::vector<int64_t> &typical) {
    const std::vector<SizedPlan> plans = plansBySize(state.plan);
    const std::vector<PlanStep> *main = planAt(state.plan, typical).steps;
    for (size_t p = 0; p < plans.size(); ++p) {
      const std::vector<int64_t> values = sizesFor(plans, p, typical);
      FUSEC_TRY(ExplainedPlan plan, explainPlan(program, plans[p], values, state, *oracle));
      for (size_t s = 0; s < program.symbols.size(); ++s) {
        const Symbol &symbol = program.symbols[s];
        if (!symbol.definition && !symbol.testsData() && !isOfCache(static_cast<SymbolId>(s)))
          plan.sizes.emplace_back(symbol.name, values[s]);
      }
      if (plans[p].steps == main)
        out.plan = std::move(plan);
      else
        out.otherPlans.push_back(std::move(plan));
    }
    return success();
  }

  /// The sizes, with as few changes as let a run take this plan: within its limits, and where one in front would take
  /// the run, beyond some of that one's.
  std::vector<int64_t> sizesFor(const std::vector<SizedPlan> &plans, size_t p,
                                std::vector<int64_t> sizes) const {
    const auto set = [&](SymbolId s, int64_t size, int64_t most) {
      const int64_t divisor = program.symbols[static_cast<size_t>(s)].divisor;
      const int64_t below = size / divisor * divisor;
      sizes[static_cast<size_t>(s)] =
          below < size && below <= most - divisor ? below + divisor : below;
    };
    for (const SizeLimit &limit : plans[p].sizes)
      set(limit.symbol,
          std::clamp(sizes[static_cast<size_t>(limit.symbol)], limit.least, limit.most),
          limit.most);
    for (size_t before = 0; before < p; ++before)
      if (allAllow(plans[before].sizes, sizes))
        for (const SizeLimit &limit : plans[before].sizes) {
          int64_t most = program.symbols[static_cast<size_t>(limit.symbol)].max;
          for (const SizeLimit &own : plans[p].sizes)
            if (own.symbol == limit.symbol)
              most = std::min(most, own.most);
          if (limit.most < most)
            set(limit.symbol, limit.most + 1, most);
        }
    setComputed(program.symbols, sizes);
    return sizes;
  }

  /// What is old is copied once: read and written.
  void addCaches(const std::vector<int64_t> &sizes) {
    for (const CachePair &c : caches) {
      const auto input = std::find_if(program.tensors.begin(), program.tensors.end(),
                                      [&](const Tensor &t) { return t.name == c.input; });
      const auto elements = numElements(input->shape).evaluate(sizes);
      out.caches.push_back({c.input, c.output, c.axis, c.grows(),
                            2 * double(elements.value_or(0)) * double(sizeInBytes(input->type))});
    }
  }

  void addSizeRules() {
    for (const InferredSize &s : sizeRules.inferred)
      out.inferred.emplace_back(s.name, s.value.str(program.symbols));
    const std::vector<Symbol> names = sizeRules.allNames(program.symbols);
    for (const SizeRule &r : sizeRules.rules)
      out.sizeRules.push_back({ruleText(r.kind, r.left.str(names), r.right.str(names)), r.node,
                               r.op, r.text, r.tested});
  }

  const std::filesystem::path path;
  const ExprProgram &program;
  const std::optional<ExprProgram> &uncomposed;
  const SizeRules &sizeRules;
  const std::vector<CachePair> &caches;
  const TargetState &state;
  const std::vector<std::string> &sizes;
  const std::shared_ptr<PatternOracle> oracle;
  ExplainedTarget out;
};

} // namespace

Result<std::vector<ExplainedTarget>> explain(const CompileState &state, const std::string &path,
                                             const std::vector<std::string> &sizes) {
  std::vector<ExplainedTarget> targets;
  for (const TargetState &target : state.targets) {
    FUSEC_TRY(ExplainedTarget explained, Explainer(state, path, target, sizes).run());
    targets.push_back(std::move(explained));
  }
  return targets;
}

} // namespace fusec
