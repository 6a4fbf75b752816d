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

std::optional<SymbolId> symbolNamed(std::string_view name, const std::vector<Symbol> &symbols);
/// "batch = 1..64 opt 8 divisor 1", without the keyword in front, and without a definition.
Result<Symbol> parseSymbol(TextReader &in);
std::string symbolText(const Symbol &symbol);
/// A line each, with the keyword "symbol" in front; behind what depends on data stands its " bound [n*4]", behind what
/// is computed when shapes are set its definition:
/// "symbol half = 0..32 opt 4 divisor 1 by (i64 symbol batch, i64 integer 2, i64 div $0 $1) for 'node'", where $0 is
/// what the first operation gives, and the node's name is in double quotes where it is no identifier.
std::string symbolsText(const std::vector<Symbol> &symbols);
/// What stands behind "by" there.
std::string definitionText(const DimProgram &definition, const std::vector<Symbol> &symbols);
/// Any number of them.
Result<std::vector<Symbol>> parseSymbols(TextReader &in);

} // namespace fusec
