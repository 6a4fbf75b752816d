// Reads the form that ExprPrint.cpp describes.
#include "Expr/BodyText.h"
#include "Expr/Expr.h"
#include "Graph/ConstantText.h"
#include "Support/TypeText.h"

namespace fusec {
namespace {

class Parser {
public:
  Parser(std::string_view text, const std::string &fileName, const ConstantStore &store)
      : in(text, fileName), store(store) {}

  Result<ExprProgram> run() {
    FUSEC_CHECK(in.expect("expr"));
    FUSEC_TRY(program.name, in.nameText());
    FUSEC_TRY(program.symbols, parseSymbols(in));
    while (in.accept("tensor"))
      FUSEC_CHECK(tensor());
    FUSEC_CHECK(in.expect("inputs"));
    FUSEC_TRY(program.inputs, list());
    FUSEC_CHECK(in.expect("outputs"));
    FUSEC_TRY(program.outputs, list());
    while (!in.atEnd()) {
      FUSEC_TRY(Item i, item(0));
      program.items.push_back(std::move(i));
    }
    return std::move(program);
  }

private:
  static constexpr int kMaxNesting = 64;

  Status tensor() {
    Tensor t;
    FUSEC_TRY(t.name, in.nameAfter("%"));
    FUSEC_CHECK(in.expect(":"));
    FUSEC_CHECK(parseType(in, program.symbols, t.type, t.shape));
    FUSEC_TRY(std::string kind, in.identifier());
    if (kind == "input" || kind == "temp" || kind == "output") {
      t.kind = kind == "input"  ? TensorKind::Input
               : kind == "temp" ? TensorKind::Temp
                                : TensorKind::Output;
      if (t.kind == TensorKind::Input && in.accept("default")) {
        FUSEC_TRY(t.defaultValue, parseConstantData(in, t.type, t.shape, store, "a default value"));
      }
    } else if (kind == "constant") {
      t.kind = TensorKind::Constant;
      FUSEC_TRY(t.constant, parseConstantData(in, t.type, t.shape, store));
    } else {
      return in.error("a tensor is an input, a constant, a temp or an output, not '" + kind + "'");
    }
    if (!tensors.emplace(t.name, static_cast<TensorId>(program.tensors.size())).second)
      return in.error("%" + nameToText(t.name) + " is declared twice");
    program.addTensor(std::move(t));
    return success();
  }

  Result<TensorId> ref() {
    FUSEC_TRY(std::string name, in.nameAfter("%"));
    auto it = tensors.find(name);
    if (it == tensors.end())
      return in.error("there is no tensor %" + nameToText(name));
    return it->second;
  }

  Result<std::vector<TensorId>> list() {
    FUSEC_CHECK(in.expect("("));
    return in.list(")", [&] { return ref(); });
  }

  Result<std::vector<std::string>> origin() {
    std::vector<std::string> out;
    while (in.accept("@")) {
      FUSEC_TRY(std::string n, in.nameText());
      out.push_back(std::move(n));
    }
    return out;
  }

  Result<Item> item(int nesting) {
    if (nesting > kMaxNesting)
      return in.error("control flow is nested deeper than " + std::to_string(kMaxNesting));
    if (in.peekIs("if") || in.peekIs("loop") || in.peekIs("size")) {
      FUSEC_TRY(Control c, control(nesting));
      return Item{std::move(c)};
    }
    FUSEC_TRY(Equation e, equation(nullptr));
    return Item{std::move(e)};
  }

  Status axes(Equation &e) {
    FUSEC_CHECK(in.expect("["));
    bool reduction = false;
    auto mark = [&] {
      if (!reduction)
        e.numSpatial = static_cast<int>(e.axes.size());
      reduction = true;
    };
    while (!in.peekIs("]")) {
      if (in.accept(";"))
        mark();
      else if (!e.axes.empty())
        FUSEC_CHECK(in.expect(","));
      Axis a;
      FUSEC_TRY(a.name, in.identifier());
      FUSEC_CHECK(in.expect(":"));
      FUSEC_TRY(a.extent, parseDim(in, ",;]", program.symbols));
      e.axes.push_back(std::move(a));
    }
    mark();
    return in.expect("]");
  }

