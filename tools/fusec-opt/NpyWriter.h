#pragma once
#include "Graph/Constant.h"
#include "Support/Result.h"

namespace fusec::opt {

/// Writes a NumPy file; bf16 has no NumPy type and is written as two raw bytes ("|V2").
Status writeNpy(const std::string &path, const Constant &c);

/// Characters outside [A-Za-z0-9._-] become '_'.
std::string fileNameFor(const std::string &tensor);

} // namespace fusec::opt
