// How many elements of a length stand for one row of the work: a network for sound hears 80 samples a frame, say, and
// all that it makes of the frames runs over floordiv(samples - 2, 80) of them. Sizes to tune for are numbers of frames
// then (Support/TunedSizes.h): of 1 to 512 samples there are 6 at most, and kernels tuned for 6 would run with 500.
//
//   map c1 [t:floordiv(samples, 5), c:32]      work for 128 rows of each, a sample:     40 * 32 / 5    =    256
//   map c2 [t:floordiv(samples, 20), c:32]                                             256 * 32 / 20   =    410
//   map c3, q, k, .. [t:floordiv(samples, 80), c:32]                                  2000 * 32 / 80   =    800
//
// Of these it is the longest step that a third of the work takes, or more than that with longer ones: what needs few
// samples for a row has many rows where others have some, and many rows are all alike.
#include "Expr/SymbolSteps.h"

#include "Expr/transforms/Walk.h"
#include "Support/OptValues.h"
#include "Support/TunedSizes.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace fusec {
namespace {

constexpr int64_t kFar = int64_t{1} << 30; // sizes that tell how fast an extent grows
constexpr int64_t kRows = 128;             // a typical length
constexpr double kLeastShare = 1.0 / 3;

class StepFinder {
public:
  StepFinder(ExprProgram &program, SymbolId symbol) : program(program), symbol(symbol) {
    for (const Symbol &s : program.symbols)
      least.push_back(std::max(s.min, s.divisor));
    near = withSize(least, kFar);
    odd = withSize(least, kFar + 1);
    middle = withSize(least, kFar + kFar / 2);
    far = withSize(least, 2 * kFar);
  }

  /// 1 where nothing runs along the symbol.
  int64_t run() {
    std::map<int64_t, double> work; // by step
    double all = 0;
    forEachEquation(program.items, [&](const Equation &e, const DimExpr *steps) {
      std::vector<DimExpr> extents;
      for (const Axis &axis : e.axes)
        extents.push_back(axis.extent);
      if (steps)
        extents.push_back(*steps);
      const int64_t step = stepOfAll(extents);
      if (step == 0)
        return;
      const double own = pointsAt(step, extents) / double(step);
      work[step] += own;
      all += own;
    });
    double sum = 0;
    for (auto at = work.rbegin(); at != work.rend(); ++at)
      if ((sum += at->second) >= kLeastShare * all)
        return at->first;
    return 1;
  }

private:
  using Values = std::vector<int64_t>;

  Values withSize(Values values, int64_t size) const {
    const int64_t divisor = program.symbols[static_cast<size_t>(symbol)].divisor;
    values[static_cast<size_t>(symbol)] = std::max<int64_t>(size / divisor, 1) * divisor;
    setComputed(program.symbols, values);
    return values;
  }

  /// Elements of the symbol for one of the extent; 0 where it does not grow with the symbol, or faster and faster, as
  /// all pairs of rows do.
  int64_t stepOf(const DimExpr &extent) const {
    const std::optional<int64_t> low = extent.evaluate(near), half = extent.evaluate(middle),
                                 high = extent.evaluate(far);
    if (!low || !half || !high || *high <= *low || (*high - *half) / 5 > (*half - *low) / 4)
      return 0;
    const auto size = static_cast<size_t>(symbol);
    const double step = double(far[size] - near[size]) / (double(*high) - double(*low));
    return std::clamp<int64_t>(std::llround(step), 1, kMostStep);
  }

  /// The shortest of them. Blocks of elements and the places in one, such as ceildiv(n, 4096) and 4096, are an axis of
  /// the elements themselves.
  int64_t stepOfAll(const std::vector<DimExpr> &extents) const {
    int64_t shortest = 0;
    for (size_t i = 0; i < extents.size(); ++i)
      if (int64_t step = stepOf(extents[i]); step > 0) {
        if (i + 1 < extents.size() && extents[i + 1].isConst(step) && coversAll(extents[i], step))
          step = 1;
        shortest = shortest == 0 ? step : std::min(shortest, step);
      }
    return shortest;
  }

  /// Whether so many blocks of `length` leave out no element: frames, which windows make, leave some.
  bool coversAll(const DimExpr &blocks, int64_t length) const {
    const std::optional<int64_t> count = blocks.evaluate(odd);
    return count && *count >= odd[static_cast<size_t>(symbol)] / length +
                                  (odd[static_cast<size_t>(symbol)] % length != 0);
  }

  /// With kRows rows of so many elements.
  double pointsAt(int64_t step, const std::vector<DimExpr> &extents) {
    auto [at, isNew] = typical.try_emplace(step);
    if (isNew)
      at->second = withSize(optValues(program.symbols), kRows * step);
    double points = 1;
    for (const DimExpr &extent : extents)
      points *= double(std::max<int64_t>(extent.evaluate(at->second).value_or(1), 0));
    return points;
  }

  ExprProgram &program;
  const SymbolId symbol;
  Values least, near, odd, middle, far;
  std::map<int64_t, Values> typical; // by step
};

} // namespace

int64_t stepOfWork(ExprProgram &program, SymbolId symbol) {
  return StepFinder(program, symbol).run();
}

} // namespace fusec
