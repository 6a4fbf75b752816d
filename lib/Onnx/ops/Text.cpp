#include "Onnx/Compose.h"
#include "Onnx/OpTable.h"
#include "Support/Diag.h"

#include <algorithm>
#include <map>
#include <set>

// What counts words.

namespace fusec {
namespace {

/// n-grams of one length, and where their counts go in the output.
struct Grams {
  int64_t length;
  std::vector<int64_t> words; // [grams, length]
  std::vector<int64_t> places;
};

/// The pool by length. Of n-grams that stand there twice the last counts.
Result<std::vector<Grams>> gramsOf(NodeImporter &n, const std::vector<int64_t> &pool,
                                   const std::vector<int64_t> &starts,
                                   const std::vector<int64_t> &places) {
  auto bad = [&](const std::string &text) { return n.fail(Diag::BadAttribute, text); };
  std::vector<Grams> list;
  size_t gram = 0;
  for (size_t i = 0; i < starts.size(); ++i) {
    const auto length = static_cast<int64_t>(i + 1), from = starts[i],
               to = i + 1 < starts.size() ? starts[i + 1] : static_cast<int64_t>(pool.size());
    if (from < 0 || to < from || to > static_cast<int64_t>(pool.size()))
      return bad("ngram_counts must rise from 0 to at most the size of the pool");
    if ((to - from) % length)
      return bad("the n-grams of length " + std::to_string(length) + " take " +
                 std::to_string(to - from) + " words of the pool");
    std::map<std::vector<int64_t>, int64_t> placeOf;
    for (int64_t at = from; at < to; at += length, ++gram) {
      if (gram >= places.size())
        return bad("ngram_indexes needs one entry for each n-gram of the pool");
      placeOf[{pool.begin() + at, pool.begin() + at + length}] = places[gram];
    }
    Grams grams{length, {}, {}};
    for (const auto &[words, place] : placeOf) {
      grams.words.insert(grams.words.end(), words.begin(), words.end());
      grams.places.push_back(place);
    }
    list.push_back(std::move(grams));
  }
  return list;
}

/// A word of no n-gram.
int64_t wordOfNone(const Grams &grams) {
  const std::set<int64_t> words(grams.words.begin(), grams.words.end());
  int64_t word = 0;
  while (words.contains(word))
    ++word;
  return word;
}

/// How often each n-gram stands in x[rows, columns] with `distance` from word to word: i64[rows, grams]. Behind a row
/// stand words that match nothing, so that one may begin at any word, whatever the number of columns.
Result<ValueId> countsOf(NodeImporter &n, ValueId x, const Grams &grams, int64_t distance) {
  Compose c(n);
  const Shape shape = n.shapeOf(x);
  const DimExpr rows = shape[0], columns = shape[1];
  const auto count = static_cast<int64_t>(grams.places.size());
  const int64_t reach = (grams.length - 1) * distance;
  const auto one = [](int64_t v) { return std::vector<int64_t>{v}; };
  if (reach > 0) {
    FUSEC_TRY(x, c.pad(x, {0, 0, 0, reach}, c.integer(wordOfNone(grams))));
  }
  ValueId match = kNoValue;
  for (int64_t k = 0; k < grams.length; ++k) {
    std::vector<int64_t> words;
    for (int64_t g = 0; g < count; ++g)
      words.push_back(grams.words[static_cast<size_t>(g * grams.length + k)]);
    const int64_t start = k * distance;
    ValueId given = c.like(OpKind::Slice, {x},
                           {{"starts", one(start)},
                            {"ends", one(start < reach ? start - reach : INT64_MAX)},
                            {"axes", one(1)},
                            {"steps", one(1)}},
                           {{rows, columns}});
    given = n.reshape(given, {rows, DimExpr(1), columns});
    ValueId wanted = n.constantValue(makeIntConstant({count, 1}, words));
    FUSEC_TRY(ValueId same, c.binary(OpKind::Equal, given, wanted));
    if (match != kNoValue) {
      FUSEC_TRY(same, c.binary(OpKind::And, match, same));
    }
    match = same;
  }
  return c.reduce(OpKind::ReduceSum, c.cast(match, DType::I64), {2});
}

/// The counts of all n-grams, side by side, in the places of the output: f32[rows, size].
Result<ValueId> inPlaces(NodeImporter &n, std::vector<ValueId> counts,
                         const std::vector<int64_t> &places, int64_t size) {
  Compose c(n);
  const DimExpr rows = n.shapeOf(counts[0])[0];
  // The last column is 0, and read where no n-gram counts.
  counts.push_back(c.filled(DType::I64, 0, {rows, DimExpr(1)}));
  ValueId all = c.concat(counts, 1), sum = kNoValue;
  std::vector<std::vector<int64_t>> sources(static_cast<size_t>(size));
  size_t most = 1;
  for (size_t i = 0; i < places.size(); ++i) {
    auto &list = sources[static_cast<size_t>(places[i])];
    list.push_back(static_cast<int64_t>(i));
    most = std::max(most, list.size());
  }
  for (size_t layer = 0; layer < most; ++layer) {
    std::vector<int64_t> from;
    for (const auto &list : sources)
      from.push_back(layer < list.size() ? list[layer] : static_cast<int64_t>(places.size()));
    FUSEC_TRY(ValueId part, c.gather(all, n.intsValue(from), 1));
    if (sum != kNoValue) {
      FUSEC_TRY(part, c.binary(OpKind::Add, sum, part));
    }
    sum = part;
  }
  return c.cast(sum, DType::F32);
}

Status tfIdf(NodeImporter &n) {
  constexpr int64_t kLargest = 1 << 22, kMostSkips = 1000;
  if (n.hasAttribute("pool_strings"))
    return n.fail(Diag::UnsupportedType, "element type string is not supported");
  const std::string mode = n.attrString("mode", "");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    return n.fail(Diag::BadAttribute, "mode is '" + mode + "'; TF, IDF or TFIDF is needed");
  const int64_t shortest = n.attrInt("min_gram_length"), longest = n.attrInt("max_gram_length"),
                skips = n.attrInt("max_skip_count");
  const std::vector<int64_t> places = n.attrInts("ngram_indexes");
  const std::vector<double> weights = n.attrFloats("weights");
  FUSEC_TRY(std::vector<Grams> pool,
            gramsOf(n, n.attrInts("pool_int64s"), n.attrInts("ngram_counts"), places));
  if (!n.errors.empty())
    return success(); // recorded there
  if (places.empty() || *std::min_element(places.begin(), places.end()) < 0 ||
      *std::max_element(places.begin(), places.end()) >= kLargest || shortest < 1 ||
      longest < shortest || skips < 0 || skips > kMostSkips)
    return n.fail(Diag::BadAttribute, "ngram_indexes must be numbers from 0 to 2^22, "
                                      "max_gram_length at least min_gram_length and that at least "
                                      "1, and max_skip_count between 0 and 1000");
  const int64_t size = *std::max_element(places.begin(), places.end()) + 1;
  if (mode != "TF" && !weights.empty() && weights.size() != static_cast<size_t>(size))
    return n.unsupported("as many weights as n-grams, which are not as many as places");
  if ((n.type(0) != DType::I32 && n.type(0) != DType::I64) || n.rank(0) > 2)
    return n.mismatch("a vector or matrix of i32 or i64 is needed");
  const bool isMatrix = n.rank(0) == 2;
  const DimExpr rows = isMatrix ? n.shape(0)[0] : DimExpr(1),
                columns = n.rank(0) ? n.shape(0).back() : DimExpr(1);
  Compose c(n);
  ValueId x = n.reshape(c.cast(n.id(0), DType::I64), {rows, columns});
  std::vector<ValueId> counts;
  std::vector<int64_t> placesOfCounts;
  for (const Grams &grams : pool) {
    if (grams.length < shortest || grams.length > longest || grams.places.empty())
      continue;
    ValueId sum = kNoValue;
    // Skips make no other 1-grams.
    for (int64_t distance = 1; distance <= (grams.length == 1 ? 1 : skips + 1); ++distance) {
      if (columns.isConst() && columns.constValue() <= (grams.length - 1) * distance)
        break;
      FUSEC_TRY(ValueId part, countsOf(n, x, grams, distance));
      if (sum != kNoValue) {
        FUSEC_TRY(part, c.binary(OpKind::Add, sum, part));
      }
      sum = part;
    }
    if (sum == kNoValue)
      continue;
    counts.push_back(sum);
    placesOfCounts.insert(placesOfCounts.end(), grams.places.begin(), grams.places.end());
  }
  Shape out = isMatrix ? Shape{rows, DimExpr(size)} : Shape{DimExpr(size)};
  if (counts.empty()) {
    n.result(0, c.filled(DType::F32, 0, out));
    return success();
  }
  FUSEC_TRY(ValueId y, inPlaces(n, counts, placesOfCounts, size));
  if (mode == "IDF") {
    FUSEC_TRY(y, c.binary(OpKind::Min, y, c.scalar(DType::F32, 1)));
  }
  if (mode != "TF" && !weights.empty()) {
    std::vector<uint8_t> data;
    for (double w : weights)
      appendElement(data, DType::F32, w);
    FUSEC_TRY(y, c.binary(OpKind::Mul, y,
                          n.constantValue(makeConstant(DType::F32, {size}, std::move(data)))));
  }
  n.result(0, n.reshape(y, std::move(out)));
  return success();
}

constexpr OpRow kRows[] = {
    {"TfIdfVectorizer", 9, kNewestOpset, 1, 1, 1, tfIdf, "numbers"},
};

} // namespace

std::span<const OpRow> textOps() { return kRows; }

} // namespace fusec
