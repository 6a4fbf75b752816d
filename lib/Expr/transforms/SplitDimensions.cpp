// Splits a dimension of a temp that a reshape has folded into one, a few times a size that a run alone knows: the heads
// of a batch as models multiply them,
//
//   tensor %s: f32[batch*4, n, n] temp
//   reduction s [h:batch*4, i:n, j:n; k:8] sum f32
//     %s = mul(%q[floordiv(h, 4), i, floormod(h, 4)*8 + k], %q[floordiv(h, 4), j, floormod(h, 4)*8 + k])
//   map t [b:batch, h:4, i:n, j:n]
//     %t = add(%s[b*4 + h, i, j], %bias[b, h, j])
//
// becomes
//
//   tensor %s: f32[batch, 4, n, n] temp
//   reduction s [h.0:batch, h.1:4, i:n, j:n; k:8] sum f32
//     %s = mul(%q[h.0, i, h.1*8 + k], %q[h.0, j, h.1*8 + k])
//   map t [b:batch, h:4, i:n, j:n]
//     %t = add(%s[b, h, i, j], %bias[b, h, j])
//
// Every read is affine then: it is known which elements lie side by side and which are read again, and equations over
// the same batch and heads have rows in common. What reads the temp at its own axis, and is a temp itself, is split
// with it. All that belongs together is split or nothing, and only where that leaves fewer divisions. Elements stay
// where they are in memory. Dimensions of fixed size stay whole, and so do products of two sizes of a run, as the
// pixels of an image: attention between them is rows and columns, not images of images. Must run after compose, which
// makes such divisions, and before split-axes, which splits sums over what is split here.
#include "Expr/IndexAlgebra.h"
#include "Expr/Passes.h"
#include "Expr/transforms/Walk.h"

#include <algorithm>
#include <map>

namespace fusec {
namespace {

constexpr size_t kMaxAxes = 16;

struct Split {
  int axis;
  int64_t inner; // divides the extent exactly
};

class SplitDimensions {
public:
  explicit SplitDimensions(ExprProgram &program)
      : program(program), whole(wholeUses(program)), writers(program.tensors.size(), nullptr),
        readers(program.tensors.size()) {
    forEachEquation(program.items, [&](Equation &e, const DimExpr *steps) {
      places.push_back({&e, steps});
      for (TensorId t : e.outputs) {
        whole[t] = whole[t] || writers[t] != nullptr; // by several branches
        writers[t] = &e;
      }
    });
    for (const Place &place : places)
      for (TensorId t : tensorsRead(*place.equation))
        readers[t].push_back(place.equation);
  }

  void run() {
    for (const Place &place : places)
      for (bool changed = isSplittable(*place.equation); changed;) {
        changed = false;
        for (const Split &split : splitsOf(*place.equation))
          if ((changed = apply(*place.equation, split)))
            break;
      }
  }

private:
  struct Place {
    Equation *equation;
    const DimExpr *steps;
  };

  static std::vector<TensorId> tensorsRead(const Equation &e) {
    std::vector<TensorId> tensors;
    for (NodeId id : e.body.reachable(bodyRoots(e)))
      if (isRead(e.body[id]))
        tensors.push_back(e.body[id].index);
    std::ranges::sort(tensors);
    tensors.erase(std::unique(tensors.begin(), tensors.end()), tensors.end());
    return tensors;
  }

  /// Nobody but bodies knows the shape of what it writes.
  bool isSplittable(const Equation &e) const {
    return (e.kind == EquationKind::Map || e.kind == EquationKind::Reduction) &&
           e.outputs.size() == 1 && program.tensors[e.outputs[0]].kind == TensorKind::Temp &&
           !whole[e.outputs[0]] &&
           program.tensors[e.outputs[0]].shape.size() == static_cast<size_t>(e.numSpatial);
  }

  static bool isDivision(const Scalar &s) {
    return s.op == ScalarOp::FloorDiv || s.op == ScalarOp::FloorMod;
  }

  static std::vector<Split> splitsOf(const Equation &e) {
    std::vector<Split> splits;
    for (NodeId id : e.body.reachable(bodyRoots(e))) {
      const Scalar &s = e.body[id];
      if (!isDivision(s))
        continue;
      const Scalar &a = e.body[s.args[0]], &d = e.body[s.args[1]];
      if (a.op != ScalarOp::Axis || a.index >= e.numSpatial || d.op != ScalarOp::Const || d.imm < 2)
        continue;
      const DimExpr &extent = e.axes[static_cast<size_t>(a.index)].extent;
      if (!extent.isConst() && exactQuotient(extent, DimExpr(d.imm)))
        splits.push_back({a.index, d.imm});
    }
    return splits;
  }

  /// The read's operand that is its index in this dimension.
  static size_t indexOf(const Scalar &read, int dimension) {
    return static_cast<size_t>(dimension) + (read.op == ScalarOp::ReadIf ? 2 : 0);
  }

