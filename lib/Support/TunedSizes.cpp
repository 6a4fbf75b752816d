#include "Support/TunedSizes.h"

#include "Support/DimProgram.h"
#include "Support/OptValues.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace fusec {

namespace {

using Values = std::vector<int64_t>;

constexpr std::string_view kNames[] = {"image", "length", "batch", "any"};
constexpr int64_t kNumKinds = std::size(kNames);

/// Sizes of a kind, ascending, and the one among them that plans are made for.
struct KindSizes {
  Values sizes;
  size_t typical;
};

/// Whether nothing but batches makes rows.
bool haveBatchesAlone(const std::vector<Symbol> &symbols) {
  return std::all_of(symbols.begin(), symbols.end(), [](const Symbol &s) {
    return s.definition || s.min == s.max || (!isFavoured(s) && kindOf(s) == SymbolKind::Batch);
  });
}

/// A batch is tuned for many rows too where it is alone.
KindSizes sizesOf(SymbolKind kind, bool isAlone) {
  switch (kind) {
  case SymbolKind::Batch: return isAlone ? KindSizes{{1, 8, 64}, 1} : KindSizes{{1, 8}, 0};
  case SymbolKind::Image: return {{64, 224, 320}, 1};
  default: return {{1, 8, 128, 512}, 2};
  }
}

/// The value nearest to `wanted`, larger rather than smaller, that the symbol may have.
int64_t fitted(const Symbol &symbol, int64_t wanted) {
  const int64_t least = symbol.min / symbol.divisor + (symbol.min % symbol.divisor != 0),
                most = symbol.max / symbol.divisor,
                near = wanted / symbol.divisor + (wanted % symbol.divisor != 0);
  return std::min(std::max(near, least), most) * symbol.divisor;
}

/// The value of so many steps of a symbol, or as near to it as it may come.
int64_t ofSteps(const Symbol &symbol, int64_t steps) {
  const int64_t step = stepOf(symbol);
  return fitted(symbol, steps <= INT64_MAX / step ? steps * step : INT64_MAX);
}

int64_t typical(const Symbol &symbol, bool isAlone) {
  if (isFavoured(symbol))
    return symbol.opt;
  const KindSizes own = sizesOf(*kindOf(symbol), isAlone);
  return ofSteps(symbol, own.sizes[own.typical]);
}

/// What symbol `s`, which has a definition, is for these values of those in front.
int64_t computed(const std::vector<Symbol> &symbols, size_t s, const Values &values) {
  const std::optional<int64_t> value = symbols[s].definition->evaluate(values);
  return value ? fitted(symbols[s], *value) : typical(symbols[s], haveBatchesAlone(symbols));
}

void setComputed(const std::vector<Symbol> &symbols, size_t s, Values &values) {
  if (symbols[s].definition) {
    values[s] = computed(symbols, s, values);
    return;
  }
  const auto most = symbols[s].bound ? symbols[s].bound->evaluate(values) : std::nullopt;
  if (most)
    values[s] = std::min(values[s], std::max(*most, symbols[s].min));
}

/// What the symbols `own`, which are of one kind, are together. Sizes are in steps of theirs.
std::vector<Values> together(const std::vector<Symbol> &symbols, const std::vector<size_t> &own,
                             SymbolKind kind) {
  std::vector<Values> out;
  auto add = [&](auto valueOf) {
    out.emplace_back();
    for (size_t s : own)
      out.back().push_back(valueOf(s));
  };
  const bool isAlone = haveBatchesAlone(symbols);
  Values sizes = sizesOf(kind, isAlone).sizes;
  // The end of a range is a size that is used; a far one is there for safety.
  int64_t end = 0;
  for (size_t s : own) {
    const int64_t step = stepOf(symbols[s]);
    end = std::max(end, symbols[s].max / step + (symbols[s].max % step > 0));
  }
  if (end >= 2 * sizes.back() && end <= 8 * sizes.back())
    sizes.push_back(end);
  for (int64_t size : sizes)
    add([&](size_t s) { return ofSteps(symbols[s], size); });
  if (kind == SymbolKind::Length && own.size() > 1)
    for (size_t one : own) {
      const auto shortest = [&](size_t s) { return ofSteps(symbols[s], sizes.front()); };
      add([&](size_t s) { return s == one ? shortest(s) : typical(symbols[s], isAlone); });
      add([&](size_t s) { return s == one ? typical(symbols[s], isAlone) : shortest(s); });
    }
  return out;
}

} // namespace