  /// "%out[at...] = value where predicate", once for every output.
  Status assignments(Equation &e) {
    BodyParser names{[&](std::string_view n) -> std::optional<int32_t> {
                       for (size_t i = 0; i < e.axes.size(); ++i)
                         if (e.axes[i].name == n)
                           return static_cast<int32_t>(i);
                       return std::nullopt;
                     },
                     [&](std::string_view n) -> std::optional<std::pair<int32_t, DType>> {
                       auto it = tensors.find(std::string(n));
                       if (it == tensors.end())
                         return std::nullopt;
                       return std::make_pair(it->second, program.tensors[it->second].type);
                     },
                     &program.symbols};
    const bool isCascade = e.kind == EquationKind::Reduction && e.monoid == Monoid::Cascade;
    if (isCascade)
      names.stateType = e.accumulateType;
    BodyReader reader(in, e.body, names);
    FUSEC_CHECK(reader.readLets());
    if (isCascade)
      return cascade(e, reader);
    while (in.peekIs("%")) {
      FUSEC_TRY(TensorId out, ref());
      bool accumulated = e.kind == EquationKind::Reduction && e.results.empty();
      if (e.kind == EquationKind::Scatter) {
        FUSEC_TRY(e.scatterIndex, reader.indices());
      }
      FUSEC_CHECK(in.expect("="));
      FUSEC_TRY(NodeId value,
                reader.expression(accumulated ? e.accumulateType : program.tensors[out].type));
      e.outputs.push_back(out);
      e.results.push_back(value);
      if ((e.kind == EquationKind::Scatter || e.kind == EquationKind::Map) && in.accept("where")) {
        FUSEC_TRY(e.scatterPredicate, reader.expression(DType::Bool));
      }
    }
    return success();
  }

  Result<Monoid> monoid() {
    FUSEC_TRY(std::string word, in.identifier());
    auto found = parseMonoid(word);
    if (!found)
      return in.error("'" + word + "' is no monoid");
    return *found;
  }

  /// States, those without an output first, then their corrections.
  Status cascade(Equation &e, BodyReader &reader) {
    while (in.peekIs("state") || in.peekIs("%")) {
      if (!in.accept("state")) {
        FUSEC_TRY(TensorId out, ref());
        FUSEC_CHECK(in.expect("="));
        e.outputs.push_back(out);
      } else if (!e.outputs.empty()) {
        return in.error("states without an output come first");
      }
      CascadeState state;
      FUSEC_TRY(state.monoid, monoid());
      FUSEC_TRY(NodeId value, reader.expression(e.accumulateType));
      e.states.push_back(state);
      e.results.push_back(value);
    }
    while (in.accept("correct")) {
      FUSEC_TRY(int64_t s, in.integer());
      if (s < 0 || s >= static_cast<int64_t>(e.states.size()))
        return in.error("there is no state " + std::to_string(s));
      FUSEC_CHECK(in.expect("="));
      FUSEC_TRY(e.states[s].correction, reader.expression(e.accumulateType));
    }
    return success();
  }

  Result<Equation> equation(const DimExpr *steps) {
    Equation e;
    FUSEC_TRY(std::string kind, in.identifier());
    FUSEC_TRY(e.name, in.nameText());
    if (kind == "scan")
      return steps ? Result<Equation>(in.error("a scan cannot stand inside a scan"))
                   : scan(std::move(e));
    if (kind == "opaque")
      return opaque(std::move(e));
    if (kind == "map") {
      FUSEC_CHECK(axes(e));
    } else if (kind == "reduction") {
      e.kind = EquationKind::Reduction;
      FUSEC_CHECK(axes(e));
      FUSEC_TRY(e.monoid, monoid());
      FUSEC_TRY(e.accumulateType, parseElementType(in));
    } else if (kind == "scatter") {
      e.kind = EquationKind::Scatter;
      FUSEC_CHECK(axes(e));
      FUSEC_TRY(std::string word, in.identifier());
      auto combiner = parseCombiner(word);
      if (!combiner)
        return in.error("'" + word + "' is no combiner");
      e.combiner = *combiner;
      FUSEC_CHECK(in.expect("base"));
      FUSEC_TRY(e.base, ref());
      if (in.accept("kept")) {
        FUSEC_CHECK(in.expect("("));
        FUSEC_TRY(e.steps, parseDim(in, ")", program.symbols));
        FUSEC_CHECK(in.expect(")"));
      }
    } else {
      return in.error("expected map, reduction, scatter, scan, opaque, if or loop, found '" + kind +
                      "'");
    }
    FUSEC_TRY(e.onnxNodes, origin());
    setRanges(e, program.symbols, steps);
    FUSEC_CHECK(assignments(e));
    return e;
  }

  Result<Equation> scan(Equation e) {
    e.kind = EquationKind::Scan;
    FUSEC_CHECK(in.expect("steps"));
    FUSEC_CHECK(in.expect("("));
    FUSEC_TRY(e.steps, parseDim(in, ")", program.symbols));
    FUSEC_CHECK(in.expect(")"));
    e.reversed = in.accept("reversed");
    FUSEC_TRY(e.onnxNodes, origin());
    e.body.symbolTable = program.symbols;
    while (in.accept("carry")) {
      ScanCarry c{-1, -1, -1, -1};
      FUSEC_TRY(c.previous, ref());
      FUSEC_CHECK(in.expect("="));
      FUSEC_TRY(c.init, ref());
      FUSEC_CHECK(in.expect("next"));
      FUSEC_TRY(c.next, ref());
      if (in.accept("final")) {
        FUSEC_TRY(c.final, ref());
        e.outputs.push_back(c.final);
      }
      e.carries.push_back(c);
    }
    while (in.accept("stack")) {
      ScanOutput o{-1, -1};
      FUSEC_TRY(o.perStep, ref());
      FUSEC_CHECK(in.expect("->"));
      FUSEC_TRY(o.stacked, ref());
      if (in.accept("from")) {
        FUSEC_TRY(o.first, in.integer());
      }
      e.outputs.push_back(o.stacked);
      e.scanOutputs.push_back(o);
    }
    while (!in.accept("end")) {
      FUSEC_TRY(Equation inner, equation(&e.steps));
      e.scanBody.push_back(std::move(inner));
    }
    return e;
  }

