#include "Reference/GraphInterpreter.h"

#include "Reference/OpCall.h"
#include "Reference/SymbolBinder.h"
#include "Support/Diag.h"

#include <memory>

namespace fusec {

namespace {

using TensorRef = std::shared_ptr<const TensorValue>;

std::string dimsText(const Dims &dims) {
  std::string text;
  for (int64_t d : dims)
    text += (text.empty() ? "" : "x") + std::to_string(d);
  return dims.empty() ? "[]" : text;
}

void collectUses(const Node &node, std::vector<ValueId> &uses) {
  for (ValueId v : node.inputs)
    if (v != kNoValue)
      uses.push_back(v);
  for (const Region &r : node.regions) {
    uses.insert(uses.end(), r.captures.begin(), r.captures.end());
    uses.insert(uses.end(), r.outputs.begin(), r.outputs.end());
    for (const Node &inner : r.nodes)
      collectUses(inner, uses);
  }
}

class Interpreter {
public:
  Interpreter(const Graph &graph, const GraphInterpreterOptions &options)
      : graph(graph), options(options), values(graph.values.size()), binder(graph.symbols) {}

  Result<std::vector<TensorValue>> run(const std::vector<TensorValue> &inputs) {
    const Region &body = graph.body;
    if (inputs.size() != body.inputs.size())
      return Diagnostic{Diag::ShapeMismatch, graph.name,
                        "expected " + std::to_string(body.inputs.size()) + " inputs, got " +
                            std::to_string(inputs.size())};
    // Plain symbols first, so that dims such as 2*n of other inputs can be checked.
    for (bool solve : {false, true})
      for (size_t i = 0; i < inputs.size(); ++i)
        if (Status bound = bindInput(body.inputs[i], inputs[i], solve); !bound.ok()) {
          const std::string rule =
              brokenRule(graph.sizeRules, graph.symbols, sizesOf(inputs), true);
          return rule.empty() ? bound.errors()
                              : Diagnostics{{Diag::ShapeMismatch, graph.name, rule}};
        }
    if (const std::optional<SymbolId> open = binder.define())
      return Diagnostic{Diag::ShapeMismatch, "size '" + graph.symbols[index(*open)].name + "'",
                        "has no value, or one outside its range, for these shapes"};
    runSizes = sizesOf(inputs);
    if (std::string rule = brokenRule(graph.sizeRules, graph.symbols, runSizes, false);
        !rule.empty())
      return Diagnostic{Diag::ShapeMismatch, graph.name, rule};
    for (size_t i = 0; i < inputs.size(); ++i)
      values[index(body.inputs[i])] = std::make_shared<TensorValue>(inputs[i]);

    std::vector<size_t> lastUse(values.size(), 0);
    std::vector<std::vector<ValueId>> uses(body.nodes.size());
    for (size_t n = 0; n < body.nodes.size(); ++n) {
      collectUses(body.nodes[n], uses[n]);
      for (ValueId v : uses[n])
        lastUse[index(v)] = n;
    }
    for (ValueId v : body.outputs)
      lastUse[index(v)] = body.nodes.size();
    for (size_t n = 0; n < body.nodes.size(); ++n) {
      FUSEC_CHECK(runNode(body.nodes[n]));
      if (options.observer)
        for (ValueId v : body.nodes[n].outputs)
          if (v != kNoValue)
            options.observer(v, *values[index(v)]);
      for (ValueId v : uses[n])
        if (lastUse[index(v)] == n)
          values[index(v)] = nullptr;
    }
    std::vector<TensorValue> outputs;
    for (ValueId v : body.outputs) {
      outputs.push_back(*get(v));
      outputs.back().round();
    }
    return outputs;
  }

private:
  static size_t index(ValueId v) { return static_cast<size_t>(v); }

  /// A value in scope; constants are converted at their first use.
  TensorRef get(ValueId v) {
    TensorRef &slot = values[index(v)];
    if (!slot && graph.value(v).constant)
      slot = std::make_shared<TensorValue>(toTensorValue(*graph.value(v).constant));
    assert(slot && "use before definition: the graph was not verified");
    return slot;
  }

