// TopK of rows that no block can hold: parts of the row are sorted, then merged two by two, O(n log n) in all.
//
//   keys   [rows, R, C]   = sortKey(x[rows, r*C + c]), what comes last behind the row's end
//   run    [rows, R, L]   = the first L = min(C, k) of each part, by the opaque topk; with their indices in the row
//   split  [rows, R/2, g] = how many of the first g*S elements of a merged run are the left one's: a binary search
//   merged [rows, R/2, L] = the first L' = min(2L, k) of two runs: each element a binary search from its split on,
//                           of log2(S) steps
//   ...                     until one run is left
//
// The number of merges follows from the longest row. Of a row without a bound all runs are merged at full length in a
// loop that ends when one is left (merged while running), on keys and indices in one row of whole parts, [rows, R*C].
//
// A merged run's first p elements are i of the left run and p - i of the right one. The left run's element i is among
// them if the right one's element p - 1 - i does not come before it: true up to the i that is searched, and nowhere
// behind it. Runs lie in the order of the row and of equal keys the left run's comes first, so that of equal elements
// the one of lower index does. What fills up the last run, and the run that the last one of an odd number lacks, comes
// last and behind all equal keys; k <= n leaves it out.
#include "Expr/lower/SortedRuns.h"

#include "Expr/SortKey.h"

#include <array>
#include <bit>

namespace fusec::lower {

namespace {

constexpr int64_t kSegment = 32;  // S: merged elements that share a split
constexpr int64_t kFewPlaces = 4; // passes over a row, which is read faster than it is sorted
// Passes over a row whose length is not known, where the sort of a whole part may be for a few elements: on a CPU a
// part takes as long as 100 passes over it, merges included as long as 190. GPUs take the same number, though nothing
// was measured there.
constexpr int64_t kManyPlaces = 128;
constexpr int kLongestBits = 40; // of a row's length: a longer one has no bound

/// A part's length: its pairs of key and 32-bit index fit into a block's memory on every target, of 48 KiB or more.
constexpr int64_t kPartLength = 4096;

/// Sorted runs of each row: keys and indices are [rows..., count, length].
struct Runs {
  TensorId keys = -1, indices = -1;
  DimExpr count, length;
};

Shape withRows(const Shape &like, size_t rows, std::vector<DimExpr> last) {
  Shape shape(like.begin(), like.begin() + static_cast<long>(rows));
  shape.insert(shape.end(), last.begin(), last.end());
  return shape;
}

Val keyConstant(EquationBuilder &b, DType keyType, int64_t value) {
  return b.val(b.body().constantInt(keyType, value));
}

/// Two runs side by side, seen from an equation whose axes are the rows and the merged run.
class Pair {
public:
  Pair(EquationBuilder &b, const Runs &runs, size_t rows)
      : b(b), runs(runs), row(b.axes.begin(), b.axes.begin() + static_cast<long>(rows)),
        left(b.axis(rows) * 2.0), right(min(left + DimExpr(1), b.index(runs.count - 1))),
        hasRight(lt(left + DimExpr(1), runs.count)) {}

  Val leftKey(Val i) { return b.read(runs.keys, at(left, i)); }
  Val rightKey(Val i) {
    const DType type = b.n.typeOf(runs.keys);
    return b.readIf(hasRight, runs.keys, at(right, i), keyConstant(b, type, smallestKey(type)));
  }
  Val index(Val isLeft, Val i, Val j) {
    return select(isLeft, b.read(runs.indices, at(left, i)), b.read(runs.indices, at(right, j)));
  }

  /// How many of the first `p` elements are the left run's: from `low` to `high`, at most `most` more than `low`.
  Val leftAmong(Val p, Val low, Val high, int64_t most) {
    Val found = low;
    for (auto step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most))); step > 0;
         step /= 2) {
      const Val next = found + DimExpr(step);
      const Val isAmong = le(rightKey(p - next), leftKey(next - DimExpr(1)));
      found = select(both(le(next, high), isAmong), next, found);
    }
    return found;
  }

