#pragma once
#include "Expr/Arguments.h"
#include "Expr/Lower.h"
#include "Expr/lower/Val.h"
#include "Graph/SizeCheck.h"

#include <array>
#include <unordered_map>
#include <unordered_set>

namespace fusec::lower {

/// By ValueId: whether it decides between whole numbers or truths (Floor, Cast, comparisons), with nothing between that
/// mixes it with others (a sigmoid, a convolution). One pass over the nodes.
std::vector<bool> roundedValues(const Graph &graph);

/// The program under construction and where the next equation goes.
class Lowering {
public:
  explicit Lowering(const Graph &graph);
  Result<ExprProgram> run();

  const Graph &graph;
  const std::vector<bool> isRounded; // roundedValues
  ExprProgram program;
  std::vector<Item> *items;           // the innermost list
  const DimExpr *scanSteps = nullptr; // inside a scan's body
  Diagnostics errors;

  /// The tensor of a graph value; made on the first use.
  TensorId tensor(ValueId id);
  /// A new temp whose name is `base`, made unique.
  TensorId temp(const std::string &base, DType type, Shape shape);
  TensorId constant(const std::string &base, ConstantRef data);
  std::string uniqueName(const std::string &base);
  void lowerNodes(const std::vector<Node> &nodes);
  /// Lowers or moves into a list of its own.
  template <typename F> std::vector<Item> nested(F fill) {
    std::vector<Item> list, *outer = items;
    items = &list;
    fill();
    items = outer;
    return list;
  }

private:
  void setSteps();

  std::vector<TensorId> tensorOf; // by ValueId; -1: not made yet
  std::vector<bool> isOutput;     // by ValueId: an output of the whole graph, and no input
  std::unordered_set<std::string> names;
  std::unordered_map<std::string, int> lastSuffix; // by base, of uniqueName
};

class EquationBuilder;

/// What the function of an operator family sees of one node.
class NodeLowering {
public:
  NodeLowering(Lowering &lowering, const Node &node) : l(lowering), node(node) {}

  Lowering &l;
  const Node &node;

  bool has(size_t i) const { return node.hasInput(i); }
  bool wants(size_t i) const { return node.hasOutput(i); }
  TensorId in(size_t i) { return l.tensor(node.inputs[i]); }
  TensorId out(size_t i = 0) { return l.tensor(node.outputs[i]); }
  const Value &inValue(size_t i) const { return l.graph.value(node.inputs[i]); }
  const Value &outValue(size_t i = 0) const { return l.graph.value(node.outputs[i]); }
  const Shape &shape(size_t i) const { return inValue(i).shape; }
  const Shape &outShape(size_t i = 0) const { return outValue(i).shape; }
  DType type(size_t i) const { return inValue(i).type; }
  DType outType(size_t i = 0) const { return outValue(i).type; }
  int rank(size_t i) const { return static_cast<int>(shape(i).size()); }
  const Shape &shapeOf(TensorId t) const { return l.program.tensors[t].shape; }
  DType typeOf(TensorId t) const { return l.program.tensors[t].type; }

  /// A tensor of this node's own, named after its first output: "%y.<suffix>".
  TensorId temp(const std::string &suffix, DType type, Shape shape);
  TensorId constant(const std::string &suffix, ConstantRef data);

  /// out[s...] = f(builder). Returns `out`.
  template <typename F> TensorId map(TensorId out, F f);
  /// out[s...] = monoid of f(builder), which adds the reduction axes; a map where it adds none. f's value is
  /// converted to `accumulate`; `out` has that type.
  template <typename F> TensorId reduce(TensorId out, Monoid monoid, F f);
  /// Reduces into a new temp of type `accumulate` and the given shape.
  template <typename F>
  TensorId reduceTemp(const std::string &suffix, Monoid monoid, DType accumulate, Shape shape, F f);
  /// Reduces to `out`, through a temp and a conversion where `out` has another type than `accumulate`.
  template <typename F>
  void reduceTo(TensorId out, const std::string &suffix, Monoid monoid, DType accumulate, F f);
  /// out = temp, converted where the types differ; shapes are equal.
  void copy(TensorId out, TensorId from);
  /// The elements of `from` in the shape of `out`, in row-major order.
  void reshape(TensorId out, TensorId from);

  Diagnostic fail(std::string text) const; // UnsupportedOp
  Diagnostic fail(std::string text, Diag id) const;
};

/// One equation under construction: spatial axes over the shape of its outputs.
class EquationBuilder {
public:
  EquationBuilder(NodeLowering &n, EquationKind kind, std::vector<TensorId> outputs);
  /// A domain of its own (scatter).
  EquationBuilder(NodeLowering &n, EquationKind kind, std::vector<TensorId> outputs,
                  const Shape &domain);

  NodeLowering &n;
  Equation equation;
  std::vector<Val> axes; // spatial