  /// The temps that are split with what `e` writes, and in which dimension; none where that does not go together.
  std::map<TensorId, int> groupOf(const Equation &e, int axis) const {
    std::map<TensorId, int> group = {{e.outputs[0], axis}};
    const DimExpr &extent = e.axes[static_cast<size_t>(axis)].extent;
    std::vector<TensorId> open = {e.outputs[0]};
    while (!open.empty()) {
      const TensorId t = open.back();
      open.pop_back();
      for (const Equation *reader : readers[t])
        for (NodeId id : reader->body.reachable(bodyRoots(*reader))) {
          const Scalar &s = reader->body[id];
          if (!isRead(s) || s.index != t)
            continue;
          const Scalar &index = reader->body[s.args[indexOf(s, group.at(t))]];
          if (index.op != ScalarOp::Axis || index.index >= reader->numSpatial ||
              !isSplittable(*reader) ||
              reader->axes[static_cast<size_t>(index.index)].extent != extent)
            continue;
          const auto [at, isNew] = group.emplace(reader->outputs[0], index.index);
          if (isNew)
            open.push_back(reader->outputs[0]);
          else if (at->second != index.index)
            return {};
        }
    }
    return group;
  }

  Equation rewritten(const Place &place, const std::map<TensorId, int> &group,
                     int64_t inner) const {
    Equation e = *place.equation;
    const auto own = e.outputs.empty() ? group.end() : group.find(e.outputs[0]);
    const int axis = own == group.end() ? INT32_MAX : own->second;
    if (own != group.end()) {
      const auto at = e.axes.begin() + axis;
      const Axis outer{at->name + ".0", *exactQuotient(at->extent, DimExpr(inner))};
      const Axis last{at->name + ".1", DimExpr(inner)};
      *at = outer;
      e.axes.insert(at + 1, last);
      ++e.numSpatial;
    }
    rebuild(e, program.symbols, place.steps, [&](Body &body, const Scalar &s, NodeId) {
      if (s.op == ScalarOp::Axis) {
        if (s.index != axis)
          return s.index < axis ? kNoNode : body.axis(s.index + 1);
        const NodeId scaled = body.binary(ScalarOp::Mul, body.axis(axis), body.index(inner));
        return body.binary(ScalarOp::Add, scaled, body.axis(axis + 1));
      }
      const auto read = isRead(s) ? group.find(s.index) : group.end();
      if (read == group.end())
        return kNoNode;
      Scalar both = s;
      const size_t at = indexOf(s, read->second);
      both.args[at] = body.binary(ScalarOp::FloorDiv, s.args[at], body.index(inner));
      both.args.insert(both.args.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                       body.binary(ScalarOp::FloorMod, s.args[at], body.index(inner)));
      return body.add(std::move(both));
    });
    return e;
  }

  /// Counts those that stay: a reduced axis is split too.
  static int64_t divisions(const Equation &e) {
    return std::ranges::count_if(e.body.reachable(bodyRoots(e)), [&](NodeId id) {
      if (!isDivision(e.body[id]))
        return false;
      const Scalar &a = e.body[e.body[id].args[0]], &d = e.body[e.body[id].args[1]];
      return e.kind != EquationKind::Reduction || a.op != ScalarOp::Axis ||
             a.index < e.numSpatial || d.op != ScalarOp::Const ||
             !exactQuotient(e.axes[static_cast<size_t>(a.index)].extent, DimExpr(d.imm));
    });
  }

  bool apply(const Equation &first, const Split &split) {
    const std::map<TensorId, int> group = groupOf(first, split.axis);
    std::vector<std::pair<Equation *, Equation>> made;
    int64_t before = 0, after = 0;
    for (const Place &place : places) {
      const Equation &e = *place.equation;
      const bool isTouched = std::ranges::any_of(group, [&](const auto &member) {
        return writers[member.first] == &e || std::ranges::count(readers[member.first], &e) > 0;
      });
      if (!isTouched)
        continue;
      made.emplace_back(place.equation, rewritten(place, group, split.inner));
      before += divisions(e);
      after += divisions(made.back().second);
      if (made.back().second.axes.size() > kMaxAxes)
        return false;
    }
    if (after >= before)
      return false;
    for (auto &[place, equation] : made)
      *place = std::move(equation);
    for (const auto &[t, dimension] : group) {
      Shape &shape = program.tensors[t].shape;
      const auto at = shape.begin() + dimension;
      *at = *exactQuotient(*at, DimExpr(split.inner));
      shape.insert(at + 1, DimExpr(split.inner));
    }
    return true;
  }

  ExprProgram &program;
  std::vector<bool> whole;
  std::vector<Place> places;                    // of all equations, in order
  std::vector<Equation *> writers;              // by tensor
  std::vector<std::vector<Equation *>> readers; // by tensor
};

} // namespace

ExprProgram splitDimensions(ExprProgram program) {
  SplitDimensions(program).run();
  return program;
}

} // namespace fusec
