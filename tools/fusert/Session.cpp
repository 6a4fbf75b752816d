#include "Session.h"

#include "KeyFile.h"
#include "Support/Diag.h"
#include "ToolError.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace fusert {

using fusec::Diag;

namespace {

Diag diagnosticOf(fusert_status status) {
  switch (status) {
  case FUSERT_INVALID_ARGUMENT:
  case FUSERT_OUT_OF_RANGE: return Diag::BadRunInput;
  case FUSERT_BAD_BUNDLE: return Diag::BadBundle;
  case FUSERT_BAD_SIGNATURE: return Diag::BadSignature;
  case FUSERT_UNSUPPORTED: return Diag::UnsupportedTarget;
  case FUSERT_IO_ERROR: return Diag::UnreadableFile;
  case FUSERT_NO_MEMORY: return Diag::OutOfMemory;
  case FUSERT_UNAVAILABLE: return Diag::DeviceUnavailable;
  case FUSERT_DEVICE_ERROR:
  case FUSERT_DEVICE_LOST: return Diag::DeviceFailed;
  case FUSERT_CHECK_FAILED: return Diag::BrokenKernel;
  default: return Diag::InternalError;
  }
}

int64_t parseInteger(const std::string &text, const std::string &option) {
  try {
    size_t used = 0;
    const int64_t v = std::stoll(text, &used);
    if (used == text.size())
      return v;
  } catch (const std::exception &) {
  }
  throw ToolError(Diag::BadOption, option, "'" + text + "' is not an integer");
}

Session::Value describe(const fusert_value_info &info) {
  Session::Value v{info.name, static_cast<fusec::DType>(info.type), {}, info.has_default != 0};
  for (int32_t d = 0; d < info.rank; ++d) {
    const fusert_dim &dim = info.dims[d];
    const bool constant = dim.min == dim.max && dim.text == std::to_string(dim.min);
    v.dims.push_back({dim.text, constant ? std::optional(dim.min) : std::nullopt});
  }
  return v;
}

/// "; its symbolic dimensions are 'n', 'm'"
std::string listed(const std::vector<Session::SymbolRange> &symbols) {
  std::string names;
  for (const Session::SymbolRange &s : symbols)
    names += (names.empty() ? "'" : ", '") + s.name + "'";
  return names.empty() ? "; all its sizes are fixed" : "; its symbolic dimensions are " + names;
}

/// Adds the symbols in the text of a size. A name may have any characters: of those that fit in a place the longest is
/// meant.
void noteSymbols(const std::string &text, const std::vector<Session::SymbolRange> &symbols,
                 std::set<std::string> &found) {
  auto isOfWord = [&](size_t at) {
    const auto c = static_cast<unsigned char>(text[at]);
    return std::isalnum(c) || c == '_' || c == '.' || c == '$' || c >= 0x80;
  };
  for (size_t at = 0; at < text.size();) {
    std::string longest;
    for (const Session::SymbolRange &s : symbols) {
      const size_t end = at + s.name.size();
      const bool ends = end >= text.size() || (!isOfWord(end) && text[end] != '('); // a function
      if (s.name.size() > longest.size() && ends && text.compare(at, s.name.size(), s.name) == 0)
        longest = s.name;
    }
    if (!longest.empty())
      found.insert(longest);
    const bool inWord = isOfWord(at);
    at += std::max<size_t>(longest.size(), 1);
    while (longest.empty() && inWord && at < text.size() && isOfWord(at))
      ++at;
  }
}

template <typename Get> HostTensor emptyTensor(fusec::DType type, int32_t rank, Get shape) {
  HostTensor t;
  t.type = type;
  t.dims.resize(static_cast<size_t>(rank));
  require(shape(t.dims.data(), &rank));
  t.bytes.resize(static_cast<size_t>(t.numElements() * fusec::sizeInBytes(type)));
  return t;
}

} // namespace

void require(fusert_status status) {
  if (status != FUSERT_OK)
    throw ToolError(diagnosticOf(status), "", fusert_last_error());
}

