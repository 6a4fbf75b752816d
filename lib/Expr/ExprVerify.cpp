// The rules of Expr.h, read from top to bottom: tensors, then every equation in order of execution.
#include "Expr/BodyText.h"
#include "Expr/Cascade.h"
#include "Expr/Expr.h"
#include "Expr/OpaqueOps.h"
#include "Support/Diag.h"
#include "Support/SizeRules.h"

#include <set>

namespace fusec {
namespace {

const std::set<std::string, std::less<>> kReserved = {"step", "true", "false", "let", "where",
                                                      "dim",  "if",   "inf",   "nan"};

class Verifier {
public:
  explicit Verifier(const ExprProgram &program)
      : program(program), written(program.tensors.size()) {}

  Status run() {
    if (std::string fault = faultOfDataTests(program.symbols); !fault.empty())
      fail("symbols", fault);
    tensors();
    for (TensorId id : program.inputs)
      if (valid(id, "inputs"))
        written[id] = true;
    if (errors.empty())
      items(program.items);
    for (TensorId id : program.outputs)
      if (valid(id, "outputs") && !written[id])
        fail("%" + program.tensors[id].name, "an output that no equation writes");
    if (!errors.empty())
      return errors;
    return success();
  }

private:
  void fail(const std::string &where, const std::string &text) {
    if (errors.size() < 20)
      errors.push_back({Diag::BadIr, "expr " + program.name + ": " + where, text});
  }
  bool valid(TensorId id, const std::string &where) {
    if (id >= 0 && id < static_cast<TensorId>(program.tensors.size()))
      return true;
    fail(where, "refers to a tensor that does not exist");
    return false;
  }
  std::string ref(TensorId id) const { return "%" + program.tensors[id].name; }
  DType typeOf(TensorId id) const { return program.tensors[id].type; }

  void tensors() {
    std::set<std::string> names;
    for (size_t i = 0; i < program.tensors.size(); ++i) {
      const Tensor &t = program.tensors[i];
      if (!names.insert(t.name).second)
        fail("%" + t.name, "two tensors have this name");
      std::vector<SymbolId> used;
      for (const DimExpr &d : t.shape) {
        notNegative(d, "%" + t.name, "a dimension");
        d.collectSymbols(used);
      }
      if (std::string test = dataTestAmong(used, program.symbols); !test.empty())
        fail("%" + t.name, "uses " + test);
      if ((t.kind == TensorKind::Constant) != (t.constant != nullptr))
        fail("%" + t.name, "constants have data, other tensors have none");
      if (t.defaultValue && t.kind != TensorKind::Input)
        fail("%" + t.name, "only an input has a default value");
      written[i] = written[i] || t.constant;
      for (const ConstantRef &c : {t.constant, t.defaultValue})
        if (c && (c->type != t.type || Shape(c->dims.begin(), c->dims.end()) != t.shape))
          fail("%" + t.name, "type or shape differs from that of its data");
    }
  }

  void notNegative(const DimExpr &size, const std::string &where, const std::string &what) {
    if (size.isConst() && size.constValue() < 0)
      fail(where, what + " is " + size.str(program.symbols) + " long");
  }

  void reads(TensorId id, const std::string &where) {
    if (valid(id, where) && !written[id])
      fail(where, "reads " + ref(id) + " before it is written");
    else if (ofSteps.count(id) != 0)
      fail(where, "reads " + ref(id) + ", which only the steps of its scan have");
  }
  void writes(TensorId id, const std::string &where) {
    if (!valid(id, where))
      return;
    if (written[id])
      fail(where, "writes " + ref(id) + ", which has a value already");
    else if (program.tensors[id].kind != TensorKind::Temp &&
             program.tensors[id].kind != TensorKind::Output)
      fail(where, "writes " + ref(id) + ", which is neither a temp nor an output");
    written[id] = true;
    ofSteps.erase(id);
  }
  void sameType(TensorId a, TensorId b, const std::string &where) {
    if (valid(a, where) && valid(b, where) &&
        (typeOf(a) != typeOf(b) || program.tensors[a].shape != program.tensors[b].shape))
      fail(where, ref(a) + " and " + ref(b) + " must have one type and shape");
  }
  void scalar(TensorId id, DType type, const std::string &where) {
    if (valid(id, where) && (typeOf(id) != type || !program.tensors[id].shape.empty()))
      fail(where, ref(id) + " must be a scalar of type " + std::string(name(type)));
  }

