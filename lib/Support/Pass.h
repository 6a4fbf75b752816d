#pragma once
// A list of passes: each IR with a verifier and a text has one, and runPasses (RunPasses.h) runs it.
#include "Support/Result.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fusec {

/// One change of a program that verifies before it and has to verify behind it.
template <typename IR> struct Pass {
  std::string_view name; // what users call it
  std::string_view summary;
  std::function<Status(IR &)> run;
};

/// What a run of passes tells while it goes on; each part may be empty.
struct PassObserver {
  std::function<void(std::string_view pass, double seconds)>
      onTime;                                           // of the pass, without the verifier
  std::function<bool(std::string_view pass)> wantsText; // behind this pass
  std::function<void(std::string_view pass, const std::string &text)> onText;
  /// The program as it was before the pass that broke a rule.
  std::function<void(std::string_view pass, const std::string &text)> onBroken;
};

/// The pass called `name`, or null.
template <typename IR>
const Pass<IR> *findPass(const std::vector<Pass<IR>> &passes, std::string_view name) {
  for (const Pass<IR> &pass : passes)
    if (pass.name == name)
      return &pass;
  return nullptr;
}

} // namespace fusec
