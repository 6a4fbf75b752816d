#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fusec::tools {

/// "NAME=VALUE" cut behind the longest of `names` that it begins with: names and values may hold '=' themselves. Where
/// it begins with none of them, cut at the first '=' whose name is not empty. Null where it has no two parts.
std::optional<std::pair<std::string, std::string>>
splitNamed(const std::string &text, const std::vector<std::string> &names);

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
