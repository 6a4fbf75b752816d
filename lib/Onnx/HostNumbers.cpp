#include "Onnx/HostNumbers.h"

#include "Support/DimLimits.h"
#include "Support/OptValues.h"
#include "Support/TunedSizes.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace fusec {

using Op = DimProgram::Op;
using Instr = DimProgram::Instr;
using Id = HostNumbers::Id;

namespace {

constexpr int kMaxDepth = 128; // operations that are no expression, one inside the other

/// A product, of few factors.
std::optional<DimExpr> power(const DimExpr &base, const DimExpr &exponent) {
  constexpr int64_t kMostFactors = 8;
  if (!exponent.isConst() || exponent.constValue() < 0 || exponent.constValue() > kMostFactors)
    return std::nullopt;
  DimExpr made = 1;
  for (int64_t i = 0; i < exponent.constValue(); ++i) {
    if (isTooLarge(made, kLargestSizeOfModel))
      return std::nullopt;
    made = made * base;
  }
  return made;
}

/// ONNX divides towards zero, DimExpr towards minus infinity; they agree where nothing is negative.
std::optional<DimExpr> integers(Op op, const DimExpr &a, const DimExpr &b,
                                const std::vector<Symbol> &symbols) {
  switch (op) {
  case Op::Add: return a + b;
  case Op::Sub: return a - b;
  case Op::Mul: return a * b;
  case Op::Min: return min(a, b);
  case Op::Max: return max(a, b);
  case Op::Pow: return power(a, b);
  case Op::Div:
  case Op::Mod:
  case Op::Rem: break;
  default: return std::nullopt;
  }
  if (b.range(symbols).min < 1)
    return std::nullopt;
  const bool natural = a.range(symbols).min >= 0;
  if (op == Op::Mod || (op == Op::Rem && natural))
    return mod(a, b);
  const DimExpr quotient = natural ? floorDiv(a, b) : truncatedQuotient(a, b);
  return op == Op::Div ? quotient : a - quotient * b;
}

/// Whether it is known within a run alone, where no program computes it.
bool dependsOnData(const DimExpr &size, const std::vector<Symbol> &symbols) {
  std::vector<SymbolId> used;
  size.collectSymbols(used);
  return std::ranges::any_of(
      used, [&](SymbolId s) { return symbols[static_cast<size_t>(s)].isDataDependent(); });
}

} // namespace

Id HostNumbers::add(Number n) {
  size_t hash = n.dim ? n.dim->hash() : static_cast<size_t>(n.instr.value) * 31;
  auto mix = [&](size_t v) { hash = (hash ^ v) * 0x9e3779b97f4a7c15ull + (hash >> 29); };
  mix(static_cast<size_t>(n.type));
  mix(n.dim ? 0 : static_cast<size_t>(n.instr.op) + 1);
  for (int32_t a : n.instr.args)
    mix(static_cast<size_t>(a));
  const auto [first, last] = byHash.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (const Number &o = at(it->second);
        o.type == n.type && o.dim == n.dim && (n.dim || o.instr == n.instr))
      return it->second;
  const auto id = static_cast<Id>(numbers.size());
  numbers.push_back(std::move(n));
  byHash.emplace(hash, id);
  return id;
}

Id HostNumbers::integer(DType type, DimExpr value) {
  value = solver.canonical(value);
  const auto r = value.range(symbols);
  if (r.min == r.max)
    value = r.min;
  Number n{type, std::move(value), {}, {r.min, r.max}, std::nullopt};
  return add(std::move(n));
}

Id HostNumbers::real(DType type, double value) {
  Number n{type, std::nullopt, {Op::Float, type, {-1, -1, -1}, 0}, {}, std::nullopt};
  const Instr given{Op::Float, type, {-1, -1, -1}, std::bit_cast<int64_t>(value)};
  n.instr.value = std::bit_cast<int64_t>(fusec::apply(given, type, {}, {}).real);
  n.range = fusec::rangeOf(n.instr, type, {}, symbols);
  const double rounded = std::bit_cast<double>(n.instr.value);
  for (int64_t den = 1; den <= int64_t(1) << 24 && !n.fraction; den *= 2)
    if (const double num = rounded * static_cast<double>(den);
        std::floor(num) == num && std::abs(num) < 0x1p53)
      n.fraction = exactIn(type, {DimExpr(static_cast<int64_t>(num)), den, false}, symbols);
  return add(std::move(n));
}