  void node(const Equation &e, NodeId id, const std::string &where) {
    const Scalar &s = e.body[id];
    for (NodeId a : s.args)
      if (a < 0 || a >= id)
        return fail(where, "operands come before their users");
    auto type = [&](size_t i) { return e.body[s.args[i]].type; };
    if (s.op != ScalarOp::Read && s.op != ScalarOp::ReadIf &&
        static_cast<int>(s.args.size()) != arity(s.op))
      return fail(where, std::string(mnemonic(s.op)) + " has a wrong number of operands");
    switch (s.op) {
    case ScalarOp::Axis:
      if (s.index < 0 || s.index >= static_cast<int>(e.axes.size()))
        fail(where, "an axis that does not exist");
      return;
    case ScalarOp::Const:
    case ScalarOp::Dim: return;
    case ScalarOp::Step:
      if (!inScan)
        fail(where, "'step' outside a scan");
      return;
    case ScalarOp::State:
    case ScalarOp::Part:
      if (s.index < 0 || s.index >= static_cast<int>(e.states.size()) || s.type != e.accumulateType)
        fail(where, "a state that does not exist");
      return;
    case ScalarOp::Read:
    case ScalarOp::ReadIf: {
      size_t first = s.op == ScalarOp::ReadIf ? 2 : 0;
      reads(s.index, where);
      if (s.index < 0 || s.index >= static_cast<int>(program.tensors.size()))
        return;
      if (s.type != typeOf(s.index))
        fail(where, "reads " + ref(s.index) + " as another type");
      if (s.args.size() != first + program.tensors[s.index].shape.size())
        return fail(where, "reads " + ref(s.index) + " with a wrong number of indices");
      if (first && (type(0) != DType::Bool || type(1) != s.type))
        fail(where, "a conditional read needs a bool and an else-value of the tensor's type");
      for (size_t i = first; i < s.args.size(); ++i)
        if (type(i) != DType::I64)
          fail(where, "indices are i64");
      return;
    }
    case ScalarOp::Eq:
    case ScalarOp::Ne:
    case ScalarOp::Lt:
    case ScalarOp::Le:
      if (type(0) != type(1) || s.type != DType::Bool)
        fail(where, "a comparison has operands of one type and gives bool");
      return;
    case ScalarOp::IsNan:
    case ScalarOp::IsInf:
      if (s.type != DType::Bool)
        fail(where, "a test gives bool");
      return;
    case ScalarOp::Select:
      if (type(0) != DType::Bool || type(1) != s.type || type(2) != s.type)
        fail(where, "select takes a bool and two values of its type");
      return;
    case ScalarOp::Cast:
    case ScalarOp::CastSat: return;
    case ScalarOp::Bitcast:
      if (sizeInBytes(type(0)) != sizeInBytes(s.type))
        fail(where, "bitcast keeps the width");
      return;
    default:
      for (size_t i = 0; i < s.args.size(); ++i)
        if (type(i) != s.type)
          fail(where, std::string(mnemonic(s.op)) + " has operands of its own type");
    }
  }

  void axes(const Equation &e, const std::string &where) {
    std::set<std::string> names;
    for (const Axis &a : e.axes)
      if (!names.insert(a.name).second || kReserved.count(a.name) || nameToText(a.name) != a.name)
        fail(where, "axis names are distinct identifiers and no keywords: '" + a.name + "'");
    for (const Axis &a : e.axes)
      notNegative(a.extent, where, "axis " + a.name);
    notNegative(e.steps, where, "the number of steps");
    if (e.numSpatial < 0 || e.numSpatial > static_cast<int>(e.axes.size()) ||
        (e.kind != EquationKind::Reduction && e.kind != EquationKind::Opaque &&
         e.numReduction() != 0))
      fail(where, "only reductions and opaque equations have reduction axes");
  }

