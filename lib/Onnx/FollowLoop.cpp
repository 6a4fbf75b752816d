#include "Onnx/FollowLoop.h"

#include <algorithm>

namespace fusec {

using Id = KnownValues::Id;
using Elements = KnownValues::Elements;
using Op = DimProgram::Op;

namespace {

/// What doubles in every trip is beyond 64 bits by then.
constexpr int64_t kMostTrips = 64;
/// With the trips of loops inside each other; what is made in more is not known.
constexpr int64_t kMostReplayed = 1 << 14;

class LoopFollower {
public:
  LoopFollower(KnownValues &values, const Node &node)
      : values(values), numbers(values.numbers), graph(values.graph), node(node),
        body(node.regions[0]) {}

  std::vector<std::optional<Elements>> run() {
    std::vector<std::optional<Elements>> made(node.outputs.size());
    const bool isUnrolled = isServed(body) && unroll();
    for (auto &[id, elements] : before)
      values.exchange(id, std::move(elements));
    for (size_t i = 0; isUnrolled && i < std::min(made.size(), state.size()); ++i)
      made[i] = handedOn(i);
    return made;
  }

private:
  using State = std::vector<std::optional<Elements>>; // of what is carried

  /// One that may be made: whether it is where all in front of it are, and what it finds.
  struct Trip {
    Id isMade;
    State found;
  };

  /// Sizes that a body tells are other ones in each trip.
  static bool isServed(const Region &region) {
    return std::all_of(region.nodes.begin(), region.nodes.end(), [](const Node &n) {
      return n.op != OpKind::DataSize && std::all_of(n.regions.begin(), n.regions.end(), isServed);
    });
  }

  std::optional<Id> operandOr(size_t i, Id otherwise) {
    if (!node.hasInput(i))
      return otherwise;
    const auto e = values.elements(node.inputs[i]);
    return e && e->size() == 1 ? std::optional(e->front()) : std::nullopt;
  }

  /// Makes trips until there can be none more; false where that is not known.
  bool unroll() {
    const auto count = operandOr(0, numbers.integer(DType::I64, INT64_MAX));
    auto goesOn = operandOr(1, numbers.integer(DType::Bool, 1));
    for (size_t i = 2; i < node.inputs.size(); ++i)
      state.push_back(values.elements(node.inputs[i]));
    for (int64_t trip = 0; count && goesOn; ++trip) {
      const auto isCounted =
          numbers.apply(Op::Less, DType::Bool, {numbers.integer(DType::I64, trip), *count, -1});
      const auto isMade =
          isCounted ? numbers.apply(Op::Min, DType::Bool, {*isCounted, *goesOn, -1}) : isCounted;
      if (!isMade)
        return false;
      if (numbers.constant(*isMade) == 0)
        return true;
      if (trip == kMostTrips || values.replayed > kMostReplayed || !isAnyKnown())
        return false;
      trips.push_back({*isMade, state});
      goesOn = makeTrip(trip);
      if (isLost(goesOn) && isLeftByValues()) {
        leave(goesOn);
        return true;
      }
    }
    return false;
  }

  bool isAnyKnown() const {
    return std::any_of(state.begin(), state.end(), [](const auto &e) { return e.has_value(); });
  }
  /// Whether less is known behind the last trip than in front of it.
  bool isLost(const std::optional<Id> &goesOn) const {
    const State &found = trips.back().found;
    return !goesOn || !std::equal(found.begin(), found.end(), state.begin(),
                                  [](const auto &e, const auto &next) { return !e || next; });
  }

  /// Whether that is since numbers do not fit their types: constants are all that is known, and no less than one trip
  /// before, so that none of them hangs on what is not known.
  bool isLeftByValues() const {
    if (trips.size() < 2)
      return false;
    const State &found = trips.back().found, &earlier = trips[trips.size() - 2].found;
    for (size_t i = 0; i < found.size(); ++i)
      if (found[i].has_value() != earlier[i].has_value() || (found[i] && !areConstant(*found[i])))
        return false;
    return true;
  }
  bool areConstant(const Elements &elements) const {
    return std::all_of(elements.begin(), elements.end(),
                       [&](Id x) { return numbers.constant(x) || numbers.constantReal(x); });
  }

