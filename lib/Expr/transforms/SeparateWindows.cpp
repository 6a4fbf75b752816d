// Windows along several axes as windows along one axis after the other, where an element counts for all of its window
// or not at all, and each axis of the window tells by itself what lies inside:
//
//   reduction y [i:20, j:20; r:5, q:5] max f32
//     %y = if(inside(i + r) and inside(j + q), %x[i + r - 2, j + q - 2], -inf)
//
// becomes
//
//   reduction y.line [i:20, j:20; r:5] max f32
//     %y.line = if(inside(i + r), %x[i + r - 2, j], -inf)
//   reduction y [i:20, j:20; q:5] max f32
//     %y = if(inside(j + q), %y.line[i, j + q - 2], -inf)
//
// with 10 terms for each result in place of 25. Lines are as long as the image: of windows that lie apart, most of what
// they hold may be read once or never, so that only what saves terms is separated. Sums are rounded in another order.
// Not handled: places of extremes, cascades, and what is computed of an element before it counts.
#include "Expr/Alternatives.h"
#include "Expr/Monoid.h"
#include "Expr/Padding.h"
#include "Expr/transforms/Walk.h"

namespace fusec {
namespace {

/// Conjuncts of the padding's predicate by what they depend on.
struct Conditions {
  NodeId inside = kNoNode, others = kNoNode; // of the last axis of the window; of the others
};

class Separation {
public:
  Separation(ExprProgram &program, size_t item)
      : program(program), item(item), whole(std::get<Equation>(program.items[item].value)) {}

  /// Takes the last axis of the window apart from the others.
  bool run() {
    if (!findRead() || !findDimension() || !savesTerms())
      return false;
    const Equation line = lines(), rest = restOf(line);
    program.items[item].value = rest;
    program.items.insert(program.items.begin() + static_cast<std::ptrdiff_t>(item), Item{line});
    return true;
  }

private:
  int last() const { return static_cast<int>(whole.axes.size()) - 1; }
  static uint64_t bit(int axis) { return uint64_t{1} << axis; }

  /// The element that counts, and its padding, of which the other value is the reduction's identity.
  bool findRead() {
    constexpr int kMostAxes = 62; // each has a bit of its own
    if (whole.kind != EquationKind::Reduction || isTupleMonoid(whole.monoid) ||
        whole.numReduction() < 2 || last() > kMostAxes)
      return false;
    read = whole.results[0];
    if (whole.body[read].op == ScalarOp::Cast)
      read = whole.body[read].args[0];
    const Scalar &node = whole.body[read];
    if (node.op != ScalarOp::ReadIf)
      return node.op == ScalarOp::Read;
    const Scalar &otherwise = whole.body[node.args[1]];
    Body body;
    const Scalar identity = body[identityOf(body, whole.monoid, whole.accumulateType)];
    return otherwise.op == ScalarOp::Const && isFloat(otherwise.type) == isFloat(identity.type) &&
           otherwise.imm == identity.imm && otherwise.fimm == identity.fimm;
  }

  /// The dimension that the window's last axis moves in, with one axis of the result and no other one.
  bool findDimension() {
    const std::vector<uint64_t> axes = axisDependences(whole.body);
    const std::vector<NodeId> indices = indexOperands(whole.body[read]);
    for (size_t d = 0; d < indices.size(); ++d)
      if (axes[indices[d]] & bit(last())) {
        if (dimension >= 0)
          return false;
        dimension = static_cast<int>(d);
      }
    if (dimension < 0)
      return false;
    const std::optional<AffineForm> place =
        affineForm(whole.body, indices[static_cast<size_t>(dimension)], last() + 1);
    for (int a = 0; place && a < last(); ++a)
      if (!place->coefficients[static_cast<size_t>(a)].isConst(0)) {
        if (along >= 0 || a >= whole.numSpatial)
          return false;
        along = a;
        step = place->coefficients[static_cast<size_t>(a)];
      }
    if (along < 0 || !step.isConst())
      return false;
    for (size_t d = 0; d < indices.size(); ++d)
      if (static_cast<int>(d) != dimension && (axes[indices[d]] & bit(along)))
        return false;
    const Scalar &node = whole.body[read];
    return node.op == ScalarOp::Read || divide(node.args[0], axes);
  }

