#include "Commands.h"

#include <cstdio>

namespace fusert {

namespace {

std::string join(const std::vector<std::string> &list, const char *separator) {
  std::string out;
  for (size_t i = 0; i < list.size(); ++i)
    out += (i ? separator : "") + list[i];
  return out;
}

std::string jsonValues(const std::vector<Session::Value> &values) {
  std::vector<std::string> rows;
  for (const Session::Value &v : values) {
    std::vector<std::string> dims;
    for (const std::string &d : v.dims)
      dims.push_back(jsonString(d));
    rows.push_back("{\"name\":" + jsonString(v.name) + ",\"type\":\"" +
                   std::string(fusec::name(v.type)) + "\",\"shape\":[" + join(dims, ",") + "]}");
  }
  return "[" + join(rows, ",") + "]";
}

void printJson(const Session &s) {
  std::vector<std::string> symbols;
  for (const Session::SymbolRange &x : s.symbols)
    symbols.push_back("{\"name\":" + jsonString(x.name) + ",\"min\":" + std::to_string(x.min) +
                      ",\"opt\":" + std::to_string(x.opt) + ",\"max\":" + std::to_string(x.max) +
                      ",\"divisor\":" + std::to_string(x.divisor) + "}");
  std::printf(
      "{\"name\":%s,\"producer\":%s,\"target\":%s,\"inputs\":%s,\"outputs\":%s,\"symbols\":[%s],"
      "\"kernels\":%zu,\"steps\":%zu,\"weight_bytes\":%llu,\"code_bytes\":%llu}\n",
      jsonString(s.info.name).c_str(), jsonString(s.info.producer).c_str(),
      jsonString(s.info.target).c_str(), jsonValues(s.inputs).c_str(),
      jsonValues(s.outputs).c_str(), join(symbols, ",").c_str(), s.info.kernels, s.info.steps,
      static_cast<unsigned long long>(s.info.weight_bytes),
      static_cast<unsigned long long>(s.info.code_bytes));
}

void printValues(const char *side, const std::vector<Session::Value> &values) {
  for (const Session::Value &v : values)
    std::printf("%s %s: %s [%s]\n", side, printable(v.name).c_str(),
                std::string(fusec::name(v.type)).c_str(), printable(join(v.dims, ", ")).c_str());
}

} // namespace

int info(const InfoOptions &options) {
  Session s(options.session, false);
  if (options.json) {
    printJson(s);
    return 0;
  }
  std::printf("model %s, made by %s, program for %s\n", printable(s.info.name).c_str(),
              printable(s.info.producer).c_str(), printable(s.info.target).c_str());
  std::printf("%zu kernels, %zu steps, %llu bytes of weights, %llu bytes of code\n", s.info.kernels,
              s.info.steps, static_cast<unsigned long long>(s.info.weight_bytes),
              static_cast<unsigned long long>(s.info.code_bytes));
  printValues("input", s.inputs);
  printValues("output", s.outputs);
  for (const Session::SymbolRange &x : s.symbols)
    std::printf("symbol %s: %lld..%lld, tuned for %lld, multiples of %lld\n",
                printable(x.name).c_str(), static_cast<long long>(x.min),
                static_cast<long long>(x.max), static_cast<long long>(x.opt),
                static_cast<long long>(x.divisor));
  return 0;
}

} // namespace fusert