  void sizesAreKnown(const Equation &e, const std::string &where) {
    std::vector<SymbolId> used;
    collectSymbols(e, used);
    if (std::string test = dataTestAmong(used, program.symbols); !test.empty())
      fail(where, "uses " + test);
    for (SymbolId s : used)
      if (const Symbol &symbol = program.symbols[s]; symbol.isDataDependent() && !sized.count(s))
        fail(where, "uses the size '" + symbol.name + "' before it is known");
  }

  void equation(const Equation &e) {
    std::string where = "equation " + nameToText(e.name);
    if (!names.insert(e.name).second)
      fail(where, "two equations have this name");
    axes(e, where);
    sizesAreKnown(e, where);
    for (NodeId r : bodyRoots(e))
      if (r < 0 || r >= static_cast<NodeId>(e.body.nodes.size()))
        return fail(where, "a root that does not exist");
    if (const Nesting most = nestingOf(e.body);
        most.operations > kMostNested || most.guardedReads > kMostNestedReads)
      return fail(where, "more than " + nestedText());
    for (NodeId id : e.body.reachable(bodyRoots(e)))
      node(e, id, where);
    if (e.scatterPredicate != kNoNode && e.body[e.scatterPredicate].type != DType::Bool)
      fail(where, "the predicate is a bool");
    switch (e.kind) {
    case EquationKind::Map:
    case EquationKind::Reduction: dense(e, where); break;
    case EquationKind::Scatter: scatter(e, where); break;
    case EquationKind::Scan: return scan(e, where);
    case EquationKind::Opaque: opaque(e, where); break;
    }
    for (TensorId id : e.outputs)
      writes(id, where);
  }

  void dense(const Equation &e, const std::string &where) {
    bool reduction = e.kind == EquationKind::Reduction;
    const bool isCascade = !e.states.empty() || (reduction && e.monoid == Monoid::Cascade);
    size_t expected = !reduction ? e.outputs.size() : isArgMonoid(e.monoid) ? 2 : 1;
    for (const std::string &rule : isCascade ? cascadeProblems(e) : std::vector<std::string>())
      fail(where, rule);
    if (isCascade && inScan)
      fail(where, "a cascade cannot stand inside a scan");
    if (!isCascade &&
        (e.results.empty() || e.results.size() != expected || e.outputs.size() != expected))
      return fail(where,
                  "one result for each output (argmax and argmin: two, other reductions: one)");
    for (size_t i = 0; i < e.outputs.size(); ++i) {
      if (!valid(e.outputs[i], where))
        continue;
      DType wanted = !reduction ? typeOf(e.outputs[i]) : i == 0 ? e.accumulateType : DType::I64;
      DType type = isCascade ? wanted : e.body[e.results[i]].type;
      if (type != wanted)
        fail(where, "the value for " + ref(e.outputs[i]) + " is " + std::string(name(type)) +
                        ", not " + std::string(name(wanted)));
      const Shape &shape = program.tensors[e.outputs[i]].shape;
      if (static_cast<int>(shape.size()) != e.numSpatial)
        fail(where, ref(e.outputs[i]) + " needs one spatial axis for each dimension");
      else
        for (int d = 0; d < e.numSpatial; ++d)
          if (e.axes[d].extent != shape[d] && !hasRoom(e, e.axes[d].extent, shape[d]))
            fail(where, "axis " + e.axes[d].name + " is " + e.axes[d].extent.str(program.symbols) +
                            " long, dimension " + std::to_string(d) + " of " + ref(e.outputs[i]) +
                            " " + shape[d].str(program.symbols));
    }
  }

  /// A cache, whose rows in place are not stored, may have room for more rows.
  bool hasRoom(const Equation &e, const DimExpr &extent, const DimExpr &size) const {
    return e.kind == EquationKind::Map && e.scatterPredicate != kNoNode &&
           (size - extent).range(program.symbols).min >= 0;
  }

