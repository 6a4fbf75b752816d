#include "Driver/Explain.h"
#include "Support/JsonText.h"
#include "Support/WholeText.h"

namespace fusec {

namespace {

template <typename T, typename F> std::string list(const std::vector<T> &items, F text) {
  std::string out = "[";
  for (size_t i = 0; i < items.size(); ++i)
    out += (i ? "," : "") + text(items[i]);
  return out + "]";
}

std::string names(const std::vector<std::string> &items) {
  return list(items, [](const std::string &s) { return jsonString(s); });
}

std::string lines(const std::string &text) {
  std::vector<std::string> rows;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    rows.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return names(rows);
}

std::string numbers(double readBytes, double writtenBytes, double seconds) {
  return "\"bytes_read\":" + wholeText(readBytes) +
         ",\"bytes_written\":" + wholeText(writtenBytes) +
         ",\"predicted_s\":" + floatToText(seconds);
}

std::string sums(const Sums &s) {
  return "{\"launches\":" + std::to_string(s.launches) + "," +
         numbers(s.readBytes, s.writtenBytes, s.seconds) + "}";
}

std::string movedText(const MemoryRequests &m) {
  return "{\"read_bytes\":" + wholeText(m.readBytes) +
         ",\"write_bytes\":" + wholeText(m.writtenBytes) +
         ",\"read_sectors\":" + wholeText(m.readSectors) +
         ",\"write_sectors\":" + wholeText(m.writtenSectors) +
         ",\"shared_bytes\":" + wholeText(m.sharedBytes) +
         ",\"from_data\":" + (m.fromData ? "true" : "false") + "}";
}

std::string barriersText(const BarrierCounts &b) {
  return "{\"of_block\":" + wholeText(b.ofBlock) + ",\"of_device\":" + wholeText(b.ofDevice) +
         ",\"counters\":" + std::to_string(b.counters) + "}";
}

/// {"steps":100,"constant_bytes":4194304,"held_bytes":0,"from":[{"level":"l2","bytes":4194304}]}; null where no steps
/// read constants.
std::string stepReads(const std::optional<StepReads> &reads) {
  if (!reads)
    return "null";
  return "{\"steps\":" + std::to_string(reads->steps) +
         ",\"constant_bytes\":" + wholeText(reads->constantBytes) +
         ",\"held_bytes\":" + wholeText(reads->heldBytes) + ",\"from\":" +
         list(reads->levels,
              [](const auto &part) {
                return "{\"level\":" + jsonString(part.first) +
                       ",\"bytes\":" + wholeText(part.second) + "}";
              }) +
         "}";
}

std::string space(const std::optional<tiling::SpaceReport> &report) {
  if (!report)
    return "null";
  return "{\"pruning\":" + jsonString(report->pruning) + ",\"best\":" +
         list(report->best,
              [](const tiling::SpaceChoice &choice) {
                return "{\"expression\":" + jsonString(choice.expression) +
                       ",\"tiles\":" + jsonString(choice.tiles) +
                       ",\"moved_bytes\":" + wholeText(choice.movedBytes) + "}";
              }) +
         "}";
}

std::string edge(const InnerEdge &e) {
  return "{\"tensor\":" + jsonString(e.tensor) + ",\"producer\":" + jsonString(e.producer) +
         ",\"consumer\":" + jsonString(e.consumer) + ",\"level\":" + jsonString(e.level) + "}";
}

std::string held(const HeldTensor &h) {
  return "{\"tensor\":" + jsonString(h.tensor) + ",\"first\":" + jsonString(h.first) +
         ",\"again\":" + jsonString(h.again) + "}";
}

std::string kernel(const ExplainedKernel &k) {
  auto served = [](const std::pair<std::string, double> &level) {
    return "{\"level\":" + jsonString(level.first) + ",\"bytes\":" + wholeText(level.second) + "}";
  };
  auto evaluation = [](const search::Evaluation &e) {
    return "{\"name\":" + jsonString(e.name) + ",\"predicted_s\":" + floatToText(e.score) +
           ",\"chosen\":" + (e.chosen ? "true" : "false") + "}";
  };
  return "{\"name\":" + jsonString(k.name) + ",\"launches\":" + std::to_string(k.launches) +
         ",\"step\":" + jsonString(k.step) + ",\"within\":" + jsonString(k.within) +
         ",\"nodes\":" + names(k.nodes) + ",\"equations\":" + names(k.equations) +
         ",\"phase_starts\":" +
         list(k.phaseStarts, [](int start) { return std::to_string(start); }) +
         ",\"inputs\":" + names(k.inputs) + ",\"outputs\":" + names(k.outputs) +
         ",\"edges\":" + list(k.edges, edge) + ",\"held\":" + list(k.held, held) + "," +
         numbers(k.prediction.readBytes, k.prediction.writtenBytes, k.prediction.seconds) +
         ",\"quick_s\":" + floatToText(k.quickSeconds) + ",\"moved\":" + movedText(k.moved) +
         ",\"served\":" + list(k.levelBytes, served) + ",\"barriers\":" + barriersText(k.barriers) +
         ",\"each_step\":" + stepReads(k.stepReads) + ",\"space\":" + space(k.space) +
         ",\"unfused\":" + sums(k.unfused) + ",\"unfused_moved\":" + movedText(k.unfusedMoved) +
         ",\"rules\":" + names(k.rules) + ",\"schedules\":" + list(k.schedules, lines) +
         ",\"guards\":" + names(k.guards) + ",\"considered\":" + list(k.considered, evaluation) +
         ",\"considered_of_phases\":" +
         list(k.consideredOfPhases,
              [&](const search::Log &phase) { return list(phase, evaluation); }) +
         "}";
}

std::string between(const ExplainedPlan &plan, const ExplainedPlan::Between &b) {
  auto index = [](int k) { return k < 0 ? std::string("null") : std::to_string(k); };
  auto name = [&](int k) {
    return k < 0 ? std::string("null") : jsonString(plan.kernels[static_cast<size_t>(k)].name);
  };
  return "{\"tensor\":" + jsonString(b.tensor) + ",\"producer\":" + jsonString(b.producer) +
         ",\"consumer\":" + jsonString(b.consumer) + ",\"reason\":" + jsonString(b.reason) +
         ",\"from\":" + index(b.from) + ",\"to\":" + index(b.to) +
         ",\"from_kernel\":" + name(b.from) + ",\"to_kernel\":" + name(b.to) +
         ",\"tensors\":" + std::to_string(b.tensors) +
         ",\"producer_nodes\":" + names(b.producerNodes) +
         ",\"consumer_nodes\":" + names(b.consumerNodes) + "}";
}

/// "where":"length = 1","for_all_sizes":{...}; nulls for the plan for all sizes
std::string whereOf(const ExplainedPlan &plan) {
  return "\"where\":" + (plan.where.empty() ? "null" : jsonString(plan.where)) +
         ",\"for_all_sizes\":" + (plan.forAllSizes ? sums(*plan.forAllSizes) : "null");
}

std::string kernelsOf(const ExplainedPlan &plan) {
  return ",\"kernels\":" + list(plan.kernels, kernel) + ",\"apart\":" +
         list(plan.apart, [&](const ExplainedPlan::Between &b) { return between(plan, b); });
}

/// "batch":2,"seq":12
std::string sizesOf(const ExplainedPlan &plan) {
  std::string out;
  for (const auto &[symbol, size] : plan.sizes)
    out += (out.empty() ? "" : ",") + jsonString(symbol) + ":" + std::to_string(size);
  return out;
}

std::string otherPlan(const ExplainedPlan &plan) {
  return "{\"symbols\":{" + sizesOf(plan) + "}," + whereOf(plan) +
         ",\"totals\":" + sums(plan.totals) + ",\"unfused\":" + sums(plan.unfused) +
         kernelsOf(plan) + "}";
}

/// {"sizes":{"batch":2},"predicted_s":1e-05,"kernels":[{"name":"k_0123456789abcdef","launches":2,"variant":0,
/// "predicted_s":5e-06}]}
std::string sized(const ExplainedTarget &t, const SizedPrediction &p) {
  std::string sizes;
  for (size_t s = 0; s < t.plan.sizes.size(); ++s)
    sizes +=
        (s ? "," : "") + jsonString(t.plan.sizes[s].first) + ":" + std::to_string(p.symbols[s]);
  return "{\"sizes\":{" + sizes + "},\"predicted_s\":" + floatToText(p.seconds) +
         (p.where.empty() ? "" : ",\"where\":" + jsonString(p.where)) + ",\"kernels\":" +
         list(p.kernels,
              [](const SizedPrediction::Kernel &k) {
                return "{\"name\":" + jsonString(k.name) +
                       ",\"launches\":" + std::to_string(k.launches) +
                       ",\"variant\":" + std::to_string(k.variant) +
                       ",\"predicted_s\":" + floatToText(k.seconds) + "}";
              }) +
         "}";
}

/// "seq":"1..64"
std::string rangesOf(const ExplainedTarget &t) {
  std::string out;
  for (const auto &[symbol, range] : t.withoutSize)
    out += (out.empty() ? "" : ",") + jsonString(symbol) + ":" + jsonString(range);
  return out;
}

/// "b":"c"
std::string inferredOf(const ExplainedTarget &t) {
  std::string out;
  for (const auto &[name, value] : t.inferred)
    out += (out.empty() ? "" : ",") + jsonString(name) + ":" + jsonString(value);
  return out;
}

std::string sizeRule(const ExplainedTarget::SizeRule &r) {
  return "{\"rule\":" + jsonString(r.rule) + ",\"node\":" + jsonString(r.node) +
         ",\"op\":" + jsonString(r.op) + ",\"reason\":" + jsonString(r.reason) +
         ",\"tested\":" + (r.tested ? "true" : "false") + "}";
}

std::string computedSize(const ExplainedTarget::ComputedSize &c) {
  if (!c.bound.empty())
    return "{\"name\":" + jsonString(c.name) + ",\"bound\":" + jsonString(c.bound) +
           (c.test ? ",\"test\":" + jsonString(std::string(name(c.test->kind))) +
                         ",\"test_of\":" + jsonString(c.test->node)
                   : "") +
           "}";
  return "{\"name\":" + jsonString(c.name) + ",\"definition\":" + jsonString(c.definition) +
         ",\"node\":" + jsonString(c.node) + "}";
}

std::string cache(const ExplainedTarget::Cache &c) {
  return "{\"input\":" + jsonString(c.input) + ",\"output\":" + jsonString(c.output) +
         ",\"axis\":" + std::to_string(c.axis) + ",\"grows\":" + (c.grows ? "true" : "false") +
         ",\"saved_bytes\":" + floatToText(c.savedBytes) + "}";
}

/// "register":"a vector register",...
std::string levelsOf(const ExplainedTarget &t) {
  std::string out;
  for (const auto &[level, meaning] : levelMeanings(t.onCpu))
    out += (out.empty() ? "" : ",") + jsonString(level) + ":" + jsonString(meaning);
  return out;
}

} // namespace

std::string explanationJson(const std::vector<ExplainedTarget> &targets) {
  std::string out;
  for (const ExplainedTarget &t : targets)
    out += "{\"model\":" + jsonString(t.model) +
           ",\"graph\":" + (t.graph.empty() ? "null" : jsonString(t.graph)) +
           ",\"target\":" + jsonString(t.target) +
           ",\"cores_assumed\":" + (t.onCpu ? std::to_string(t.cores) : "null") +
           ",\"flops_per_s\":" + floatToText(t.flopsPerSec) + ",\"symbols\":{" + sizesOf(t.plan) +
           "},\"levels\":{" + levelsOf(t) + "},\"without_size\":{" + rangesOf(t) +
           "},\"inferred\":{" + inferredOf(t) + "},\"size_rules\":" + list(t.sizeRules, sizeRule) +
           (t.computed.empty() ? "" : ",\"computed\":" + list(t.computed, computedSize)) +
           (t.caches.empty() ? "" : ",\"caches\":" + list(t.caches, cache)) +
           ",\"tuned\":" + list(t.tuned, [&](const SizedPrediction &p) { return sized(t, p); }) +
           ",\"at\":" + list(t.asked, [&](const SizedPrediction &p) { return sized(t, p); }) +
           (t.otherPlans.empty() ? "" : "," + whereOf(t.plan)) +
           ",\"totals\":" + sums(t.plan.totals) + ",\"unfused\":" + sums(t.plan.unfused) +
           ",\"uncomposed\":" + (t.uncomposed ? sums(*t.uncomposed) : "null") + kernelsOf(t.plan) +
           (t.otherPlans.empty() ? "" : ",\"other_plans\":" + list(t.otherPlans, otherPlan)) +
           (t.withResources ? ",\"resources\":" + resourcesJson(t.resources) : "") + "}\n";
  return out;
}

} // namespace fusec
