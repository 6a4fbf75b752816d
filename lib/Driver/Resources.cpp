#include "Driver/Resources.h"

#include "Driver/State.h"
#include "Gir/Walk.h"
#include "Support/Diag.h"
#include "Support/JsonText.h"
#include "Support/WholeText.h"

#include <algorithm>

namespace fusec {

namespace {

bool reads(const GirKernel &kernel, NodeId id) {
  const Scalar &s = kernel.body[id];
  return s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf ||
         std::any_of(s.args.begin(), s.args.end(), [&](NodeId a) { return reads(kernel, a); });
}

/// Sums products of two values that it reads.
bool contracts(const GirKernel &kernel) {
  bool found = false;
  forEachStmtOf(kernel, [&](const Stmt &s) {
    if (s.kind != StmtKind::Accumulate || s.monoid != Monoid::Sum)
      return;
    const Scalar &value = kernel.body[s.value];
    found = found || (value.op == ScalarOp::Mul && value.args[0] != value.args[1] &&
                      reads(kernel, value.args[0]) && reads(kernel, value.args[1]));
  });
  return found;
}

std::string counted(int64_t n, const std::string &one) {
  return std::to_string(n) + " " + one + (n == 1 ? "" : "s");
}

} // namespace

std::optional<std::vector<KernelResources>> resourcesOf(const TargetState &target) {
  const auto made =
      std::find_if(target.images.begin(), target.images.end(), [](const CodeImage &i) {
        return i.format == CodeImage::Format::Cubin || i.format == CodeImage::Format::Hsaco;
      });
  if (made == target.images.end())
    return std::nullopt;
  const std::vector<KernelCode> codes = kernelCodes(target.gir.kernels, target.target);
  std::vector<KernelResources> list;
  for (size_t k = 0; k < codes.size(); ++k) {
    const GirKernel &kernel = target.gir.kernels[k];
    list.push_back({codes[k].symbol, kernel.onnxNodes, contracts(kernel), {}});
    for (const EntryResources &entry : made->resources)
      if (const size_t end = entry.entry.rfind('_');
          end != std::string::npos && entry.entry.substr(0, end) == codes[k].symbol)
        list.back().entries.push_back(entry);
  }
  return list;
}

Diagnostics spillWarnings(const std::vector<KernelResources> &kernels, const std::string &target) {
  Diagnostics warnings;
  for (const KernelResources &k : kernels)
    for (const EntryResources &e : k.entries)
      if (k.contracts && e.spillStores + e.spillLoads > 0)
        warnings.push_back(
            {Diag::SpilledRegisters,
             "kernel '" + k.kernel + "'" +
                 (k.nodes.empty() ? "" : " (node '" + k.nodes.front() + "')") + " for " + target,
             "the " + std::to_string(e.registers) + " registers of entry '" + e.entry +
                 "' do not suffice: each thread stores " + counted(e.spillStores, "byte") +
                 " and loads " + counted(e.spillLoads, "byte") +
                 " on its way through the products. --emit-decisions=FILE writes its schedule; "
                 "with "
                 "smaller sizes behind 'unroll' and --decisions=FILE it needs fewer"});
  return warnings;
}

std::string resourcesText(const std::optional<std::vector<KernelResources>> &kernels) {
  if (!kernels)
    return "resources: not known; they are those of a GPU's machine code, which for NVIDIA needs "
           "ptxas\n";
  std::string out = "resources of the machine code, of each entry:\n";
  for (const KernelResources &k : *kernels)
    for (const EntryResources &e : k.entries) {
      out += "  " + e.entry + ": " + counted(e.registers, "register");
      if (e.scalarRegisters > 0)
        out += " and " + std::to_string(e.scalarRegisters) + " scalar ones";
      if (e.sharedBytes > 0)
        out += ", " + counted(e.sharedBytes, "shared byte");
      if (e.barriers > 0)
        out += ", " + counted(e.barriers, "barrier");
      if (e.stackBytes > 0)
        out += ", stack of " + counted(e.stackBytes, "byte");
      if (e.spillStores + e.spillLoads > 0)
        out += ", spills: " + counted(e.spillStores, "byte") + " stored, " +
               std::to_string(e.spillLoads) + " loaded";
      out += "\n";
      for (const std::string &remark : e.remarks)
        out += "    " + oneLine(remark) + "\n";
    }
  return out;
}

std::string resourcesJson(const std::optional<std::vector<KernelResources>> &kernels) {
  if (!kernels)
    return "null";
  std::string out;
  for (const KernelResources &k : *kernels)
    for (const EntryResources &e : k.entries) {
      out += (out.empty() ? "{" : ",{") + std::string("\"kernel\":") + jsonString(k.kernel) +
             ",\"entry\":" + jsonString(e.entry) + ",\"registers\":" + std::to_string(e.registers) +
             ",\"scalar_registers\":" + std::to_string(e.scalarRegisters) +
             ",\"shared_bytes\":" + std::to_string(e.sharedBytes) +
             ",\"barriers\":" + std::to_string(e.barriers) +
             ",\"stack_bytes\":" + std::to_string(e.stackBytes) +
             ",\"spill_stores\":" + std::to_string(e.spillStores) +
             ",\"spill_loads\":" + std::to_string(e.spillLoads) + ",\"remarks\":[";
      for (size_t r = 0; r < e.remarks.size(); ++r)
        out += (r ? "," : "") + jsonString(e.remarks[r]);
      out += "]}";
    }
  return "[" + out + "]";
}

} // namespace fusec
