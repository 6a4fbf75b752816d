#pragma once
#include "Bundle/Model.h"
#include "Support/Result.h"

namespace fusec::bundle {

/// The rules of Model, each one checked: names, types, sizes, index ranges, expressions, what a step reads was
/// written before, stored liveness equals computeLiveness. The reader runs it on every file before anything is
/// used, the writer on what it is given. Images are not looked at (see ElfImage.h). A broken rule is a BadBundle
/// diagnostic that names the place.
Status check(const Model &model);

/// "x86-64-v3" and the like.
bool isCpuTarget(std::string_view target);
/// "sim:..."
bool isSimTarget(std::string_view target);

} // namespace fusec::bundle
