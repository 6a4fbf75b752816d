// If, Loop and Scan become Control items: all tensors are in the one table of the program, so captures need
// nothing. A Loop's or Scan's stacked outputs are carried tensors into which each trip scatters its slice.
#include "Expr/lower/Lowering.h"
#include "Support/Diag.h"

#include <algorithm>
#include <set>

namespace fusec::lower {
namespace {

/// A tensor of rank 0 that holds the one element of `value`.
TensorId asScalar(NodeLowering &n, TensorId value, const std::string &suffix) {
  if (n.shapeOf(value).empty())
    return value;
  return n.map(n.temp(suffix, n.typeOf(value), {}),
               [&](EquationBuilder &b) { return b.scalar(value); });
}

/// What is written to several places, or was not computed here, is copied: carried tensors are updated one
/// after the other, so that no next value may alias another's current one.
class Yields {
public:
  Yields(NodeLowering &n, const std::vector<Item> &body) : n(n) {
    for (const Item &item : body) {
      if (const auto *e = std::get_if<Equation>(&item.value))
        fresh.insert(e->outputs.begin(), e->outputs.end());
      else
        fresh.insert(std::get<Control>(item.value).results.begin(),
                     std::get<Control>(item.value).results.end());
    }
  }
  /// As a tensor of this shape, which its own is equal to, though it may be another expression.
  TensorId take(TensorId t, const Shape &shape) {
    if (n.shapeOf(t) == shape && fresh.erase(t))
      return t;
    TensorId copied = n.temp("yield", n.typeOf(t), shape);
    n.copy(copied, t);
    return copied;
  }

private:
  NodeLowering &n;
  std::set<TensorId> fresh;
};

Status sameShape(NodeLowering &n, const Shape &a, const Shape &b, const char *what) {
  if (a == b)
    return success();
  const auto &symbols = n.l.program.symbols;
  return n.fail(std::string(what) + " changes its shape: " + str(a, symbols) + " and " +
                    str(b, symbols),
                Diag::UnsupportedShape);
}

Status ifElse(NodeLowering &n) {
  Control c{Control::Kind::If, "", {n.node.name}, -1, {}, {}, {}, {}, {}, -1, -1, -1, {}, {}, {}};
  c.condition = asScalar(n, n.in(0), "condition");
  auto branch = [&](const Region &region, std::vector<TensorId> &yields) {
    return n.l.nested([&] {
      n.l.lowerNodes(region.nodes);
      for (size_t i = 0; i < region.outputs.size(); ++i) {
        if (!n.wants(i))
          continue;
        yields.push_back(n.l.tensor(region.outputs[i]));
        if (n.shapeOf(yields.back()) == n.outShape(i))
          continue;
        // They are equal in runs that take the branch.
        const TensorId copied = n.temp("chosen", n.typeOf(yields.back()), n.outShape(i));
        n.copy(copied, yields.back());
        yields.back() = copied;
      }
    });
  };
  c.thenItems = branch(n.node.regions[0], c.thenYields);
  c.elseItems = branch(n.node.regions[1], c.elseYields);
  for (size_t i = 0; i < n.node.outputs.size(); ++i)
    if (n.wants(i))
      c.results.push_back(n.out(i));
  c.name = n.l.program.tensors[c.results[0]].name;
  n.l.items->push_back({std::move(c)});
  return success();
}

/// Whether the region or one inside it uses the value.
bool reads(const Region &region, ValueId id) {
  auto has = [id](const std::vector<ValueId> &list) {
    return std::find(list.begin(), list.end(), id) != list.end();
  };
  if (has(region.outputs))
    return true;
  for (const Node &node : region.nodes) {
    if (has(node.inputs))
      return true;
    for (const Region &inner : node.regions)
      if (has(inner.captures))
        return true;
  }
  return false;
}

/// True when the value is the constant true, or the region's own condition passed on.
bool alwaysTrue(const Graph &g, const Region &region, ValueId id, ValueId conditionIn) {
  if (id == conditionIn)
    return true;
  const Value &v = g.value(id);
  if (v.constant)
    return v.constant->intAt(0) != 0;
  if (!v.known.empty())
    return v.known[0].isConst() && v.known[0].constValue() != 0;
  for (const Node &node : region.nodes)
    if (node.op == OpKind::Identity && node.outputs[0] == id)
      return alwaysTrue(g, region, node.inputs[0], conditionIn);
  return false;
}

/// Builds one Control::Loop.
class LoopBuilder {
public:
  explicit LoopBuilder(NodeLowering &n)
      : n(n),
        c{Control::Kind::Loop, "", {n.node.name}, -1, {}, {}, {}, {}, {}, -1, -1, -1, {}, {}, {}} {
    c.iteration = n.temp("iteration", DType::I64, {});
  }
  NodeLowering &n;
  Control c;