  /// The symbols and inferred sizes as the inputs have them; what no input has alone as it follows from the others.
  std::vector<RunSize> sizesOf(const std::vector<TensorValue> &inputs) const {
    std::vector<RunSize> sizes(graph.symbols.size() + graph.sizeRules.inferred.size());
    auto take = [&](size_t size, size_t input, size_t axis) {
      if (axis < inputs[input].dims.size() && sizes[size].place.empty())
        sizes[size] = {
            inputs[input].dims[axis],
            dimensionText(graph.value(graph.body.inputs[input]).name, static_cast<int64_t>(axis))};
    };
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Value &v = graph.value(graph.body.inputs[i]);
      for (size_t d = 0; d < v.shape.size(); ++d)
        if (v.shape[d].op() == DimExpr::Op::Symbol)
          take(static_cast<size_t>(v.shape[d].symbolId()), i, d);
      for (size_t k = 0; k < graph.sizeRules.inferred.size(); ++k)
        for (const InferredSize::Place &p : graph.sizeRules.inferred[k].places)
          if (p.input == v.name)
            take(graph.symbols.size() + k, i, static_cast<size_t>(p.axis));
    }
    for (size_t s = 0; s < graph.symbols.size(); ++s)
      if (!sizes[s].value)
        sizes[s].value = binder.values()[s];
    return sizes;
  }

  Status bindInput(ValueId id, const TensorValue &t, bool solve) {
    const Value &v = graph.value(id);
    if (t.type != v.type)
      return Diagnostic{Diag::ShapeMismatch, "input '" + v.name + "'",
                        "expected type " + std::string(name(v.type)) + ", got " +
                            std::string(name(t.type))};
    if (!binder.bind(v.shape, t.dims, solve))
      return Diagnostic{Diag::ShapeMismatch, "input '" + v.name + "'",
                        "expected shape " + str(v.shape, graph.symbols) + ", got " +
                            dimsText(t.dims)};
    return success();
  }

  /// Defines a value. What the graph says of its type and shape must be true.
  Status define(ValueId id, TensorRef t) {
    const Value &v = graph.value(id);
    if (t->type != v.type || !binder.bind(v.shape, t->dims, true))
      return Diagnostic{Diag::InternalError, "value '" + v.name + "'",
                        "the graph says " + std::string(name(v.type)) + " " +
                            str(v.shape, graph.symbols) + ", computed is " +
                            std::string(name(t->type)) + " " + dimsText(t->dims)};
    values[index(id)] = std::move(t);
    return success();
  }

  Status runNodes(const Region &region) {
    for (const Node &n : region.nodes)
      FUSEC_CHECK(runNode(n));
    return success();
  }