  Result<Equation> opaque(Equation e) {
    e.kind = EquationKind::Opaque;
    FUSEC_CHECK(axes(e));
    setRanges(e, program.symbols);
    FUSEC_TRY(e.opaque, in.nameText());
    FUSEC_CHECK(in.expect("{"));
    while (!in.peekIs("}")) {
      if (!e.opaqueAttributes.empty())
        FUSEC_CHECK(in.expect(","));
      FUSEC_TRY(std::string key, in.nameText());
      FUSEC_CHECK(in.expect("="));
      FUSEC_TRY(int64_t value, in.integer());
      if (!e.opaqueAttributes.emplace(key, value).second)
        return in.error("attribute '" + key + "' is given twice");
    }
    FUSEC_CHECK(in.expect("}"));
    FUSEC_TRY(e.opaqueInputs, list());
    FUSEC_CHECK(in.expect("->"));
    FUSEC_TRY(e.outputs, list());
    FUSEC_TRY(e.onnxNodes, origin());
    return e;
  }

  Result<Control> control(int nesting) {
    Control c;
    if (in.accept("size"))
      return size(std::move(c));
    c.kind = in.accept("if") ? Control::Kind::If : Control::Kind::Loop;
    if (c.kind == Control::Kind::Loop) {
      FUSEC_CHECK(in.expect("loop"));
      return loop(std::move(c), nesting);
    }
    FUSEC_TRY(c.name, in.nameText());
    FUSEC_TRY(c.condition, ref());
    FUSEC_TRY(c.onnxNodes, origin());
    FUSEC_CHECK(branch(c.thenItems, c.thenYields, nesting));
    FUSEC_CHECK(in.expect("else"));
    FUSEC_CHECK(branch(c.elseItems, c.elseYields, nesting));
    FUSEC_CHECK(in.expect("end"));
    FUSEC_CHECK(in.expect("->"));
    FUSEC_TRY(c.results, list());
    return c;
  }

  Status branch(std::vector<Item> &items, std::vector<TensorId> &yields, int nesting) {
    while (!in.accept("yield")) {
      FUSEC_TRY(Item i, item(nesting + 1));
      items.push_back(std::move(i));
    }
    FUSEC_TRY(yields, list());
    return success();
  }

  Result<Control> size(Control c) {
    c.kind = Control::Kind::Size;
    FUSEC_TRY(c.name, in.nameText());
    FUSEC_TRY(c.tripCount, ref());
    FUSEC_CHECK(in.expect("symbol"));
    FUSEC_TRY(const std::string name, in.nameText());
    const std::optional<SymbolId> symbol = symbolNamed(name, program.symbols);
    if (!symbol)
      return in.error("there is no symbol '" + name + "'");
    c.symbol = *symbol;
    c.isTested = in.accept("tested");
    FUSEC_TRY(c.onnxNodes, origin());
    return c;
  }

  Result<Control> loop(Control c, int nesting) {
    FUSEC_TRY(c.name, in.nameText());
    std::pair<const char *, TensorId *> optional[] = {{"trip", &c.tripCount},
                                                      {"condition", &c.condition},
                                                      {"iteration", &c.iteration},
                                                      {"next", &c.nextCondition}};
    for (auto &[word, id] : optional)
      if (in.accept(word)) {
        FUSEC_TRY(*id, ref());
      }
    FUSEC_TRY(c.onnxNodes, origin());
    while (in.accept("carry")) {
      TensorId init, previous, next, result;
      FUSEC_TRY(previous, ref());
      FUSEC_CHECK(in.expect("="));
      FUSEC_TRY(init, ref());
      FUSEC_CHECK(in.expect("next"));
      FUSEC_TRY(next, ref());
      FUSEC_CHECK(in.expect("final"));
      FUSEC_TRY(result, ref());
      c.carriedIn.push_back(previous);
      c.carriedInit.push_back(init);
      c.carriedOut.push_back(next);
      c.results.push_back(result);
    }
    while (!in.accept("end")) {
      FUSEC_TRY(Item i, item(nesting + 1));
      c.thenItems.push_back(std::move(i));
    }
    return c;
  }

  TextReader in;
  const ConstantStore &store;
  ExprProgram program;
  std::map<std::string, TensorId> tensors;
};

} // namespace

Result<ExprProgram> parseExpr(std::string_view text, const std::string &fileName,
                              const ConstantStore &store) {
  return Parser(text, fileName, store).run();
}

} // namespace fusec
