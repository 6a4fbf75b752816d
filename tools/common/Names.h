#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace fusec::tools {

/// Names of files in one folder, one a tensor and no two alike: characters outside [A-Za-z0-9._-] become '_', what
/// makes the name longer than a file's may be is cut off, and what another one has already gets a number: "a_b.npy",
/// "a_b.2.npy". The ending is that of NumPy's files.
std::vector<std::string> npyNamesFor(const std::vector<std::string> &tensors);

/// Lines that tell which tensor lies in which of these files, for those whose file does not have the tensor's name.
std::string renamedFiles(const std::vector<std::string> &tensors,
                         const std::vector<std::string> &files);

/// Text with control bytes as \xNN, so that it stays on one line.
std::string printable(std::string_view text);

} // namespace fusec::tools
