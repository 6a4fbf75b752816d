#pragma once
#include "HostTensor.h"
#include "Support/DataTests.h"
#include "Support/Diag.h"
#include "Support/NamedText.h"
#include "ToolError.h"
#include "common/Names.h"
#include "fusec/runtime.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fusert {

/// What the commands share: which bundle, on what, with which inputs.
struct SessionOptions {
  std::string bundle, target;
  std::vector<std::string> inputs; // NAME=FILE
  std::vector<std::string> dims;   // NAME=VALUE
  std::optional<uint64_t> random;  // seed for the inputs that no file gives
  int threads = 0;
  int device = 0; // number of the GPU
  bool counters = false;
  bool verifyCodeOnly = false;
  std::string publicKey; // file; empty: signatures are not asked for
  uint64_t simSeed = 0;
  int64_t cacheRows =
      0; // for which caches have room that inputs and outputs share; 0: they share none
};

/// A loaded model with a context and filled inputs. All failures are ToolErrors.
class Session {
public:
  enum class Use {
    Run,
    Info // the bundle alone is read: no device is opened, no input is read or made
  };
  Session(const SessionOptions &options, Use use);
  ~Session();
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  struct Value {
    std::string name;
    fusec::DType type;
    struct Dim {
      std::string text;
      std::optional<int64_t> constant;
    };
    std::vector<Dim> dims;
    bool hasDefault = false; // an input that may be left out
  };
  struct SymbolRange {
    std::string name;
    int64_t min, opt, max, divisor;
    std::string definition, node; // of one that a program makes of the symbols
    std::string bound;            // of one that depends on data
    std::optional<fusec::TestOfData> test;
    std::vector<int64_t> tuned; // sizes that kernels are tuned for
  };
  struct Inferred {
    std::string name, value; // "80", "past + seq"
  };
  struct SizeRule {
    std::string rule, node, op, reason;
    bool tested;
  };
  struct Cache {
    size_t input, output;
    int axis;
    bool grows;
  };
  struct Image {
    std::string format;
    uint64_t bytes;
    int32_t minDriver; // 12040 is 12.4, 0 any
  };
  struct Variant {
    std::string step, kernel, guards; // guards: in words, empty for none
  };
  struct Program {
    std::string target;
    size_t kernels, steps;
    uint64_t codeBytes, dynamicSharedBytes;
    std::vector<Image> images;
    std::vector<Variant> variants; // of all launches, one after the other
  };
  fusert_model_info info{};
  std::vector<Value> inputs, outputs;
  std::vector<SymbolRange> symbols, computed;
  std::vector<Inferred> inferred; // sizes of inputs that follow from these
  std::vector<SizeRule> sizeRules;
  std::vector<Cache> caches;
  std::vector<Program> programs; // all of the bundle

  void run(); // with the inputs that the constructor left in the context's own buffers
  HostTensor output(size_t index) const;
  size_t workspaceBytes() const;
  /// What a run of a program of this number needs at these sizes.
  fusert_memory_info memoryOf(size_t program, const std::vector<int64_t> &sizes) const;
  /// The values of --dim options; symbols that they do not name have their typical ones.
  std::vector<int64_t> sizesOf(const std::vector<std::string> &dims) const;
  std::string counters() const;

private:
  void load(const SessionOptions &options, Use use);
  void readSizes();
  void readCaches();
  void readPrograms();
  /// Sizes of --dim options by the names of symbols.
  std::map<std::string, int64_t> givenSizes(const std::vector<std::string> &dims) const;
  void setShapes(const SessionOptions &options, const std::map<std::string, HostTensor> &files);
  void fillInputs(const SessionOptions &options, const std::map<std::string, HostTensor> &files);
  /// Copies input or output `index` between a buffer, in which rows of a shared cache lie apart, and `dense`.
  void copyRows(bool input, size_t index, void *buffer, size_t bufferBytes, HostTensor &dense,
                bool toBuffer) const;
  fusert_model model = 0;
  fusert_context context = 0;
  int64_t cacheRows = 0;
};

/// "NAME=VALUE" as splitNamed() cuts it for the names of `list`, which have a `name`; throws ToolError.
template <typename List>
std::pair<std::string, std::string> splitPair(const std::string &text, const std::string &option,
                                              const List &list) {
  std::vector<std::string> names;
  for (const auto &named : list)
    names.push_back(named.name);
  auto pair = fusec::splitNamed(text, names);
  if (!pair)
    throw ToolError(fusec::Diag::BadOption, option + " " + text, "expected NAME=VALUE");
  return *pair;
}

/// Throws the ToolError that stands for a status other than FUSERT_OK.
void require(fusert_status status);

/// Deterministic contents: floats about standard normal, integers and booleans 0 or 1.
void fillRandom(HostTensor &tensor, uint64_t seed);

} // namespace fusert
