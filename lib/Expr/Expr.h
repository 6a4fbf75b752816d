#pragma once
#include "Expr/Body.h"
#include "Expr/Monoid.h"
#include "Expr/Tensor.h"

#include <map>
#include <string>
#include <variant>
#include <vector>

namespace fusec {

struct Axis {
  std::string name;
  DimExpr extent;
};

/// Several reductions over the same points in one pass, where a later one may use the results of earlier ones (the
/// running maximum in softmax's sum). State s of a set of points folds, by `monoid`, results[s] of the points, in
/// whose body State(t), t < s, is state t of the same set. Growing a set changes its states; those that use changed
/// ones are corrected first: `correction`, a node over Part(t), t <= s (the states of a set) and State(t), t < s
/// (those of a larger one that it is part of), is what state s of the set is with the larger one's states in place of
/// its own. So two sets A and B have, for s = 0, 1, ..., the states
///     C[s] = correction(A, C[0..s)) monoid correction(B, C[0..s)),
/// and this combination is the monoid of the whole, with the neutral elements of its parts. Example: the maximum and
/// the sum of e^(x - maximum), where the sum's correction is part(1) * exp(part(0) - state(0)).
struct CascadeState {
  /// Folds one value.
  Monoid monoid = Monoid::Sum;
  /// kNoNode where results[s] uses no state.
  NodeId correction = kNoNode;
};

enum class Combiner : uint8_t { Assign, Add, Mul, Min, Max };
std::string_view name(Combiner c);
std::optional<Combiner> parseCombiner(std::string_view text);

enum class EquationKind : uint8_t { Map, Reduction, Scan, Scatter, Opaque };

struct Equation;

/// A value carried from one step of a scan to the next.
struct ScanCarry {
  TensorId init;     // value before the first step; shape of one step
  TensorId previous; // what the body reads
  TensorId next;     // what the body's equations write
  TensorId final;    // value after the last step, or -1
};
/// A tensor that the body writes once a step, stacked along a new leading axis of `stacked`.
struct ScanOutput {
  TensorId perStep;
  /// Has the shape [count, perStep...]. Step t goes to index t, or steps-1-t when reversed.
  TensorId stacked;
  /// The step of the first value that is stacked; -1: every step is, and `count` is `steps`. Step t goes to index
  /// t - first, and steps that have no index there go nowhere. `count` is any number up to steps - first, the scan is
  /// not reversed, and nothing else reads perStep.
  int64_t first = -1;
};

/// One tensor equation. Domain: `axes`, the spatial ones first; spatial axis d runs over dimension d of every
/// output. A map's may be longer, as a cache with room is (Caches.h): what no point stores stays as it is.
///
/// Map:       out[s...] = results[0](s...) where scatterPredicate holds      (several outputs: several results)
/// Reduction: out[s...] = monoid over the reduction axes of results[0](s..., r...). Accumulated in
///            `accumulateType`, in lexicographic order of r as far as bits are concerned in the interpreter.
///            Sum of a product of two floats accumulates by fma (not in cascades). A domain with an empty reduction
///            gives the neutral element. Arg monoids: results = {value, index (i64)}, two outputs likewise; a NaN wins
///            over numbers. Cascades: results = one for each state, the outputs are the last states; those in front
///            of them are only carried.
/// Scan:      for step in 0..steps: the equations of `scanBody`, which use Step for the iteration.
///            `outputs` = the carries' finals (those present), then the stacked tensors; no axes.
/// Scatter:   out = base, from index `steps` of dimension 0 on; then for every point s in lexicographic order:
///            out[scatterIndex(s)...] = combiner(out[...], results[0](s)) where scatterPredicate holds
/// Opaque:    out... = opaque(inputs...), named after a row of OpaqueOps.def, with integer attributes; no body. What
///            the axes stand for is said there.
struct Equation {
  EquationKind kind = EquationKind::Map;
  /// Unique in its program.
  std::string name;
  /// The model's nodes that it stands for, as reports and messages name them.
  std::vector<std::string> onnxNodes;
  std::vector<Axis> axes;
  int numSpatial = 0;
  std::vector<TensorId> outputs;
  Body body;
  std::vector<NodeId> results;

  // Reduction
  Monoid monoid = Monoid::Sum;
  DType accumulateType = DType::F32;
  std::vector<CascadeState> states;

