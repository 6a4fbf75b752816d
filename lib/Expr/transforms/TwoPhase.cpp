// Long reductions with few results in two phases, so that many cores work on one result: the parts first, each a
// contiguous stretch, then their results.
//
//   reduction o [; k:1000000] sum f32
//     %o = %x[k]
//
// becomes, in 64 parts,
//
//   reduction o.part [p:64; k:15625] sum f32
//     %o.part = %x[p*15625 + k]
//   reduction o [; p:64] sum f32
//     %o = %o.part[p]
//
// for every monoid, places of extremes too: a part's result is a value and its index. A cascade's parts result in all
// of its states, and what takes them together is a cascade over the parts, whose values are the parts' states corrected
// as CascadeState says:
//
//   reduction s [; k:1000000] cascade f32              reduction s.part [p:64; k:15625] cascade f32
//     %m = max %x[k]                                     %m.part = max %x[p*15625 + k]
//     %s = sum exp(sub(%x[k], state(0)))        ->       %s.part = sum exp(sub(%x[p*15625 + k], state(0)))
//     correct 1 =                                        correct 1 = mul(part(1), exp(sub(part(0), state(0))))
//       mul(part(1), exp(sub(part(0), state(0))))      reduction s [; p:64] cascade f32
//                                                        %m = max %m.part[p]
//                                                        %s = sum mul(%s.part[p], exp(sub(%m.part[p], state(0))))
//                                                        correct 1 = mul(part(1), exp(sub(part(0), state(0))))
//
// The number of parts is fixed when the kernel is made, so that the bits do not depend on how many threads there are.
// What does not divide into parts is guarded: elements behind the end are not read and count as the neutral element.
//
// Of several reduced axes the outermost one that is long enough is taken apart. Maps of the pattern that are reduced
// along it are written into the parts: kept as tensors they would have to run over other rows than the parts do. A
// softmax over one long row computes its exponentials twice so, and reads the row three times.
//
// A product of matrices with too few tiles for a device is taken apart as well, where nothing else is: its parts are
// the outermost of its axes, so that tiles lie as they did.
//
// Parts are for many blocks, their results for few: between them all blocks may have to wait (twoPhaseStarts). So that
// they do that as seldom as possible, parts that need no result of others come first, then results, and so on in turns.
// Not handled: reductions inside scans.
#include "Expr/Alternatives.h"
#include "Expr/Cascade.h"
#include "Expr/Rows.h"
#include "Expr/transforms/Inline.h"
#include "Expr/transforms/Profile.h"
#include "Expr/transforms/Walk.h"

#include <algorithm>
#include <climits>
#include <map>
#include <numeric>
#include <set>

