#pragma once
#include "Bundle/Model.h"
#include "Runtime/Device.h"
#include "Runtime/DimBounds.h"
#include "Runtime/PlanOutline.h"
#include "fusec/runtime.h"

#include <memory>
#include <string>
#include <vector>

namespace fusec::rt {

/// The bytes of a bundle for as long as weights point into them: a mapped file, a copy, or the caller's.
class FileBytes {
public:
  FileBytes() = default;
  FileBytes(const FileBytes &) = delete;
  FileBytes &operator=(const FileBytes &) = delete;
  ~FileBytes();

  fusert_status openFile(const char *path, bool copy);
  fusert_status useMemory(const void *bytes, size_t size, bool copy);
  const uint8_t *data = nullptr;
  size_t size = 0;

private:
  fusert_status allocate(size_t bytes);
  void *mapped = nullptr;
};

/// What a fusert_model handle stands for.
class Model {
public:
  /// Checks and loads; `where` names the bundle in messages.
  fusert_status load(const fusert_load_options &options, const std::string &where);

  FileBytes file;
  bundle::Model content;
  const bundle::Program *program = nullptr; // the one chosen
  std::unique_ptr<Device> device;           // null for one that is loaded for its information alone
  PlanOutline outline;                      // of the program, where it is to be run
  SymbolSolver solver;

  /// Texts and bounds of the dimensions, for the info functions.
  struct ValueText {
    std::vector<std::string> texts;
    std::vector<fusert_dim> dims;
  };
  std::vector<ValueText> inputTexts, outputTexts;
  struct VariantText {
    const bundle::Step *step;
    const bundle::Variant *variant;
    std::string guards;
  };
  std::vector<std::vector<VariantText>> variants;    // of each program
  std::vector<std::string> inferredTexts, ruleTexts; // of values and of rules
  std::vector<std::string> definitionTexts;          // by symbol
  std::vector<std::string> boundTexts; // by symbol; empty for one that does not depend on data

private:
  fusert_status loadProgram(const fusert_load_options &options, const std::string &where);
  fusert_status choose(const char *target);
  fusert_status loadBest(const DeviceKind &kind, int32_t ordinal);
  void describe();
  /// `around`: guards of the steps around these.
  void describe(const std::vector<bundle::Step> &steps, const std::vector<bundle::Guard> &around,
                std::vector<VariantText> &out) const;
};

} // namespace fusec::rt
