#include "Runtime/Profile.h"

#include "Runtime/Error.h"

#include <cstdio>
#include <ctime>

namespace fusec::rt {

uint64_t Profile::now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return uint64_t(t.tv_sec) * 1000000000u + static_cast<uint64_t>(t.tv_nsec);
}

void Profile::add(const Launch &launch, const bundle::Kernel &kernel, uint64_t nanoseconds) {
  Row &row = rows[launch.kernel];
  row.kernel = &kernel;
  row.launches += 1;
  row.nanoseconds += nanoseconds;
  for (int64_t g : launch.grids)
    row.blocks += static_cast<uint64_t>(g);
}

std::string Profile::json() const {
  std::string out = "{\"kernels\":[";
  bool first = true;
  for (const Row &r : rows) {
    if (!r.kernel)
      continue;
    out += first ? "" : ",";
    first = false;
    out += "{\"name\":" + jsonString(r.kernel->symbol) +
           ",\"nodes\":" + jsonStrings(r.kernel->onnxNodes) +
           ",\"launches\":" + std::to_string(r.launches) +
           ",\"blocks\":" + std::to_string(r.blocks) + ",\"ns\":" + std::to_string(r.nanoseconds) +
           "}";
  }
  return out + "]}";
}

fusert_status kernelFailed(const bundle::Program &program, const Launch &launch, int32_t status) {
  const bundle::Kernel &k = program.kernels[launch.kernel];
  std::string text = "kernel '" + k.symbol + "'";
  if (!k.onnxNodes.empty())
    text += " (node '" + k.onnxNodes.front() + "')";
  text += status == FUSEC_KERNEL_INDEX_OUT_OF_RANGE ? ": an index in the data is out of range"
          : status == FUSEC_KERNEL_BAD_VALUE        ? ": a value in the data is not allowed"
                                                    : ": returned status " + std::to_string(status);
  return fail(FUSERT_OUT_OF_RANGE, text);
}

std::string jsonString(const std::string &text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20) {
      char buffer[8];
      std::snprintf(buffer, sizeof buffer, "\\u%04x", c);
      out += buffer;
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "\"";
}

std::string jsonStrings(const std::vector<std::string> &list) {
  std::string out = "[";
  for (size_t i = 0; i < list.size(); ++i)
    out += (i ? "," : "") + jsonString(list[i]);
  return out + "]";
}

} // namespace fusec::rt