namespace fusec {
namespace {

constexpr int64_t kMostParts = 1 << 16;
constexpr int64_t kShortestPart = 4;     // elements of the axis that is taken apart
constexpr int64_t kShortestProduct = 64; // of a product, whose threads have a tile of results
constexpr double kLeastTerms =
    1 << 14;                           // of one reduction: below, a launch costs more than the work
constexpr double kTermsPerResult = 16; // of a reduction that is worth it, for each of its results

double optOf(const DimExpr &e, const std::vector<Symbol> &symbols) {
  return typicalElements({e}, symbols);
}

double product(const Equation &e, int from, int to, const std::vector<Symbol> &symbols) {
  double elements = 1;
  for (int a = from; a < to; ++a)
    elements *= optOf(e.axes[a].extent, symbols);
  return elements;
}

double results(const Equation &e, const std::vector<Symbol> &symbols) {
  return product(e, 0, e.numSpatial, symbols);
}

/// Long, with few results: whatever the target.
bool isLong(const Equation &e, const std::vector<Symbol> &symbols) {
  if (e.kind != EquationKind::Reduction)
    return false;
  const double terms = product(e, e.numSpatial, static_cast<int>(e.axes.size()), symbols);
  const double made = results(e, symbols);
  return made >= 1 && made * terms >= kLeastTerms && terms >= kTermsPerResult * made;
}

/// A product of matrices, of one row among them, of which a device may have too few tiles.
bool isProductOfFewTiles(const Equation &e, const std::vector<Symbol> &symbols) {
  constexpr double kLeastSteps = 1024, kLeastWork = 1 << 20, kMostResults = 1 << 20;
  const double terms = product(e, e.numSpatial, static_cast<int>(e.axes.size()), symbols);
  return e.kind == EquationKind::Reduction && e.states.empty() && sharesFactor(e) &&
         results(e, symbols) >= 1 && results(e, symbols) <= kMostResults && terms >= kLeastSteps &&
         terms * results(e, symbols) >= kLeastWork;
}

/// Whether threads would have tiles of its results, or columns of a matrix: others make one sum together.
bool hasTiles(const Equation &e, const std::vector<Symbol> &symbols) {
  return isContraction(e) || (isProductOfFewTiles(e, symbols) && !isLong(e, symbols));
}

/// The equations to take apart, by their place: those that are long, else products. None beside a scan, whose steps
/// read what turnsOf does not see.
std::vector<bool> partedOf(const ExprProgram &pattern) {
  std::vector<bool> isParted(pattern.items.size(), false);
  if (std::ranges::any_of(pattern.items, [](const Item &item) {
        return std::get<Equation>(item.value).kind == EquationKind::Scan;
      }))
    return isParted;
  for (const auto &wanted : {isLong, isProductOfFewTiles}) {
    isParted.clear();
    for (const Item &item : pattern.items)
      isParted.push_back(wanted(std::get<Equation>(item.value), pattern.symbols));
    if (std::ranges::count(isParted, true) > 0)
      break;
  }
  return isParted;
}

/// The reduced axis to take apart, or -1.
int axisFor(const Equation &e, int64_t parts, const std::vector<Symbol> &symbols) {
  const int64_t shortest = hasTiles(e, symbols) ? kShortestProduct : kShortestPart;
  for (int a = e.numSpatial; a < static_cast<int>(e.axes.size()); ++a)
    if (optOf(e.axes[a].extent, symbols) >= double(parts * shortest))
      return a;
  return -1;
}

/// The most that an axis of a product is taken apart into.
int64_t mostParts(const Equation &e, const std::vector<Symbol> &symbols) {
  double longest = 0;
  for (size_t a = static_cast<size_t>(e.numSpatial); a < e.axes.size(); ++a)
    longest = std::max(longest, optOf(e.axes[a].extent, symbols));
  return static_cast<int64_t>(longest) / kShortestProduct;
}

class TwoPhase {
public:
  TwoPhase(const ExprProgram &pattern, int64_t parts) : program(pattern), parts(parts) {}

  std::optional<ExprProgram> run() {
    bool changed = false;
    size_t i = 0;
    for (const bool isParted : partedOf(program)) {
      const Equation &e = std::get<Equation>(program.items[i].value);
      const int axis = isParted ? axisFor(e, parts, program.symbols) : -1;
      const bool splits = axis >= 0 && split(i, axis);
      changed = changed || splits;
      i += splits ? 2 : 1;
    }
    if (!changed)
      return std::nullopt;
    dropUnneeded(program);
    return std::move(program);
  }

private:
  const Equation *mapOf(TensorId t) const {
    if (program.tensors[t].kind == TensorKind::Temp)
      for (const Item &item : program.items) {
        const Equation &e = std::get<Equation>(item.value);
        if (e.kind == EquationKind::Map && e.outputs[0] == t && e.outputs.size() == 1)
          return &e;
      }
    return nullptr;
  }

  /// Maps that are read along the axis take the place of their reads, until none is left.
  void writeMapsInto(Equation &e, int axis) const {
    for (bool changed = true; changed;) {
      changed = false;
      const std::vector<uint64_t> axes = axisDependences(e.body);
      Equation written = e;
      rebuild(written, program.symbols, nullptr,
              [&](Body &body, const Scalar &s, NodeId original) -> NodeId {
                if (!isRead(s) || !(axes[original] >> std::min(axis, 63) & 1))
                  return kNoNode;
                const Equation *map = mapOf(s.index);
                if (!map)
                  return kNoNode;
                changed = true;
                return inlineMap(body, *map, s);
              });
      if (!changed || written.body.nodes.size() > kMaxBodyNodes)
        return;
      e = std::move(written);
    }
  }

