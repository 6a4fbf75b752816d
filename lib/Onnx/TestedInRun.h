#pragma once
#include "Onnx/NodeImporter.h"
#include "Support/DataTests.h"

namespace fusec {

// What a node needs of its data, which only a run has: compositions that make a size of the data by how much something
// lies outside of what it may be. A run on a CPU in which that is not 0 ends with an error that names the node.

/// Integers of the data, brought so near to 0 that sums and differences with sizes do not overflow. All that is cut off
/// lies far beyond any size.
ValueId bounded(NodeImporter &n, ValueId numbers);

/// `off` has to be 0, an integer of the data that is no less. Where it is known not to be, the node is refused.
Status requireNone(NodeImporter &n, ValueId off, DataTest test);

/// The integers `numbers` lie between `least` and `most`, both i64 of rank 0 and included. No `most` (kNoValue): none
/// is too large.
Status requireBetween(NodeImporter &n, ValueId numbers, ValueId least, ValueId most, DataTest test);

/// The integers `indices` go along an axis of input 0, from its end where they are negative. Where there are indices in
/// all runs, the axis has an element in all of them.
Status requireIndices(NodeImporter &n, ValueId indices, size_t axis);

/// The integers `axes` name axes of input 0, from its last one on where they are negative.
Status requireAxes(NodeImporter &n, ValueId axes);

/// The data asks for the sizes that the model declares, and that stand in their place.
/// `asked`: an integer for each of `declared`, of which at most one is `open`: it leaves a size to the operator.
Status requireDeclared(NodeImporter &n, ValueId asked, const Shape &declared,
                       std::optional<int64_t> open = std::nullopt);

/// Reducing the input's sizes along the axes that a run says (input 1) is reducing them along one of `sets`. Without
/// axes all are reduced, or, `noop`, none.
Status requireReduced(NodeImporter &n, const std::vector<std::vector<int64_t>> &sets, bool noop);

/// The axes that a run says (input 1) are these ones, each named once.
Status requireSqueezed(NodeImporter &n, const std::vector<int64_t> &axes);
/// Sizes of 1 at the axes that a run says (input 1) make the declared shape of the input's.
Status requireUnsqueezed(NodeImporter &n, const Shape &declared);

/// The target of a Reshape (input 1) is what is declared, or leaves it open: -1, or 0 where the input has that size.
Status requireTarget(NodeImporter &n, const Shape &declared, bool allowZero);

/// The input's sizes, each as often as the repeats (input 1) say, are what is declared.
Status requireRepeated(NodeImporter &n, const Shape &declared);

/// The target of an Expand (input 1), which may have any length, and the input make what is declared.
Status requireBroadcast(NodeImporter &n, const Shape &declared);

} // namespace fusec
