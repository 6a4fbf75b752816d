#pragma once
#include "Codegen/Codegen.h"
#include "Codegen/Link.h"

namespace fusec {

/// One PTX text of the kernels' texts and, where options name a ptxas, the cubin made from it.
Result<std::vector<CodeImage>> ptxImages(const std::vector<std::string> &texts,
                                         const Target &target, const CodegenOptions &options);

} // namespace fusec
