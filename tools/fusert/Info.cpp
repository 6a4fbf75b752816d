#include "Commands.h"
#include "Support/DataTests.h"
#include "Support/TunedSizes.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>

namespace fusert {

namespace {

template <typename List, typename Text>
std::string join(const List &list, const char *separator, Text text) {
  std::string out;
  for (const auto &item : list)
    out += (out.empty() ? "" : separator) + text(item);
  return out;
}

/// What a run needs at some sizes.
struct SizedMemory {
  std::vector<int64_t> sizes; // of the symbols
  fusert_memory_info bytes;
};

/// Launches that choose between the same variants.
struct Choice {
  std::vector<Session::Variant> variants; // of the first of them
  size_t launches = 1;
};

/// A program and what is told of it.
struct Told : Session::Program {
  std::vector<SizedMemory> memory;
  std::vector<Choice> choices; // between several variants
};

std::vector<Choice> choicesOf(const Session::Program &program) {
  std::vector<Choice> out;
  std::map<std::string, size_t> known;
  std::vector<Session::Variant> open;
  for (const Session::Variant &variant : program.variants) {
    open.push_back(variant);
    if (!variant.guards.empty())
      continue;
    const auto [at, isNew] =
        known.emplace(join(open, ",", [](const auto &v) { return v.kernel; }), out.size());
    if (open.size() > 1 && isNew)
      out.push_back({open});
    else if (open.size() > 1)
      ++out[at->second].launches;
    open.clear();
  }
  return out;
}

/// The sizes that memory is told for: the typical ones, the largest where all are bounded, and those given.
std::vector<std::vector<int64_t>> sizesToTell(const Session &s,
                                              const std::vector<std::string> &dims) {
  std::vector<std::vector<int64_t>> list = {s.sizesOf({})};
  if (std::none_of(s.symbols.begin(), s.symbols.end(),
                   [](const auto &x) { return x.max == INT64_MAX; })) {
    list.emplace_back();
    for (const Session::SymbolRange &x : s.symbols)
      list.back().push_back(x.max / x.divisor * x.divisor);
  }
  if (!dims.empty())
    list.push_back(s.sizesOf(dims));
  std::vector<std::vector<int64_t>> out;
  for (std::vector<int64_t> &sizes : list)
    if (std::find(out.begin(), out.end(), sizes) == out.end())
      out.push_back(std::move(sizes));
  return out;
}

/// Nothing where nobody asked about these sizes and no machine has so much memory: a range may end far off.
std::optional<fusert_memory_info> memoryAt(const Session &s, size_t program,
                                           const std::vector<int64_t> &sizes,
                                           const std::vector<std::string> &dims) {
  try {
    return s.memoryOf(program, sizes);
  } catch (const ToolError &) {
    if (!dims.empty() && sizes == s.sizesOf(dims))
      throw;
    return std::nullopt;
  }
}

/// The programs that --target leaves: all of them without it.
std::vector<Told> chosen(const Session &s, const std::vector<std::string> &dims) {
  const std::string target = s.info.target;
  std::vector<Told> out;
  for (size_t p = 0; p < s.programs.size(); ++p) {
    if (!target.empty() && s.programs[p].target != target)
      continue;
    out.push_back({s.programs[p], {}, choicesOf(s.programs[p])});
    for (std::vector<int64_t> &sizes : sizesToTell(s, dims))
      if (const std::optional<fusert_memory_info> bytes = memoryAt(s, p, sizes, dims))
        out.back().memory.push_back({std::move(sizes), *bytes});
  }
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

std::string jsonMemory(const Session &s, const SizedMemory &m) {
  std::string sizes;
  for (size_t i = 0; i < m.sizes.size(); ++i)
    sizes += (i ? "," : "") + jsonString(s.symbols[i].name) + ":" + std::to_string(m.sizes[i]);
  return "{\"sizes\":{" + sizes +
         "},\"workspace_bytes\":" + std::to_string(m.bytes.workspace_bytes) +
         ",\"input_bytes\":" + std::to_string(m.bytes.input_bytes) +
         ",\"output_bytes\":" + std::to_string(m.bytes.output_bytes) + "}";
}

std::string jsonChoice(const Choice &c) {
  auto variant = [](const Session::Variant &v) {
    return "{\"kernel\":" + jsonString(v.kernel) + ",\"guards\":" + jsonString(v.guards) + "}";
  };
  return "{\"step\":" + jsonString(c.variants[0].step) +
         ",\"launches\":" + std::to_string(c.launches) + ",\"variants\":[" +
         join(c.variants, ",", variant) + "]}";
}

std::string jsonProgram(const Session &s, const Told &p) {
  auto image = [](const Session::Image &i) {
    return "{\"format\":" + jsonString(i.format) + ",\"bytes\":" + std::to_string(i.bytes) +
           ",\"min_driver\":" + std::to_string(i.minDriver) + "}";
  };
  return "{\"target\":" + jsonString(p.target) + ",\"kernels\":" + std::to_string(p.kernels) +
         ",\"steps\":" + std::to_string(p.steps) +
         ",\"code_bytes\":" + std::to_string(p.codeBytes) +
         ",\"dynamic_shared_bytes\":" + std::to_string(p.dynamicSharedBytes) +
         ",\"min_driver\":" + std::to_string(minDriver(p)) + ",\"images\":[" +
         join(p.images, ",", image) + "],\"memory\":[" +
         join(p.memory, ",", [&](const SizedMemory &m) { return jsonMemory(s, m); }) +
         "],\"choices\":[" + join(p.choices, ",", jsonChoice) + "]}";
}

bool isOpen(const Session::SymbolRange &x) { return x.max == INT64_MAX; }

/// "symbol batch: 1..64, tuned for 1 and 8, multiples of 4"
std::string symbolText(const Session::SymbolRange &x) {
  std::string out = "symbol " + printable(x.name) + ": " + std::to_string(x.min) +
                    (isOpen(x) ? " and more" : ".." + std::to_string(x.max)) + ", tuned for " +
                    fusec::sizesText(x.tuned);
  return x.divisor > 1 ? out + ", multiples of " + std::to_string(x.divisor) : out;
}

/// "size computed.0 = i64(ceil(f32(n)/2)), of node 'half'", "size found: at most batch*80, as the data decides"
std::string computedText(const Session::SymbolRange &x) {
  const std::string size = "size " + printable(x.name);
  if (x.bound.empty())
    return size + " = " + printable(x.definition) + ", of node '" + printable(x.node) + "'";
  if (x.test)
    return size + ": 0, as " + fusec::heldText(x.test->kind) + ", which CPUs test";
  return size + ": at most " + printable(x.bound) +
         (isOpen(x) ? "" : " and " + std::to_string(x.max)) + ", as the data decides";
}

/// "memory at batch=2, seq=37: 123 bytes of intermediates, 4 of inputs, 5 of outputs"
std::string memoryText(const Session &s, const SizedMemory &m) {
  std::string sizes;
  for (size_t i = 0; i < m.sizes.size(); ++i)
    sizes += (i ? ", " : " at ") + printable(s.symbols[i].name) + "=" + std::to_string(m.sizes[i]);
  return "  memory" + sizes + ": " + std::to_string(m.bytes.workspace_bytes) +
         " bytes of intermediates, " + std::to_string(m.bytes.input_bytes) + " of inputs, " +
         std::to_string(m.bytes.output_bytes) + " of outputs";
}

/// "3 launches like mm: k_a_v0 where seq >= 45, else k_a"
std::string choiceText(const Choice &c) {
  std::string out = "  " + std::to_string(c.launches) +
                    (c.launches == 1 ? " launch, " : " launches like ") +
                    printable(c.variants[0].step) + ":";
  for (size_t v = 0; v < c.variants.size(); ++v) {
    const Session::Variant &variant = c.variants[v];
    out += (v ? ", else " : " ") + printable(variant.kernel) +
           (variant.guards.empty() ? "" : " where " + printable(variant.guards));
  }
  return out;
}

/// "cache past grows to present along dimension 2", "cache past becomes present"
std::string cacheText(const Session &s, const Session::Cache &c) {
  return "cache " + printable(s.inputs[c.input].name) + (c.grows ? " grows to " : " becomes ") +
         printable(s.outputs[c.output].name) +
         (c.grows ? " along dimension " + std::to_string(c.axis) : "");
}

void printJson(const Session &s, const std::vector<Told> &programs) {
  auto symbol = [](const Session::SymbolRange &x) {
    return "{\"name\":" + jsonString(x.name) + ",\"min\":" + std::to_string(x.min) +
           ",\"opt\":" + std::to_string(x.opt) + ",\"tuned\":[" +
           join(x.tuned, ",", [](int64_t size) { return std::to_string(size); }) + "]" +
           ",\"max\":" + (isOpen(x) ? "null" : std::to_string(x.max)) +
           ",\"divisor\":" + std::to_string(x.divisor) + "}";
  };
  auto inferred = [](const Session::Inferred &x) {
    return "{\"name\":" + jsonString(x.name) + ",\"value\":" + jsonString(x.value) + "}";
  };
  auto rule = [](const Session::SizeRule &x) {
    return "{\"rule\":" + jsonString(x.rule) + ",\"node\":" + jsonString(x.node) +
           ",\"op\":" + jsonString(x.op) + ",\"reason\":" + jsonString(x.reason) +
           ",\"tested\":" + (x.tested ? "true" : "false") + "}";
  };
  auto computed = [](const Session::SymbolRange &x) {
    if (!x.bound.empty())
      return "{\"name\":" + jsonString(x.name) + ",\"bound\":" + jsonString(x.bound) +
             (x.test ? ",\"test\":" + jsonString(std::string(name(x.test->kind))) +
                           ",\"test_of\":" + jsonString(x.test->node)
                     : "") +
             "}";
    return "{\"name\":" + jsonString(x.name) + ",\"definition\":" + jsonString(x.definition) +
           ",\"node\":" + jsonString(x.node) + "}";
  };
  auto cache = [&](const Session::Cache &c) {
    return "{\"input\":" + jsonString(s.inputs[c.input].name) +
           ",\"output\":" + jsonString(s.outputs[c.output].name) +
           ",\"axis\":" + std::to_string(c.axis) + ",\"grows\":" + (c.grows ? "true" : "false") +
           "}";
  };
  std::printf("{\"name\":%s,\"producer\":%s,\"inputs\":%s,\"outputs\":%s,\"symbols\":[%s],"
              "\"inferred\":[%s],\"size_rules\":[%s],\"computed\":[%s],\"caches\":[%s],\"weight_"
              "bytes\":%llu,"
              "\"programs\":[%s]}\n",
              jsonString(s.info.name).c_str(), jsonString(s.info.producer).c_str(),
              jsonValues(s.inputs).c_str(), jsonValues(s.outputs).c_str(),
              join(s.symbols, ",", symbol).c_str(), join(s.inferred, ",", inferred).c_str(),
              join(s.sizeRules, ",", rule).c_str(), join(s.computed, ",", computed).c_str(),
              join(s.caches, ",", cache).c_str(),
              static_cast<unsigned long long>(s.info.weight_bytes),
              join(programs, ",", [&](const Told &p) { return jsonProgram(s, p); }).c_str());
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
  const std::vector<Told> programs = chosen(s, options.session.dims);
  if (options.json) {
    printJson(s, programs);
    return 0;
  }
  std::printf("model %s, made by %s, %llu bytes of weights\n", printable(s.info.name).c_str(),
              printable(s.info.producer).c_str(),
              static_cast<unsigned long long>(s.info.weight_bytes));
  printValues("input", s.inputs);
  printValues("output", s.outputs);
  for (const Session::SymbolRange &x : s.symbols)
    std::printf("%s\n", symbolText(x).c_str());
  for (const Session::Inferred &x : s.inferred)
    std::printf("inferred %s: %s\n", printable(x.name).c_str(), printable(x.value).c_str());
  for (const Session::SizeRule &x : s.sizeRules)
    std::printf("%s: %s, node %s (%s): %s\n", x.tested ? "tested" : "follows",
                printable(x.rule).c_str(), printable(x.node).c_str(), printable(x.op).c_str(),
                printable(x.reason).c_str());
  for (const Session::SymbolRange &x : s.computed)
    std::printf("%s\n", computedText(x).c_str());
  for (const Session::Cache &c : s.caches)
    std::printf("%s\n", cacheText(s, c).c_str());
  for (const Told &p : programs) {
    std::printf("program %s: %zu kernels, %zu steps, %llu bytes of code",
                printable(p.target).c_str(), p.kernels, p.steps,
                static_cast<unsigned long long>(p.codeBytes));
    std::printf("%s%s\n", p.images.empty() ? "" : ": ", join(p.images, ", ", imageText).c_str());
    if (p.dynamicSharedBytes > 0)
      std::printf("  shared memory: launches ask for up to %llu bytes a block\n",
                  static_cast<unsigned long long>(p.dynamicSharedBytes));
    for (const SizedMemory &m : p.memory)
      std::printf("%s\n", memoryText(s, m).c_str());
    for (const Choice &c : p.choices)
      std::printf("%s\n", choiceText(c).c_str());
  }
  return 0;
}

} // namespace fusert
