#pragma once
#include "Driver/State.h"

namespace fusec {

/// What the kernels that run at some sizes are predicted to take.
struct SizedPrediction {
  std::vector<int64_t> symbols; // their values
  double seconds = 0;           // of a run, as totals of an explanation are
  struct Kernel {
    std::string name; // of the code
    int launches;
    size_t variant; // of its variants the one that runs
    double seconds; // of one launch
  };
  std::vector<Kernel> kernels; // those that run
  std::string where; // "length = 1" where a plan of its own runs; empty: that for all sizes
};
SizedPrediction predictAt(const TargetState &target, const std::vector<int64_t> &symbols);

/// The values of "batch=2,seq=37"; symbols that it does not name have what they are tuned for. `option`: how the text
/// was given, for errors.
Result<std::vector<int64_t>> parseSizes(const std::string &text, const std::vector<Symbol> &symbols,
                                        const std::string &option);

} // namespace fusec
