#include "Onnx/Import.h"
#include "Onnx/GraphBuilder.h"
#include "Onnx/WireScan.h"
#include "Support/Diag.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include <algorithm>
#include <sys/mman.h>
#include <unistd.h>

namespace fusec {

namespace {

/// Bytes in memory, read once from front to back. What has been read goes back to the system, since weights would
/// else be there twice: in the file's bytes, and in the message.
class ConsumedInput : public google::protobuf::io::ZeroCopyInputStream {
public:
  explicit ConsumedInput(std::string_view bytes) : bytes(bytes) {}

  bool Next(const void **data, int *size) override {
    release();
    const size_t block = std::min(kBlockBytes, bytes.size() - at);
    *data = bytes.data() + at;
    *size = static_cast<int>(block);
    at += block;
    return block > 0;
  }
  void BackUp(int count) override { at -= static_cast<size_t>(count); }
  bool Skip(int count) override {
    const size_t step = std::min(static_cast<size_t>(count), bytes.size() - at);
    at += step;
    return step == static_cast<size_t>(count);
  }
  int64_t ByteCount() const override { return static_cast<int64_t>(at); }

private:
  static constexpr size_t kBlockBytes = size_t(1) << 20;

  /// Gives back the whole pages that lie before `at`.
  void release() {
    const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<uintptr_t>(bytes.data());
    const uintptr_t from = (first + released + page - 1) / page * page,
                    to = (first + at) / page * page;
    if (from >= to)
      return;
    ::madvise(reinterpret_cast<void *>(from), to - from, MADV_DONTNEED); // else they stay
    released = to - first;
  }

  std::string_view bytes;
  size_t at = 0, released = 0;
};

} // namespace

/// Parses a message that scanWire() has accepted, and leaves nothing of the bytes. protobuf's own bound on nesting is
/// below ours.
static bool parseMessage(std::string_view bytes, google::protobuf::Message &message) {
  ConsumedInput consumed(bytes);
  google::protobuf::io::CodedInputStream in(&consumed);
  in.SetRecursionLimit(1000);
  in.SetTotalBytesLimit(INT32_MAX);
  return message.ParseFromCodedStream(&in) && in.ConsumedEntireMessage();
}

/// Whether it is too much of something, whatever the sizes begin at.
static bool isBeyondLimit(const Result<Graph> &imported) {
  return !imported.ok() && std::ranges::any_of(imported.errors(), [](const Diagnostic &d) {
    return d.id == Diag::LimitExceeded;
  });
}

static Diagnostic wrongDeclaration(const std::string &path, const Result<Graph> &imported) {
  std::string text =
      "sizes that the model declares of its tensors do not fit its nodes, which hold";
  if (!imported.ok() && !imported.errors().empty())
    text += ": " + imported.errors()[0].where + ": " + imported.errors()[0].text;
  return Diagnostic{Diag::WrongDeclaration, path, text};
}

static Result<onnx::ModelProto> readModel(const std::string &path, const Limits &limits) {
  onnx::ModelProto model;
  FUSEC_TRY(Bytes bytes, readWholeFile(path, limits.modelBytes, "model"));
  std::string_view view(reinterpret_cast<const char *>(bytes->data()), bytes->size());
  if (view.empty())
    return Diagnostic{Diag::MalformedModel, path, "the file is empty"};
  FUSEC_CHECK(scanWire(view, onnx::ModelProto::descriptor(), path, limits));
  if (!parseMessage(view, model))
    return Diagnostic{Diag::MalformedModel, path, "the bytes are not an ONNX model"};
  return model;
}

Result<Graph> importOnnx(const std::string &path, const ImportOptions &options,
                         Diagnostics *warnings) {
  FUSEC_TRY(onnx::ModelProto model, readModel(path, options.limits));
  ImportMemory memory;
  std::optional<Diagnostic> ignored;
  Result<Graph> imported = Diagnostics{};
  // Each repetition knows more of the sizes or takes inputs for constants: most of both shows at once.
  constexpr int kMostRounds = 16, kMostSizeRounds = 100;
  for (int round = 0, sizeRounds = 0;; ++round) {
    const SizeSolver sizes = memory.sizes;
    GraphBuilder builder(path, options, memory);
    imported = builder.run(model);
    if (warnings)
      *warnings = std::move(builder.warnings);
    // What nodes imply does not help where an input or an initialiser was refused.
    if (!imported.ok() && !builder.usable)
      break;
    // With a value that grows a loop's body asks something else of sizes.
    if (builder.foundGrowth && round < kMostRounds) {
      memory.sizes = sizes;
      continue;
    }
    const bool isContradiction = !imported.ok() && builder.foundContradiction;
    const bool foundSizes = !isContradiction && memory.sizes.endRound();
    const bool isEndless = foundSizes && sizeRounds++ == kMostSizeRounds;
    const bool goesOn = foundSizes || (round < kMostRounds && builder.foundFixed);
    const bool leadsNowhere = isContradiction || isEndless || (!imported.ok() && !goesOn);
    if (leadsNowhere) {
      auto refused = imported.ok() ? memory.sizes.lastSolved() : builder.firstRefusal();
      if (isBeyondLimit(imported)) // whatever sizes begin at
        refused.reset();
      if (memory.sizes.giveUp(refused)) {
        if (memory.sizes.standsOn(SizeSolver::kDeclared))
          ignored.reset();
        else if (!ignored)
          ignored = wrongDeclaration(path, imported);
        memory.growing.clear(); // over symbols that are no more
        round = sizeRounds = 0;
        continue;
      }
    }
    if (isContradiction) {
      // In the next round the sizes would not tell any more which nodes contradict each other.
      std::erase_if(imported.errors(),
                    [](const Diagnostic &d) { return d.id != Diag::ShapeMismatch; });
      break;
    }
    if (isEndless)
      return Diagnostic{Diag::LimitExceeded, path,
                        "what the nodes ask of sizes is not settled in " +
                            std::to_string(kMostSizeRounds) + " passes; fix sizes with --dim"};
    if (goesOn)
      continue;
    // Default values may matter in ways that no single operand tells, such as the sizes of two branches.
    const bool settled = imported.ok() ? !builder.foundFixed
                                       : !imported.errors().empty() &&
                                             imported.errors().front().id == Diag::BadOption;
    if (settled || memory.allFixed || !builder.hasDefaults())
      break;
    memory.allFixed = true;
    round = 0;
  }
  FUSEC_TRY(Graph graph, std::move(imported));
  if (warnings && ignored)
    warnings->push_back(std::move(*ignored));
  FUSEC_TRY(graph, eliminateDeadCode(std::move(graph), {}));
  FUSEC_CHECK(verify(graph));
  return graph;
}

} // namespace fusec
