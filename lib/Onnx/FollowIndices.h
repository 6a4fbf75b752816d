#pragma once
#include "Onnx/KnownValues.h"

namespace fusec {

/// Operators that read or write elements at places that an operand says: gathers, scatters, and a slice whose bounds
/// follow from sizes.
bool takesPlaces(OpKind op);
/// The output's elements. A place that follows from sizes makes a choice between those of its axis; in a run where it
/// lies outside there is no value.
std::optional<KnownValues::Elements> followIndices(KnownValues &values, const Node &node);

} // namespace fusec
