#pragma once
#include "Support/Dim.h"

#include <string_view>

namespace fusec {

/// What a symbol is to a model. Where its user favours no size of it, which sizes kernels are tuned for follows from
/// that, from its step and from its range alone: both stand in the place of Symbol::opt then, as words in texts: "n =
/// 1..512 opt length divisor 1", "samples = 200..16000 opt length of 80 divisor 1". Beside a size that the user favours
/// the kind is a word of its own: "past = 0..512 opt 100 as length divisor 1".
enum class SymbolKind : int64_t {
  Image = INT64_MIN, // height or width
  Length,
  Batch,
  Any // in a graph, where nobody has looked (Graph/SymbolKinds.h)
};
std::string_view name(SymbolKind kind); // "any", "batch", ...
std::optional<SymbolKind> parseSymbolKind(std::string_view word);
/// nullopt where the user favours a size and nobody has looked.
std::optional<SymbolKind> kindOf(const Symbol &symbol);
/// Whether the user favours a size: Symbol::opt is one.
bool isFavoured(const Symbol &symbol);
/// Whether it is of this kind, and has several sizes that inputs of runs give.
bool isOpen(const Symbol &symbol, SymbolKind kind);
/// How many elements of such a symbol stand for one row of most of the work (Expr/SymbolSteps.h), as 80 samples
/// of sound for a frame: sizes of its kind are counted in these. 1 where the user favours a size.
int64_t stepOf(const Symbol &symbol);
constexpr int64_t kMostStep = int64_t{1} << 32;
/// What Symbol::opt is then, for a step of 1 to kMostStep.
int64_t optOf(SymbolKind kind, int64_t step = 1);

/// Sizes that kernels are tuned for, ascending: each has a value for every symbol. Symbols of one kind take theirs
/// together: an image is square, a question as long as its answer; kinds combine freely. Where several are lengths, one
/// at a time is short too, as when a token is decoded behind a long past. Computed ones follow. None where there would
/// be one alone.
std::vector<std::vector<int64_t>> tunedSizes(const std::vector<Symbol> &symbols);

/// Sizes of each symbol that a caller may set in these, ascending; one size where there is one alone. Empty for
/// computed symbols and sizes that depend on data.
std::vector<std::vector<int64_t>> tunedSizesOfEach(const std::vector<Symbol> &symbols);

/// "1, 8 and 128".
std::string sizesText(const std::vector<int64_t> &sizes);

/// Gives symbols with a definition what it makes of the values of those in front, or the nearest that they may have,
/// and sizes that depend on data no more than their bound.
void setComputed(const std::vector<Symbol> &symbols, std::vector<int64_t> &values);

/// The symbols with these values as what they are tuned for.
std::vector<Symbol> tunedFor(std::vector<Symbol> symbols, const std::vector<int64_t> &values);

} // namespace fusec
