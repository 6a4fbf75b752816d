#include "Expr/transforms/Polynomial.h"

#include <algorithm>

namespace fusec {

Polynomial polynomialOf(const Body &body, NodeId id, const std::function<bool(NodeId)> &varies) {
  const Scalar &s = body[id];
  if (s.op == ScalarOp::Const)
    return s.fimm == 0 ? Polynomial() : Polynomial{{{}, s.fimm}};
  auto part = [&](size_t i) { return polynomialOf(body, s.args[i], varies); };
  if (varies(id)) {
    switch (s.op) {
    case ScalarOp::Add: return plus(part(0), part(1), 1);
    case ScalarOp::Sub: return plus(part(0), part(1), -1);
    case ScalarOp::Neg: return plus({}, part(0), -1);
    case ScalarOp::Mul: return times(part(0), part(1));
    case ScalarOp::Div:
      if (const Scalar &by = body[s.args[1]]; by.op == ScalarOp::Const && by.fimm != 0)
        return plus({}, part(0), 1 / by.fimm);
      break;
    default: break;
    }
  }
  return {{{id}, 1}};
}

Polynomial times(const Polynomial &a, const Polynomial &b) {
  Polynomial out;
  for (const auto &[x, c] : a)
    for (const auto &[y, d] : b) {
      std::vector<NodeId> atoms = x;
      atoms.insert(atoms.end(), y.begin(), y.end());
      std::sort(atoms.begin(), atoms.end());
      out[atoms] += c * d;
    }
  return out;
}

Polynomial plus(Polynomial a, const Polynomial &b, double factor) {
  for (const auto &[atoms, c] : b)
    a[atoms] += factor * c;
  std::erase_if(a, [](const auto &term) { return term.second == 0; });
  return a;
}

std::optional<double> ratio(const Polynomial &b, const Polynomial &a) {
  if (a.empty() || a.size() != b.size())
    return std::nullopt;
  const double factor = b.begin()->second / a.begin()->second;
  for (auto i = a.begin(), k = b.begin(); i != a.end(); ++i, ++k)
    if (i->first != k->first || k->second != factor * i->second)
      return std::nullopt;
  return factor;
}

} // namespace fusec