Id HostNumbers::none(DType type) {
  // No value lies in its range.
  const DimNumberRange range{INT64_MAX, INT64_MIN, INFINITY, -INFINITY};
  const std::array<Id, 3> args{integer(DType::I64, 1), integer(DType::I64, 0), -1};
  const Id made =
      add({DType::I64, std::nullopt, {Op::Div, DType::I64, args, 0}, range, std::nullopt});
  return type == DType::I64
             ? made
             : add({type, std::nullopt, {Op::Cast, type, {made, -1, -1}, 0}, range, std::nullopt});
}

std::optional<double> HostNumbers::constantReal(Id x) const {
  const Number &n = at(x);
  return !n.dim && n.instr.op == Op::Float ? std::optional(std::bit_cast<double>(n.instr.value))
                                           : std::nullopt;
}

/// What an operation makes of constants.
std::optional<Id> HostNumbers::fold(const Instr &i) {
  std::array<DimNumber, 3> values;
  std::array<const DimNumber *, 3> args{};
  for (size_t a = 0; a < static_cast<size_t>(numOperands(i.op)); ++a) {
    const Number &n = at(i.args[a]);
    values[a] = n.dim ? DimNumber{true, n.dim->constValue(), 0}
                      : DimNumber{true, 0, std::bit_cast<double>(n.instr.value)};
    args[a] = &values[a];
  }
  const DimNumber made = fusec::apply(i, type(i.args[0]), args, {});
  if (!made.known)
    return std::nullopt;
  return isFloat(i.type) ? real(i.type, made.real) : integer(i.type, made.integer);
}

/// A comparison, or a cast to bool, that has one result for all values of the symbols.
std::optional<Id> HostNumbers::decided(const Instr &i) {
  const auto &a = expression(i.args[0]);
  const auto &b = i.op == Op::Cast ? std::nullopt : expression(i.args[1]);
  DimNumberRange r;
  if (a && b) { // of the difference: n and n + 1 are never equal
    if (*a == *b)
      return integer(DType::Bool, i.op == Op::Less ? 0 : 1);
    const auto difference = (*a - *b).range(symbols);
    const DimNumberRange first{difference.min, difference.max}, zero{};
    r = fusec::rangeOf(i, DType::I64, {&first, &zero, nullptr}, symbols);
  } else {
    r = fusec::rangeOf(
        i, type(i.args[0]),
        {&at(i.args[0]).range, i.op == Op::Cast ? nullptr : &at(i.args[1]).range, nullptr},
        symbols);
  }
  return r.min == r.max ? std::optional(integer(DType::Bool, r.min)) : std::nullopt;
}

/// A choice between numbers that is known, or is the smaller or the larger of what it compares.
std::optional<Id> HostNumbers::chosen(const Instr &i) {
  if (i.args[1] == i.args[2])
    return i.args[1];
  if (const auto condition = constant(i.args[0]))
    return i.args[*condition ? 1 : 2];
  const Instr &compared = at(i.args[0]).instr;
  if ((compared.op != Op::Less && compared.op != Op::LessOrEqual) || isFloat(i.type))
    return std::nullopt;
  const bool smaller = compared.args[0] == i.args[1] && compared.args[1] == i.args[2];
  const bool larger = compared.args[0] == i.args[2] && compared.args[1] == i.args[1];
  if (!smaller && !larger)
    return std::nullopt;
  return apply(smaller ? Op::Min : Op::Max, i.type, {i.args[1], i.args[2], -1});
}

