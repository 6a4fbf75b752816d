#include "Bundle/DimCode.h"

#include "Bundle/Model.h"

#include <algorithm>

namespace fusec::bundle {

namespace {

std::optional<int64_t> apply(DimCode::Op op, int64_t a, int64_t b) {
  using Op = DimCode::Op;
  int64_t r;
  switch (op) {
  case Op::Add: return __builtin_add_overflow(a, b, &r) ? std::nullopt : std::optional<int64_t>(r);
  case Op::Mul: return __builtin_mul_overflow(a, b, &r) ? std::nullopt : std::optional<int64_t>(r);
  case Op::Min: return std::min(a, b);
  case Op::Max: return std::max(a, b);
  default: break;
  }
  if (b <= 0)
    return std::nullopt;
  int64_t quotient = a / b, rest = a % b;
  if (rest < 0) {
    quotient -= 1;
    rest += b;
  }
  if (op == Op::FloorDiv)
    return quotient;
  if (op == Op::Mod)
    return rest;
  return quotient + (rest != 0); // |quotient| < |a| when rest != 0: no overflow
}

DimCode::Op opOf(DimExpr::Op op) {
  switch (op) {
  case DimExpr::Op::Const: return DimCode::Op::Const;
  case DimExpr::Op::Symbol: return DimCode::Op::Symbol;
  case DimExpr::Op::Add: return DimCode::Op::Add;
  case DimExpr::Op::Mul: return DimCode::Op::Mul;
  case DimExpr::Op::FloorDiv: return DimCode::Op::FloorDiv;
  case DimExpr::Op::CeilDiv: return DimCode::Op::CeilDiv;
  case DimExpr::Op::Mod: return DimCode::Op::Mod;
  case DimExpr::Op::Min: return DimCode::Op::Min;
  case DimExpr::Op::Max: return DimCode::Op::Max;
  }
  return DimCode::Op::Const;
}

void append(const DimExpr &e, std::vector<DimCode::Instr> &out) {
  if (e.op() == DimExpr::Op::Const) {
    out.push_back({DimCode::Op::Const, e.constValue()});
    return;
  }
  if (e.op() == DimExpr::Op::Symbol) {
    out.push_back({DimCode::Op::Symbol, e.symbolId()});
    return;
  }
  const std::vector<DimExpr> &operands = e.operands();
  append(operands[0], out);
  for (size_t i = 1; i < operands.size(); ++i) {
    append(operands[i], out);
    out.push_back({opOf(e.op()), 0});
  }
}

} // namespace

DimCode::DimCode(const DimExpr &expr) { append(expr, code); }

DimCode DimCode::symbol(SymbolId id) {
  DimCode d;
  d.code = {{Op::Symbol, id}};
  return d;
}

bool DimCode::valid(size_t numSymbols) const {
  if (code.empty() || code.size() > kMaxLength)
    return false;
  int depth = 0;
  for (const Instr &i : code) {
    switch (i.op) {
    case Op::Symbol:
      if (i.value < 0 || static_cast<uint64_t>(i.value) >= numSymbols)
        return false;
      [[fallthrough]];
    case Op::Const:
      if (++depth > kMaxStack)
        return false;
      break;
    default:
      if (i.op > Op::Max || i.value != 0 || depth < 2)
        return false;
      --depth;
    }
  }
  return depth == 1;
}

std::optional<int64_t> DimCode::evaluate(const std::vector<int64_t> &symbols) const {
  int64_t stack[kMaxStack];
  int depth = 0;
  for (const Instr &i : code) {
    if (i.op == Op::Const) {
      stack[depth++] = i.value;
    } else if (i.op == Op::Symbol) {
      stack[depth++] = symbols[i.value];
    } else {
      std::optional<int64_t> r = apply(i.op, stack[depth - 2], stack[depth - 1]);
      if (!r)
        return std::nullopt;
      stack[--depth - 1] = *r;
    }
  }
  return stack[0];
}

std::vector<SumTerm> sumTerms(const DimCode &dim, const std::vector<Symbol> &symbols) {
  using Op = DimCode::Op;
  using Terms = std::vector<SumTerm>;
  std::vector<Terms> stack;
  auto isNumber = [](const Terms &t) { return t.size() == 1 && t[0].text.empty(); };
  auto factor = [&](const Terms &t) {
    const bool plain = t.size() == 1 && !(isNumber(t) && t[0].factor < 0);
    return plain ? sumText(t) : "(" + sumText(t) + ")";
  };
  for (const DimCode::Instr &i : dim.code) {
    if (i.op == Op::Const) {
      stack.push_back({{i.value, ""}});
      continue;
    }
    if (i.op == Op::Symbol) {
      stack.push_back({{1, symbols[static_cast<size_t>(i.value)].name}});
      continue;
    }
    const Terms b = std::move(stack.back());
    stack.pop_back();
    Terms &a = stack.back();
    static const char *const names[] = {"", "", "", "", "floordiv", "ceildiv", "mod", "min", "max"};
    if (i.op == Op::Add)
      a.insert(a.end(), b.begin(), b.end());
    else if (i.op != Op::Mul)
      a = {{1, std::string(names[static_cast<int>(i.op)]) + "(" + sumText(a) + ", " + sumText(b) +
                   ")"}};
    else if (a.size() == 1 && !isNumber(a) && a[0].factor == 1 && isNumber(b))
      a[0].factor = b[0].factor;
    else
      a = {{1, factor(a) + "*" + factor(b)}};
  }
  return stack.back();
}

std::string DimCode::str(const std::vector<Symbol> &symbols) const {
  return sumText(sumTerms(*this, symbols));
}

std::optional<int64_t> evaluateElements(DType type, const std::vector<DimCode> &shape,
                                        const std::vector<int64_t> &symbols) {
  int64_t elements = 1;
  bool empty = false, overflow = false;
  for (const DimCode &d : shape) {
    std::optional<int64_t> v = d.evaluate(symbols);
    if (!v || *v < 0)
      return std::nullopt;
    empty |= *v == 0;
    overflow |= __builtin_mul_overflow(elements, *v, &elements);
  }
  if (empty)
    return 0;
  if (overflow || elements > (int64_t{1} << 62) / sizeInBytes(type))
    return std::nullopt;
  return elements;
}

} // namespace fusec::bundle