  Status runNode(const Node &node) {
    if (node.op == OpKind::If)
      return runIf(node);
    if (node.op == OpKind::Loop)
      return runLoop(node);
    if (node.op == OpKind::Scan)
      return runScan(node);
    if (node.op == OpKind::DataSize)
      return runDataSize(node);
    OpFunction op = referenceOp(node.op);
    std::vector<TensorRef> held;
    OpCall call{graph, node, {}, binder.values()};
    for (ValueId v : node.inputs) {
      held.push_back(v == kNoValue ? nullptr : get(v));
      call.inputs.push_back(held.back().get());
    }
    if (!op)
      return call.fail("the reference interpreter has no such operator", Diag::UnsupportedOp);
    FUSEC_TRY(Outputs outs, op(call));
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue)
        continue;
      assert(i < outs.size());
      if (options.roundEachValue)
        outs[i].round();
      FUSEC_CHECK(define(node.outputs[i], std::make_shared<TensorValue>(std::move(outs[i]))));
    }
    return success();
  }

  Status runDataSize(const Node &node) {
    const SymbolId id = *sizedSymbol(graph, node);
    const Symbol &symbol = graph.symbols[static_cast<size_t>(id)];
    const TensorRef size = get(node.inputs[0]);
    const int64_t value = size->ints[0];
    const std::optional<int64_t> bound = binder.evaluate(*symbol.bound);
    if (!bound || value > *bound || !binder.set(id, value))
      return OpCall{graph, node, {}, binder.values()}.fail(
          "size '" + symbol.name + "' is " + std::to_string(value) + ", at most " +
              (bound ? std::to_string(*bound) : symbol.bound->str(graph.symbols)) + " are allowed",
          Diag::LimitExceeded);
    runSizes[index(id)].value = value;
    if (std::string rule = brokenRule(graph.sizeRules, graph.symbols, runSizes, false);
        !rule.empty())
      return Diagnostic{Diag::ShapeMismatch, graph.name, rule};
    return define(node.outputs[0], size);
  }

  Status runIf(const Node &node) {
    bool condition = get(node.inputs[0])->ints[0] != 0;
    const Region &region = node.regions[condition ? 0 : 1];
    FUSEC_CHECK(runNodes(region));
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (node.outputs[i] != kNoValue)
        FUSEC_CHECK(define(node.outputs[i], get(region.outputs[i])));
    return success();
  }

  /// A scalar of the region input's own rank (conditions are [] or [1]).
  TensorRef scalarFor(ValueId id, int64_t v) {
    TensorValue t(graph.value(id).type, Dims(graph.value(id).shape.size(), 1));
    t.ints[0] = v;
    return std::make_shared<TensorValue>(std::move(t));
  }

  /// Stacks the elements along a new axis; with none, the graph gives the shape.
  Result<TensorRef> stack(const Node &node, size_t output, const std::vector<TensorRef> &elements,
                          int64_t axis, bool reversed) {
    OpCall call{graph, node, {}, binder.values()};
    ValueId id = node.outputs[output];
    if (elements.empty()) {
      FUSEC_TRY(Dims dims, call.knownOutDims(output));
      return TensorRef(std::make_shared<TensorValue>(graph.value(id).type, dims));
    }
    auto n = static_cast<int64_t>(elements.size());
    Dims dims = elements[0]->dims;
    dims.insert(dims.begin() + axis, n);
    FUSEC_CHECK(call.checkSize(dims));
    auto out = std::make_shared<TensorValue>(elements[0]->type, dims);
    AxisView v(dims, axis);
    for (int64_t e = 0; e < n; ++e) {
      const TensorValue &t = *elements[static_cast<size_t>(reversed ? n - 1 - e : e)];
      if (t.dims != elements[0]->dims)
        return call.fail("iterations give scan outputs of different shapes", Diag::ShapeMismatch);
      for (int64_t o = 0; o < v.outer; ++o)
        for (int64_t i = 0; i < v.inner; ++i)
          out->copyElement(v.index(o, e, i), t, o * v.inner + i);
    }
    return TensorRef(out);
  }

  Status runLoop(const Node &node) {
    const Region &body = node.regions[0];
    int64_t trips = node.hasInput(0) ? get(node.inputs[0])->ints[0] : INT64_MAX;
    bool condition = node.hasInput(1) ? get(node.inputs[1])->ints[0] != 0 : true;
    size_t carried = body.inputs.size() - 2;
    std::vector<TensorRef> state;
    for (size_t i = 0; i < carried; ++i)
      state.push_back(get(node.inputs[2 + i]));
    std::vector<std::vector<TensorRef>> scans(body.outputs.size() - 1 - carried);
    SymbolBinder outside = binder;
    for (int64_t t = 0; condition && t < trips; ++t) {
      if (t == options.maxLoopTrips)
        return OpCall{graph, node, {}, binder.values()}.fail(
            "the loop runs more than " + std::to_string(t) + " times", Diag::LimitExceeded);
      binder = outside; // symbols of the body have new values in every iteration
      FUSEC_CHECK(define(body.inputs[0], scalarFor(body.inputs[0], t)));
      FUSEC_CHECK(define(body.inputs[1], scalarFor(body.inputs[1], 1)));
      for (size_t i = 0; i < carried; ++i)
        FUSEC_CHECK(define(body.inputs[2 + i], state[i]));
      FUSEC_CHECK(runNodes(body));
      condition = get(body.outputs[0])->ints[0] != 0;
      for (size_t i = 0; i < carried; ++i)
        state[i] = get(body.outputs[1 + i]);
      for (size_t i = 0; i < scans.size(); ++i)
        scans[i].push_back(get(body.outputs[1 + carried + i]));
    }
    binder = outside;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue)
        continue;
      TensorRef result = i < carried ? state[i] : nullptr;
      if (!result) {
        FUSEC_TRY(result, stack(node, i, scans[i - carried], 0, false));
      }
      FUSEC_CHECK(define(node.outputs[i], result));
    }
    return success();
  }

  Status runScan(const Node &node) {
    const Region &body = node.regions[0];
    auto numScans = static_cast<size_t>(node.intAttr("num_scan_inputs"));
    size_t states = node.inputs.size() - numScans;
    const auto &axes = node.intsAttr("scan_input_axes"),
               &directions = node.intsAttr("scan_input_directions"),
               &outAxes = node.intsAttr("scan_output_axes"),
               &outDirections = node.intsAttr("scan_output_directions");
    std::vector<TensorRef> state, sequences;
    for (size_t i = 0; i < states; ++i)
      state.push_back(get(node.inputs[i]));
    for (size_t i = 0; i < numScans; ++i)
      sequences.push_back(get(node.inputs[states + i]));
    int64_t steps = numScans ? sequences[0]->dims[static_cast<size_t>(axes[0])] : 0;
    std::vector<std::vector<TensorRef>> scans(body.outputs.size() - states);
    SymbolBinder outside = binder;
    for (int64_t t = 0; t < steps; ++t) {
      binder = outside;
      for (size_t i = 0; i < states; ++i)
        FUSEC_CHECK(define(body.inputs[i], state[i]));
      for (size_t i = 0; i < numScans; ++i) {
        const TensorValue &s = *sequences[i];
        AxisView v(s.dims, axes[i]);
        if (v.extent != steps)
          return OpCall{graph, node, {}, binder.values()}.fail("the scanned axes differ in length",
                                                               Diag::ShapeMismatch);
        int64_t at = directions[i] ? steps - 1 - t : t;
        Dims dims = s.dims;
        dims.erase(dims.begin() + axes[i]);
        auto element = std::make_shared<TensorValue>(s.type, dims);
        for (int64_t o = 0; o < v.outer; ++o)
          for (int64_t k = 0; k < v.inner; ++k)
            element->copyElement(o * v.inner + k, s, v.index(o, at, k));
        FUSEC_CHECK(define(body.inputs[states + i], element));
      }
      FUSEC_CHECK(runNodes(body));
      for (size_t i = 0; i < states; ++i)
        state[i] = get(body.outputs[i]);
      for (size_t i = 0; i < scans.size(); ++i)
        scans[i].push_back(get(body.outputs[states + i]));
    }
    binder = outside;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == kNoValue)
        continue;
      TensorRef result = i < states ? state[i] : nullptr;
      if (!result) {
        size_t k = i - states;
        FUSEC_TRY(result, stack(node, i, scans[k], outAxes[k], outDirections[k] != 0));
      }
      FUSEC_CHECK(define(node.outputs[i], result));
    }
    return success();
  }

  const Graph &graph;
  const GraphInterpreterOptions &options;
  std::vector<TensorRef> values; // by ValueId
  SymbolBinder binder;
  std::vector<RunSize> runSizes; // symbols and inferred sizes; of the data once they are told
};

} // namespace

