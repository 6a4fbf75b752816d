// States of cascades: sets of points that merge in any order, infinities, and the rules.
#include "Cascades.h"
#include "Expr/ScalarEval.h"

using namespace fusec;
using namespace fusec::test;

namespace {

/// Values of the states over sets of points of row `row`, merged as CascadeState says.
class Merger {
public:
  Merger(const Equation &e, const std::vector<TensorValue> &inputs, int64_t row)
      : e(e), inputs(inputs), row(row) {}
  using States = std::vector<double>;

  States point(int64_t k) const {
    States none = neutral(), made;
    for (size_t s = 0; s < e.states.size(); ++s)
      made.push_back(fold(s, none[s], evaluate(e.results[s], none, made, k)));
    return made;
  }
  States merge(const States &a, const States &b) const {
    States made;
    for (size_t s = 0; s < e.states.size(); ++s) {
      auto moved = [&](const States &set) {
        const NodeId c = e.states[s].correction;
        return c == kNoNode ? set[s] : evaluate(c, set, made, 0);
      };
      made.push_back(fold(s, moved(a), moved(b)));
    }
    return made;
  }
  States neutral() const {
    States none;
    Body scratch;
    for (const CascadeState &s : e.states)
      none.push_back(scratch[identityOf(scratch, s.monoid, DType::F64)].fimm);
    return none;
  }

private:
  double fold(size_t s, double a, double b) const {
    switch (e.states[s].monoid) {
    case Monoid::Sum: return a + b;
    case Monoid::Max: return std::max(a, b);
    default: return std::min(a, b);
    }
  }
  double evaluate(NodeId root, const States &parts, const States &states, int64_t k) const {
    std::vector<ScalarValue> values(e.body.nodes.size());
    for (NodeId id : e.body.reachable({root})) {
      const Scalar &s = e.body[id];
      ScalarValue &v = values[static_cast<size_t>(id)];
      std::vector<ScalarValue> args;
      for (NodeId a : s.args)
        args.push_back(values[static_cast<size_t>(a)]);
      switch (s.op) {
      case ScalarOp::Const: v = {s.imm, s.fimm}; break;
      case ScalarOp::Axis: v.i = s.index < e.numSpatial ? row : k; break;
      case ScalarOp::State: v.f = states.at(static_cast<size_t>(s.index)); break;
      case ScalarOp::Part: v.f = parts.at(static_cast<size_t>(s.index)); break;
      case ScalarOp::Read: {
        const TensorValue &t = inputs[static_cast<size_t>(s.index)];
        int64_t at = 0;
        for (size_t d = 0; d < args.size(); ++d)
          at = at * t.dims[d] + args[d].i;
        v.f = t.number(at);
        break;
      }
      default: v = *evaluateScalar(s.op, s.type, e.body[s.args.back()].type, args.data());
      }
    }
    return values[static_cast<size_t>(root)].f;
  }

  const Equation &e;
  const std::vector<TensorValue> &inputs;
  int64_t row;
};

} // namespace

TEST_CASE("rows of infinities, and numbers far from zero") {
  const ExprProgram p = pairOf(kMax, "sum f64\n  %s = exp(sub(%x[i, k], %r[i]))");
  const ExprProgram one = repaired(p);
  std::mt19937 random(12);
  auto inputs = inputsOf(p, random);
  const double infinity = std::numeric_limits<double>::infinity();
  TensorValue &x = inputs[0];
  for (int64_t k = 0; k < 37; ++k) {
    x.setNumber(k, -infinity);                                  // masked altogether
    x.setNumber(37 + k, k < 20 ? -infinity : x.number(37 + k)); // at its beginning
    x.setNumber(74 + k, k % 2 ? 1e4 : -1e4);                    // e^(2e4) would overflow
    x.setNumber(111 + k, -1e4 + static_cast<double>(k));        // the maximum grows
    x.setNumber(148 + k, 1e4 - static_cast<double>(k));         // it is the first
  }
  const auto now = run(one, inputs), before = run(p, inputs);
  CHECK(now[0].number(0) == -infinity);
  CHECK(now[1].number(0) == 0); // two passes: e^(-inf + inf), which is NaN
  for (int64_t i = 1; i < 5; ++i)
    CHECK(std::abs(now[1].number(i) - before[1].number(i)) <= 1e-12 * before[1].number(i));
}

