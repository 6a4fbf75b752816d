#include "Support/DimProgram.h"

#include "Support/DimNode.h"
#include "Support/Half.h"
#include "Support/Text.h"

#include <bit>
#include <cmath>

namespace fusec {

using Op = DimProgram::Op;
using Instr = DimProgram::Instr;

namespace {

struct OpRow {
  std::string_view name;
  int operands;
};
constexpr OpRow kOps[] = {
    {"symbol", 0},  {"integer", 0}, {"float", 0}, {"cast", 1},      {"floor", 1},
    {"ceil", 1},    {"round", 1},   {"sqrt", 1},  {"exp", 1},       {"log", 1},
    {"add", 2},     {"sub", 2},     {"mul", 2},   {"div", 2},       {"floordiv", 2},
    {"ceildiv", 2}, {"mod", 2},     {"rem", 2},   {"min", 2},       {"max", 2},
    {"pow", 2},     {"equal", 2},   {"less", 2},  {"lessequal", 2}, {"select", 3},
};
constexpr int kNumOps = static_cast<int>(std::size(kOps));
static_assert(kNumOps == static_cast<int>(Op::Select) + 1);

bool isComparison(Op op) { return op >= Op::Equal && op <= Op::LessOrEqual; }

bool fitsType(int64_t v, DType type) {
  switch (type) {
  case DType::Bool: return v == 0 || v == 1;
  case DType::I8: return v == static_cast<int8_t>(v);
  case DType::I16: return v == static_cast<int16_t>(v);
  case DType::I32: return v == static_cast<int32_t>(v);
  case DType::U8: return v == static_cast<uint8_t>(v);
  case DType::U16: return v == static_cast<uint16_t>(v);
  case DType::U32: return v == static_cast<uint32_t>(v);
  case DType::U64: return v >= 0;
  default: return true;
  }
}

DimNumber integer(dim::Wide v, DType type) {
  if (!dim::fits(v) || !fitsType(static_cast<int64_t>(v), type))
    return {};
  return {true, static_cast<int64_t>(v), 0};
}

/// `v` has 53 bits or fewer of an exact result, or is the rounded sum, product, quotient or root of two numbers of the
/// type: rounding that once more to a type of at most half the bits gives what rounding once does.
DimNumber real(double v, DType type) {
  switch (type) {
  case DType::F16: v = halfToDouble(halfFromDouble(v)); break;
  case DType::BF16: v = bfloatToDouble(bfloatFromDouble(v)); break;
  case DType::F32: v = static_cast<double>(static_cast<float>(v)); break;
  default: break;
  }
  return {true, 0, v};
}

double roundedToEven(double v) {
  const double low = std::floor(v), rest = v - low;
  if (rest != 0.5)
    return rest < 0.5 ? low : low + 1;
  return std::fmod(low, 2) == 0 ? low : low + 1;
}

DimNumber cast(DType to, DType from, const DimNumber &x) {
  if (to == DType::Bool)
    return integer(isFloat(from) ? x.real != 0 : x.integer != 0, to);
  if (isFloat(to) && isFloat(from))
    return real(x.real, to);
  if (to == DType::F32)
    return {true, 0, static_cast<double>(static_cast<float>(x.integer))};
  if (isFloat(to))
    return real(static_cast<double>(x.integer), to);
  if (!isFloat(from))
    return integer(x.integer, to);
  constexpr double kLimit = 9223372036854775808.0; // 2^63
  if (!(x.real >= -kLimit && x.real < kLimit))
    return {};
  return integer(static_cast<int64_t>(x.real), to);
}

/// Exact, or no value.
DimNumber integerPower(DType type, dim::Wide base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 0)
      return {};
    const bool isOdd = exponent % 2 != 0;
    return integer(base == 1 ? 1 : base == -1 ? (isOdd ? -1 : 1) : 0, type);
  }
  if (base >= -1 && base <= 1)
    exponent = exponent < 2 ? exponent : 2 - exponent % 2; // as it goes on
  dim::Wide power = 1;
  for (; exponent > 0; --exponent) {
    power *= base;
    if (power > INT64_MAX || power < INT64_MIN)
      return {};
  }
  return integer(power, type);
}