  /// A run that makes the last trip has no value of what was lost in it; nothing is known of the others, unless that
  /// trip does not say whether it is the last one.
  void leave(const std::optional<Id> &goesOn) {
    const State &found = trips.back().found;
    for (size_t i = 0; i < state.size(); ++i)
      state[i] = found[i] && (!goesOn || !state[i])
                     ? std::optional(Elements(found[i]->size(),
                                              numbers.none(graph.value(node.inputs[i + 2]).type)))
                     : std::nullopt;
  }

  /// Whether another trip may follow this one; nothing where that is not known.
  std::optional<Id> makeTrip(int64_t trip) {
    set(body.inputs[0], Elements{numbers.integer(DType::I64, trip)});
    set(body.inputs[1], Elements{numbers.integer(DType::Bool, 1)});
    for (size_t i = 0; i < state.size(); ++i)
      set(body.inputs[i + 2], state[i]);
    replay(body);
    for (size_t i = 0; i < state.size(); ++i) {
      state[i] = values.elements(body.outputs[i + 1]);
      if (state[i] && static_cast<int64_t>(state[i]->size()) > kMaxComputedElements)
        state[i] = std::nullopt;
    }
    const auto next = values.elements(body.outputs[0]);
    return next ? std::optional(next->front()) : std::nullopt;
  }

  void replay(const Region &region) {
    for (const Node &n : region.nodes) {
      ++values.replayed;
      if (n.op == OpKind::Scan)
        continue; // what is known of it hangs on no trip
      const bool areAllThere =
          std::find(n.outputs.begin(), n.outputs.end(), kNoValue) == n.outputs.end();
      const auto made = areAllThere ? values.follow(n) : State(n.outputs.size());
      for (size_t i = 0; i < made.size(); ++i)
        if (n.hasOutput(i))
          set(n.outputs[i], made[i]);
      if (n.op != OpKind::If)
        continue;
      for (const Region &branch : n.regions)
        replay(branch);
      for (size_t i = 0; i < n.outputs.size(); ++i)
        if (n.hasOutput(i))
          values.choose(n.outputs[i], n.inputs[0], n.regions[0].outputs[i],
                        n.regions[1].outputs[i]);
    }
  }

  /// In this trip.
  void set(ValueId id, std::optional<Elements> elements) {
    auto known = values.exchange(id, std::move(elements));
    before.try_emplace(id, std::move(known));
  }

  /// Carried value `i` behind the last trip that a run makes.
  std::optional<Elements> handedOn(size_t i) {
    std::optional<Elements> made = state[i];
    for (size_t t = trips.size(); made && t-- > 0;) {
      const std::optional<Elements> &found = trips[t].found[i];
      if (!found || found->size() != made->size())
        return std::nullopt;
      for (size_t e = 0; e < made->size(); ++e) {
        const auto chosen = numbers.apply(Op::Select, numbers.type((*found)[e]),
                                          {trips[t].isMade, (*made)[e], (*found)[e]});
        if (!chosen)
          return std::nullopt;
        (*made)[e] = *chosen;
      }
    }
    return made;
  }

  KnownValues &values;
  HostNumbers &numbers;
  const Graph &graph;
  const Node &node;
  const Region &body;
  State state;
  std::vector<Trip> trips;
  std::unordered_map<ValueId, std::optional<Elements>>
      before; // what was known of the body's values
};

} // namespace

std::vector<std::optional<Elements>> followLoop(KnownValues &values, const Node &node) {
  if (values.loopsAround++ == 0)
    values.replayed = 0;
  auto made = LoopFollower(values, node).run();
  --values.loopsAround;
  return made;
}

} // namespace fusec