std::optional<Id> HostNumbers::apply(Op op, DType type, std::array<Id, 3> args) {
  Number n{type, std::nullopt, {op, type, args, 0}, {}, std::nullopt};
  std::array<const DimNumberRange *, 3> ranges{};
  bool constant = true;
  for (size_t a = 0; a < static_cast<size_t>(numOperands(op)); ++a) {
    constant = constant && (this->constant(args[a]) || constantReal(args[a]));
    n.depth = std::max(n.depth, at(args[a]).depth + 1);
    ranges[a] = &at(args[a]).range;
  }
  if (constant)
    return fold(n.instr);
  if (op == Op::Select)
    if (auto made = chosen(n.instr))
      return made;
  if (type == DType::Bool && (op == Op::Cast || op >= Op::Equal) && op != Op::Select)
    if (auto made = decided(n.instr))
      return made;
  const auto &a = expression(args[0]);
  if (type == DType::Bool && (op == Op::Min || op == Op::Max))
    for (size_t k = 0; k < 2; ++k) // "and" with true is the other one, with false it is false
      if (const auto known = this->constant(args[k]))
        return args[(*known != 0) == (op == Op::Min) ? 1 - k : k];
  if (isInteger(type) && a) {
    if (op == Op::Cast)
      return integer(type, *a);
    if (const auto &b = args[1] < 0 ? std::nullopt : expression(args[1]); b && op != Op::Select)
      if (auto made = integers(op, *a, *b, symbols)) {
        if (!isTooLarge(*made, kLargestSizeOfModel) || dependsOnData(*made, symbols))
          return integer(type, std::move(*made));
        n.tooLarge = std::move(made); // left to a program
      }
  }
  const auto &fraction = at(args[0]).fraction;
  if (isInteger(type) && op == Op::Cast && fraction && fraction->limits.empty())
    return integer(type, wholePart(*fraction, symbols));
  if (!n.tooLarge && isInteger(type))
    n.tooLarge = at(args[0]).tooLarge ? at(args[0]).tooLarge
                 : args[1] >= 0       ? at(args[1]).tooLarge
                                      : std::nullopt;
  if (n.depth > kMaxDepth)
    return n.tooLarge ? std::optional(integer(type, *n.tooLarge)) : std::nullopt;
  n.range = fusec::rangeOf(n.instr, this->type(args[0]), ranges, symbols);
  if (isFloat(type) && op == Op::Cast && a) {
    n.fraction = exactIn(type, {*a, 1, false}, symbols);
  } else if (isFloat(type) && op != Op::Select && fraction) {
    n.fraction =
        fractionOf(op, type, *fraction, args[1] < 0 ? std::nullopt : at(args[1]).fraction, symbols);
  }
  return add(std::move(n));
}

std::optional<Id> HostNumbers::cast(DType to, Id x) {
  return type(x) == to ? std::optional(x) : apply(Op::Cast, to, {x, -1, -1});
}

std::optional<DimExpr> HostNumbers::size(Id x, const std::string &node) {
  if (expression(x))
    return expression(x);
  if (const auto made = sizes.find(x); made != sizes.end())
    return made->second;
  const Number n = at(x);
  std::optional<DimExpr> made;
  if (isInteger(n.type) && n.instr.op >= Op::Add && n.instr.op <= Op::Max) {
    const auto a = size(n.instr.args[0], node), b = size(n.instr.args[1], node);
    if (a && b)
      made = integers(n.instr.op, *a, *b, symbols);
    if (made)
      made = solver.canonical(*made);
  } else if (n.instr.op == Op::Cast && isInteger(n.type) && !isFloat(type(n.instr.args[0]))) {
    made = size(n.instr.args[0], node);
  }
  if (!made || isTooLarge(*made, kLargestSizeOfModel))
    made = newSymbol(x, node);
  if (made)
    sizes.emplace(x, *made);
  return made;
}

std::vector<SizeRule> HostNumbers::limits(Id x) const {
  std::vector<SizeRule> all;
  std::set<Id> seen;
  // False where it would be no expression within any limits.
  const auto collect = [&](auto &self, Id id) -> bool {
    const Number &n = at(id);
    if (n.dim || !seen.insert(id).second)
      return true;
    if (!isInteger(n.type))
      return false;
    const Id first = n.instr.args[0], second = n.instr.args[1];
    switch (n.instr.op) {
    case Op::Cast:
      if (!at(first).fraction)
        return self(self, first);
      addLimits(all, at(first).fraction->limits);
      return true;
    case Op::Add:
    case Op::Sub:
    case Op::Mul:
    case Op::Min:
    case Op::Max: return self(self, first) && self(self, second);
    default: return false;
    }
  };
  return collect(collect, x) ? all : std::vector<SizeRule>();
}

std::optional<DimExpr> HostNumbers::knownSize(Id x) const {
  const auto made = sizes.find(x);
  return made == sizes.end() ? expression(x) : made->second;
}

namespace {

/// Writes numbers as a program, each once.
class Writer {
public:
  DimProgram program;

  int32_t put(const Instr &i) {
    const auto &code = program.code;
    const auto found = std::find(code.begin(), code.end(), i);
    if (found != code.end())
      return static_cast<int32_t>(found - code.begin());
    program.code.push_back(i);
    return static_cast<int32_t>(code.size()) - 1;
  }