  /// Products of reads: where the reads give zero, so do they.
  static bool isProductOfReads(const Body &body, NodeId id) {
    const Scalar &s = body[id];
    if (s.op == ScalarOp::Mul)
      return isProductOfReads(body, s.args[0]) && isProductOfReads(body, s.args[1]);
    if (s.op == ScalarOp::Cast)
      return isFloat(s.type) && isProductOfReads(body, s.args[0]);
    return s.op == ScalarOp::Read;
  }

  bool split(size_t i, int axis) {
    const Equation e = std::get<Equation>(program.items[i].value);
    const DimExpr extent = e.axes[axis].extent;
    const DimExpr length = ceilDiv(extent, DimExpr(parts));
    const bool cut = length * parts != extent;
    const bool arg = isArgMonoid(e.monoid);
    // Behind the end, an index that loses every tie stands for the axis.
    if (cut && arg) {
      const Scalar &index = e.body[e.results[1]];
      if (index.op != ScalarOp::Axis || index.index != axis)
        return false;
    }

    Equation part = e;
    writeMapsInto(part, axis);
    const bool zeroes = part.monoid == Monoid::Sum && isProductOfReads(part.body, part.results[0]);
    const int p = hasTiles(e, program.symbols) ? 0 : e.numSpatial; // position of the new axis
    part.name += ".part";
    part.axes[axis].extent = length;
    part.axes.insert(part.axes.begin() + p, Axis{e.axes[axis].name + ".part", DimExpr(parts)});
    ++part.numSpatial;
    auto place = [&](Body &body) {
      NodeId start = body.binary(ScalarOp::Mul, body.axis(p), body.dim(length));
      return body.binary(ScalarOp::Add, start, body.axis(axis + 1));
    };
    auto inside = [&](Body &body) {
      return body.binary(ScalarOp::Lt, place(body), body.dim(extent));
    };
    const std::vector<uint64_t> axes = axisDependences(part.body);
    auto onAxis = [&](NodeId id) { return (axes[id] >> std::min(axis, 63) & 1) != 0; };
    rebuild(part, program.symbols, nullptr, [&](Body &body, const Scalar &s, NodeId id) -> NodeId {
      if (s.op == ScalarOp::Axis)
        return s.index == axis ? place(body) : s.index >= p ? body.axis(s.index + 1) : kNoNode;
      // A cascade's corrections read too, for no point of the axis.
      if (!isRead(s) || !cut || (!part.states.empty() && !onAxis(id)))
        return kNoNode;
      const bool guarded = s.op == ScalarOp::ReadIf;
      return body.readIf(s.index, s.type,
                         guarded ? body.logicalAnd(inside(body), s.args[0]) : inside(body),
                         guarded ? s.args[1] : body.constantInt(s.type, 0),
                         {s.args.begin() + (guarded ? 2 : 0), s.args.end()});
    });
    if (cut && !zeroes)
      maskOutside(part, inside(part.body), extent);

    Equation whole = e;
    whole.body = Body();
    whole.axes.resize(static_cast<size_t>(e.numSpatial));
    whole.axes.push_back(part.axes[static_cast<size_t>(p)]);
    setRanges(whole, program.symbols);
    for (CascadeState &state : whole.states)
      if (state.correction != kNoNode)
        state.correction = whole.body.import(e.body, state.correction, nullptr);
    addPartResults(e, part, p);
    std::vector<NodeId> at, results;
    for (int d = 0; d < e.numSpatial; ++d)
      at.push_back(whole.body.axis(d));
    at.insert(at.begin() + p, whole.body.axis(e.numSpatial));
    for (TensorId t : part.outputs)
      results.push_back(whole.body.read(t, program.tensors[t].type, at));
    whole.results = results;
    for (size_t s = 0; s < e.states.size(); ++s)
      if (e.states[s].correction != kNoNode)
        whole.results[s] = whole.body.import(
            e.body, e.states[s].correction, [&](const Scalar &leaf, NodeId) -> NodeId {
              return leaf.op == ScalarOp::Part ? results[leaf.index] : kNoNode;
            });
    if (!whole.states.empty() && !cascadeProblems(whole).empty())
      return false;
    compact(part);
    compact(whole);
    program.items[i].value = std::move(part);
    program.items.insert(program.items.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                         Item{std::move(whole)});
    return true;
  }

