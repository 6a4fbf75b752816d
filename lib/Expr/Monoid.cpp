#include "Expr/Monoid.h"

#include <limits>

namespace fusec {
namespace {

constexpr std::string_view kMonoids[] = {"sum",    "prod",   "max",        "min",
                                         "and",    "or",     "xor",        "cascade",
                                         "argmax", "argmin", "argmaxlast", "argminlast"};

int64_t lowestInt(DType t) {
  if (!isSigned(t))
    return 0;
  return t == DType::I64 ? INT64_MIN : -(int64_t(1) << (sizeInBytes(t) * 8 - 1));
}
int64_t highestInt(DType t) {
  if (t == DType::Bool)
    return 1;
  return t == DType::U64 ? -1
         : isSigned(t)   ? ~lowestInt(t)
                         : (int64_t(1) << sizeInBytes(t) * 8) - 1;
}

} // namespace

std::string_view name(Monoid m) { return kMonoids[static_cast<int>(m)]; }

std::optional<Monoid> parseMonoid(std::string_view text) {
  for (size_t i = 0; i < std::size(kMonoids); ++i)
    if (kMonoids[i] == text)
      return static_cast<Monoid>(i);
  return std::nullopt;
}

NodeId identityOf(Body &body, Monoid m, DType t) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (m) {
  case Monoid::Sum:
  case Monoid::Or:
  case Monoid::Xor: return body.constantInt(t, 0);
  case Monoid::Prod: return body.constantInt(t, 1);
  case Monoid::And: return body.constantInt(t, t == DType::Bool ? 1 : -1);
  case Monoid::Max:
  case Monoid::ArgMax:
  case Monoid::ArgMaxLast:
    return isFloat(t) ? body.constant(t, -infinity) : body.constantInt(t, lowestInt(t));
  case Monoid::Min:
  case Monoid::ArgMin:
  case Monoid::ArgMinLast:
    return isFloat(t) ? body.constant(t, infinity) : body.constantInt(t, highestInt(t));
  case Monoid::Cascade: break; // each state has its own
  }
  return kNoNode;
}

bool isArgMonoid(Monoid m) { return m >= Monoid::ArgMax; }
bool isTupleMonoid(Monoid m) { return m >= Monoid::Cascade; }

} // namespace fusec
