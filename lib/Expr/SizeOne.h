#pragma once
#include "Expr/Alternatives.h"

namespace fusec {

/// The alternative that is right for one size alone: the symbol of this number, from 1, is 1. Nobody tries it but who
/// guards what comes of it.
constexpr std::string_view kSizeOne = "size-one";
std::optional<ExprProgram> sizeOne(const ExprProgram &pattern, int64_t symbol);
/// The symbol that a rewrite takes to be 1; nullopt for all other alternatives.
std::optional<SymbolId> symbolOfSizeOne(const Rewrite &rewrite);

} // namespace fusec
