#pragma once
#include "Bundle/Model.h"

namespace fusec::rt {

/// Values of a model's symbols and, behind these, of its inferred sizes; nothing where a run gives none.
using Sizes = std::vector<std::optional<int64_t>>;

/// As the dimensions of the inputs say that have these names; `dims` are those of all inputs, one behind the other.
Sizes sizesFromDims(const bundle::Model &model, const std::vector<int64_t> &dims);
/// As they follow from the symbols; those that depend on data are not known.
Sizes sizesFromSymbols(const bundle::Model &model, const std::vector<int64_t> &values);

enum class Rules {
  All,   // also those that hold for all shapes that fit: they tell why shapes do not
  Tested // the others
};
/// The first rule that these sizes break, of those whose sizes are all known, with the node, the sizes and where they
/// come from; empty: none.
std::string brokenRule(const bundle::Model &model, const Sizes &sizes, Rules which);
/// A rule that these sizes break in words.
std::string brokenText(const bundle::Model &model, const bundle::DimRule &rule, const Sizes &sizes);

struct Admission {
  std::string problem; // why no run can have these sizes; empty: one can
  bool runs =
      true; // kernels; false where all outputs are empty and kernels need not know of such sizes
};
/// Whether a run can have these values of the symbols that inputs give. Those that are computed of them are added.
Admission admit(const bundle::Model &model, std::vector<int64_t> &values);

} // namespace fusec::rt
