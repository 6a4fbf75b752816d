#pragma once
#include "Onnx/NodeImporter.h"
#include "Support/DataTests.h"

namespace fusec {

// What a node needs of its data, which only a run has: compositions that make a size of the data by how much something
// lies outside of what it may be. A run on a CPU in which that is not 0 ends with an error that names the node.

/// `off` has to be 0, an integer of the data that is no less.
Status requireNone(NodeImporter &n, ValueId off, DataTest test);

/// The integers `numbers` lie between `least` and `most`, both i64 of rank 0 and included.
Status requireBetween(NodeImporter &n, ValueId numbers, ValueId least, ValueId most, DataTest test);

/// The data asks for the sizes that the model declares, and that stand in their place.
/// `asked`: an integer for each of `declared`, or one of `open`, which leave a size to the operator.
Status requireDeclared(NodeImporter &n, ValueId asked, const Shape &declared,
                       const std::vector<int64_t> &open = {});

/// The target of a Reshape (input 1) is what is declared, or leaves it open: -1, or 0 where the input has that size.
Status requireTarget(NodeImporter &n, const Shape &declared, bool allowZero);

/// The target of an Expand (input 1) and the input make what is declared, as far as the target's length is known.
Status requireBroadcast(NodeImporter &n, const Shape &declared);

} // namespace fusec