  /// Points that are not `inside` the axis do not count.
  static void maskOutside(Equation &part, NodeId inside, const DimExpr &extent) {
    Body &body = part.body;
    const size_t values = isArgMonoid(part.monoid) ? 1 : part.results.size();
    for (size_t r = 0; r < values; ++r)
      part.results[r] =
          body.select(inside, part.results[r],
                      identityOf(body, part.states.empty() ? part.monoid : part.states[r].monoid,
                                 part.accumulateType));
    if (values == part.results.size())
      return;
    const bool last = part.monoid == Monoid::ArgMaxLast || part.monoid == Monoid::ArgMinLast;
    part.results[1] =
        body.select(inside, part.results[1], last ? body.index(0) : body.dim(extent - 1));
  }

  /// Tensors for all that a part of `e` results in: its outputs, and in front of them the states that have none.
  /// `p`: which of their axes tells the part.
  void addPartResults(const Equation &e, Equation &part, int p) {
    const size_t hidden = e.states.empty() ? 0 : e.states.size() - e.outputs.size();
    part.outputs.clear();
    for (size_t r = 0; r < hidden + e.outputs.size(); ++r) {
      Tensor tensor = program.tensors[e.outputs[r < hidden ? 0 : r - hidden]];
      if (r < hidden)
        tensor.name += ".state" + std::to_string(r);
      tensor.name += ".part";
      tensor.kind = TensorKind::Temp;
      tensor.type = isArgMonoid(e.monoid) && r == 1 ? DType::I64 : e.accumulateType;
      tensor.shape.insert(tensor.shape.begin() + p, part.axes[static_cast<size_t>(p)].extent);
      part.outputs.push_back(program.addTensor(std::move(tensor)));
    }
  }

  ExprProgram program;
  int64_t parts;
};

const Equation &equationAt(const ExprProgram &program, size_t i) {
  return std::get<Equation>(program.items[i].value);
}

/// Turns in which the equations of `made` run: even ones on many blocks, for parts and all that has more results than
/// what parts are put together to, odd ones for the rest. Each reads what earlier turns and its own one make; what is
/// no part takes the last turn that its readers leave it.
std::vector<int> turnsOf(const ExprProgram &pattern, const ExprProgram &made) {
  std::set<std::string> old;
  for (const Item &item : pattern.items)
    old.insert(std::get<Equation>(item.value).name);
  auto isPart = [&](const Equation &e) { return old.count(e.name) == 0; };
  std::map<TensorId, size_t> makers;
  std::vector<std::vector<size_t>> needs(made.items.size());
  for (size_t i = 0; i < needs.size(); ++i) {
    const Equation &e = equationAt(made, i);
    for (NodeId id : e.body.reachable(bodyRoots(e)))
      if (auto maker = isRead(e.body[id]) ? makers.find(e.body[id].index) : makers.end();
          maker != makers.end())
        needs[i].push_back(maker->second);
    for (TensorId t : e.outputs)
      makers[t] = i;
  }
  double few = 0; // results that parts are put together to
  for (size_t i = 0; i < needs.size(); ++i)
    for (size_t maker : needs[i])
      if (isPart(equationAt(made, maker)) && !isPart(equationAt(made, i)))
        few = std::max(
            few, product(equationAt(made, i), 0, equationAt(made, i).numSpatial, made.symbols));
  std::vector<int> turns;
  for (size_t i = 0; i < needs.size(); ++i) {
    const Equation &e = equationAt(made, i);
    const bool many = isPart(e) || product(e, 0, e.numSpatial, made.symbols) > few;
    int turn = many ? 0 : 1;
    for (size_t maker : needs[i])
      while (turn < turns[maker])
        turn += 2;
    turns.push_back(turn);
  }
  std::vector<int> last(turns.size(), INT_MAX);
  for (size_t i = turns.size(); i-- > 0;) {
    if (!isPart(equationAt(made, i)) && last[i] != INT_MAX)
      turns[i] = last[i] - (last[i] - turns[i]) % 2;
    for (size_t maker : needs[i])
      last[maker] = std::min(last[maker], turns[i]);
  }
  return turns;
}

void sortByTurns(const ExprProgram &pattern, ExprProgram &made) {
  const std::vector<int> turns = turnsOf(pattern, made);
  std::vector<size_t> order(turns.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return turns[a] < turns[b]; });
  std::vector<Item> items;
  for (size_t i : order)
    items.push_back(std::move(made.items[i]));
  made.items = std::move(items);
}

/// The divisor of `extent` next to `wanted` (by factor at most 2) whose parts are multiples of the lanes or nearly so
/// long; else `wanted` itself.
int64_t partsNear(int64_t extent, int64_t wanted, int64_t lanes) {
  int64_t best = 0;
  auto rank = [&](int64_t parts) { // lower is better
    return (extent / parts % lanes == 0 ? 0.0 : 0.5) +
           std::max(double(parts) / double(wanted), double(wanted) / double(parts));
  };
  for (int64_t parts = std::max<int64_t>(2, (wanted + 1) / 2); parts <= 2 * wanted; ++parts)
    if (extent % parts == 0 && (best == 0 || rank(parts) < rank(best)))
      best = parts;
  return best != 0 ? best : wanted;
}

} // namespace