Session::Session(const SessionOptions &options, Use use) {
  try {
    load(options, use);
    if (use == Use::Info)
      return;
    std::map<std::string, HostTensor> files;
    for (const std::string &text : options.inputs) {
      auto [name, path] = splitPair(text, "--input", inputs);
      const auto input = std::find_if(inputs.begin(), inputs.end(),
                                      [&, &n = name](const Value &v) { return v.name == n; });
      if (input == inputs.end())
        throw ToolError(Diag::BadRunInput, "--input " + text,
                        "the model has no input '" + name + "'");
      if (!files.emplace(name, readTensor(path, input->type)).second)
        throw ToolError(Diag::BadOption, "--input " + text,
                        "the input '" + name + "' is given twice");
    }
    setShapes(options, files);
    fillInputs(options, files);
  } catch (...) {
    fusert_context_destroy(context);
    fusert_unload(model);
    throw;
  }
}

Session::~Session() {
  fusert_context_destroy(context);
  fusert_unload(model);
}

void Session::load(const SessionOptions &options, Use use) {
  fusert_load_options load{};
  load.struct_size = sizeof load;
  load.target = options.target.empty() ? nullptr : options.target.c_str();
  load.verify = options.verifyCodeOnly ? FUSERT_VERIFY_CODE : FUSERT_VERIFY_FULL;
  load.device = options.device;
  PublicKey key;
  if (!options.publicKey.empty()) {
    key = readPublicKey(options.publicKey);
    load.public_key = key.data();
  }
  load.info_only = use == Use::Info;
  require(fusert_load_file(options.bundle.c_str(), &load, &model));
  info.struct_size = sizeof info;
  require(fusert_get_model_info(model, &info));
  const std::string loaded = info.target;
  const bool onGpu = loaded.rfind("sm_", 0) == 0 || loaded.rfind("gfx", 0) == 0;
  if (options.device != 0 && !onGpu)
    throw ToolError(Diag::BadOption, "--device " + std::to_string(options.device),
                    "is the number of a GPU, and the program '" + loaded + "' runs on the CPU");
  for (size_t i = 0; i < info.inputs + info.outputs; ++i) {
    fusert_value_info v{};
    v.struct_size = sizeof v;
    const bool input = i < info.inputs;
    require(input ? fusert_get_input_info(model, i, &v)
                  : fusert_get_output_info(model, i - info.inputs, &v));
    (input ? inputs : outputs).push_back(describe(v));
  }
  readSizes();
  readCaches();
  readPrograms();
  if (use == Use::Info)
    return;
  fusert_context_options create{};
  create.struct_size = sizeof create;
  create.threads = options.threads;
  create.counters = options.counters;
  create.sim_seed = options.simSeed;
  require(fusert_context_create(model, &create, &context));
  if (options.cacheRows > 0)
    require(fusert_share_caches(context, options.cacheRows));
  cacheRows = options.cacheRows;
}

void Session::readSizes() {
  for (size_t i = 0; i < info.symbols + info.computed; ++i) {
    fusert_symbol_info s{};
    s.struct_size = sizeof s;
    require(fusert_get_symbol_info(model, i, &s));
    SymbolRange range{s.name,
                      s.min,
                      s.opt,
                      s.max,
                      s.divisor,
                      s.definition ? s.definition : "",
                      s.node ? s.node : "",
                      s.bound ? s.bound : "",
                      std::nullopt,
                      {s.tuned, s.tuned + s.num_tuned}};
    if (const auto kind = s.test ? fusec::parseDataTest(s.test) : std::nullopt)
      range.test = fusec::TestOfData{*kind, s.test_of};
    (i < info.symbols ? symbols : computed).push_back(std::move(range));
  }
  for (size_t i = 0; i < info.inferred; ++i) {
    fusert_inferred_info s{};
    s.struct_size = sizeof s;
    require(fusert_get_inferred_info(model, i, &s));
    inferred.push_back({s.name, s.value});
  }
  for (size_t i = 0; i < info.size_rules; ++i) {
    fusert_size_rule_info r{};
    r.struct_size = sizeof r;
    require(fusert_get_size_rule_info(model, i, &r));
    sizeRules.push_back({r.rule, r.node, r.op, r.reason, r.tested != 0});
  }
}

void Session::readCaches() {
  for (size_t i = 0; i < info.caches; ++i) {
    fusert_cache_info c{};
    c.struct_size = sizeof c;
    require(fusert_get_cache_info(model, i, &c));
    caches.push_back({c.input, c.output, c.axis, c.grows != 0});
  }
}

