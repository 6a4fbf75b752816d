#include "Support/TypeText.h"

#include "Support/DimProgram.h"
#include "Support/TunedSizes.h"

#include <bit>

namespace fusec {

Result<DType> parseElementType(TextReader &in) {
  FUSEC_TRY(std::string word, in.identifier());
  auto type = parseDType(word);
  if (!type)
    return in.error("'" + word + "' is no element type");
  return *type;
}

Result<DimExpr> parseDim(TextReader &in, std::string_view stops,
                         const std::vector<Symbol> &symbols) {
  std::string raw(in.rawUntil(stops));
  auto dim = DimExpr::parse(raw, symbols);
  if (!dim.ok())
    return in.error("'" + raw + "' is no dimension: " + dim.errors().front().text);
  return *dim;
}

Result<Shape> parseDims(TextReader &in, std::string_view close,
                        const std::vector<Symbol> &symbols) {
  const std::string stops = "," + std::string(close);
  return in.list(close, [&] { return parseDim(in, stops, symbols); });
}

Status parseType(TextReader &in, const std::vector<Symbol> &symbols, DType &type, Shape &shape) {
  FUSEC_TRY(type, parseElementType(in));
  FUSEC_CHECK(in.expect("["));
  FUSEC_TRY(shape, parseDims(in, "]", symbols));
  return success();
}

std::string typeText(DType type, const Shape &shape, const std::vector<Symbol> &symbols) {
  std::string text(name(type));
  text += '[';
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i)
      text += ',';
    text += shape[i].str(symbols);
  }
  return text + ']';
}

std::optional<SymbolId> symbolNamed(std::string_view name, const std::vector<Symbol> &symbols) {
  for (size_t s = 0; s < symbols.size(); ++s)
    if (symbols[s].name == name)
      return static_cast<SymbolId>(s);
  return std::nullopt;
}

Result<Symbol> parseSymbol(TextReader &in) {
  Symbol s;
  FUSEC_TRY(s.name, in.nameText());
  FUSEC_CHECK(in.expect("="));
  FUSEC_TRY(s.min, in.integer());
  FUSEC_CHECK(in.expect(".."));
  FUSEC_TRY(s.max, in.integer());
  FUSEC_CHECK(in.expect("opt"));
  if (in.peek().kind == TextReader::Kind::Identifier) {
    FUSEC_TRY(const std::string word, in.identifier());
    const std::optional<SymbolKind> kind = parseSymbolKind(word);
    if (!kind)
      return in.error("'" + word + "' is no size and no kind of symbol");
    int64_t step = 1;
    if (in.accept("of")) {
      FUSEC_TRY(step, in.integer());
      if (step < 1 || step > kMostStep)
        return in.error("the step of a symbol is 1 to " + std::to_string(kMostStep) + ", not " +
                        std::to_string(step));
    }
    s.opt = optOf(*kind, step);
  } else {
    FUSEC_TRY(s.opt, in.integer());
    if (in.accept("as")) {
      FUSEC_TRY(const std::string word, in.identifier());
      s.favouredKind = parseSymbolKind(word);
      if (!s.favouredKind || s.favouredKind == SymbolKind::Any)
        return in.error("'" + word + "' is no kind of symbol");
    }
  }
  FUSEC_CHECK(in.expect("divisor"));
  FUSEC_TRY(s.divisor, in.integer());
  return s;
}

namespace {

/// Reads "(i64 symbol n, i64 integer 2, i64 div $0 $1) for node".
class DefinitionReader {
public:
  DefinitionReader(TextReader &in, const std::vector<Symbol> &symbols) : in(in), symbols(symbols) {}