private:
  std::vector<Val> at(Val run, Val i) {
    std::vector<Val> indices = row;
    indices.push_back(run);
    indices.push_back(min(max(i, 0.0), b.index(runs.length - 1)));
    return indices;
  }

  EquationBuilder &b;
  const Runs &runs;
  std::vector<Val> row;
  Val left, right, hasRight;
};

Runs sortedParts(NodeLowering &n, TensorId x, const DimExpr &k, bool largest) {
  const Shape shape = n.shapeOf(x);
  const size_t rows = shape.size() - 1;
  const DType keyType = sortKeyType(n.typeOf(x));
  const DimExpr part = kPartLength;
  Runs runs;
  runs.count = ceilDiv(shape.back(), part);
  runs.length = min(part, k);
  auto elementAt = [&](EquationBuilder &b, Val within) { return b.axis(rows) * part + within; };
  const TensorId keys =
      n.map(n.temp("keys", keyType, withRows(shape, rows, {runs.count, part})), [&](auto &b) {
        std::vector<Val> at(b.axes.begin(), b.axes.begin() + static_cast<long>(rows));
        at.push_back(elementAt(b, b.axis(rows + 1)));
        const Val isElement = lt(at.back(), shape.back());
        const Val value = b.readIf(isElement, x, at, b.constant(n.typeOf(x), 0));
        return select(isElement, b.val(sortKey(b.body(), value.id, largest)),
                      keyConstant(b, keyType, smallestKey(keyType)));
      });
  const Shape first = withRows(shape, rows, {runs.count, runs.length});
  runs.keys = n.temp("run", keyType, first);
  const TensorId within = n.temp("within", DType::I64, first);
  EquationBuilder b(n, EquationKind::Opaque, {runs.keys, within});
  b.equation.opaque = "topk";
  b.equation.opaqueInputs = {keys};
  b.equation.opaqueAttributes["largest"] = 1;
  b.equation.axes.push_back({"r0", part});
  b.finish({});
  runs.indices = n.map(n.temp("places", DType::I64, first),
                       [&](auto &own) { return elementAt(own, own.read(within, own.axes)); });
  return runs;
}

/// Merges each two runs and keeps the first `length` elements.
Runs merged(NodeLowering &n, const Runs &runs, const DimExpr &length, const std::string &level) {
  const Shape shape = n.shapeOf(runs.keys);
  const size_t rows = shape.size() - 2;
  Runs out;
  out.count = ceilDiv(runs.count, DimExpr(2));
  out.length = length;
  const int64_t most = runs.length.range(n.l.program.symbols).max;
  const TensorId splits = n.map(
      n.temp("split" + level, DType::I64,
             withRows(shape, rows, {out.count, ceilDiv(length, DimExpr(kSegment))})),
      [&](auto &b) {
        Pair pair(b, runs, rows);
        const Val p = b.axis(rows + 1) * double(kSegment);
        return pair.leftAmong(p, max(p - runs.length, 0.0), min(p, b.index(runs.length)), most);
      });
  const Shape outShape = withRows(shape, rows, {out.count, length});
  out.keys = n.temp("run" + level, n.typeOf(runs.keys), outShape);
  out.indices = n.temp("places" + level, DType::I64, outShape);
  EquationBuilder b(n, EquationKind::Map, {out.keys, out.indices});
  Pair pair(b, runs, rows);
  const Val p = b.axis(rows + 1), segment = floorDiv(p, kSegment), end = b.index(runs.length);
  std::vector<Val> at(b.axes.begin(), b.axes.begin() + static_cast<long>(rows + 1));
  at.push_back(segment);
  const Val split = b.read(splits, at);
  const Val i = pair.leftAmong(p, max(split, p - runs.length),
                               min(split + (p - segment * double(kSegment)), end), kSegment - 1);
  const Val j = p - i, leftKey = pair.leftKey(i), rightKey = pair.rightKey(j);
  const Val isLeft = both(lt(i, end), either(le(end, j), le(rightKey, leftKey)));
  b.finish({select(isLeft, leftKey, rightKey), pair.index(isLeft, i, j)});
  return out;
}

