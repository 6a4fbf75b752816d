#pragma once
#include "Bundle/Model.h"
#include "Support/Result.h"

namespace fusec::bundle {

/// The rules of sizes that depend on data: they are symbols of the model, ascending, each with a bound over symbols in
/// front of it, and no input has one. One that tests the data is 0, and no other size and no rule uses it.
Status checkDataSizes(const Model &model);

/// One step gives each of them its value, and nothing uses it where that step may not have run; tests of the data have
/// one in both lists of a Where, and nothing uses them. Indices of the program have been checked.
Status checkSizesOfSteps(const Model &model, const Program &program, const std::string &where);

} // namespace fusec::bundle