  void scatter(const Equation &e, const std::string &where) {
    if (e.outputs.size() != 1 || e.results.size() != 1 || !valid(e.outputs[0], where))
      return fail(where, "a scatter has one output and one result");
    reads(e.base, where);
    sameType(e.base, e.outputs[0], where);
    if (e.body[e.results[0]].type != typeOf(e.outputs[0]))
      fail(where, "the value is not of the output's type");
    if (e.scatterIndex.size() != program.tensors[e.outputs[0]].shape.size())
      fail(where, "one index for each dimension of the output");
    for (NodeId i : e.scatterIndex)
      if (e.body[i].type != DType::I64)
        fail(where, "indices are i64");
  }

  void opaque(const Equation &e, const std::string &where) {
    bool exist = true;
    for (TensorId id : e.opaqueInputs) {
      reads(id, where);
      exist = exist && valid(id, where);
    }
    for (TensorId id : e.outputs)
      exist = exist && valid(id, where);
    if (exist)
      for (const std::string &rule : checkOpaque(e, program))
        fail(where, rule);
  }

  /// What is stacked from a later step on has no place in `stacked` before.
  void stacksLater(const Equation &e, const ScanOutput &o, const std::string &where) {
    const DimExpr left = e.steps - DimExpr(o.first) - program.tensors[o.stacked].shape[0];
    if (e.reversed || left.range(program.symbols).min < 0)
      fail(where, ref(o.stacked) + " does not hold steps of the scan from " +
                      std::to_string(o.first) + " on");
    bool isRead = std::any_of(e.carries.begin(), e.carries.end(),
                              [&](const ScanCarry &c) { return c.next == o.perStep; });
    for (const Equation &inner : e.scanBody)
      for (NodeId id : inner.body.reachable(bodyRoots(inner)))
        isRead = isRead ||
                 ((inner.body[id].op == ScalarOp::Read || inner.body[id].op == ScalarOp::ReadIf) &&
                  inner.body[id].index == o.perStep);
    if (isRead)
      fail(where, ref(o.perStep) + " is stacked from a later step on and read by nothing else");
  }

  void scan(const Equation &e, const std::string &where) {
    std::vector<TensorId> outputs;
    for (const ScanCarry &c : e.carries) {
      reads(c.init, where);
      sameType(c.init, c.previous, where);
      sameType(c.init, c.next, where);
      if (c.final >= 0) {
        sameType(c.init, c.final, where);
        outputs.push_back(c.final);
      }
      writes(c.previous, where);
    }
    inScan = true;
    std::set<TensorId> made;
    for (const Equation &inner : e.scanBody) {
      made.insert(inner.outputs.begin(), inner.outputs.end());
      if (inner.kind == EquationKind::Map || inner.kind == EquationKind::Reduction)
        equation(inner);
      else
        fail(where, "a scan's body holds maps and reductions, and " + inner.name +
                        " is neither: write the scan as a loop (loop " + e.name +
                        " trip %count iteration %step, with %step[] for step), whose body may "
                        "hold it, or compute it behind the scan from what the scan stacks");
    }
    inScan = false;
    // States move on one after the other, and what is stacked lies with the values of other steps.
    auto isMade = [&](TensorId t) {
      if (valid(t, where) && made.count(t) == 0)
        fail(where, "a step makes what it hands on or stacks; " + ref(t) + " is made elsewhere");
    };
    for (const ScanCarry &c : e.carries)
      isMade(c.next);
    for (const ScanOutput &o : e.scanOutputs) {
      isMade(o.perStep);
      outputs.push_back(o.stacked);
      if (!valid(o.stacked, where) || !valid(o.perStep, where))
        continue;
      Shape expected = program.tensors[o.perStep].shape;
      const Shape &stacked = program.tensors[o.stacked].shape;
      expected.insert(expected.begin(), o.first >= 0 && !stacked.empty() ? stacked[0] : e.steps);
      if (stacked != expected || typeOf(o.stacked) != typeOf(o.perStep))
        fail(where,
             ref(o.stacked) + " must be " + ref(o.perStep) + " with a leading axis of the steps");
      else if (o.first >= 0)
        stacksLater(e, o, where);
    }
    if (outputs != e.outputs)
      fail(where, "outputs are the finals, then the stacked tensors");
    for (TensorId id : e.outputs)
      writes(id, where);
    for (const ScanCarry &c : e.carries)
      made.insert(c.previous);
    ofSteps.merge(made);
  }