std::optional<SymbolKind> kindOf(const Symbol &symbol) {
  if (isFavoured(symbol))
    return symbol.favouredKind;
  return static_cast<SymbolKind>(INT64_MIN + (symbol.opt - INT64_MIN) % kNumKinds);
}

bool isFavoured(const Symbol &symbol) {
  return symbol.opt >= INT64_MIN + kNumKinds * kMostStep; // computed sizes may be negative
}

bool isOpen(const Symbol &symbol, SymbolKind kind) {
  return kindOf(symbol) == kind && symbol.min < symbol.max && !symbol.definition &&
         !symbol.isDataDependent();
}

int64_t stepOf(const Symbol &symbol) {
  return isFavoured(symbol) ? 1 : (symbol.opt - INT64_MIN) / kNumKinds + 1;
}

int64_t optOf(SymbolKind kind, int64_t step) {
  return static_cast<int64_t>(kind) + (step - 1) * kNumKinds;
}

std::string_view name(SymbolKind kind) { return kNames[static_cast<int64_t>(kind) - INT64_MIN]; }

std::optional<SymbolKind> parseSymbolKind(std::string_view word) {
  const auto at = std::find(std::begin(kNames), std::end(kNames), word);
  if (at == std::end(kNames))
    return std::nullopt;
  return static_cast<SymbolKind>(INT64_MIN + (at - std::begin(kNames)));
}

std::vector<int64_t> optValues(const std::vector<Symbol> &symbols) {
  Values values;
  values.reserve(symbols.size());
  const bool isAlone = haveBatchesAlone(symbols);
  for (const Symbol &s : symbols)
    values.push_back(typical(s, isAlone));
  for (size_t s = 0; s < symbols.size(); ++s)
    if (!isFavoured(symbols[s]))
      setComputed(symbols, s, values);
  return values;
}

void setComputed(const std::vector<Symbol> &symbols, std::vector<int64_t> &values) {
  for (size_t s = 0; s < symbols.size(); ++s)
    setComputed(symbols, s, values);
}

std::vector<std::vector<int64_t>> tunedSizes(const std::vector<Symbol> &symbols) {
  std::vector<Values> all = {optValues(symbols)};
  for (SymbolKind kind :
       {SymbolKind::Any, SymbolKind::Batch, SymbolKind::Length, SymbolKind::Image}) {
    std::vector<size_t> own;
    for (size_t s = 0; s < symbols.size(); ++s)
      if (!isFavoured(symbols[s]) && kindOf(symbols[s]) == kind && !symbols[s].definition)
        own.push_back(s);
    if (own.empty())
      continue;
    std::vector<Values> next;
    for (const Values &before : all)
      for (const Values &sizes : together(symbols, own, kind)) {
        next.push_back(before);
        for (size_t i = 0; i < own.size(); ++i)
          next.back()[own[i]] = sizes[i];
      }
    all = std::move(next);
  }
  for (Values &values : all)
    setComputed(symbols, values);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all.size() > 1 ? all : std::vector<Values>();
}

std::vector<std::vector<int64_t>> tunedSizesOfEach(const std::vector<Symbol> &symbols) {
  std::vector<Values> all = tunedSizes(symbols);
  if (all.empty())
    all.push_back(optValues(symbols));
  std::vector<std::vector<int64_t>> out(symbols.size());
  for (size_t s = 0; s < symbols.size(); ++s) {
    if (symbols[s].definition || symbols[s].isDataDependent())
      continue;
    std::set<int64_t> sizes;
    for (const Values &values : all)
      sizes.insert(values[s]);
    out[s].assign(sizes.begin(), sizes.end());
  }
  return out;
}

std::string sizesText(const std::vector<int64_t> &sizes) {
  std::string text;
  for (size_t i = 0; i < sizes.size(); ++i)
    text += (i == 0 ? "" : i + 1 == sizes.size() ? " and " : ", ") + std::to_string(sizes[i]);
  return text;
}

std::vector<Symbol> tunedFor(std::vector<Symbol> symbols, const std::vector<int64_t> &values) {
  for (size_t s = 0; s < symbols.size(); ++s)
    symbols[s].opt = values[s];
  return symbols;
}

} // namespace fusec
