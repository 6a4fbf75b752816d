// Equations that do not need each other and differ in their operands become one, side by side along an axis: Souffle's
// horizontal transformation (section 6.1). Two products whose results a concatenation collects (its Fig. 3),
//
//   reduction c0 [i:4, j:16; k:8] sum f32
//     %c0 = mul(%a0[i, k], %b0[k, j])
//   reduction c1 [i:2, j:16; k:8] sum f32
//     %c1 = mul(%a1[i, k], %b1[k, j])
//   map c [i:6, j:16]
//     %c = if(lt(i, 4), %c0[i, j], if(lt(3, i), %c1[i - 4, j], 0.0))
//
// become
//
//   reduction c [i:6, j:16; k:8] sum f32
//     %c = mul(if(lt(i, 4), %a0[i, k], if(lt(3, i), %a1[i - 4, k], 0.0)),
//              if(lt(i, 4), %b0[k, j], if(lt(3, i), %b1[k, j], 0.0)))
//
// An operand that all of them read at the same place is read without a choice: of the axes along which they may lie,
// the one with the fewest choices is taken. Results that leave the kernel get a map each, which copies their part.
// Every bit stays. Not handled: arg monoids, cascades, maps of several results, concatenation along a symbolic axis.
#include "Expr/Concatenate.h"

#include "Expr/Alternatives.h"
#include "Expr/transforms/Joined.h"
#include "Expr/transforms/Profile.h"
#include "Expr/transforms/Walk.h"
#include "Support/UniqueNames.h"

#include <algorithm>
#include <set>

namespace fusec {
namespace {

/// An equation that writes nothing has no part in a whole.
bool isSuitable(const Equation &e) {
  const bool isEmpty = std::any_of(e.axes.begin(), e.axes.begin() + e.numSpatial,
                                   [](const Axis &a) { return a.extent.isConst(0); });
  return e.numSpatial > 0 && !isEmpty && e.outputs.size() == 1 &&
         ((e.kind == EquationKind::Map && e.scatterPredicate == kNoNode) ||
          (e.kind == EquationKind::Reduction && !isTupleMonoid(e.monoid)));
}

class Concatenation {
public:
  explicit Concatenation(const ExprProgram &pattern) : program(pattern) {}

  std::optional<ExprProgram> run() {
    bool changed = false;
    for (std::vector<size_t> group = nextGroup(); !group.empty(); group = nextGroup()) {
      join(group);
      changed = true;
    }
    if (!changed)
      return std::nullopt;
    dropUnneeded(program);
    return std::move(program);
  }

private:
  const Equation &at(size_t i) const { return std::get<Equation>(program.items[i].value); }
  Equation &at(size_t i) { return std::get<Equation>(program.items[i].value); }

  /// Positions of the equations whose results each one needs, directly or not.
  std::vector<std::set<size_t>> needs() {
    std::map<TensorId, size_t> makers;
    std::vector<std::set<size_t>> needed(program.items.size());
    for (size_t i = 0; i < program.items.size(); ++i) {
      auto need = [&](TensorId t) {
        if (auto maker = makers.find(t); maker != makers.end()) {
          needed[i].insert(needed[maker->second].begin(), needed[maker->second].end());
          needed[i].insert(maker->second);
        }
      };
      std::vector<Item> one = {program.items[i]};
      forEachEquation(one, [&](Equation &e, const DimExpr *) {
        for (NodeId id : e.body.reachable(bodyRoots(e)))
          if (isRead(e.body[id]))
            need(e.body[id].index);
        forEachWholeUse(e, [&](TensorId &t) { need(t); });
      });
      for (TensorId t : at(i).outputs)
        makers[t] = i;
    }
    return needed;
  }

  /// Axes along which the two may lie side by side: all others are equally long.
  static std::set<int> commonAxes(const Equation &a, const Equation &b) {
    std::set<int> axes;
    int different = -1, count = 0;
    for (int d = 0; d < a.numSpatial; ++d)
      if (a.axes[d].extent != b.axes[d].extent) {
        different = d;
        ++count;
      }
    for (int d = 0; d < a.numSpatial; ++d)
      if (a.axes[d].extent.isConst() && b.axes[d].extent.isConst() &&
          (count == 0 || (count == 1 && d == different)))
        axes.insert(d);
    return axes;
  }