void Session::readPrograms() {
  for (size_t i = 0; i < info.programs; ++i) {
    fusert_program_info p{};
    p.struct_size = sizeof p;
    require(fusert_get_program_info(model, i, &p));
    programs.push_back(
        {p.target, p.kernels, p.steps, p.code_bytes, p.dynamic_shared_bytes, {}, {}});
    for (size_t j = 0; j < p.images; ++j) {
      fusert_image_info image{};
      image.struct_size = sizeof image;
      require(fusert_get_image_info(model, i, j, &image));
      programs.back().images.push_back({image.format, image.bytes, image.min_driver});
    }
    for (size_t j = 0; j < p.variants; ++j) {
      fusert_variant_info variant{};
      variant.struct_size = sizeof variant;
      require(fusert_get_variant_info(model, i, j, &variant));
      programs.back().variants.push_back({variant.step, variant.kernel, variant.guards});
    }
  }
}

std::map<std::string, int64_t> Session::givenSizes(const std::vector<std::string> &dims) const {
  std::vector<Inferred> names = inferred;
  for (const SymbolRange &s : symbols)
    names.push_back({s.name, s.name});
  std::map<std::string, int64_t> given, bySymbol;
  for (const std::string &text : dims) {
    auto [name, value] = splitPair(text, "--dim", names);
    const auto size = std::find_if(names.begin(), names.end(),
                                   [&, &n = name](const Inferred &s) { return s.name == n; });
    if (std::any_of(computed.begin(), computed.end(),
                    [&, &n = name](const SymbolRange &s) { return s.name == n; }))
      throw ToolError(Diag::BadRunInput, "--dim " + text,
                      "the size '" + name + "' is what the run computes from its data");
    if (size == names.end())
      throw ToolError(Diag::BadRunInput, "--dim " + text,
                      "the model has no symbolic dimension '" + name + "'" + listed(symbols));
    const int64_t number = parseInteger(value, "--dim");
    if (!given.emplace(name, number).second)
      throw ToolError(Diag::BadOption, "--dim " + text,
                      "the dimension '" + name + "' is given twice");
    const bool isSymbol = std::any_of(symbols.begin(), symbols.end(),
                                      [&](const SymbolRange &s) { return s.name == size->value; });
    const bool fits = isSymbol ? bySymbol.emplace(size->value, number).first->second == number
                               : size->value == std::to_string(number);
    if (!fits)
      throw ToolError(Diag::BadRunInput, "--dim " + text,
                      "in this model '" + name + "' is '" + size->value +
                          (isSymbol ? "', which is given another size" : "'"));
  }
  return bySymbol;
}

std::vector<int64_t> Session::sizesOf(const std::vector<std::string> &dims) const {
  const std::map<std::string, int64_t> given = givenSizes(dims);
  std::vector<int64_t> sizes;
  for (const SymbolRange &s : symbols) {
    const auto at = given.find(s.name);
    sizes.push_back(at == given.end() ? s.opt : at->second);
  }
  return sizes;
}

void Session::setShapes(const SessionOptions &options,
                        const std::map<std::string, HostTensor> &files) {
  std::map<std::string, int64_t> given = givenSizes(options.dims);
  if (symbols.empty() && sizeRules.empty())
    return;
  const bool shapesKnown = std::all_of(inputs.begin(), inputs.end(), [&](const Value &v) {
    return v.hasDefault || files.count(v.name);
  });
  if (given.empty() && shapesKnown) {
    std::set<std::string> mentioned;
    for (const Value &v : inputs)
      for (const Value::Dim &d : v.dims)
        noteSymbols(d.text, symbols, mentioned);
    for (const SymbolRange &s : symbols)
      if (s.min != s.max && mentioned.count(s.name) == 0)
        throw ToolError(Diag::BadRunInput, "dimension '" + s.name + "'",
                        "does not follow from the inputs' shapes; give --dim " + s.name + "=VALUE");
    std::vector<std::vector<int64_t>> dims;
    for (const Value &v : inputs) {
      dims.emplace_back();
      if (auto file = files.find(v.name); file != files.end())
        dims.back() = file->second.dims;
      else
        for (const Value::Dim &d : v.dims)
          dims.back().push_back(*d.constant);
    }
    std::vector<fusert_shape> shapes;
    for (const std::vector<int64_t> &list : dims)
      shapes.push_back({static_cast<int32_t>(list.size()), list.data()});
    require(fusert_set_shapes(context, shapes.data(), shapes.size()));
    return;
  }
  // --dim first, then dimensions of files that are a symbol alone, then typical sizes.
  for (const Value &v : inputs) {
    auto file = files.find(v.name);
    if (file != files.end() && file->second.dims.size() == v.dims.size())
      for (size_t d = 0; d < v.dims.size(); ++d)
        given.emplace(v.dims[d].text, file->second.dims[d]);
  }
  std::vector<int64_t> values;
  for (const SymbolRange &s : symbols) {
    auto at = given.find(s.name);
    values.push_back(at == given.end() ? s.opt : at->second);
  }
  require(fusert_set_symbols(context, values.data(), values.size()));
}

