#include "Cost/SecondsText.h"
#include "Driver/Explain.h"
#include "Support/DataTests.h"
#include "Support/JsonText.h"
#include "Support/WholeText.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <set>

namespace fusec {

namespace {

constexpr size_t kMostRejected = 3; // rejected schedules that the text shows

std::string join(const std::vector<std::string> &list) {
  std::string out;
  for (const std::string &s : list)
    out += (out.empty() ? "" : ", ") + oneLine(s);
  return out;
}

std::string sumsText(const Sums &s) {
  return std::to_string(s.launches) + (s.launches == 1 ? " kernel, " : " kernels, ") +
         cost::secondsText(s.seconds) + ", " + bytesText(s.readBytes) + " read, " +
         bytesText(s.writtenBytes) + " written";
}

/// "31 %", of what the unfused plan takes.
std::string share(double part, double whole) {
  return whole > 0 ? std::to_string(std::lround(100 * part / whole)) + " %" : "-";
}

/// " at batch=2, seq=12"
std::string sizesText(const ExplainedPlan &plan) {
  std::string out;
  for (const auto &[symbol, size] : plan.sizes)
    out += (out.empty() ? " at " : ", ") + oneLine(symbol) + "=" + std::to_string(size);
  return out;
}

/// What a CPU's name leaves open.
std::string machineText(const ExplainedTarget &target) {
  return target.onCpu ? " on " + std::to_string(target.cores) + " cores of together " +
                            std::to_string(std::llround(target.flopsPerSec * 1e-9)) + " Gflop/s"
                      : "";
}

/// What holds where the host decides; nothing where it does not.
std::string hostText(const ExplainedPlan &plan) {
  const bool decides = std::any_of(plan.kernels.begin(), plan.kernels.end(),
                                   [](const ExplainedKernel &k) { return !k.within.empty(); });
  return decides ? "; both ways of a branch count, and one round of a loop" : "";
}

/// What `head` begins, cut between its items where a line would be longer than a page is wide.
void addItems(const std::string &head, const std::string &items, std::string &out) {
  constexpr size_t kColumns = 120;
  std::string line = head;
  for (size_t begin = 0, end = 0; begin < items.size(); begin = end) {
    const size_t next = std::min(items.find(", ", begin), items.find("| ", begin));
    end = next == std::string::npos ? items.size() : next + 2;
    if (line.size() > head.size() && line.size() + end - begin > kColumns) {
      out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
      line = std::string(head.size(), ' ');
    }
    line += items.substr(begin, end - begin);
  }
  out += line + "\n";
}

/// The words for where values between the equations of a kernel live, of those that the target's kernels have.
std::string levelsText(const ExplainedTarget &target) {
  std::set<std::string> used;
  auto note = [&](const ExplainedPlan &plan) {
    for (const ExplainedKernel &kernel : plan.kernels)
      for (const InnerEdge &edge : kernel.edges)
        used.insert(edge.level);
  };
  note(target.plan);
  std::for_each(target.otherPlans.begin(), target.otherPlans.end(), note);
  std::string out;
  for (const auto &[level, meaning] : levelMeanings(target.onCpu))
    if (used.count(level) != 0)
      out += "  " + level + ": " + meaning + "\n";
  return out.empty() ? "" : "values inside a kernel:\n" + out;
}

std::string scheduleName(const std::string &text) {
  TextReader in(text, "schedule");
  in.next();
  Result<std::string> name = in.nameText();
  return name ? *name : "";
}

/// The chosen schedule and the fastest others.
void addConsidered(const search::Log &considered, std::string &out) {
  // Schedules may differ in what their names do not say: one of each name, the chosen one or else the fastest.
  search::Log rejected;
  std::set<std::string> named;
  for (const search::Evaluation &e : considered) {
    if (e.chosen)
      out += "     chosen     " + oneLine(e.name) + ": " + cost::secondsText(e.score) + "\n";
    else
      rejected.push_back(e);
    if (e.chosen)
      named.insert(e.name);
  }
  std::stable_sort(rejected.begin(), rejected.end(),
                   [](const auto &a, const auto &b) { return a.score < b.score; });
  std::erase_if(rejected, [&](const auto &e) { return !named.insert(e.name).second; });
  for (size_t r = 0; r < std::min(kMostRejected, rejected.size()); ++r)
    out += "     considered " + oneLine(rejected[r].name) + ": " +
           cost::secondsText(rejected[r].score) + "\n";
  if (rejected.size() > kMostRejected)
    out += "     considered " + std::to_string(rejected.size() - kMostRejected) + " more\n";
}

void addSchedules(const ExplainedKernel &kernel, std::string &out) {
  for (size_t v = 0; v < kernel.schedules.size(); ++v) {
    out += v ? "                " : "     schedule   ";
    out += oneLine(scheduleName(kernel.schedules[v]));
    if (!kernel.guards[v].empty())
      out += " where " + oneLine(kernel.guards[v]) + ", else";
    out += "\n";
  }
  addConsidered(kernel.considered, out);
  for (size_t p = 0; p < kernel.consideredOfPhases.size(); ++p) {
    out += "     phase      " + std::to_string(p + 1) + ", as a kernel of its own\n";
    addConsidered(kernel.consideredOfPhases[p], out);
  }
}

/// "12 of a block, 1 of all blocks, 2 by counters"; nothing where there are none.
std::string barriersText(const BarrierCounts &barriers) {
  std::string out;
  auto add = [&](double count, const std::string &what) {
    if (count > 0)
      out += (out.empty() ? "" : ", ") + wholeText(count) + what;
  };
  add(barriers.ofBlock, " of a block");
  add(barriers.ofDevice, " of all blocks");
  add(barriers.counters, " by counters");
  return out;
}

/// "4 MB of constants again in each of 100 steps, from l2; 16 MB more stay on chip"
std::string stepText(const StepReads &reads) {
  std::string from;
  for (const auto &[level, bytes] : reads.levels)
    from += (from.empty() ? "" : ", ") + level +
            (reads.levels.size() > 1 ? " (" + bytesText(bytes) + ")" : "");
  return bytesText(reads.constantBytes) + " of constants again in each of " +
         std::to_string(reads.steps) + " steps" + (from.empty() ? "" : ", from " + from) +
         (reads.heldBytes > 0 ? "; " + bytesText(reads.heldBytes) + " more stay on chip" : "");
}

/// "batch=2, seq=12"
std::string namedSizes(const ExplainedTarget &target, const SizedPrediction &at) {
  std::string out;
  for (size_t s = 0; s < target.plan.sizes.size(); ++s)
    out +=
        (s ? ", " : "") + oneLine(target.plan.sizes[s].first) + "=" + std::to_string(at.symbols[s]);
  return out;
}

/// What the kernel takes at the sizes that the user asks about, if this plan runs there, and by which of its schedules.
void addAsked(const ExplainedTarget &target, const ExplainedPlan &plan,
              const ExplainedKernel &kernel, std::string &out) {
  auto schedule = [&](size_t variant) {
    const std::string &guards = kernel.guards[variant];
    return ", by " + oneLine(scheduleName(kernel.schedules[variant])) +
           (guards.empty() ? "" : " where " + oneLine(guards));
  };
  for (const SizedPrediction &at : target.asked)
    for (const SizedPrediction::Kernel &k : at.kernels)
      if (at.where == plan.where && k.name == kernel.name)
        out += "     at         " + namedSizes(target, at) + ": " + cost::secondsText(k.seconds) +
               (kernel.schedules.size() == 1 ? "" : schedule(k.variant)) + "\n";
}

std::string kernelText(const ExplainedTarget &target, const ExplainedPlan &plan, size_t k,
                       std::map<std::string, size_t> &firstOf) {
  const ExplainedKernel &kernel = plan.kernels[k];
  char number[16];
  std::snprintf(number, sizeof number, "%3zu. ", k + 1);
  std::string out = number + kernel.name + ": " + cost::secondsText(kernel.prediction.seconds) +
                    ", " + bytesText(kernel.prediction.readBytes) + " read, " +
                    bytesText(kernel.prediction.writtenBytes) + " written";
  if (kernel.equations.size() > 1)
    out += "; unfused " + sumsText(kernel.unfused);
  out += "\n";
  addItems("     nodes      ", join(kernel.nodes), out);
  addItems("     equations  ", join(kernel.equations), out);
  if (!kernel.phaseStarts.empty()) {
    std::string phases;
    size_t begin = 0;
    for (size_t p = 0; p <= kernel.phaseStarts.size(); ++p) {
      const size_t end = p < kernel.phaseStarts.size() ? static_cast<size_t>(kernel.phaseStarts[p])
                                                       : kernel.equations.size();
      phases += (p > 0 ? " | " : "") +
                join({kernel.equations.begin() + static_cast<std::ptrdiff_t>(begin),
                      kernel.equations.begin() + static_cast<std::ptrdiff_t>(end)});
      begin = end;
    }
    addItems("     phases     ", phases, out);
  }
  if (const std::string barriers = barriersText(kernel.barriers); !barriers.empty())
    out += "     barriers   " + barriers + "\n";
  if (kernel.stepReads)
    out += "     each step  " + stepText(*kernel.stepReads) + "\n";
  if (kernel.space) {
    out += "     trees      " + kernel.space->pruning + "\n";
    for (const tiling::SpaceChoice &choice : kernel.space->best)
      out += "     by volume  " + oneLine(choice.expression) + ": " + bytesText(choice.movedBytes) +
             (choice.tiles.empty() ? "" : ", tiles of " + oneLine(choice.tiles)) + "\n";
    std::string levels;
    for (const auto &[level, bytes] : kernel.levelBytes)
      levels += (levels.empty() ? "" : ", ") + level + " " + bytesText(bytes);
    out += "     levels     " +
           bytesText(kernel.prediction.readBytes + kernel.prediction.writtenBytes) +
           " once, and beside that " + levels + "\n";
  }
  if (!kernel.within.empty())
    out += "     inside     " + oneLine(kernel.within) + "\n";
  for (const InnerEdge &edge : kernel.edges)
    out += "     " + edge.level + std::string(11 - std::min<size_t>(10, edge.level.size()), ' ') +
           "%" + oneLine(edge.tensor) + " from " + oneLine(edge.producer) + " to " +
           oneLine(edge.consumer) + "\n";
  for (const HeldTensor &held : kernel.held)
    out += "     held       %" + oneLine(held.tensor) + ", which " + oneLine(held.first) +
           " reads, in registers for " + oneLine(held.again) + "\n";
  auto [first, isNew] = firstOf.emplace(kernel.name, k);
  if (isNew) {
    addSchedules(kernel, out);
    addAsked(target, plan, kernel, out);
  } else {
    out += "     schedule   that of " + std::to_string(first->second + 1) + "\n";
  }
  return out;
}

/// "kernel 3, k_0123456789abcdef"
std::string kernelName(const ExplainedPlan &plan, int kernel) {
  return kernel < 0 ? "the host"
                    : "kernel " + std::to_string(kernel + 1) + ", " +
                          plan.kernels[static_cast<size_t>(kernel)].name;
}

/// "softmax.sum (Softmax_3)": the equation and the model's nodes that it stands for.
std::string withNodes(const std::string &item, const std::vector<std::string> &nodes) {
  return oneLine(item) + (nodes.empty() ? "" : " (" + join(nodes) + ")");
}

/// Values between kernels, those of the same two together.
std::string apartText(const ExplainedPlan &plan) {
  if (plan.apart.empty())
    return "\nno value passes from one kernel to another\n";
  std::string out = "\nvalues that pass from one kernel to another:\n";
  std::set<std::pair<int, int>> told;
  for (const ExplainedPlan::Between &first : plan.apart) {
    if (!told.insert({first.from, first.to}).second)
      continue;
    out += "  " + std::to_string(first.tensors) + (first.tensors == 1 ? " tensor" : " tensors") +
           " from " + kernelName(plan, first.from) + ", to " + kernelName(plan, first.to) + "\n";
    for (const ExplainedPlan::Between &b : plan.apart)
      if (b.from == first.from && b.to == first.to)
        out += "    %" + oneLine(b.tensor) + " from " + withNodes(b.producer, b.producerNodes) +
               " to " + withNodes(b.consumer, b.consumerNodes) + ": " + oneLine(b.reason) + "\n";
  }
  return out;
}

std::string kernelsText(const ExplainedTarget &target, const ExplainedPlan &plan) {
  std::string out;
  std::map<std::string, size_t> firstOf;
  for (size_t k = 0; k < plan.kernels.size(); ++k)
    out += kernelText(target, plan, k, firstOf);
  return out + (plan.where.empty() ? apartText(plan) : "");
}

std::string planName(const ExplainedPlan &plan) {
  return "the plan " + (plan.where.empty() ? "for all sizes" : "where " + oneLine(plan.where));
}

/// What else would run, and how much of that the plan takes.
std::string insteadText(const std::string &what, const Sums &instead, const Sums &plan) {
  return what + ": " + sumsText(instead) + "; the plan takes " +
         share(plan.seconds, instead.seconds) + " of the time and " +
         share(plan.readBytes + plan.writtenBytes, instead.readBytes + instead.writtenBytes) +
         " of the bytes\n";
}

std::string unfusedText(const ExplainedPlan &plan) {
  return (plan.forAllSizes ? insteadText("the plan for all sizes", *plan.forAllSizes, plan.totals)
                           : "") +
         insteadText("unfused", plan.unfused, plan.totals);
}

std::string computedText(const ExplainedTarget &target) {
  std::string out;
  for (const ExplainedTarget::ComputedSize &c : target.computed)
    out += "size " + oneLine(c.name) +
           (c.bound.empty() ? " = " + oneLine(c.definition) +
                                  ", computed when shapes are set, for " + oneLine(c.node)
            : c.test ? std::string(": 0, as ") + heldText(c.test->kind) + ", which CPUs test"
                     : ": at most " + oneLine(c.bound) + ", as the data decides") +
           "\n";
  return out;
}

std::string cachesText(const ExplainedTarget &target) {
  std::string out;
  for (const ExplainedTarget::Cache &c : target.caches)
    out += "cache " + oneLine(c.input) + (c.grows ? " grows to " : " becomes ") +
           oneLine(c.output) + (c.grows ? " along dimension " + std::to_string(c.axis) : "") +
           ": a run moves " + bytesText(c.savedBytes) +
           " less where they share memory (fusert_share_caches)\n";
  return out;
}

/// How to say what sizes matter, where nobody has.
std::string rangeHint(const ExplainedTarget &target) {
  std::string options;
  for (const auto &[symbol, range] : target.withoutSize)
    options += " --dim '" + oneLine(symbol) + "=" + range + ":SIZE'";
  return options.empty() ? "" : "hint: to favour sizes of yours, give" + options + "\n";
}

/// "  batch=2, seq=12: 34.5 us", a line for each.
std::string sizedText(const ExplainedTarget &target, const std::string &what,
                      const std::vector<SizedPrediction> &list) {
  std::string out = list.empty() ? "" : "predicted at " + what + ":\n";
  for (const SizedPrediction &p : list)
    out += "  " + namedSizes(target, p) + ": " + cost::secondsText(p.seconds) +
           (p.where.empty() ? "" : ", by the plan where " + oneLine(p.where)) + "\n";
  return out;
}

/// What nodes ask of sizes: what follows from it, and what is tested.
std::string sizeRulesText(const ExplainedTarget &target) {
  std::string out;
  for (const auto &[name, value] : target.inferred)
    out += "inferred: " + oneLine(name) + " is " + oneLine(value) + "\n";
  for (const ExplainedTarget::SizeRule &r : target.sizeRules)
    out += (r.tested ? "tested when shapes are set: " : "follows: ") + oneLine(r.rule) + ", node " +
           oneLine(r.node) + " (" + oneLine(r.op) + "): " + oneLine(r.reason) + "\n";
  return out;
}

} // namespace

std::string bytesText(double bytes) {
  constexpr struct {
    double size;
    const char *unit;
  } kUnits[] = {{1e9, " GB"}, {1e6, " MB"}, {1e3, " KB"}, {1, " B"}};
  for (const auto &unit : kUnits) {
    if (bytes < unit.size * 0.9995 && unit.size > 1)
      continue;
    char buffer[32];
    const auto end =
        std::to_chars(buffer, std::end(buffer), bytes / unit.size, std::chars_format::general, 3);
    return std::string(buffer, end.ptr) + unit.unit;
  }
  return "";
}

std::vector<std::pair<std::string, std::string>> levelMeanings(bool onCpu) {
  if (onCpu)
    return {{"register", "a vector register"},
            {"shared", "a buffer that the core keeps in its own cache"},
            {"device", "memory, read by the core that wrote it"},
            {"barrier", "memory, read in a later phase, when all cores have ended the one before"},
            {"recompute", "nowhere: computed again where it is read"}};
  return {{"register", "registers of the threads that read it"},
          {"shuffle", "registers, put together by shuffles of the lanes that have its parts"},
          {"shared", "shared memory of the block"},
          {"device", "device memory, read by the block that wrote it"},
          {"counters", "device memory, read when the blocks that make a tile have counted it"},
          {"barrier", "device memory, read behind a barrier of all blocks"},
          {"recompute", "nowhere: computed again where it is read"}};
}

std::string explanationText(const std::vector<ExplainedTarget> &targets) {
  std::string out;
  for (const ExplainedTarget &target : targets) {
    out += (out.empty() ? "" : "\n") + oneLine(target.model) +
           (target.graph.empty() ? "" : " (graph " + oneLine(target.graph) + ")") + " for " +
           target.target + ": " + sumsText(target.plan.totals) + "\n" + unfusedText(target.plan) +
           (target.uncomposed ? "uncomposed: " + sumsText(*target.uncomposed) + "\n" : "") +
           "predicted for one run" + machineText(target) + sizesText(target.plan) +
           hostText(target.plan) + "\n" +
           sizedText(target, "the sizes that kernels are tuned for", target.tuned) +
           sizedText(target, "the sizes asked for", target.asked) + rangeHint(target) +
           sizeRulesText(target) + computedText(target) + cachesText(target) + levelsText(target) +
           "\n";
    if (!target.otherPlans.empty())
      out += planName(target.plan) + ":\n";
    out += kernelsText(target, target.plan);
    for (const ExplainedPlan &other : target.otherPlans)
      out += "\n" + planName(other) + ": " + sumsText(other.totals) + "\n" + unfusedText(other) +
             "predicted for one run" + sizesText(other) + "\n" + kernelsText(target, other);
    if (target.withResources)
      out += resourcesText(target.resources);
  }
  return out;
}

} // namespace fusec
