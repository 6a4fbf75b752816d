#include "Support/Diag.h"
#include "Support/DimNode.h"
#include "Support/Guard.h"

#include <charconv>

// Grammar: sum := product (('+' | '-') product)*, product := factor ('*' factor)*,
// factor := integer | '-' factor | name | `name` | function '(' sum ',' sum ')' | '(' sum ')'.

namespace fusec {

namespace {

using Op = DimExpr::Op;

constexpr int kMaxDepth = 200;

struct Function {
  std::string_view name;
  Op op;
};
constexpr Function functions[] = {{"floordiv", Op::FloorDiv},
                                  {"ceildiv", Op::CeilDiv},
                                  {"mod", Op::Mod},
                                  {"min", Op::Min},
                                  {"max", Op::Max}};

bool isNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }
bool isNameChar(char c) { return isNameStart(c) || isDigit(c) || c == '.' || c == '$'; }

int hexDigit(char c) {
  if (isDigit(c))
    return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::string symbolText(std::string_view name) {
  bool plain = !name.empty() && isNameStart(name[0]);
  for (char c : name)
    plain = plain && isNameChar(c);
  for (const Function &f : functions)
    plain = plain && name != f.name;
  if (plain)
    return std::string(name);
  static const char digits[] = "0123456789abcdef";
  std::string out = "`";
  for (unsigned char c : name) {
    if (c < 0x20 || c == 0x7f || c == '`' || c == '\\') {
      out += "\\x";
      out += digits[c >> 4];
      out += digits[c & 15];
    } else
      out += static_cast<char>(c);
  }
  return out + '`';
}

class Printer {
public:
  explicit Printer(const std::vector<Symbol> &symbols) : symbols(symbols) {}

  std::string text(const DimExpr &e) const {
    switch (e.op()) {
    case Op::Const: return std::to_string(e.constValue());
    case Op::Symbol: {
      auto id = static_cast<size_t>(e.symbolId());
      return id < symbols.size() ? symbolText(symbols[id].name) : "`?" + std::to_string(id) + "`";
    }
    case Op::Add:
    case Op::Mul:
      if (DimBuilder::isRaw(e))
        return rawText(e);
      return sumText(termsOf(e));
    default: break;
    }
    for (const Function &f : functions)
      if (f.op == e.op())
        return std::string(f.name) + '(' + text(e.operands()[0]) + ", " + text(e.operands()[1]) +
               ')';
    return {};
  }

  std::vector<SumTerm> termsOf(const DimExpr &e) const {
    std::vector<SumTerm> terms;
    for (const dim::Term &t : dim::polynomial(e)) {
      std::string product;
      for (const DimExpr &atom : t.atoms)
        product += (product.empty() ? "" : "*") + text(atom);
      terms.push_back({t.coefficient, std::move(product)});
    }
    return terms;
  }

private:
  /// Operands in parentheses, so that the parser applies the same operator to the same operands.
  std::string rawText(const DimExpr &e) const {
    std::string sign = e.op() == Op::Add ? " + " : "*";
    return "((" + text(e.operands()[0]) + ")" + sign + "(" + text(e.operands()[1]) + "))";
  }

  const std::vector<Symbol> &symbols;
};

class Parser {
public:
  Parser(std::string_view text, const std::vector<Symbol> &symbols)
      : text(text), symbols(symbols) {}

  Result<DimExpr> run() {
    std::optional<DimExpr> e = sum(0);
    skipSpace();
    if (e && isTooLarge(*e))
      e = fail("expression is too large");
    if (e && pos == text.size())
      return *e;
    if (message.empty())
      message = "unexpected text";
    return Diagnostic{Diag::BadIrText, "dimension '" + std::string(text) + "'",
                      message + " at column " + std::to_string(pos + 1)};
  }

private:
  std::nullopt_t fail(std::string why) {
    if (message.empty())
      message = std::move(why);
    return std::nullopt;
  }
  void skipSpace() {
    while (pos < text.size() && (text[pos] == ' ' || text[pos] == '\t' || text[pos] == '\n'))
      ++pos;
  }
  bool accept(char c) {
    skipSpace();
    if (pos >= text.size() || text[pos] != c)
      return false;
    ++pos;
    return true;
  }

  std::optional<DimExpr> sum(int depth) {
    std::optional<DimExpr> e = product(depth);
    while (e) {
      bool plus = accept('+');
      if (!plus && !accept('-'))
        break;
      std::optional<DimExpr> next = product(depth);
      if (!next)
        return next;
      e = plus ? *e + *next : *e - *next;
    }
    return e;
  }

  std::optional<DimExpr> product(int depth) {
    std::optional<DimExpr> e = factor(depth);
    while (e && accept('*')) {
      std::optional<DimExpr> next = factor(depth);
      if (!next)
        return next;
      e = *e * *next;
    }
    return e;
  }

  std::optional<DimExpr> factor(int depth) {
    if (depth > kMaxDepth)
      return fail("expression is nested too deeply");
    skipSpace();
    if (pos >= text.size())
      return fail("expected a dimension");
    char c = text[pos];
    bool negativeLiteral = c == '-' && pos + 1 < text.size() && isDigit(text[pos + 1]);
    if (isDigit(c) || negativeLiteral)
      return integer();
    if (accept('-')) {
      std::optional<DimExpr> e = factor(depth + 1);
      return e ? std::optional(DimExpr(-1) * *e) : e;
    }
    if (accept('(')) {
      std::optional<DimExpr> e = sum(depth + 1);
      return e && !accept(')') ? fail("expected ')'") : e;
    }
    if (c == '`')
      return quotedName();
    if (!isNameStart(c))
      return fail("expected a number, a name or '('");
    size_t start = pos;
    while (pos < text.size() && isNameChar(text[pos]))
      ++pos;
    std::string_view name = text.substr(start, pos - start);
    for (const Function &f : functions)
      if (name == f.name)
        return call(f.op, depth);
    return symbol(name);
  }

  std::optional<DimExpr> integer() {
    int64_t value = 0;
    auto [end, ec] = std::from_chars(text.data() + pos, text.data() + text.size(), value);
    if (ec != std::errc())
      return fail("integer does not fit 64 bits");
    pos = static_cast<size_t>(end - text.data());
    return DimExpr(value);
  }

  std::optional<DimExpr> call(Op op, int depth) {
    if (!accept('('))
      return fail("expected '('");
    std::optional<DimExpr> a = sum(depth + 1);
    if (!a)
      return a;
    if (!accept(','))
      return fail("expected ','");
    std::optional<DimExpr> b = sum(depth + 1);
    if (!b)
      return b;
    if (!accept(')'))
      return fail("expected ')'");
    switch (op) {
    case Op::FloorDiv: return floorDiv(*a, *b);
    case Op::CeilDiv: return ceilDiv(*a, *b);
    case Op::Mod: return mod(*a, *b);
    case Op::Min: return min(*a, *b);
    default: return max(*a, *b);
    }
  }

  std::optional<DimExpr> quotedName() {
    std::string name;
    for (++pos; pos < text.size() && text[pos] != '`'; ++pos) {
      if (text[pos] != '\\') {
        name += text[pos];
        continue;
      }
      bool hex = pos + 3 < text.size() && text[pos + 1] == 'x' && hexDigit(text[pos + 2]) >= 0 &&
                 hexDigit(text[pos + 3]) >= 0;
      if (!hex)
        return fail("unknown escape in a name: use \\xNN");
      name += static_cast<char>(hexDigit(text[pos + 2]) << 4 | hexDigit(text[pos + 3]));
      pos += 3;
    }
    if (!accept('`'))
      return fail("name has no closing backquote");
    return symbol(name);
  }

  std::optional<DimExpr> symbol(std::string_view name) {
    for (size_t i = 0; i < symbols.size(); ++i)
      if (symbols[i].name == name)
        return DimExpr::symbol(static_cast<SymbolId>(i));
    return fail("unknown symbol '" + std::string(name) + "'");
  }

  std::string_view text;
  const std::vector<Symbol> &symbols;
  size_t pos = 0;
  std::string message;
};

} // namespace

std::vector<SumTerm> sumTerms(const DimExpr &e, const std::vector<Symbol> &symbols) {
  std::vector<SumTerm> terms = Printer(symbols).termsOf(e);
  return terms.empty() ? std::vector<SumTerm>{{0, ""}} : terms; // of 0
}

std::string DimExpr::str(const std::vector<Symbol> &symbols) const {
  return Printer(symbols).text(*this);
}

Result<DimExpr> DimExpr::parse(std::string_view text, const std::vector<Symbol> &symbols) {
  return Parser(text, symbols).run();
}

std::string str(const Shape &shape, const std::vector<Symbol> &symbols) {
  if (shape.empty())
    return "[]";
  std::string out;
  for (const DimExpr &d : shape) {
    out += out.empty() ? "" : "x";
    out += d.isConst() ? d.str(symbols) : "(" + d.str(symbols) + ")";
  }
  return out;
}

} // namespace fusec