  Status carry(TensorId init, TensorId current, TensorId result) {
    FUSEC_CHECK(sameShape(n, n.shapeOf(init), n.shapeOf(current), "a carried value"));
    FUSEC_CHECK(sameShape(n, n.shapeOf(current), n.shapeOf(result), "a carried value"));
    c.carriedInit.push_back(init);
    c.carriedIn.push_back(current);
    c.results.push_back(result);
    return success();
  }
  /// Before the loop: a zeroed tensor for stacked results along `axis`. In the body: see writeSlice.
  void stack(size_t output, size_t axis, bool backwards) {
    TensorId result = n.out(output);
    TensorId zero =
        n.map(n.temp("stack" + std::to_string(output), n.typeOf(result), n.shapeOf(result)),
              [&](EquationBuilder &b) { return b.constant(n.typeOf(result), 0); });
    TensorId current =
        n.temp("stacked" + std::to_string(output), n.typeOf(result), n.shapeOf(result));
    c.carriedInit.push_back(zero);
    c.carriedIn.push_back(current);
    c.results.push_back(result);
    slices.push_back({current, axis, backwards, n.shapeOf(result)[axis]});
  }
  /// next = current with the slice at the iteration's place replaced by `slice`.
  TensorId writeSlice(size_t which, TensorId slice) {
    const Slice &s = slices[which];
    TensorId next = n.temp("stacking", n.typeOf(s.current), n.shapeOf(s.current));
    EquationBuilder b(n, EquationKind::Scatter, {next}, n.shapeOf(slice));
    b.equation.base = s.current;
    std::vector<Val> at = b.axes;
    at.insert(at.begin() + static_cast<std::ptrdiff_t>(s.axis), place(b, s.extent, s.backwards));
    for (Val i : at)
      b.equation.scatterIndex.push_back(i.id);
    b.finish({b.read(slice, b.axes)});
    return next;
  }
  Val place(EquationBuilder &b, const DimExpr &extent, bool backwards) {
    Val i = b.read(c.iteration, {});
    return backwards ? b.index(extent - 1) - i : i;
  }
  void finish() {
    c.name = n.l.program.tensors[c.results.empty() ? c.iteration : c.results[0]].name;
    n.l.items->push_back({std::move(c)});
  }

private:
  struct Slice {
    TensorId current;
    size_t axis;
    bool backwards;
    DimExpr extent;
  };
  std::vector<Slice> slices;
};

/// The result tensor of a carried value, a temp when nobody wants it.
TensorId resultOf(NodeLowering &n, size_t output, TensorId like) {
  return n.wants(output)
             ? n.out(output)
             : n.temp("final" + std::to_string(output), n.typeOf(like), n.shapeOf(like));
}

Status loop(NodeLowering &n) {
  const Region &body = n.node.regions[0];
  const Graph &g = n.l.graph;
  size_t carried = body.inputs.size() - 2, stacked = body.outputs.size() - 1 - carried;
  LoopBuilder loop(n);
  Control &c = loop.c;
  if (n.has(0))
    c.tripCount = asScalar(n, n.in(0), "trips");
  bool startsTrue = !n.has(1) || (n.inValue(1).constant && n.inValue(1).constant->intAt(0));
  if (!startsTrue)
    c.condition = asScalar(n, n.in(1), "condition");
  bool continues = alwaysTrue(g, body, body.outputs[0], body.inputs[1]);

  for (size_t i = 0; i < carried; ++i)
    FUSEC_CHECK(
        loop.carry(n.in(2 + i), n.l.tensor(body.inputs[2 + i]), resultOf(n, i, n.in(2 + i))));
  for (size_t i = 0; i < stacked; ++i) {
    size_t output = carried + i;
    if (!n.wants(output))
      continue;
    std::optional<DimExpr> trips;
    if (n.has(0) && n.inValue(0).constant)
      trips = n.inValue(0).constant->intAt(0);
    else if (n.has(0) && !n.inValue(0).known.empty())
      trips = n.inValue(0).known[0];
    if (trips && trips->isConst() && trips->constValue() < 0)
      trips = 0;
    if (!continues || !startsTrue || !trips || *trips != n.outShape(output)[0])
      return n.fail("stacked outputs need a number of trips that follows from shapes and "
                    "constants, and a condition "
                    "that is always true",
                    Diag::UnsupportedShape);
    loop.stack(output, 0, false);
  }

  c.thenItems = n.l.nested([&] {
    // The model's own iteration and condition tensors are values of the region.
    if (reads(body, body.inputs[0]))
      n.reshape(n.l.tensor(body.inputs[0]), c.iteration);
    if (reads(body, body.inputs[1]))
      n.map(n.l.tensor(body.inputs[1]), [&](EquationBuilder &b) { return b.truth(true); });
    n.l.lowerNodes(body.nodes);
    size_t slice = 0;
    std::vector<TensorId> written;
    for (size_t i = 0; i < stacked; ++i)
      if (n.wants(carried + i))
        written.push_back(loop.writeSlice(slice++, n.l.tensor(body.outputs[1 + carried + i])));
    Yields yields(n, *n.l.items);
    for (size_t i = 0; i < carried; ++i)
      c.carriedOut.push_back(
          yields.take(n.l.tensor(body.outputs[1 + i]), n.shapeOf(c.carriedIn[i])));
    for (TensorId t : written)
      c.carriedOut.push_back(yields.take(t, n.shapeOf(t)));
    if (!continues)
      c.nextCondition = asScalar(n, n.l.tensor(body.outputs[0]), "next");
  });
  loop.finish();
  return success();
}

/// ONNX Scan: a Loop whose trips are the length of the scanned axis; each trip reads its slices.
Status scan(NodeLowering &n) {
  const Region &body = n.node.regions[0];
  auto numScan = static_cast<size_t>(n.node.intAttr("num_scan_inputs"));
  size_t carried = body.inputs.size() - numScan;
  const auto &inAxes = n.node.intsAttr("scan_input_axes"),
             &inDirections = n.node.intsAttr("scan_input_directions");
  const auto &outAxes = n.node.intsAttr("scan_output_axes"),
             &outDirections = n.node.intsAttr("scan_output_directions");
  LoopBuilder loop(n);
  Control &c = loop.c;
  const DimExpr &trips = n.shape(carried)[static_cast<size_t>(inAxes[0])];
  c.tripCount =
      n.map(n.temp("trips", DType::I64, {}), [&](EquationBuilder &b) { return b.index(trips); });
  for (size_t i = 0; i < carried; ++i)
    FUSEC_CHECK(loop.carry(n.in(i), n.l.tensor(body.inputs[i]), resultOf(n, i, n.in(i))));
  size_t stacked = body.outputs.size() - carried;
  for (size_t i = 0; i < stacked; ++i)
    if (n.wants(carried + i))
      loop.stack(carried + i, static_cast<size_t>(outAxes[i]), outDirections[i] != 0);

  c.thenItems = n.l.nested([&] {
    for (size_t i = 0; i < numScan; ++i) {
      auto axis = static_cast<std::ptrdiff_t>(inAxes[i]);
      n.map(n.l.tensor(body.inputs[carried + i]), [&](EquationBuilder &b) {
        std::vector<Val> at = b.axes;
        at.insert(at.begin() + axis, loop.place(b, trips, inDirections[i] != 0));
        return b.read(n.in(carried + i), at);
      });
    }
    n.l.lowerNodes(body.nodes);
    std::vector<TensorId> written;
    size_t slice = 0;
    for (size_t i = 0; i < stacked; ++i)
      if (n.wants(carried + i))
        written.push_back(loop.writeSlice(slice++, n.l.tensor(body.outputs[carried + i])));
    Yields yields(n, *n.l.items);
    for (size_t i = 0; i < carried; ++i)
      c.carriedOut.push_back(yields.take(n.l.tensor(body.outputs[i]), n.shapeOf(c.carriedIn[i])));
    for (TensorId t : written)
      c.carriedOut.push_back(yields.take(t, n.shapeOf(t)));
  });
  loop.finish();
  return success();
}

/// From here on the symbol stands for the number that the host reads.
Status dataSize(NodeLowering &n) {
  Control c;
  c.kind = Control::Kind::Size;
  c.symbol = *sizedSymbol(n.l.graph, n.node);
  const bool isTest = testsData(c, n.l.graph.symbols);
  c.name = n.l.uniqueName(n.node.name + (isTest ? ".indices" : ".size"));
  c.onnxNodes = {n.node.name};
  c.tripCount = n.in(0);
  c.isTested = speakOf(n.l.graph.sizeRules, c.symbol);
  const DimExpr size = DimExpr::symbol(c.symbol);
  n.l.items->push_back({std::move(c)});
  if (!isTest)
    n.map(n.out(), [&](EquationBuilder &b) { return b.index(size); });
  return success();
}

} // namespace

void addControlFlow(HandlerTable &table) {
  table[OpKind::If] = ifElse;
  table[OpKind::Loop] = loop;
  table[OpKind::Scan] = scan;
  table[OpKind::DataSize] = dataSize;
}

} // namespace fusec::lower