DimNumber ofIntegers(Op op, DType type, int64_t x, int64_t y) {
  const dim::Wide a = x, b = y;
  if (op >= Op::Div && op <= Op::Rem && b == 0)
    return {};
  switch (op) {
  case Op::Add: return integer(a + b, type);
  case Op::Sub: return integer(a - b, type);
  case Op::Mul: return integer(a * b, type);
  case Op::Div: return integer(a / b, type);
  case Op::FloorDiv: return integer(dim::floorDivide(a, b), type);
  case Op::CeilDiv: return integer(dim::ceilDivide(a, b), type);
  case Op::Mod: return integer(dim::floorModulo(a, b), type);
  case Op::Rem: return integer(a % b, type);
  case Op::Pow: return integerPower(type, a, y);
  case Op::Min: return integer(std::min(a, b), type);
  case Op::Max: return integer(std::max(a, b), type);
  case Op::Equal: return integer(a == b, type);
  case Op::Less: return integer(a < b, type);
  case Op::LessOrEqual: return integer(a <= b, type);
  default: return {};
  }
}

DimNumber ofReals(Op op, DType type, double a, double b) {
  const bool ordered = !std::isnan(a) && !std::isnan(b);
  switch (op) {
  case Op::Floor: return real(std::floor(a), type);
  case Op::Ceil: return real(std::ceil(a), type);
  case Op::Round: return real(roundedToEven(a), type);
  case Op::Sqrt: return real(std::sqrt(a), type);
  case Op::Exp: return real(std::exp(a), type);
  case Op::Log: return real(std::log(a), type);
  case Op::Add: return real(a + b, type);
  case Op::Sub: return real(a - b, type);
  case Op::Mul: return real(a * b, type);
  case Op::Div: return real(a / b, type);
  case Op::Rem: return real(std::fmod(a, b), type);
  case Op::Min: return real(ordered ? std::min(a, b) : a + b, type);
  case Op::Max: return real(ordered ? std::max(a, b) : a + b, type);
  case Op::Pow: return real(std::pow(a, b), type);
  case Op::Equal: return integer(a == b, type);
  case Op::Less: return integer(a < b, type);
  case Op::LessOrEqual: return integer(a <= b, type);
  default: return {};
  }
}

/// Types of operands that fit, the second of which is `second` or, where there is none, that of the first.
bool typesFit(const Instr &i, DType first, DType second, DType third) {
  switch (i.op) {
  case Op::Symbol: return i.type == DType::I64;
  case Op::Integer: return !isFloat(i.type) && fitsType(i.value, i.type);
  case Op::Float: return isFloat(i.type);
  case Op::Cast: return true;
  case Op::Floor:
  case Op::Ceil:
  case Op::Round:
  case Op::Sqrt:
  case Op::Exp:
  case Op::Log: return isFloat(i.type) && first == i.type;
  case Op::FloorDiv:
  case Op::CeilDiv:
  case Op::Mod: return isInteger(i.type) && first == i.type && second == i.type;
  case Op::Min:
  case Op::Max: return first == i.type && second == i.type;
  case Op::Equal:
  case Op::Less:
  case Op::LessOrEqual: return i.type == DType::Bool && first == second;
  case Op::Select: return first == DType::Bool && second == i.type && third == i.type;
  default: return i.type != DType::Bool && first == i.type && second == i.type;
  }
}

} // namespace

int numOperands(Op op) { return kOps[static_cast<int>(op)].operands; }
std::string_view name(Op op) { return kOps[static_cast<int>(op)].name; }
std::optional<Op> parseDimOp(std::string_view text) {
  for (int i = 0; i < kNumOps; ++i)
    if (kOps[i].name == text)
      return static_cast<Op>(i);
  return std::nullopt;
}

DimNumber apply(const Instr &i, DType operandType, const std::array<const DimNumber *, 3> &args,
                const std::vector<int64_t> &symbols) {
  switch (i.op) {
  case Op::Symbol: {
    const auto id = static_cast<size_t>(i.value);
    return id < symbols.size() ? integer(symbols[id], i.type) : DimNumber{};
  }
  case Op::Integer: return integer(i.value, i.type);
  case Op::Float: return real(std::bit_cast<double>(i.value), i.type);
  case Op::Select: return args[0]->known ? *args[args[0]->integer ? 1 : 2] : DimNumber{};
  default: break;
  }
  const bool two = numOperands(i.op) == 2;
  if (!args[0]->known || (two && !args[1]->known))
    return {};
  if (i.op == Op::Cast)
    return cast(i.type, operandType, *args[0]);
  if (isFloat(operandType))
    return ofReals(i.op, i.type, args[0]->real, two ? args[1]->real : 0);
  return ofIntegers(i.op, i.type, args[0]->integer, args[1]->integer);
}