  bool canJoin(const Equation &a, const Equation &b) const {
    if (a.kind != b.kind || a.monoid != b.monoid || a.accumulateType != b.accumulateType ||
        a.numSpatial != b.numSpatial || a.axes.size() != b.axes.size() ||
        program.tensors[a.outputs[0]].type != program.tensors[b.outputs[0]].type)
      return false;
    for (size_t d = static_cast<size_t>(a.numSpatial); d < a.axes.size(); ++d)
      if (a.axes[d].extent != b.axes[d].extent)
        return false;
    return alike(a.body, a.results[0], b.body, b.results[0]);
  }

  /// Positions of equations to join, two or more; empty where none are left.
  std::vector<size_t> nextGroup() {
    const std::vector<std::set<size_t>> needed = needs();
    for (size_t i = 0; i < program.items.size(); ++i) {
      // A copy that this rewriting left is not worth another one.
      if (!isSuitable(at(i)) || isCopy(at(i)))
        continue;
      std::vector<size_t> group = {i};
      std::set<int> axes;
      for (size_t j = i + 1; j < program.items.size(); ++j) {
        if (!isSuitable(at(j)) || !canJoin(at(i), at(j)) ||
            std::any_of(group.begin(), group.end(),
                        [&](size_t member) { return needed[j].count(member) != 0; }))
          continue;
        std::set<int> both = commonAxes(at(i), at(j)), left;
        if (group.size() == 1)
          left = both;
        else
          std::set_intersection(axes.begin(), axes.end(), both.begin(), both.end(),
                                std::inserter(left, left.end()));
        if (left.empty())
          continue;
        axes = std::move(left);
        group.push_back(j);
      }
      if (group.size() > 1) {
        axesOfGroup = axes;
        return group;
      }
    }
    return {};
  }

  static bool isCopy(const Equation &e) {
    return e.kind == EquationKind::Map && e.body[e.results[0]].op == ScalarOp::Read;
  }

  void join(const std::vector<size_t> &group) {
    std::vector<Equation> copies;
    for (size_t i : group)
      copies.push_back(at(i));
    std::vector<const Equation *> members;
    for (const Equation &e : copies)
      members.push_back(&e);
    std::optional<Joined> best;
    int axis = -1;
    for (int a : axesOfGroup)
      if (Joined joined(members, program.symbols, a); !best || joined.choices < best->choices) {
        best.emplace(std::move(joined));
        axis = a;
      }

    Equation whole = best->equation;
    Tensor tensor = program.tensors[copies[0].outputs[0]];
    tensor.name += ".joined";
    tensor.kind = TensorKind::Temp;
    tensor.shape[axis] = whole.axes[axis].extent;
    const DType type = tensor.type;
    const TensorId t = program.addTensor(std::move(tensor));
    whole.name += ".joined";
    whole.outputs = {t};
    UniqueNames nodes;
    nodes.add(whole.onnxNodes);
    for (size_t p = 1; p < copies.size(); ++p)
      nodes.add(copies[p].onnxNodes);
    whole.onnxNodes = nodes.names();

    // The members' places are free for copies of what leaves the kernel.
    for (size_t p = 0; p < group.size(); ++p) {
      Equation &copy = at(group[p]);
      copy.kind = EquationKind::Map;
      copy.axes.resize(static_cast<size_t>(copy.numSpatial));
      copy.body = Body();
      setRanges(copy, program.symbols);
      std::vector<NodeId> place;
      for (int d = 0; d < copy.numSpatial; ++d)
        place.push_back(copy.body.axis(d));
      place[axis] = copy.body.binary(ScalarOp::Add, place[axis], copy.body.index(best->starts[p]));
      copy.results = {copy.body.read(t, type, place)};
      compact(copy);
    }
    for (Item &item : program.items)
      redirect(std::get<Equation>(item.value), copies, best->starts, axis, t);
    program.items.insert(program.items.begin() + static_cast<std::ptrdiff_t>(group[0]),
                         Item{std::move(whole)});
    sort();
    dropUnneeded(program);
    takeOver();
  }