/// Two neighbours among runs of a length that is known when they are merged: of the `place`-th element of all.
class NeighboursInRow {
public:
  NeighboursInRow(EquationBuilder &b, TensorId keys, TensorId indices, TensorId length, Val place)
      : b(b), keys(keys), indices(indices), row(b.axes.begin(), b.axes.end() - 1),
        all(b.index(b.n.shapeOf(keys).back())) {
    const Val full = b.read(length, {}), both = full * 2.0;
    left = binary(ScalarOp::FloorDiv, place, both) * both;
    within = place - left;
    leftLength = min(full, all - left);
    right = left + full;
    rightLength = max(min(full, all - right), 0.0);
  }

  /// How many of the first `p` elements are the left run's, at most `most` more than `low`.
  Val leftAmong(Val p, Val low, Val high, int64_t most) {
    const Val from = max(low, p - rightLength), to = min(high, leftLength);
    Val found = from;
    for (auto step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most))); step > 0;
         step /= 2) {
      const Val next = found + DimExpr(step);
      const Val isAmong = le(key(right, p - next), key(left, next - DimExpr(1)));
      found = select(both(le(next, to), isAmong), next, found);
    }
    return found;
  }

  /// Key and index of the first element behind i of the left run and j of the right one.
  std::vector<Val> nextOf(Val i, Val j) {
    const Val leftKey = key(left, i), rightKey = key(right, j);
    const Val isLeft = both(lt(i, leftLength), either(le(rightLength, j), le(rightKey, leftKey)));
    return {select(isLeft, leftKey, rightKey),
            b.read(indices, at(select(isLeft, left + i, right + j)))};
  }

  Val within; // the place among the two

private:
  std::vector<Val> at(Val place) {
    std::vector<Val> indices = row;
    indices.push_back(min(max(place, 0.0), all - DimExpr(1)));
    return indices;
  }
  Val key(Val run, Val i) { return b.read(keys, at(run + i)); }

  EquationBuilder &b;
  TensorId keys, indices;
  std::vector<Val> row;
  Val all, left, right, leftLength, rightLength;
};

/// One round of the loop: runs of `length` elements, merged two by two.
std::array<TensorId, 2> mergedOnce(NodeLowering &n, TensorId keys, TensorId indices,
                                   TensorId length) {
  const Shape shape = n.shapeOf(keys);
  const size_t rows = shape.size() - 1;
  constexpr int64_t most = int64_t{1} << (kLongestBits - 1);
  const TensorId splits =
      n.map(n.temp("split", DType::I64, withRows(shape, rows, {floorDiv(shape.back(), kSegment)})),
            [&](auto &b) {
              NeighboursInRow runs(b, keys, indices, length, b.axis(rows) * double(kSegment));
              return runs.leftAmong(runs.within, b.index(0), runs.within, most);
            });
  const std::array<TensorId, 2> out = {n.temp("mergedKeys", n.typeOf(keys), shape),
                                       n.temp("mergedPlaces", DType::I64, shape)};
  EquationBuilder b(n, EquationKind::Map, {out[0], out[1]});
  const Val place = b.axis(rows), segment = floorDiv(place, kSegment);
  NeighboursInRow runs(b, keys, indices, length, place);
  std::vector<Val> at(b.axes.begin(), b.axes.end() - 1);
  at.push_back(segment);
  const Val split = b.read(splits, at), behind = place - segment * double(kSegment);
  const Val i = runs.leftAmong(runs.within, split, split + behind, kSegment - 1);
  b.finish(runs.nextOf(i, runs.within - i));
  return out;
}