bool DimProgram::valid(size_t numSymbols) const {
  if (code.empty() || code.size() > kMaxLength || code.back().type != DType::I64)
    return false;
  for (size_t k = 0; k < code.size(); ++k) {
    const Instr &i = code[k];
    if (static_cast<int>(i.op) >= kNumOps || static_cast<int>(i.type) >= kNumDTypes)
      return false;
    const int operands = numOperands(i.op);
    std::array<DType, 3> types{};
    for (int a = 0; a < 3; ++a) {
      const int32_t from = i.args[static_cast<size_t>(a)];
      if (a >= operands ? from != -1 : from < 0 || static_cast<size_t>(from) >= k)
        return false;
      if (a < operands)
        types[static_cast<size_t>(a)] = code[static_cast<size_t>(from)].type;
    }
    if (!typesFit(i, types[0], types[1], types[2]) ||
        (i.op == Op::Symbol && (i.value < 0 || static_cast<uint64_t>(i.value) >= numSymbols)) ||
        (i.op > Op::Float && i.value != 0))
      return false;
  }
  return true;
}

std::optional<int64_t> DimProgram::evaluate(const std::vector<int64_t> &symbols) const {
  std::vector<DimNumber> values(code.size());
  for (size_t k = 0; k < code.size(); ++k) {
    const Instr &i = code[k];
    std::array<const DimNumber *, 3> args{};
    for (size_t a = 0; a < 3; ++a)
      args[a] = i.args[a] < 0 ? nullptr : &values[static_cast<size_t>(i.args[a])];
    const DType type = i.args[0] < 0 ? i.type : code[static_cast<size_t>(i.args[0])].type;
    values[k] = apply(i, type, args, symbols);
  }
  const DimNumber &last = values.back();
  return last.known ? std::optional(last.integer) : std::nullopt;
}

std::string DimProgram::str(const std::vector<fusec::Symbol> &symbols) const {
  constexpr size_t kLongest = 240;
  constexpr std::string_view signs[] = {" + ", " - ", "*", "/"}; // from Add on
  struct Part {
    std::string text;
    int binds = 0; // 0: a sum or comparison, 1: a product, 2: neither needs parentheses
  };
  std::vector<Part> parts;
  for (const Instr &i : code) {
    auto arg = [&](size_t a, int binds) {
      const Part &p = parts[static_cast<size_t>(i.args[a])];
      return p.binds < binds ? "(" + p.text + ")" : p.text;
    };
    Part made{"", 2};
    if (i.op == Op::Symbol) {
      made.text = symbols[static_cast<size_t>(i.value)].name;
    } else if (i.op == Op::Integer) {
      made = {std::to_string(i.value), i.value < 0 ? 0 : 2};
    } else if (i.op == Op::Float) {
      const auto v = std::bit_cast<double>(i.value);
      made = {i.type == DType::F32 ? floatToText(static_cast<float>(v)) : floatToText(v),
              v < 0 ? 0 : 2};
    } else if (i.op == Op::Cast) {
      made.text = std::string(name(i.type)) + "(" + arg(0, 0) + ")";
    } else if (i.op >= Op::Add && i.op <= Op::Div && (i.op != Op::Div || isFloat(i.type))) {
      const bool product = i.op == Op::Mul || i.op == Op::Div;
      made.text = arg(0, product) +
                  std::string(signs[static_cast<int>(i.op) - static_cast<int>(Op::Add)]) +
                  arg(1, i.op == Op::Add   ? 0
                         : i.op == Op::Div ? 2
                                           : 1);
      made.binds = product;
    } else if (isComparison(i.op)) {
      made = {arg(0, 1) +
                  (i.op == Op::Equal  ? " == "
                   : i.op == Op::Less ? " < "
                                      : " <= ") +
                  arg(1, 1),
              0};
    } else {
      made.text = std::string(name(i.op)) + "(";
      for (int a = 0; a < numOperands(i.op); ++a)
        made.text += (a ? ", " : "") + arg(static_cast<size_t>(a), 0);
      made.text += ")";
    }
    if (made.text.size() > kLongest)
      made = {"...", 2};
    parts.push_back(std::move(made));
  }
  return parts.back().text;
}

size_t numGiven(const std::vector<Symbol> &symbols) {
  size_t n = 0;
  while (n < symbols.size() && !symbols[n].definition && !symbols[n].bound)
    ++n;
  return n;
}

std::optional<SymbolId> computeDefined(const std::vector<Symbol> &symbols,
                                       std::vector<int64_t> &values) {
  for (size_t s = values.size(); s < symbols.size(); ++s) {
    std::optional<int64_t> v;
    if (symbols[s].definition)
      v = symbols[s].definition->evaluate(values);
    if (!v)
      return static_cast<SymbolId>(s);
    values.push_back(*v);
  }
  return std::nullopt;
}

} // namespace fusec
