#include "Commands.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace fusert {

namespace {

template <typename List, typename Text>
std::string join(const List &list, const char *separator, Text text) {
  std::string out;
  for (const auto &item : list)
    out += (out.empty() ? "" : separator) + text(item);
  return out;
}

/// The programs that --target leaves: all of them without it.
std::vector<Session::Program> chosen(const Session &s) {
  std::vector<Session::Program> out = s.programs;
  const std::string target = s.info.target;
  std::erase_if(out, [&](const auto &p) { return !target.empty() && p.target != target; });
  return out;
}

/// The lowest driver version that any form of the code asks for; 0 if one asks for none.
int32_t minDriver(const Session::Program &p) {
  int32_t lowest = p.images.empty() ? 0 : p.images[0].minDriver;
  for (const Session::Image &image : p.images)
    lowest = std::min(lowest, image.minDriver);
  return lowest;
}

std::string jsonValues(const std::vector<Session::Value> &values) {
  auto dim = [](const Session::Value::Dim &d) {
    return d.constant ? std::to_string(*d.constant) : jsonString(d.text);
  };
  auto value = [&](const Session::Value &v) {
    return "{\"name\":" + jsonString(v.name) + ",\"type\":\"" + std::string(fusec::name(v.type)) +
           "\",\"shape\":[" + join(v.dims, ",", dim) +
           (v.hasDefault ? "],\"optional\":true}" : "]}");
  };
  return "[" + join(values, ",", value) + "]";
}

std::string jsonProgram(const Session::Program &p) {
  auto image = [](const Session::Image &i) {
    return "{\"format\":" + jsonString(i.format) + ",\"bytes\":" + std::to_string(i.bytes) +
           ",\"min_driver\":" + std::to_string(i.minDriver) + "}";
  };
  return "{\"target\":" + jsonString(p.target) + ",\"kernels\":" + std::to_string(p.kernels) +
         ",\"steps\":" + std::to_string(p.steps) +
         ",\"code_bytes\":" + std::to_string(p.codeBytes) +
         ",\"min_driver\":" + std::to_string(minDriver(p)) + ",\"images\":[" +
         join(p.images, ",", image) + "]}";
}

bool isOpen(const Session::SymbolRange &x) { return x.max == INT64_MAX; }

/// "symbol batch: 1..64, tuned for 8, multiples of 4"
std::string symbolText(const Session::SymbolRange &x) {
  std::string out = "symbol " + printable(x.name) + ": " + std::to_string(x.min) +
                    (isOpen(x) ? " and more" : ".." + std::to_string(x.max)) + ", tuned for " +
                    std::to_string(x.opt);
  return x.divisor > 1 ? out + ", multiples of " + std::to_string(x.divisor) : out;
}

void printJson(const Session &s) {
  auto symbol = [](const Session::SymbolRange &x) {
    return "{\"name\":" + jsonString(x.name) + ",\"min\":" + std::to_string(x.min) +
           ",\"opt\":" + std::to_string(x.opt) +
           ",\"max\":" + (isOpen(x) ? "null" : std::to_string(x.max)) +
           ",\"divisor\":" + std::to_string(x.divisor) + "}";
  };
  std::printf("{\"name\":%s,\"producer\":%s,\"inputs\":%s,\"outputs\":%s,\"symbols\":[%s],"
              "\"weight_bytes\":%llu,\"programs\":[%s]}\n",
              jsonString(s.info.name).c_str(), jsonString(s.info.producer).c_str(),
              jsonValues(s.inputs).c_str(), jsonValues(s.outputs).c_str(),
              join(s.symbols, ",", symbol).c_str(),
              static_cast<unsigned long long>(s.info.weight_bytes),
              join(chosen(s), ",", jsonProgram).c_str());
}

void printValues(const char *side, const std::vector<Session::Value> &values) {
  auto dim = [](const Session::Value::Dim &d) { return d.text; };
  for (const Session::Value &v : values)
    std::printf("%s %s: %s [%s]%s\n", side, printable(v.name).c_str(),
                std::string(fusec::name(v.type)).c_str(),
                printable(join(v.dims, ", ", dim)).c_str(), v.hasDefault ? ", optional" : "");
}

/// "cubin for drivers of CUDA 13.0 and newer"
std::string imageText(const Session::Image &image) {
  std::string out = image.format;
  if (image.minDriver)
    out += " for drivers of CUDA " + std::to_string(image.minDriver / 1000) + "." +
           std::to_string(image.minDriver % 1000 / 10) + " and newer";
  return out;
}

} // namespace

int info(const InfoOptions &options) {
  Session s(options.session, Session::Use::Info);
  if (options.json) {
    printJson(s);
    return 0;
  }
  std::printf("model %s, made by %s, %llu bytes of weights\n", printable(s.info.name).c_str(),
              printable(s.info.producer).c_str(),
              static_cast<unsigned long long>(s.info.weight_bytes));
  printValues("input", s.inputs);
  printValues("output", s.outputs);
  for (const Session::SymbolRange &x : s.symbols)
    std::printf("%s\n", symbolText(x).c_str());
  for (const Session::Program &p : chosen(s)) {
    std::printf("program %s: %zu kernels, %zu steps, %llu bytes of code",
                printable(p.target).c_str(), p.kernels, p.steps,
                static_cast<unsigned long long>(p.codeBytes));
    std::printf("%s%s\n", p.images.empty() ? "" : ": ", join(p.images, ", ", imageText).c_str());
  }
  return 0;
}

} // namespace fusert