std::vector<int64_t> twoPhaseChoices(const ExprProgram &pattern, const Target &target) {
  // Work for every core, and several blocks a core where it hides latency.
  std::vector<int64_t> found;
  const std::vector<bool> isParted = partedOf(pattern);
  for (size_t i = 0; i < isParted.size(); ++i) {
    const Equation &e = std::get<Equation>(pattern.items[i].value);
    const bool isProduct = hasTiles(e, pattern.symbols);
    if (!isParted[i] || (isProduct && target.kind == TargetKind::Cpu))
      continue;
    constexpr double kResultsOfTile = 4096; // of a product
    const auto blocks = static_cast<int64_t>(
        std::max(1.0, results(e, pattern.symbols) / (isProduct ? kResultsOfTile : 1)));
    if (isProduct && 2 * blocks > target.cores)
      continue; // the tiles keep most of the device busy
    for (int64_t perCore : {1, 4}) {
      int64_t wanted = (target.cores * perCore + blocks - 1) / blocks;
      if (isProduct)
        wanted = std::min(wanted, mostParts(e, pattern.symbols));
      if (wanted < 2)
        continue;
      const int axis = axisFor(e, wanted, pattern.symbols);
      if (axis < 0)
        continue;
      const DimExpr &extent = e.axes[axis].extent;
      const int64_t parts =
          extent.isConst() ? partsNear(extent.constValue(), wanted, target.lanes) : wanted;
      if (std::count(found.begin(), found.end(), parts) == 0)
        found.push_back(parts);
    }
  }
  return found;
}

std::optional<ExprProgram> twoPhase(const ExprProgram &pattern, int64_t parts) {
  if (parts < 2 || parts > kMostParts)
    return std::nullopt;
  std::optional<ExprProgram> made = TwoPhase(pattern, parts).run();
  if (made)
    sortByTurns(pattern, *made);
  return made;
}

std::vector<int> twoPhaseStarts(const ExprProgram &pattern, const ExprProgram &made) {
  const std::vector<int> turns = turnsOf(pattern, made);
  std::vector<int> starts;
  std::vector<const Equation *> phase;
  for (size_t i = 0; i < turns.size(); ++i) {
    phase.push_back(&equationAt(made, i));
    // Few results run in one block where they have no rows in common, many cannot.
    const bool many = turns[i] % 2 == 0;
    if (i == 0 || (turns[i] == turns[i - 1] && (!many || !commonRows(phase).empty())))
      continue;
    starts.push_back(static_cast<int>(i));
    phase = {&equationAt(made, i)};
  }
  return starts;
}

} // namespace fusec