  Body &body() { return equation.body; }
  Val val(NodeId id) { return {&equation.body, id}; }
  Val axis(size_t d) { return axes[d]; }
  /// Adds a reduction axis; an extent of 1 gives the constant 0 and no axis.
  Val reduction(const DimExpr &extent);
  std::vector<Val> reductions(const Shape &extents);
  Val index(const DimExpr &d) { return val(body().dim(d)); }
  Val constant(DType t, double v) { return val(body().constant(t, v)); }
  Val truth(bool v) { return val(body().constantInt(DType::Bool, v)); }
  /// A symbolic size as a number of type `t`.
  Val number(DType t, const DimExpr &d) { return cast(t, index(d)); }
  Val step() { return val(body().step()); }

  /// Constants that hold one number are read as that number, integers that follow from their indices are computed.
  Val read(TensorId t, const std::vector<Val> &indices);
  Val readIf(Val predicate, TensorId t, const std::vector<Val> &indices, Val otherwise);
  /// Reads at indices of which some went through wrapIndex: 0 where `t` is empty and has nothing to clamp to.
  Val readClamped(TensorId t, const std::vector<Val> &indices);
  /// Reads `t`, also if it is constant, as a tensor: for equal kernels rather than folded numbers.
  Val load(TensorId t, const std::vector<Val> &indices);
  /// Reads `t`, broadcast to a domain with the given indices (numpy rules, aligned on the right).
  Val broadcast(TensorId t, const std::vector<Val> &indices);
  Val broadcast(TensorId t) { return broadcast(t, axes); }
  /// The number in a one-element tensor of any rank.
  Val scalar(TensorId t);

  void finish(const std::vector<Val> &results);

private:
  std::vector<NodeId> ids(const std::vector<Val> &indices) const;
  std::optional<Val> literal(TensorId t, const std::vector<Val> &indices);
};

template <typename F> TensorId NodeLowering::map(TensorId out, F f) {
  EquationBuilder b(*this, EquationKind::Map, {out});
  b.finish({f(b)});
  return out;
}
template <typename F> TensorId NodeLowering::reduce(TensorId out, Monoid monoid, F f) {
  EquationBuilder b(*this, EquationKind::Reduction, {out});
  b.equation.monoid = monoid;
  b.equation.accumulateType = typeOf(out);
  Val v = f(b);
  b.finish({cast(typeOf(out), v)});
  return out;
}
template <typename F>
TensorId NodeLowering::reduceTemp(const std::string &suffix, Monoid monoid, DType accumulate,
                                  Shape shape, F f) {
  return reduce(temp(suffix, accumulate, std::move(shape)), monoid, f);
}
template <typename F>
void NodeLowering::reduceTo(TensorId out, const std::string &suffix, Monoid monoid,
                            DType accumulate, F f) {
  if (typeOf(out) == accumulate)
    reduce(out, monoid, f);
  else
    copy(out, reduceTemp(suffix, monoid, accumulate, shapeOf(out), f));
}

/// Index arithmetic of a reshape: the indices into a tensor of shape `from` of the element that has
/// `indices` in shape `to`. Dimensions are matched in groups of equal products, so that a leading symbolic
/// dimension maps to itself and only the dims inside a group are flattened.
std::vector<Val> reshapeIndices(const Shape &from, const Shape &to, const std::vector<Val> &indices,
                                Body &body);
/// A negative index counts from the end; the result is clamped into [0, extent).
Val wrapIndex(Val index, const DimExpr &extent);
std::vector<Val> concat(std::vector<Val> a, const std::vector<Val> &b);

using Handler = Status (*)(NodeLowering &);
struct HandlerTable {
  std::array<Handler, kNumOpKinds> handlers{};
  Handler &operator[](OpKind op) { return handlers[static_cast<size_t>(op)]; }
};
// One function a family, in <Family>.cpp: enters its operators.
void addElementwise(HandlerTable &table);
void addReductions(HandlerTable &table);
void addReductionsCumulative(HandlerTable &table);
void addReductionsSoftmax(HandlerTable &table);
void addContractions(HandlerTable &table);
void addWindowsConv(HandlerTable &table);
void addWindowsPool(HandlerTable &table);
void addNormalisations(HandlerTable &table);
void addMovement(HandlerTable &table);
void addGenerators(HandlerTable &table);
void addGathers(HandlerTable &table);
void addGathersChosen(HandlerTable &table);
void addGathersScatter(HandlerTable &table);
void addImagesResize(HandlerTable &table);
void addImagesGridSample(HandlerTable &table);
void addImagesKeptBoxes(HandlerTable &table);
void addImagesRoiAlign(HandlerTable &table);
void addQuantisation(HandlerTable &table);
void addRecurrent(HandlerTable &table);
void addReductionsTopK(HandlerTable &table);
void addControlFlow(HandlerTable &table);
void addMisc(HandlerTable &table);

} // namespace fusec::lower
