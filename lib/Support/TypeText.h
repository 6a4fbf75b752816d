#pragma once
#include "Support/DType.h"
#include "Support/Dim.h"
#include "Support/Text.h"

namespace fusec {

// Types, shapes and symbols as every textual IR writes them.

/// "f32"
Result<DType> parseElementType(TextReader &in);
/// A dim expression up to one of the characters in `stops`.
Result<DimExpr> parseDim(TextReader &in, std::string_view stops,
                         const std::vector<Symbol> &symbols);
/// Comma-separated dim expressions up to and including `close`, whose opener is already read.
Result<Shape> parseDims(TextReader &in, std::string_view close, const std::vector<Symbol> &symbols);
/// "f32[batch,768]"
Status parseType(TextReader &in, const std::vector<Symbol> &symbols, DType &type, Shape &shape);
std::string typeText(DType type, const Shape &shape, const std::vector<Symbol> &symbols);

/// "batch = 1..64 opt 8 divisor 1", without the keyword in front.
Result<Symbol> parseSymbol(TextReader &in);
/// Any number of them, each with the keyword "symbol" in front.
Result<std::vector<Symbol>> parseSymbols(TextReader &in);
std::string symbolText(const Symbol &symbol);

} // namespace fusec
