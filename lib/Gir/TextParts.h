#pragma once
// Pieces of text that kernels and programs share. Internal to Gir.
#include "Gir/Gir.h"

namespace fusec::girtext {

/// "f32[batch, 768]"
std::string typeText(DType type, const Shape &shape, const std::vector<Symbol> &symbols);
Result<std::pair<DType, Shape>> parseType(TextReader &in, const std::vector<Symbol> &symbols);

/// "batch = 1..64 opt 8 divisor 1", without the keyword in front.
std::string symbolText(const Symbol &symbol);
Result<Symbol> parseSymbol(TextReader &in);

} // namespace fusec::girtext
