#pragma once
#include "Expr/Expr.h"

namespace fusec {

/// Replaces what equations compute from constants alone by constants: dequantised or scaled weights, masks, tables.
/// Views and other pure movement of constants stay, because compose writes them into their readers and the data is
/// then stored once; not so movement that takes indices apart, such as filters regrouped. The interpreter computes in
/// the declared types, so that every builder gets the same bytes. Equations that would take too long here, or give more
/// than `kMaxFoldedBytes`, stay in the program. Runs before compose.
ExprProgram foldConstants(ExprProgram program);

constexpr int64_t kMaxFoldedBytes = int64_t(256) << 20; // of one tensor
constexpr int64_t kMaxFoldedWork = int64_t(1) << 28; // points of the domain times nodes of the body

} // namespace fusec