void Session::fillInputs(const SessionOptions &options,
                         const std::map<std::string, HostTensor> &files) {
  std::string missing;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Value &v = inputs[i];
    HostTensor t =
        emptyTensor(v.type, static_cast<int32_t>(v.dims.size()), [&](int64_t *dims, int32_t *rank) {
          return fusert_get_input_shape(context, i, dims, rank);
        });
    auto file = files.find(v.name);
    if (file != files.end()) {
      if (file->second.type != t.type || file->second.dims != t.dims)
        throw ToolError(Diag::BadRunInput, "input '" + v.name + "'",
                        "is " + t.describe() + ", given is " + file->second.describe());
      t.bytes = file->second.bytes;
    } else if (v.hasDefault) {
      continue;
    } else if (options.random) {
      fillRandom(t, *options.random * 1000003 + i);
    } else {
      missing += (missing.empty() ? "'" : ", '") + v.name + "'";
      continue;
    }
    void *data = nullptr;
    size_t bytes = 0;
    require(fusert_input_buffer(context, i, &data, &bytes));
    copyRows(true, i, data, bytes, t, true);
  }
  if (!missing.empty())
    throw ToolError(Diag::BadRunInput, "",
                    "no --input for " + missing + " (or give --random SEED)");
}

void Session::run() { require(fusert_run(context, nullptr, 0, nullptr, 0)); }

HostTensor Session::output(size_t index) const {
  const Value &v = outputs[index];
  HostTensor t =
      emptyTensor(v.type, static_cast<int32_t>(v.dims.size()), [&](int64_t *dims, int32_t *rank) {
        return fusert_get_output_shape(context, index, dims, rank);
      });
  void *data = nullptr;
  size_t bytes = 0;
  require(fusert_output_buffer(context, index, &data, &bytes));
  copyRows(false, index, data, bytes, t, false);
  return t;
}

void Session::copyRows(bool input, size_t index, void *buffer, size_t bufferBytes,
                       HostTensor &dense, bool toBuffer) const {
  size_t blocks = 1, own = dense.bytes.size();
  for (const Cache &c : caches)
    if (cacheRows > 0 && c.grows && (input ? c.input : c.output) == index)
      for (int d = 0; d < c.axis; ++d)
        blocks *= static_cast<size_t>(dense.dims[static_cast<size_t>(d)]);
  if (blocks == 0)
    return;
  own /= blocks;
  const size_t step = bufferBytes / blocks;
  for (size_t b = 0; b < blocks; ++b) {
    uint8_t *place = static_cast<uint8_t *>(buffer) + b * step,
            *values = dense.bytes.data() + b * own;
    std::copy_n(toBuffer ? values : place, own, toBuffer ? place : values);
  }
}

size_t Session::workspaceBytes() const {
  size_t bytes = 0;
  require(fusert_workspace_bytes(context, &bytes));
  return bytes;
}

fusert_memory_info Session::memoryOf(size_t program, const std::vector<int64_t> &sizes) const {
  fusert_memory_info memory{};
  memory.struct_size = sizeof memory;
  require(fusert_get_memory_info(model, program, sizes.data(), sizes.size(), &memory));
  return memory;
}

std::string Session::counters() const {
  const char *json = nullptr;
  require(fusert_counters_json(context, &json));
  return json;
}

} // namespace fusert