TEST_CASE("sets of points merge in any order") {
  std::mt19937 random(13);
  for (const char *pair : {"exp(sub(%x[i, k], %r[i]))", "deviation"}) {
    const bool squares = std::string(pair) == "deviation";
    const ExprProgram p =
        squares ? pairOf(kSum, "sum f64\n  let t0 = sub(%x[i, k], div(%r[i], 37.0));\n"
                               "  %s = mul(t0, t0)")
                : pairOf(kMax, std::string("sum f64\n  %s = ") + pair);
    auto inputs = inputsOf(p, random, squares ? 1e3 : -50, squares ? 1 : 100);
    if (!squares) // some points that count for nothing
      for (int64_t k = 0; k < 12; ++k)
        inputs[0].setNumber(37 * 3 + k * 3, -std::numeric_limits<double>::infinity());
    const auto expected = run(p, inputs);
    const ExprProgram one = repaired(p);
    const Merger merger(cascadeIn(one), inputs, 3);
    for (int round = 0; round < 20; ++round) {
      std::vector<Merger::States> sets = {merger.neutral()}; // an idle lane
      for (int64_t k = 0; k < 37; ++k)
        sets.push_back(merger.point(k));
      while (sets.size() > 1) {
        std::swap(sets[random() % sets.size()], sets.back());
        Merger::States last = std::move(sets.back());
        sets.pop_back();
        auto &into = sets[random() % sets.size()];
        into = random() % 2 ? merger.merge(into, last) : merger.merge(last, into);
      }
      const double sum = expected[1].number(3);
      CHECK(std::abs(sets[0].back() - sum) <= 1e-9 * sum);
    }
  }
}

TEST_CASE("a cascade says what is wrong with it") {
  auto problem = [](const std::string &cascade) {
    ConstantStore store;
    auto p = parseExpr(R"(expr p
tensor %x: f32[4,8] input
tensor %a: f32[4] output
tensor %b: f32[4] output
inputs (%x)
outputs (%a, %b)
reduction c [i:4; k:8] cascade f32
)" + cascade,
                       "p", store);
    if (!p.ok())
      return format(p.errors().front());
    auto status = verify(*p);
    return status.ok() ? std::string() : status.errors().front().text;
  };
  const std::string max = "  %a = max %x[i, k]\n";
  CHECK(problem(max + "  %b = sum exp(state(0))\n  correct 1 = part(1)\n").empty());
  CHECK(problem(max + "  %b = sum exp(state(0))\n") ==
        "state 1 has a correction if and only if its value uses states");
  CHECK(problem(max + "  %b = sum exp(state(1))\n  correct 1 = part(1)\n") ==
        "the value of state 1 uses a state that is not there yet");
  CHECK(problem(max + "  %b = sum exp(state(0))\n  correct 1 = state(1)\n") ==
        "the correction of state 1 uses a state that is not there yet");
  CHECK(problem(max + "  %b = sum exp(state(0))\n  correct 1 = mul(part(1), %x[i, k])\n") ==
        "the correction of state 1 depends on a single point");
  CHECK(problem(max + "  %b = argmax %x[i, k]\n") == "state 1 folds one value");
  CHECK(problem(max + "  %b = sum state(7)\n  correct 1 = part(1)\n") ==
        "a state that does not exist");
  CHECK(problem(max) == "an output that no equation writes");
  CHECK(problem(max + "  state sum 1.0\n").find("states without an output come first") !=
        std::string::npos);
  CHECK(problem(max + "  %b = sum 1.0\n  correct 9 = part(1)\n").find("there is no state 9") !=
        std::string::npos);
}