  int32_t expression(const DimExpr &e) {
    using DimOp = DimExpr::Op;
    constexpr Op table[] = {Op::Integer, Op::Symbol, Op::Add, Op::Mul, Op::FloorDiv,
                            Op::CeilDiv, Op::Mod,    Op::Min, Op::Max};
    const Op op = table[static_cast<int>(e.op())];
    if (e.op() == DimOp::Const)
      return put({op, DType::I64, {-1, -1, -1}, e.constValue()});
    if (e.op() == DimOp::Symbol)
      return put({op, DType::I64, {-1, -1, -1}, e.symbolId()});
    int32_t made = expression(e.operands()[0]);
    for (size_t k = 1; k < e.operands().size(); ++k)
      made = put({op, DType::I64, {made, expression(e.operands()[k]), -1}, 0});
    return made;
  }
  int32_t cast(int32_t x, DType to) {
    return program.code[static_cast<size_t>(x)].type == to ? x
                                                           : put({Op::Cast, to, {x, -1, -1}, 0});
  }
};

} // namespace

DimProgram canonical(const DimProgram &program, const SizeSolver &solver) {
  Writer writer;
  std::vector<int32_t> places;
  for (Instr i : program.code) {
    for (int32_t &a : i.args)
      a = a < 0 ? a : places[static_cast<size_t>(a)];
    const auto symbol = static_cast<SymbolId>(i.value);
    const bool isGiven =
        i.op == Op::Symbol && !solver.symbols()[static_cast<size_t>(symbol)].definition;
    places.push_back(isGiven ? writer.expression(solver.valueOf(symbol)) : writer.put(i));
  }
  // The last instruction is the value.
  writer.program.code.resize(static_cast<size_t>(places.back()) + 1);
  writer.program.node = program.node;
  return std::move(writer.program);
}

std::optional<DimExpr> HostNumbers::newSymbol(Id x, const std::string &node) {
  constexpr size_t kMostSymbols = 1024;
  if (madeSymbols.size() >= kMostSymbols)
    return std::nullopt;
  Writer writer;
  std::unordered_map<Id, int32_t> places;
  const auto write = [&](auto &self, Id id) -> int32_t {
    if (const auto known = places.find(id); known != places.end())
      return known->second;
    const Number &n = at(id);
    int32_t place;
    if (n.dim) {
      place = writer.cast(writer.expression(*n.dim), n.type);
    } else if (const auto made = sizes.find(id); made != sizes.end()) {
      place = writer.cast(writer.expression(made->second), n.type);
    } else {
      Instr i = n.instr;
      for (int32_t &a : i.args)
        a = a < 0 ? a : self(self, a);
      place = writer.put(i);
    }
    places.emplace(id, place);
    return place;
  };
  // The last instruction is the value.
  const int32_t last = writer.cast(write(write, x), DType::I64);
  writer.program.code.resize(static_cast<size_t>(last) + 1);
  writer.program.node = node;
  const auto dependsOnData = [&](const Instr &i) {
    return i.op == Op::Symbol && symbols[static_cast<size_t>(i.value)].isDataDependent();
  };
  if (!writer.program.valid(symbols.size()) ||
      std::any_of(writer.program.code.begin(), writer.program.code.end(), dependsOnData))
    return std::nullopt;
  const DimNumberRange &range = at(x).range;
  Symbol s;
  size_t number = symbols.size() - numGiven(symbols);
  do
    s.name = "computed." + std::to_string(number++);
  while (std::any_of(symbols.begin(), symbols.end(),
                     [&](const Symbol &other) { return other.name == s.name; }));
  s.min = range.min;
  s.max = range.max;
  // Where the user favours sizes of what it is made of, he favours what follows from these.
  const std::vector<Instr> &code = writer.program.code;
  const bool areFavoured = std::none_of(code.begin(), code.end(), [&](const Instr &i) {
    return i.op == Op::Symbol && !isFavoured(symbols[static_cast<size_t>(i.value)]);
  });
  const auto favoured = writer.program.evaluate(optValues(symbols));
  s.opt = areFavoured && favoured && *favoured >= s.min && *favoured <= s.max
              ? *favoured
              : static_cast<int64_t>(SymbolKind::Any);
  s.definition = std::make_shared<DimProgram>(std::move(writer.program));
  const SymbolId id = solver.symbol(s, false);
  const Symbol &known = solver.symbols()[static_cast<size_t>(id)];
  if (static_cast<size_t>(id) == symbols.size())
    symbols.push_back(known);
  else
    symbols[static_cast<size_t>(id)] = known;
  madeSymbols.insert(id);
  return solver.valueOf(id);
}

} // namespace fusec
