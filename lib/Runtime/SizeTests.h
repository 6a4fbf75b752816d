#pragma once
#include "Bundle/Model.h"

namespace fusec::rt {

/// The symbols and, behind these, the inferred sizes, of which rules speak: by their names.
std::vector<Symbol> namesOf(const bundle::Model &model);
/// As the dimensions of the inputs say that have these names; `dims` are those of all inputs, one behind the other.
std::vector<RunSize> sizesFromDims(const bundle::Model &model, const std::vector<int64_t> &dims);
/// As they follow from the symbols; those that depend on data are not known.
std::vector<RunSize> sizesFromSymbols(const bundle::Model &model,
                                      const std::vector<int64_t> &values);

/// Why no run can have these values of the symbols that inputs give; empty: one can. Adds those that are computed.
std::string admit(const bundle::Model &model, std::vector<int64_t> &values);

} // namespace fusec::rt