  void items(const std::vector<Item> &list) {
    for (const Item &item : list) {
      if (const auto *e = std::get_if<Equation>(&item.value))
        equation(*e);
      else
        control(std::get<Control>(item.value));
    }
  }

  void size(const Control &c, const std::string &where) {
    reads(c.tripCount, where);
    scalar(c.tripCount, DType::I64, where);
    if (c.symbol < 0 || static_cast<size_t>(c.symbol) >= program.symbols.size() ||
        !program.symbols[c.symbol].isDataDependent())
      return fail(where, "gives a symbol a value that does not depend on data");
    if (!given.insert(c.symbol).second)
      fail(where, "the symbol has a value already");
    sized.insert(c.symbol);
  }

  void control(const Control &c) {
    std::string where = (c.kind == Control::Kind::If     ? "if "
                         : c.kind == Control::Kind::Loop ? "loop "
                                                         : "size ") +
                        nameToText(c.name);
    if (!names.insert(c.name).second)
      fail(where, "two items have this name");
    if (c.kind == Control::Kind::Size)
      return size(c, where);
    // What a branch or an iteration writes is not visible behind it, nor are sizes.
    auto before = written;
    const std::set<SymbolId> sizedBefore = sized;
    if (c.kind == Control::Kind::If) {
      reads(c.condition, where);
      if (c.condition >= 0)
        scalar(c.condition, DType::Bool, where);
      auto branch = [&](const std::vector<Item> &list, const std::vector<TensorId> &yields) {
        items(list);
        if (yields.size() != c.results.size())
          fail(where, "one yield for each result");
        for (size_t i = 0; i < yields.size() && i < c.results.size(); ++i) {
          reads(yields[i], where);
          sameType(yields[i], c.results[i], where);
        }
        written = before;
        sized = sizedBefore;
      };
      branch(c.thenItems, c.thenYields);
      branch(c.elseItems, c.elseYields);
    } else {
      if (c.carriedInit.size() != c.results.size() || c.carriedIn.size() != c.results.size() ||
          c.carriedOut.size() != c.results.size())
        return fail(where, "carried lists and results are equally long");
      for (TensorId id : {c.tripCount, c.condition})
        if (id >= 0)
          reads(id, where);
      if (c.tripCount >= 0)
        scalar(c.tripCount, DType::I64, where);
      if (c.condition >= 0)
        scalar(c.condition, DType::Bool, where);
      for (TensorId id : c.carriedInit)
        reads(id, where);
      for (TensorId id : c.carriedIn)
        writes(id, where);
      if (c.iteration >= 0) {
        writes(c.iteration, where);
        scalar(c.iteration, DType::I64, where);
      }
      items(c.thenItems);
      for (TensorId id : c.carriedOut)
        reads(id, where);
      if (c.nextCondition >= 0) {
        reads(c.nextCondition, where);
        scalar(c.nextCondition, DType::Bool, where);
      }
      for (size_t i = 0; i < c.results.size(); ++i)
        for (TensorId other : {c.carriedInit[i], c.carriedOut[i], c.results[i]})
          sameType(c.carriedIn[i], other, where);
      written = before;
      sized = sizedBefore;
    }
    for (TensorId id : c.results)
      writes(id, where);
  }

  const ExprProgram &program;
  std::vector<bool> written;
  std::set<TensorId> ofSteps; // of scans in front: another value in each of their steps
  std::set<std::string> names;
  std::set<SymbolId> sized, given; // symbols that depend on data and have a value here, or anywhere
  bool inScan = false;
  Diagnostics errors;
};

} // namespace

Status verify(const ExprProgram &program) { return Verifier(program).run(); }

} // namespace fusec
