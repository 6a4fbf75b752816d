#pragma once
#include "Driver/Explain.h"

namespace fusec {

struct DiffedKernel {
  std::string name;
  std::vector<std::string> nodes;
  DecidedKernel decided;
};

/// What two programs for one target have and have not in common. Kernels are the same where their digests are, that is
/// what they compute; of two with equal ONNX nodes but other digests, one became the other.
struct DiffedTarget {
  std::string target;
  bool inA = false, inB = false;
  Sums a, b;
  std::vector<DiffedKernel> removed, added;
  struct Pair {
    DiffedKernel a, b;
  };
  std::vector<Pair> changed;     // other digest, same nodes
  std::vector<Pair> rescheduled; // same digest, other schedule
  std::vector<Pair> relaunched;  // same digest, launched more or less often, or for other nodes
  bool planDiffers = false;      // order of the launches, or reasons
  struct Code {
    std::string kind;
    size_t a = 0, b = 0; // bytes; 0: not there
    bool differs = false;
  };
  std::vector<Code> code;
  bool differs() const;
};

struct BundleDiff {
  struct Side {
    std::string path, producer;
    uint64_t fileBytes = 0, weightBytes = 0;
    size_t weights = 0;
    std::vector<std::pair<std::string, uint64_t>> sections; // kind, bytes
  };
  Side a, b;
  bool identical = false; // byte for byte
  std::vector<DiffedTarget> targets;
  std::vector<std::string> changedConstants, removedConstants, addedConstants; // tensors
  bool interfaceDiffers = false; // inputs, outputs, symbols, rules
  /// The files differ, and nothing of the above tells where.
  bool onlyElsewhere() const;
};

/// Reads and checks both files.
Result<BundleDiff> diffBundles(const std::string &pathA, const std::string &pathB);

std::string diffText(const BundleDiff &diff);
/// One object, one line.
std::string diffJson(const BundleDiff &diff);

} // namespace fusec