  Result<std::shared_ptr<const DimProgram>> run() {
    FUSEC_CHECK(in.expect("("));
    FUSEC_CHECK(instr());
    while (in.accept(","))
      FUSEC_CHECK(instr());
    FUSEC_CHECK(in.expect(")"));
    FUSEC_CHECK(in.expect("for"));
    FUSEC_TRY(program.node, in.nameText());
    return std::shared_ptr<const DimProgram>(std::make_shared<DimProgram>(std::move(program)));
  }

private:
  Status instr() {
    using Op = DimProgram::Op;
    DimProgram::Instr i;
    FUSEC_TRY(i.type, parseElementType(in));
    FUSEC_TRY(std::string word, in.identifier());
    const std::optional<Op> op = parseDimOp(word);
    if (!op)
      return in.error("'" + word + "' is no operation on sizes");
    i.op = *op;
    if (i.op == Op::Symbol) {
      FUSEC_TRY(const std::string name, in.nameText());
      const std::optional<SymbolId> symbol = symbolNamed(name, symbols);
      if (!symbol)
        return in.error("symbol '" + name + "' is not defined in front of its use");
      i.value = *symbol;
    } else if (i.op == Op::Integer) {
      FUSEC_TRY(i.value, in.integer());
    } else if (i.op == Op::Float) {
      FUSEC_TRY(double v, in.floating());
      i.value = std::bit_cast<int64_t>(v);
    }
    for (size_t a = 0; a < static_cast<size_t>(numOperands(i.op)); ++a) {
      FUSEC_CHECK(in.expect("$"));
      FUSEC_TRY(int64_t from, in.integer());
      if (from < 0 || static_cast<size_t>(from) >= program.code.size())
        return in.error("$" + std::to_string(from) + " is not in front of its use");
      i.args[a] = static_cast<int32_t>(from);
    }
    program.code.push_back(i);
    return success();
  }

  TextReader &in;
  const std::vector<Symbol> &symbols;
  DimProgram program;
};

std::string instrText(const DimProgram::Instr &i, const std::vector<Symbol> &symbols) {
  using Op = DimProgram::Op;
  std::string text = std::string(name(i.type)) + " " + std::string(name(i.op));
  if (i.op == Op::Symbol)
    text += " " + nameToText(symbols[static_cast<size_t>(i.value)].name);
  else if (i.op == Op::Integer)
    text += " " + std::to_string(i.value);
  else if (i.op == Op::Float)
    text += " " + floatToText(std::bit_cast<double>(i.value));
  for (int a = 0; a < numOperands(i.op); ++a)
    text += " $" + std::to_string(i.args[static_cast<size_t>(a)]);
  return text;
}

} // namespace

static Result<TestOfData> parseTestOfData(TextReader &in) {
  FUSEC_TRY(const std::string word, in.identifier());
  const std::optional<DataTest> kind = parseDataTest(word);
  if (!kind)
    return in.error("'" + word + "' is no test of the data");
  FUSEC_CHECK(in.expect("of"));
  FUSEC_TRY(std::string node, in.nameText());
  return TestOfData{*kind, std::move(node)};
}

Result<std::vector<Symbol>> parseSymbols(TextReader &in) {
  std::vector<Symbol> symbols;
  while (in.accept("symbol")) {
    FUSEC_TRY(Symbol s, parseSymbol(in));
    if (in.accept("by")) {
      FUSEC_TRY(s.definition, DefinitionReader(in, symbols).run());
    } else if (in.accept("bound")) {
      FUSEC_CHECK(in.expect("["));
      FUSEC_TRY(s.bound, parseDim(in, "]", symbols));
      FUSEC_CHECK(in.expect("]"));
      if (in.accept("tests")) {
        FUSEC_TRY(s.test, parseTestOfData(in));
      }
    }
    symbols.push_back(std::move(s));
  }
  return symbols;
}

/// "128", "128 as length", "length", "length of 80".
static std::string optText(const Symbol &s) {
  const std::string kind(kindOf(s) ? name(*kindOf(s)) : "");
  if (isFavoured(s))
    return std::to_string(s.opt) + (kind.empty() ? "" : " as " + kind);
  return stepOf(s) == 1 ? kind : kind + " of " + std::to_string(stepOf(s));
}

std::string symbolText(const Symbol &s) {
  return nameToText(s.name) + " = " + std::to_string(s.min) + ".." + std::to_string(s.max) +
         " opt " + optText(s) + " divisor " + std::to_string(s.divisor);
}

std::string definitionText(const DimProgram &definition, const std::vector<Symbol> &symbols) {
  std::string code;
  for (const DimProgram::Instr &i : definition.code)
    code += (code.empty() ? "" : ", ") + instrText(i, symbols);
  return "(" + code + ") for " + nameToText(definition.node);
}

std::string symbolsText(const std::vector<Symbol> &symbols) {
  std::string text;
  for (const Symbol &s : symbols) {
    text += "symbol " + symbolText(s);
    if (s.definition)
      text += " by " + definitionText(*s.definition, symbols);
    if (s.bound)
      text += " bound [" + s.bound->str(symbols) + "]";
    if (s.testsData())
      text += " tests " + std::string(name(s.test->kind)) + " of " + nameToText(s.test->node);
    text += "\n";
  }
  return text;
}

} // namespace fusec
