#include "Onnx/ValueText.h"

#include "Support/Diag.h"

#include <charconv>
#include <cmath>

namespace fusec {

namespace {

/// Numbers and their nesting.
class ListReader {
public:
  ListReader(std::string_view text, const Limits &limits, const std::string &where)
      : text(text), limits(limits), where(where) {}

  std::vector<int64_t> dims; // -1: of no list that has ended
  std::vector<std::string_view> items;

  Status run() {
    do {
      skipSpaces();
      FUSEC_CHECK(step());
      skipSpaces();
    } while (at < text.size());
    if (!counts.empty() || isItemNext)
      return bad("a list does not end");
    return success();
  }

private:
  Diagnostic bad(const std::string &what) const {
    return {Diag::BadOption, where,
            what + "; expected a number, a list such as [1,2] or [[1,2],[3,4]], or @FILE.npy"};
  }

  Status step() {
    if (at == text.size())
      return bad("a value is missing");
    const char c = text[at];
    if (!isItemNext && counts.empty())
      return bad("there is more than one value");
    if (c == '[')
      return open();
    if (c == ']')
      return close();
    if (c == ',') {
      if (isItemNext)
        return bad("a value is missing");
      isItemNext = true;
      ++at;
      return success();
    }
    return item();
  }

  Status open() {
    if (!isItemNext || isFull())
      return bad("the lists differ in depth");
    if (static_cast<int64_t>(counts.size()) == limits.rank)
      return Diagnostic{Diag::LimitExceeded, where,
                        "lists are nested deeper than " + std::to_string(limits.rank)};
    counts.push_back(0);
    if (dims.size() < counts.size())
      dims.push_back(-1);
    ++at;
    return success();
  }

  Status close() {
    if (counts.empty() || (isItemNext && counts.back() > 0))
      return bad("a value is missing");
    int64_t &size = dims[counts.size() - 1];
    if (size != -1 && size != counts.back())
      return bad("the lists differ in length: " + std::to_string(size) + " and " +
                 std::to_string(counts.back()));
    size = counts.back();
    counts.pop_back();
    ++at;
    ended();
    return success();
  }

  Status item() {
    if (!isItemNext || counts.size() != dims.size() || (isFirstItem && isClosed()))
      return bad("the lists differ in depth");
    const size_t end = std::min(text.find_first_of(",[]", at), text.size());
    std::string_view word = text.substr(at, end - at);
    while (word.back() == ' ')
      word.remove_suffix(1);
    items.push_back(word);
    isFirstItem = false;
    at = end;
    ended();
    return success();
  }

  /// Numbers stand at the depth of the lists, and below those there are no further ones.
  bool isFull() const { return counts.size() == dims.size() && (!isFirstItem || isClosed()); }
  bool isClosed() const { return !dims.empty() && dims.back() != -1; }

  void ended() {
    isItemNext = false;
    if (!counts.empty())
      ++counts.back();
  }

  void skipSpaces() {
    while (at < text.size() && text[at] == ' ')
      ++at;
  }

  const std::string_view text;
  const Limits &limits;
  const std::string &where;
  size_t at = 0;
  std::vector<int64_t> counts; // of the lists around this place
  bool isItemNext = true, isFirstItem = true;
};

/// Appends the number; a text that tells why not, else empty.
std::string append(std::vector<uint8_t> &data, std::string_view word, DType type) {
  const std::string quoted = "'" + std::string(word) + "'", typeName(name(type));
  auto outOfRange = [&] { return quoted + " is out of the range of " + typeName; };
  if (type == DType::Bool) {
    if (word != "true" && word != "false" && word != "0" && word != "1")
      return quoted + " is no bool; expected true, false, 1 or 0";
    appendElement(data, type, int64_t(word == "true" || word == "1"));
    return "";
  }
  if (isFloat(type)) {
    double v = 0;
    const auto [end, error] = std::from_chars(word.begin(), word.end(), v);
    if (error == std::errc::result_out_of_range)
      return outOfRange();
    if (error != std::errc() || end != word.end())
      return quoted + " is no number";
    const size_t before = data.size();
    appendElement(data, type, v);
    const auto stored =
        makeConstant(type, {}, {data.begin() + static_cast<std::ptrdiff_t>(before), data.end()});
    return std::isinf(stored->floatAt(0)) && !std::isinf(v) ? outOfRange() : "";
  }
  const int64_t bits = 8 * sizeInBytes(type);
  int64_t v = 0;
  if (isSigned(type)) {
    const auto [end, error] = std::from_chars(word.begin(), word.end(), v);
    if (end != word.end() || error == std::errc::invalid_argument)
      return quoted + " is no integer, and the input is " + typeName;
    const int64_t most = INT64_MAX >> (64 - bits);
    if (error != std::errc() || v > most || v < -most - 1)
      return outOfRange();
  } else {
    uint64_t wide = 0;
    const bool negative = !word.empty() && word[0] == '-';
    const auto [end, error] = std::from_chars(word.begin() + (negative ? 1 : 0), word.end(), wide);
    if (end != word.end() || error == std::errc::invalid_argument)
      return quoted + " is no integer, and the input is " + typeName;
    if (error != std::errc() || (negative && wide != 0) || wide > UINT64_MAX >> (64 - bits))
      return outOfRange();
    v = static_cast<int64_t>(wide);
  }
  appendElement(data, type, v);
  return "";
}

} // namespace

Result<ConstantRef> readValueText(std::string_view text, DType type, const Limits &limits,
                                  const std::string &where) {
  ListReader list(text, limits, where);
  FUSEC_CHECK(list.run());
  std::vector<uint8_t> data;
  for (std::string_view word : list.items)
    if (std::string problem = append(data, word, type); !problem.empty())
      return Diagnostic{Diag::BadOption, where, std::move(problem)};
  return makeConstant(type, std::move(list.dims), std::move(data));
}

} // namespace fusec
