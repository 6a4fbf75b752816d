#pragma once
#include "Driver/Pipeline.h"

namespace fusec {

/// In place of a file's name: the text is printed.
inline constexpr std::string_view kPrintedPath = "-";

/// No file that is written may be one that is read, or another one that is written.
Status checkFiles(const CompileOptions &options);

/// Stages before that of the dump `options` begin with do not run again.
Status checkStages(const CompileOptions &options, Stage loaded);

} // namespace fusec