/// Indices of all elements in order, [rows..., R*C], of sorted parts.
TensorId mergedWhileRunning(NodeLowering &n, const Runs &parts) {
  const Shape shape = n.shapeOf(parts.keys);
  const size_t rows = shape.size() - 2;
  const DimExpr all = parts.count * parts.length;
  const Shape flat = withRows(shape, rows, {all});
  auto inOneRow = [&](const char *suffix, TensorId of) {
    return n.map(n.temp(suffix, n.typeOf(of), flat), [&](EquationBuilder &b) {
      std::vector<Val> at(b.axes.begin(), b.axes.end() - 1);
      at.push_back(floorDiv(b.axis(rows), parts.length));
      at.push_back(floorMod(b.axis(rows), parts.length));
      return b.read(of, at);
    });
  };
  auto isMore = [&](const char *suffix, TensorId length) {
    return n.map(n.temp(suffix, DType::Bool, {}),
                 [&](EquationBuilder &b) { return lt(b.read(length, {}), all); });
  };
  Control loop;
  loop.kind = Control::Kind::Loop;
  loop.onnxNodes = {n.node.name};
  loop.iteration = n.temp("round", DType::I64, {});
  const TensorId first = n.map(n.temp("partLength", DType::I64, {}),
                               [&](EquationBuilder &b) { return b.index(parts.length); });
  loop.carriedInit = {inOneRow("allKeys", parts.keys), inOneRow("allPlaces", parts.indices), first};
  loop.condition = isMore("several", first);
  const TensorId keys = n.temp("keysNow", n.typeOf(parts.keys), flat),
                 places = n.temp("placesNow", DType::I64, flat),
                 length = n.temp("lengthNow", DType::I64, {});
  loop.carriedIn = {keys, places, length};
  loop.results = {n.temp("sortedKeys", n.typeOf(keys), flat), n.temp("sorted", DType::I64, flat),
                  n.temp("sortedLength", DType::I64, {})};
  loop.thenItems = n.l.nested([&] {
    const auto [nextKeys, nextPlaces] = mergedOnce(n, keys, places, length);
    const TensorId next = n.map(n.temp("nextLength", DType::I64, {}),
                                [&](EquationBuilder &b) { return b.read(length, {}) * 2.0; });
    loop.carriedOut = {nextKeys, nextPlaces, next};
    loop.nextCondition = isMore("more", next);
  });
  const TensorId sorted = loop.results[1];
  loop.name = n.l.program.tensors[sorted].name;
  n.l.items->push_back({std::move(loop)});
  return sorted;
}

} // namespace

bool sortsInRuns(NodeLowering &n, const DimExpr &row, const DimExpr &k) {
  const int64_t longest = row.range(n.l.program.symbols).max,
                places = k.range(n.l.program.symbols).max;
  return longest > kPartLength && places > (row.isConst() ? kFewPlaces : kManyPlaces);
}

DimExpr sortedByBlock(const DimExpr &row) { return min(row, DimExpr(kPartLength)); }

bool areAlwaysSoonerInRuns(const DimExpr &row, const DimExpr &k,
                           const std::vector<Symbol> &symbols) {
  return k == row || k.range(symbols).min >= 2 * kManyPlaces;
}

Val isSoonerInRuns(EquationBuilder &b, const DimExpr &row, const DimExpr &k) {
  const Val n = b.number(DType::F32, row);
  return lt((n + double(kPartLength)) * double(kManyPlaces), n * b.number(DType::F32, k));
}

TensorId firstInRuns(NodeLowering &n, TensorId x, const DimExpr &k, bool largest) {
  const Shape shape = n.shapeOf(x);
  if (shape.back().range(n.l.program.symbols).max >> kLongestBits > 0) {
    const TensorId all = mergedWhileRunning(n, sortedParts(n, x, DimExpr(kPartLength), largest));
    return n.map(n.temp("first", DType::I64, withRows(shape, shape.size() - 1, {DimExpr(1), k})),
                 [&](EquationBuilder &b) {
                   std::vector<Val> at(b.axes.begin(), b.axes.end() - 2);
                   at.push_back(b.axes.back());
                   return b.read(all, at);
                 });
  }
  Runs runs = sortedParts(n, x, k, largest);
  int64_t most = runs.count.range(n.l.program.symbols).max;
  for (int level = 1; most > 1; ++level) {
    most = (most + 1) / 2;
    runs = merged(n, runs, most > 1 ? min(runs.length * DimExpr(2), k) : k, std::to_string(level));
  }
  return runs.indices;
}

} // namespace fusec::lower