  /// Reads of the members' results read the whole.
  void redirect(Equation &e, const std::vector<Equation> &members,
                const std::vector<int64_t> &starts, int axis, TensorId whole) {
    auto memberOf = [&](const Scalar &s) {
      return std::find_if(members.begin(), members.end(),
                          [&](const Equation &m) { return isRead(s) && m.outputs[0] == s.index; });
    };
    if (std::none_of(e.body.nodes.begin(), e.body.nodes.end(),
                     [&](const Scalar &s) { return memberOf(s) != members.end(); }))
      return;
    rebuild(e, program.symbols, nullptr, [&](Body &body, const Scalar &s, NodeId) -> NodeId {
      auto member = memberOf(s);
      if (member == members.end())
        return kNoNode;
      Scalar moved = s;
      moved.index = whole;
      const size_t first = s.op == ScalarOp::ReadIf ? 2 : 0;
      NodeId &place = moved.args[first + static_cast<size_t>(axis)];
      place = body.binary(ScalarOp::Add, place,
                          body.index(starts[static_cast<size_t>(member - members.begin())]));
      if (first == 2)
        if (NodeId read = withoutChoice(e, body, moved); read != kNoNode)
          return read;
      return body.add(std::move(moved));
    });
  }

  /// Choices between parts of the whole, all at the same place, that hold somewhere each and everywhere together: a
  /// read without them; else kNoNode.
  NodeId withoutChoice(const Equation &e, Body &body, const Scalar &read) const {
    constexpr int64_t kMostPlaces = 4096; // of the axis that decides
    const std::vector<NodeId> place(read.args.begin() + 2, read.args.end());
    std::vector<NodeId> predicates = {read.args[0]};
    for (NodeId other = read.args[1]; body[other].op == ScalarOp::ReadIf;) {
      const Scalar &s = body[other];
      if (s.index != read.index ||
          !std::equal(place.begin(), place.end(), s.args.begin() + 2, s.args.end()))
        break;
      predicates.push_back(s.args[0]);
      other = s.args[1];
    }
    uint64_t axes = 0;
    const std::vector<uint64_t> dependences = axisDependences(body);
    for (NodeId p : predicates) {
      axes |= dependences[p];
      if (hasRead(body, p))
        return kNoNode;
    }
    int decides = 0;
    while (decides < static_cast<int>(e.axes.size()) && axes != uint64_t{1} << decides)
      ++decides;
    if (decides >= std::min<int>(63, static_cast<int>(e.axes.size())))
      return kNoNode;
    const DimExpr &extent = e.axes[decides].extent;
    if (!extent.isConst() || extent.constValue() > kMostPlaces)
      return kNoNode;
    Body scratch;
    for (int64_t i = 0; i < extent.constValue(); ++i) {
      bool holds = false;
      for (NodeId p : predicates) {
        NodeId at = scratch.import(body, p, [&](const Scalar &s, NodeId) {
          return s.op == ScalarOp::Axis ? scratch.index(i) : kNoNode;
        });
        holds = holds || (scratch[at].op == ScalarOp::Const && scratch[at].imm != 0);
      }
      if (!holds)
        return kNoNode;
    }
    return body.read(read.index, read.type, place);
  }

