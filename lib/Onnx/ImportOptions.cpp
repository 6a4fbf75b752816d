#include "Onnx/Import.h"
#include "Support/Diag.h"

#include "Support/TunedSizes.h"
#include "Support/WholeText.h"

namespace fusec {

static Diagnostic badOption(const std::string &option, const std::string &text) {
  return {Diag::BadOption, option, text};
}

static bool parseSize(std::string_view text, int64_t &out) {
  const auto size = wholeNumber<int64_t>(text);
  out = size.value_or(out);
  return size.has_value();
}

Status parseDimOption(std::string_view text, ImportOptions &options) {
  std::string where = "--dim " + std::string(text);
  auto bad = [&] {
    return badOption(
        where, "expected NAME=N, NAME=MIN..MAX or NAME=MIN..MAX:OPT with 0 <= MIN <= OPT <= MAX");
  };
  size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0)
    return bad();
  Symbol s;
  s.name = std::string(text.substr(0, equals));
  std::string_view range = text.substr(equals + 1);
  size_t dots = range.find("..");
  if (dots == std::string_view::npos) {
    if (!parseSize(range, s.min))
      return bad();
    s.opt = s.max = s.min;
  } else {
    std::string_view upper = range.substr(dots + 2);
    size_t colon = upper.find(':');
    if (!parseSize(range.substr(0, dots), s.min) || !parseSize(upper.substr(0, colon), s.max))
      return bad();
    s.opt = static_cast<int64_t>(SymbolKind::Any);
    if (colon != std::string_view::npos && !parseSize(upper.substr(colon + 1), s.opt))
      return bad();
  }
  const int64_t opt = !isFavoured(s) ? s.max : s.opt;
  if (s.min > opt || opt > s.max)
    return bad();
  if (!options.dims.emplace(s.name, s).second)
    return badOption(where, "the dimension is given twice");
  return success();
}

Status parseShapeOption(std::string_view text, ImportOptions &options) {
  std::string where = "--shape " + std::string(text);
  auto bad = [&] {
    return badOption(where, "expected NAME:1x3x224x224 or NAME:[batch,3,224,224]");
  };
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0)
    return bad();
  std::string name(text.substr(0, colon));
  std::string_view dims = text.substr(colon + 1);
  char separator = 'x';
  if (!dims.empty() && dims.front() == '[') {
    if (dims.back() != ']')
      return bad();
    dims = dims.substr(1, dims.size() - 2);
    separator = ',';
  }
  std::vector<ShapeEntry> entries;
  for (bool more = !dims.empty(); more;) {
    size_t end = std::min(dims.find(separator), dims.size());
    std::string_view item = dims.substr(0, end);
    more = end < dims.size(); // a separator, so an entry must follow
    dims.remove_prefix(more ? end + 1 : end);
    while (!item.empty() && item.front() == ' ')
      item.remove_prefix(1);
    while (!item.empty() && item.back() == ' ')
      item.remove_suffix(1);
    int64_t size;
    if (item.empty() || (separator == 'x' && !parseSize(item, size)))
      return bad();
    if (parseSize(item, size))
      entries.emplace_back(size);
    else
      entries.emplace_back(std::string(item));
  }
  if (!options.shapes.emplace(name, std::move(entries)).second)
    return badOption(where, "the shape is given twice");
  return success();
}

} // namespace fusec