Result<std::vector<TensorValue>> evaluate(const Graph &graph,
                                          const std::vector<TensorValue> &inputs,
                                          const GraphInterpreterOptions &options) {
  return Interpreter(graph, options).run(inputs);
}

ConstantEvaluator referenceEvaluator() {
  return [](const Graph &graph, const Node &node,
            const std::vector<ConstantRef> &inputs) -> Result<std::vector<ConstantRef>> {
    std::vector<std::optional<int64_t>> noSymbols(graph.symbols.size());
    std::vector<std::optional<TensorValue>> held(inputs.size());
    OpCall call{graph, node, {}, noSymbols};
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i])
        held[i] = toTensorValue(*inputs[i]);
      call.inputs.push_back(held[i] ? &*held[i] : nullptr);
    }
    OpFunction op = node.regions.empty() ? referenceOp(node.op) : nullptr;
    if (!op)
      return call.fail("is not evaluated at compile time", Diag::UnsupportedOp);
    FUSEC_TRY(Outputs outs, op(call));
    std::vector<ConstantRef> constants(node.outputs.size());
    for (size_t i = 0; i < constants.size(); ++i)
      if (node.outputs[i] != kNoValue)
        constants[i] = toConstant(outs[i]);
    return constants;
  };
}

} // namespace fusec
