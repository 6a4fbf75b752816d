#pragma once
// The one way to run passes over a program.
#include "Support/Diag.h"
#include "Support/Pass.h"

#include <chrono>

namespace fusec {

template <typename IR> std::string passText(const IR &program) {
  if constexpr (requires { print(program); })
    return print(program);
  else
    return print(program, nullptr); // large constants stand as their digests
}

/// Makes a program with `source` and runs `passes` over it, with the verifier behind the source and behind each pass.
/// Where a pass leaves a program that breaks a rule, the error is an InternalError that names the pass, and the
/// observer gets the text before it: `source` is then asked once more, since no copy is kept while all goes well.
template <typename IR>
Result<IR> runPasses(const std::function<Result<IR>()> &source, const std::vector<Pass<IR>> &passes,
                     const PassObserver &observer) {
  FUSEC_TRY(IR program, source());
  FUSEC_CHECK(verify(program));
  for (size_t p = 0; p < passes.size(); ++p) {
    const Pass<IR> &pass = passes[p];
    const auto start = std::chrono::steady_clock::now();
    FUSEC_CHECK(pass.run(program));
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    if (observer.onTime)
      observer.onTime(pass.name, taken.count());
    if (Status valid = verify(program); !valid.ok()) {
      if (observer.onBroken) {
        FUSEC_TRY(IR before, source());
        for (size_t q = 0; q < p; ++q)
          FUSEC_CHECK(passes[q].run(before));
        observer.onBroken(pass.name, passText(before));
      }
      for (Diagnostic &d : valid.errors()) {
        d.id = Diag::InternalError;
        d.text += "; the pass '" + std::string(pass.name) +
                  "' left it so, which is a bug: please report it with the model";
      }
      return std::move(valid.errors());
    }
    if (observer.wantsText && observer.wantsText(pass.name))
      observer.onText(pass.name, passText(program));
  }
  return program;
}

} // namespace fusec
