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

struct Admission {
  std::string problem; // why no run can have these sizes; empty: one can
  bool runs =
      true; // kernels; false where all outputs are empty and kernels need not know of such sizes
};
/// Whether a run can have these values of the symbols that inputs give. Those that are computed of them are added.
Admission admit(const bundle::Model &model, std::vector<int64_t> &values);

} // namespace fusec::rt