  /// Sorts the conditions; false where one is about both directions.
  bool divide(NodeId predicate, const std::vector<uint64_t> &axes) {
    const Scalar node = whole.body[predicate];
    if (node.op == ScalarOp::And)
      return divide(node.args[0], axes) && divide(node.args[1], axes);
    const uint64_t own = bit(along) | bit(last());
    if ((axes[predicate] & own) != 0 && (axes[predicate] & ~own) != 0)
      return false;
    NodeId &all = axes[predicate] & own ? conditions.inside : conditions.others;
    all = whole.body.logicalAnd(all, predicate);
    return true;
  }

  /// Terms of a result, those of the lines that it reads for the first time among them.
  bool savesTerms() const {
    int64_t others = 1;
    for (int a = whole.numSpatial; a <= last(); ++a) {
      const DimExpr &extent = whole.axes[static_cast<size_t>(a)].extent;
      if (!extent.isConst())
        return false;
      if (a < last())
        others *= extent.constValue();
    }
    const int64_t ofLast = whole.axes[static_cast<size_t>(last())].extent.constValue();
    // A line is stored, and read again at places that its stores do not begin at.
    constexpr int64_t kLine = 4;
    return others * std::abs(step.constValue()) + ofLast + kLine < others * ofLast;
  }

  Equation lines() {
    Equation line = whole;
    line.name += ".line";
    line.axes.pop_back();
    Axis &axis = line.axes[static_cast<size_t>(along)];
    const Scalar node = whole.body[read];
    axis.extent = program.tensors[node.index].shape[static_cast<size_t>(dimension)];
    line.body = Body();
    setRanges(line, program.symbols);
    std::vector<NodeId> at;
    for (NodeId index : indexOperands(node))
      at.push_back(static_cast<int>(at.size()) == dimension
                       ? line.body.axis(along)
                       : line.body.import(whole.body, index, nullptr));
    const NodeId inside = conditions.others == kNoNode
                              ? kNoNode
                              : line.body.import(whole.body, conditions.others, nullptr);
    line.results = {counted(line, node.index, node.type, inside, at)};
    Tensor tensor = program.tensors[whole.outputs[0]];
    tensor.name += ".line";
    tensor.kind = TensorKind::Temp;
    tensor.type = whole.accumulateType;
    tensor.shape.clear();
    for (int a = 0; a < line.numSpatial; ++a)
      tensor.shape.push_back(line.axes[static_cast<size_t>(a)].extent);
    line.outputs = {program.addTensor(std::move(tensor))};
    compact(line);
    return line;
  }

  Equation restOf(const Equation &line) {
    Equation rest = whole;
    rest.axes.erase(rest.axes.begin() + rest.numSpatial, rest.axes.end() - 1);
    rest.body = Body();
    setRanges(rest, program.symbols);
    const auto moved = [&](const Scalar &leaf, NodeId) {
      return leaf.op == ScalarOp::Axis && leaf.index == last() ? rest.body.axis(rest.numSpatial)
                                                               : kNoNode;
    };
    const NodeId inside = conditions.inside == kNoNode
                              ? kNoNode
                              : rest.body.import(whole.body, conditions.inside, moved);
    const NodeId place = indexOperands(whole.body[read])[static_cast<size_t>(dimension)];
    std::vector<NodeId> at;
    for (int a = 0; a < rest.numSpatial; ++a)
      at.push_back(a == along ? rest.body.import(whole.body, place, moved) : rest.body.axis(a));
    rest.results = {counted(rest, line.outputs[0], whole.accumulateType, inside, at)};
    compact(rest);
    return rest;
  }

  /// An element, as far as it counts, in the type in which it does.
  static NodeId counted(Equation &e, TensorId tensor, DType type, NodeId predicate,
                        const std::vector<NodeId> &at) {
    const NodeId value =
        predicate == kNoNode
            ? e.body.read(tensor, type, at)
            : e.body.readIf(tensor, type, predicate, identityOf(e.body, e.monoid, type), at);
    return e.body.cast(e.accumulateType, value);
  }

  ExprProgram &program;
  size_t item;
  Equation whole;
  NodeId read = kNoNode;
  int dimension = -1; // of the tensor that is read
  int along = -1;     // the result's axis that moves in it
  DimExpr step;       // elements of the dimension, of each step along that axis
  Conditions conditions;
};

} // namespace

std::optional<ExprProgram> separateWindows(const ExprProgram &pattern, int64_t) {
  ExprProgram program = pattern;
  bool changed = false;
  for (size_t i = 0; i < program.items.size(); ++i) {
    const bool separates = Separation(program, i).run();
    changed = changed || separates;
    if (separates)
      --i; // the lines may be windows along several axes
  }
  return changed ? std::optional(std::move(program)) : std::nullopt;
}

} // namespace fusec