  /// Equations follow those that they need, else in the order in which they stand.
  void sort() {
    std::set<TensorId> open;
    for (const Item &item : program.items) {
      const Equation &e = std::get<Equation>(item.value);
      open.insert(e.outputs.begin(), e.outputs.end());
    }
    std::vector<Item> left = std::move(program.items), sorted;
    while (!left.empty()) {
      auto next = std::find_if(left.begin(), left.end(), [&](Item &item) {
        bool ready = true;
        std::vector<Item> one = {item};
        std::set<TensorId> own;
        forEachEquation(one, [&](Equation &e, const DimExpr *) {
          own.insert(e.outputs.begin(), e.outputs.end());
          for (NodeId id : e.body.reachable(bodyRoots(e)))
            ready = ready && !(isRead(e.body[id]) && open.count(e.body[id].index));
          forEachWholeUse(
              e, [&](TensorId &t) { ready = ready && (open.count(t) == 0 || own.count(t)); });
        });
        return ready;
      });
      assert(next != left.end() && "members do not need each other");
      for (TensorId t : std::get<Equation>(next->value).outputs)
        open.erase(t);
      sorted.push_back(std::move(*next));
      left.erase(next);
    }
    program.items = std::move(sorted);
  }

  /// A temp that only a copy of the whole of it reads is the copy's tensor.
  void takeOver() {
    for (size_t c = 0; c < program.items.size(); ++c) {
      const Equation copy = at(c);
      if (!isCopy(copy))
        continue;
      const Scalar &read = copy.body[copy.results[0]];
      const TensorId from = read.index;
      bool whole = program.tensors[from].kind == TensorKind::Temp &&
                   program.tensors[from].shape == program.tensors[copy.outputs[0]].shape &&
                   read.args.size() == copy.axes.size();
      for (size_t d = 0; whole && d < read.args.size(); ++d)
        whole = copy.body[read.args[d]].op == ScalarOp::Axis &&
                copy.body[read.args[d]].index == static_cast<int32_t>(d);
      size_t readers = 0, maker = program.items.size();
      for (size_t i = 0; whole && i < program.items.size(); ++i) {
        const Equation &e = at(i);
        readers += std::any_of(e.body.nodes.begin(), e.body.nodes.end(),
                               [&](const Scalar &s) { return isRead(s) && s.index == from; });
        if (e.outputs == std::vector<TensorId>{from} && isSuitable(e))
          maker = i;
      }
      if (!whole || readers != 1 || maker == program.items.size() ||
          program.tensors[from].type != program.tensors[copy.outputs[0]].type)
        continue;
      at(maker).outputs = copy.outputs;
      at(maker).name = copy.name;
      program.items.erase(program.items.begin() + static_cast<std::ptrdiff_t>(c));
      dropUnneeded(program);
      c = static_cast<size_t>(-1); // numbers have changed: once more from the beginning
    }
  }

  ExprProgram program;
  std::set<int> axesOfGroup; // along which the last group may lie
};

} // namespace

bool collectsResults(const std::vector<const Equation *> &equations) {
  if (equations.size() < 3)
    return false;
  const Equation &map = *equations.back();
  std::set<TensorId> results;
  for (const Equation *e : equations)
    if (e != &map) {
      if (e->kind != EquationKind::Reduction)
        return false;
      results.insert(e->outputs.begin(), e->outputs.end());
    }
  if (map.kind != EquationKind::Map || !profileOf(map).movement)
    return false;
  std::set<TensorId> collected;
  for (const Equation *e : equations)
    for (NodeId id : e->body.reachable(bodyRoots(*e)))
      if (isRead(e->body[id]) && results.count(e->body[id].index) != 0) {
        if (e != &map)
          return false;
        collected.insert(e->body[id].index);
      }
  return collected == results;
}

std::vector<int64_t> concatenateChoices(const ExprProgram &pattern, const Target &) {
  // A choice costs instructions at every point: worth it where launches and empty lanes cost more.
  constexpr double kMostPoints = 1 << 20;
  double points = 0;
  for (const Item &item : pattern.items) {
    Shape domain;
    for (const Axis &axis : std::get<Equation>(item.value).axes)
      domain.push_back(axis.extent);
    points += typicalElements(domain, pattern.symbols);
  }
  const bool worth = pattern.items.size() > 1 && points <= kMostPoints;
  return worth ? std::vector<int64_t>{0} : std::vector<int64_t>{};
}

std::optional<ExprProgram> concatenate(const ExprProgram &pattern, int64_t) {
  return Concatenation(pattern).run();
}

} // namespace fusec
