#include "Cost/SecondsText.h"
#include "Driver/Diff.h"
#include "Support/JsonText.h"
#include "Support/WholeText.h"
#include "Tiling/counts/Prediction.h"

#include <algorithm>

namespace fusec {

namespace {

constexpr size_t kMostNames = 8; // constants that the text names

template <typename T, typename F>
std::string join(const std::vector<T> &items, const char *between, F text) {
  std::string out;
  for (size_t i = 0; i < items.size(); ++i)
    out += (i ? between : "") + text(items[i]);
  return out;
}

std::string sumsText(const Sums &s) {
  return std::to_string(s.launches) + (s.launches == 1 ? " launch, " : " launches, ") +
         cost::secondsText(s.seconds) + ", " + bytesText(s.readBytes) + " read, " +
         bytesText(s.writtenBytes) + " written";
}

std::string kernelText(const DiffedKernel &k) {
  const Prediction &p = k.decided.prediction;
  return k.name + ": " + std::to_string(k.decided.launches) + " x " + cost::secondsText(p.seconds) +
         ", " + bytesText(p.readBytes) + " read, " + bytesText(p.writtenBytes) + " written";
}

std::string nodesText(const DiffedKernel &k) {
  return "; nodes " + join(k.nodes, ", ", [](const std::string &s) { return oneLine(s); }) + "\n";
}

std::string targetText(const DiffedTarget &t) {
  std::string out = "target " + oneLine(t.target) + ": ";
  if (!t.inA || !t.inB)
    return out +
           (t.inA ? "only in the first, " + sumsText(t.a)
                  : "only in the second, " + sumsText(t.b)) +
           "\n";
  if (!t.differs())
    return out + "the same, " + sumsText(t.a) + "\n";
  out += sumsText(t.a) + " -> " + sumsText(t.b) + "\n";
  for (const DiffedKernel &k : t.removed)
    out += "  removed " + kernelText(k) + nodesText(k);
  for (const DiffedKernel &k : t.added)
    out += "  added " + kernelText(k) + nodesText(k);
  for (const DiffedTarget::Pair &p : t.changed)
    out += "  changed " + kernelText(p.a) + " -> " + kernelText(p.b) + nodesText(p.a);
  for (const DiffedTarget::Pair &p : t.rescheduled)
    out += "  other schedule for " + p.a.name + ": " +
           cost::secondsText(p.a.decided.prediction.seconds) + " -> " +
           cost::secondsText(p.b.decided.prediction.seconds) + nodesText(p.a);
  for (const DiffedTarget::Pair &p : t.relaunched)
    out += "  other launches of " + p.a.name + ": " + std::to_string(p.a.decided.launches) +
           " -> " + std::to_string(p.b.decided.launches) + nodesText(p.b);
  if (t.planDiffers)
    out += "  the plan's text differs: launches, their order or reasons\n";
  for (const DiffedTarget::Code &c : t.code)
    if (c.differs)
      out += "  machine code (" + c.kind + ") differs: " + bytesText(double(c.a)) + " -> " +
             bytesText(double(c.b)) + "\n";
  return out;
}

std::string namesText(const char *what, const std::vector<std::string> &names) {
  if (names.empty())
    return "";
  std::vector<std::string> first(
      names.begin(),
      names.begin() + static_cast<std::ptrdiff_t>(std::min(kMostNames, names.size())));
  return "  " + std::to_string(names.size()) + " " + what + ": " +
         join(first, ", ", [](const std::string &s) { return oneLine(s); }) +
         (first.size() < names.size() ? ", ..." : "") + "\n";
}

std::string jsonKernel(const DiffedKernel &k) {
  const Prediction &p = k.decided.prediction;
  return "{\"name\":" + jsonString(k.name) + ",\"launches\":" + std::to_string(k.decided.launches) +
         ",\"nodes\":[" + join(k.nodes, ",", [](const std::string &s) { return jsonString(s); }) +
         "],\"bytes_read\":" + wholeText(p.readBytes) +
         ",\"bytes_written\":" + wholeText(p.writtenBytes) +
         ",\"predicted_s\":" + floatToText(p.seconds) + "}";
}

std::string jsonPair(const DiffedTarget::Pair &p) {
  return "{\"a\":" + jsonKernel(p.a) + ",\"b\":" + jsonKernel(p.b) + "}";
}

std::string jsonSums(const Sums &s) {
  return "{\"launches\":" + std::to_string(s.launches) +
         ",\"bytes_read\":" + wholeText(s.readBytes) +
         ",\"bytes_written\":" + wholeText(s.writtenBytes) +
         ",\"predicted_s\":" + floatToText(s.seconds) + "}";
}

std::string jsonBool(bool b) { return b ? "true" : "false"; }

std::string jsonTarget(const DiffedTarget &t) {
  auto code = [](const DiffedTarget::Code &c) {
    return "{\"kind\":" + jsonString(c.kind) + ",\"a_bytes\":" + std::to_string(c.a) +
           ",\"b_bytes\":" + std::to_string(c.b) + ",\"differs\":" + jsonBool(c.differs) + "}";
  };
  return "{\"target\":" + jsonString(t.target) + ",\"differs\":" + jsonBool(t.differs()) +
         ",\"a\":" + (t.inA ? jsonSums(t.a) : "null") +
         ",\"b\":" + (t.inB ? jsonSums(t.b) : "null") + ",\"removed\":[" +
         join(t.removed, ",", jsonKernel) + "],\"added\":[" + join(t.added, ",", jsonKernel) +
         "],\"changed\":[" + join(t.changed, ",", jsonPair) + "],\"rescheduled\":[" +
         join(t.rescheduled, ",", jsonPair) + "],\"relaunched\":[" +
         join(t.relaunched, ",", jsonPair) + "],\"plan_differs\":" + jsonBool(t.planDiffers) +
         ",\"code\":[" + join(t.code, ",", code) + "]}";
}

std::string jsonNames(const std::vector<std::string> &names) {
  return "[" + join(names, ",", [](const std::string &s) { return jsonString(s); }) + "]";
}

std::string jsonSide(const BundleDiff::Side &s) {
  std::string sections;
  for (const auto &[kind, bytes] : s.sections)
    sections += (sections.empty() ? "" : ",") + jsonString(kind) + ":" + std::to_string(bytes);
  return "{\"path\":" + jsonString(s.path) + ",\"producer\":" + jsonString(s.producer) +
         ",\"bytes\":" + std::to_string(s.fileBytes) + ",\"weights\":" + std::to_string(s.weights) +
         ",\"weight_bytes\":" + std::to_string(s.weightBytes) + ",\"sections\":{" + sections + "}}";
}

} // namespace

std::string diffText(const BundleDiff &d) {
  std::string out;
  for (const BundleDiff::Side *s : {&d.a, &d.b}) {
    out +=
        oneLine(s->path) + ": " + bytesText(double(s->fileBytes)) + " by " + oneLine(s->producer);
    for (const auto &[kind, bytes] : s->sections)
      out += ", " + kind + " " + bytesText(double(bytes));
    out += "\n";
  }
  for (const DiffedTarget &t : d.targets)
    out += targetText(t);
  out += "constants: " + std::to_string(d.a.weights) + ", " + bytesText(double(d.a.weightBytes)) +
         " -> " + std::to_string(d.b.weights) + ", " + bytesText(double(d.b.weightBytes)) + "\n" +
         namesText("with other values", d.changedConstants) +
         namesText("removed", d.removedConstants) + namesText("added", d.addedConstants);
  if (d.interfaceDiffers)
    out += "inputs, outputs, symbols or rules of sizes differ\n";
  if (d.onlyElsewhere())
    out += "the files differ in names, the order of steps, or a signature alone\n";
  return out + (d.identical ? "the bundles are equal\n" : "the bundles differ\n");
}

std::string diffJson(const BundleDiff &d) {
  return "{\"equal\":" + jsonBool(d.identical) + ",\"a\":" + jsonSide(d.a) +
         ",\"b\":" + jsonSide(d.b) + ",\"targets\":[" + join(d.targets, ",", jsonTarget) +
         "],\"constants\":{\"changed\":" + jsonNames(d.changedConstants) +
         ",\"removed\":" + jsonNames(d.removedConstants) +
         ",\"added\":" + jsonNames(d.addedConstants) +
         "},\"interface_differs\":" + jsonBool(d.interfaceDiffers) + "}\n";
}

} // namespace fusec