  // Scatter
  TensorId base = -1;
  /// An i64 node for each dimension of the output.
  std::vector<NodeId> scatterIndex;
  /// kNoNode where every point goes to the output.
  NodeId scatterPredicate = kNoNode;
  Combiner combiner = Combiner::Assign;

  // Scan
  DimExpr steps;
  /// Whether stacked outputs run backwards. The body sees Step reversed already.
  bool reversed = false;
  std::vector<ScanCarry> carries;
  std::vector<ScanOutput> scanOutputs;
  /// Maps and reductions.
  std::vector<Equation> scanBody;

  // Opaque
  std::string opaque;
  std::vector<TensorId> opaqueInputs;
  std::map<std::string, int64_t> opaqueAttributes;

  int numReduction() const { return static_cast<int>(axes.size()) - numSpatial; }
};

/// All roots in `body`: results, corrections of a cascade, scatter indices, scatter predicate.
std::vector<NodeId> bodyRoots(const Equation &equation);
/// Renumbers the bodies in the order of their text (Body::compact), those of a scan's equations too.
void compact(Equation &equation);
/// Adds the symbols in extents, steps and bodies, those of a scan's equations too, without repetition.
void collectSymbols(const Equation &equation, std::vector<SymbolId> &out);
/// Hands the extents of the axes (and of `steps`, inside a scan) to the body's simplifier. A body has a value where its
/// domain has a point: what is a factor of an extent is 1 at least there.
void setRanges(Equation &equation, const std::vector<Symbol> &symbols,
               const DimExpr *steps = nullptr);

struct Item;

/// What the host decides: If runs one of two lists by the bool scalar `condition`; Loop repeats `body`; Size gives
/// `symbol`, which depends on data, the value of the scalar `tripCount`.
/// Before a branch or an iteration ends, `yields` are copied to `results` (If) or to the carried tensors.
struct Control {
  enum class Kind : uint8_t { If, Loop, Size } kind = Kind::If;
  std::string name;
  std::vector<std::string> onnxNodes;
  /// A bool []: which list If runs, or whether Loop begins. -1: Loop does.
  TensorId condition = -1;
  /// What If runs where the condition holds, or the body of Loop.
  std::vector<Item> thenItems;
  /// What If runs where it does not.
  std::vector<Item> elseItems;
  /// The values for `results` of each list of If.
  std::vector<TensorId> thenYields, elseYields;
  /// The outputs of If, or what Loop carries at the end.
  std::vector<TensorId> results;

  /// An i64 []: iterations of Loop at most, -1: there is no bound; the value of Size.
  TensorId tripCount = -1;

  // Loop
  /// An i64 [] that the body reads: the number of the iteration.
  TensorId iteration = -1;
  /// A bool [] that the body writes: whether another iteration follows; -1: it does.
  TensorId nextCondition = -1;
  /// What is carried, in the order of the results: the first values, what the body reads and what it writes.
  std::vector<TensorId> carriedInit, carriedIn, carriedOut;

  /// What Size gives its value to, and whether rules speak of it: then it stays, with or without users.
  SymbolId symbol = -1;
  bool isTested = false;
};

struct Item {
  std::variant<Equation, Control> value;
};

/// Whether it is a size that tests the data (Symbol::test): it stays without users too, and is left out where the
/// host would have to wait for a device (withoutDataTests).
bool testsData(const Control &control, const std::vector<Symbol> &symbols);

/// A model as tensor equations. Tensor names are unique; each temp and output is written by exactly one
/// equation (or Control result).
struct ExprProgram {
  std::string name;
  std::vector<Symbol> symbols;
  std::vector<Tensor> tensors;
  /// In the model's order. An input may also be an output's value.
  std::vector<TensorId> inputs, outputs;
  /// In the order in which they run.
  std::vector<Item> items;

  TensorId addTensor(Tensor t);
};

/// The text form, with Graph's contract (Graph/Graph.h).
std::string print(const ExprProgram &program, ConstantStore *store);
Result<ExprProgram> parseExpr(std::string_view text, const std::string &fileName,
                              const ConstantStore &store);
/// Checks every rule of this header, as Graph's verifier does.
Status verify(const ExprProgram &program);
/// The text of one equation with positions of axes and tensors in place of their names: equal for equations that differ
/// in names only. Plan signatures hash it.
std::string canonicalText(const Equation &equation, const ExprProgram &program);

} // namespace fusec
