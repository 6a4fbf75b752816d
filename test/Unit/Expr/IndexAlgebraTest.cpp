// The index simplifier never changes a value, and folds what compositions of reshapes produce.
#include "Expr/Body.h"
#include "Expr/ScalarEval.h"

#include <catch2/catch_test_macros.hpp>
#include <random>

using namespace fusec;

namespace {

struct Fixture {
  Body body;
  std::vector<Symbol> symbols;
  NodeId s, h, d;

  Fixture() {
    body.axisRanges = {rangeOfExtent(128, {}), rangeOfExtent(12, {}), rangeOfExtent(64, {})};
    s = body.axis(0);
    h = body.axis(1);
    d = body.axis(2);
  }
  NodeId add(NodeId a, NodeId b) { return body.binary(ScalarOp::Add, a, b); }
  NodeId mul(NodeId a, int64_t c) { return body.binary(ScalarOp::Mul, a, body.index(c)); }
  NodeId div(NodeId a, int64_t c) { return body.binary(ScalarOp::FloorDiv, a, body.index(c)); }
  NodeId mod(NodeId a, int64_t c) { return body.binary(ScalarOp::FloorMod, a, body.index(c)); }
};

int64_t evaluate(const Body &body, NodeId id, const std::vector<int64_t> &axes,
                 const std::vector<int64_t> &symbols) {
  const Scalar &s = body[id];
  switch (s.op) {
  case ScalarOp::Const: return s.imm;
  case ScalarOp::Axis: return axes[s.index];
  case ScalarOp::Dim: return *s.dim.evaluate(symbols);
  default: break;
  }
  ScalarValue v[3];
  for (size_t i = 0; i < s.args.size(); ++i)
    v[i].i = evaluate(body, s.args[i], axes, symbols);
  return evaluateScalar(s.op, s.type, body[s.args.back()].type, v)->i;
}

} // namespace

TEST_CASE("a reshape of a reshape gives the axes back") {
  Fixture f;
  NodeId flat = f.add(f.add(f.mul(f.s, 768), f.mul(f.h, 64)), f.d);
  CHECK(f.mod(f.div(flat, 64), 12) == f.h);
  CHECK(f.mod(flat, 64) == f.d);
  CHECK(f.div(flat, 768) == f.s);
  CHECK(f.div(f.mod(flat, 768), 64) == f.h);
}

TEST_CASE("what was taken apart is put together") {
  Fixture f;
  f.body.axisRanges[0] = rangeOfExtent(98304, {});
  NodeId apart = f.add(f.add(f.mul(f.div(f.s, 768), 768), f.mul(f.mod(f.div(f.s, 64), 12), 64)),
                       f.mod(f.s, 64));
  CHECK(apart == f.s);
  NodeId part = f.add(f.mul(f.mod(f.div(f.s, 64), 12), 64), f.mod(f.s, 64));
  CHECK(part == f.mod(f.s, 768));
}

TEST_CASE("divisions by symbolic extents fold") {
  Body body;
  body.symbolTable = {{"n", 1, 8, 4096, 1}, {"b", 1, 1, INT64_MAX, 1}};
  DimExpr n = DimExpr::symbol(0), b = DimExpr::symbol(1);
  body.axisRanges = {rangeOfExtent(b, body.symbolTable), rangeOfExtent(n, body.symbolTable),
                     rangeOfExtent(64, body.symbolTable)};
  NodeId bi = body.axis(0), ni = body.axis(1), di = body.axis(2);
  auto mul = [&](NodeId a, const DimExpr &c) { return body.binary(ScalarOp::Mul, a, body.dim(c)); };
  NodeId flat =
      body.binary(ScalarOp::Add, body.binary(ScalarOp::Add, mul(bi, n * 64), mul(ni, 64)), di);
  CHECK(body.binary(ScalarOp::FloorDiv, flat, body.dim(n * 64)) == bi);
  NodeId row = body.binary(ScalarOp::FloorDiv, flat, body.dim(64));
  CHECK(body.binary(ScalarOp::FloorMod, row, body.dim(n)) == ni);
  CHECK(body.binary(ScalarOp::FloorMod, flat, body.dim(64)) == di);
}

// Scores [n, 2n] by distance become scores by position: [2n, n], without its first row [n, 2n-1], its first n columns.
TEST_CASE("the shift of relative positions is a difference of positions") {
  Body body;
  body.symbolTable = {{"n", 1, 8, INT64_MAX, 1}};
  const DimExpr symbolic = DimExpr::symbol(0);
  for (const DimExpr &n : {symbolic, DimExpr(128)}) {
    body.axisRanges = {rangeOfExtent(n, body.symbolTable), rangeOfExtent(n, body.symbolTable)};
    const NodeId i = body.axis(0), j = body.axis(1);
    auto of = [&](ScalarOp op, NodeId a, const DimExpr &b) {
      return body.binary(op, a, b.isConst() ? body.index(b.constValue()) : body.dim(b));
    };
    auto sum = [&](NodeId a, NodeId b) { return body.binary(ScalarOp::Add, a, b); };
    const NodeId flat = sum(of(ScalarOp::Mul, i, n * 2 - 1), j);
    const NodeId row = of(ScalarOp::Add, of(ScalarOp::FloorDiv, flat, n), 1);
    const NodeId from =
        sum(of(ScalarOp::Mul, row, n), of(ScalarOp::FloorMod, flat, n)); // of all scores
    CHECK(of(ScalarOp::FloorDiv, from, n * 2) == i);
    const NodeId distance = of(ScalarOp::Add, body.binary(ScalarOp::Sub, j, i), n);
    CHECK(of(ScalarOp::FloorMod, from, n * 2) == distance);
    // as composed maps write the same
    CHECK(sum(of(ScalarOp::FloorMod, flat, n),
              of(ScalarOp::Mul, of(ScalarOp::FloorMod, row, 2), n)) == distance);
  }
}

TEST_CASE("predicates that always or never hold fold") {
  Fixture f;
  NodeId inside = f.body.binary(ScalarOp::Lt, f.add(f.mul(f.h, 64), f.d), f.body.index(768));
  CHECK(f.body[inside].op == ScalarOp::Const);
  CHECK(f.body[inside].imm == 1);
  NodeId never = f.body.binary(ScalarOp::Le, f.body.index(64), f.d);
  CHECK(f.body[never].imm == 0);
  NodeId open = f.body.binary(ScalarOp::Le, f.body.index(1), f.d);
  CHECK(f.body[open].op == ScalarOp::Lt); // 0 < d
  CHECK(f.body.logicalAnd(inside, open) == open);
  CHECK(f.body.logicalAnd(open, open) == open);
  CHECK(f.body.logicalAnd(kNoNode, kNoNode) == kNoNode);
}

TEST_CASE("sums over data that may wrap are not divided") {
  Body body;
  NodeId x = body.read(0, DType::I64, {});
  NodeId four = body.binary(ScalarOp::Mul, x, body.index(4));
  NodeId q = body.binary(ScalarOp::FloorDiv, four, body.index(4));
  CHECK(q != x);
  CHECK(body[q].op == ScalarOp::FloorDiv);
}

TEST_CASE("float rules keep every bit") {
  Body body;
  NodeId x = body.read(0, DType::F32, {});
  CHECK(body.binary(ScalarOp::Mul, x, body.constant(DType::F32, 1)) == x);
  CHECK(body.binary(ScalarOp::Add, x, body.constant(DType::F32, -0.0)) == x);
  CHECK(body.binary(ScalarOp::Add, x, body.constant(DType::F32, 0.0)) != x); // -0 + 0 = 0
  CHECK(body.cast(DType::F32, body.cast(DType::F64, x)) == x);
  CHECK(body.cast(DType::F32, body.cast(DType::F16, x)) != x);
  CHECK(body.constant(DType::F32, 0.0) != body.constant(DType::F32, -0.0));
}

TEST_CASE("random index expressions keep their value") {
  std::mt19937 random(20261121);
  auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  const int64_t constants[] = {1, 2, 3, 4, 6, 8, 12, 24, 64, -1, -2, 5, 7};
  size_t exactNodes = 0, simpleNodes = 0;
  for (int round = 0; round < 4000; ++round) {
    Body exact, simple;
    std::vector<Symbol> symbols = {{"n", 1, 4, 12, 1}, {"m", 1, 4, 9, 1}};
    std::vector<DimExpr> extents = {pick(1, 24), DimExpr::symbol(0), DimExpr::symbol(1),
                                    pick(1, 8)};
    for (Body *b : {&exact, &simple}) {
      b->symbolTable = symbols;
      for (const DimExpr &e : extents)
        b->axisRanges.push_back(rangeOfExtent(e, symbols));
    }
    std::vector<std::pair<NodeId, NodeId>> pool; // (exact, simplified)
    for (int a = 0; a < 4; ++a)
      pool.push_back({exact.axis(a), simple.axis(a)});
    std::vector<DimExpr> dims = {DimExpr::symbol(0), DimExpr::symbol(1), DimExpr::symbol(0) * 4,
                                 DimExpr::symbol(0) * DimExpr::symbol(1)};
    for (int step = 0; step < 12; ++step) {
      auto a = pool[pick(0, static_cast<int64_t>(pool.size()) - 1)];
      auto b = pool[pick(0, static_cast<int64_t>(pool.size()) - 1)];
      auto constant = [&](bool positive) -> std::pair<NodeId, NodeId> {
        if (pick(0, 3) == 0) {
          DimExpr d = dims[pick(0, 3)];
          return {exact.dim(d), simple.dim(d)};
        }
        int64_t c = constants[pick(0, positive ? 8 : 12)];
        return {exact.index(c), simple.index(c)};
      };
      auto emit = [&](ScalarOp op, std::pair<NodeId, NodeId> y) {
        bool comparison = op == ScalarOp::Lt || op == ScalarOp::Le || op == ScalarOp::Eq;
        NodeId e = exact.addExact(
            {op, comparison ? DType::Bool : DType::I64, {a.first, y.first}, 0, 0, 0, 0});
        NodeId s = simple.binary(op, a.second, y.second);
        if (comparison) {
          e = exact.addExact({ScalarOp::Select, DType::I64, {e, a.first, b.first}, 0, 0, 0, 0});
          s = simple.select(s, a.second, b.second);
        }
        pool.push_back({e, s});
      };
      switch (pick(0, 9)) {
      case 0:
      case 1: emit(ScalarOp::Add, b); break;
      case 2: emit(ScalarOp::Sub, b); break;
      case 3:
      case 4: emit(ScalarOp::Mul, constant(false)); break;
      case 5: emit(ScalarOp::FloorDiv, constant(true)); break;
      case 6: emit(ScalarOp::FloorMod, constant(true)); break;
      case 7: emit(pick(0, 1) ? ScalarOp::Lt : ScalarOp::Le, b); break;
      case 8: emit(pick(0, 1) ? ScalarOp::Min : ScalarOp::Max, b); break;
      default: emit(ScalarOp::Add, constant(false)); break;
      }
    }
    exactNodes += exact.reachable({pool.back().first}).size();
    simpleNodes += simple.reachable({pool.back().second}).size();
    for (int sample = 0; sample < 8; ++sample) {
      std::vector<int64_t> values = {pick(1, 12), pick(1, 9)}, axes;
      for (const DimExpr &e : extents)
        axes.push_back(pick(0, *e.evaluate(values) - 1));
      for (auto [e, s] : pool) {
        int64_t value = evaluate(exact, e, axes, values);
        REQUIRE(evaluate(simple, s, axes, values) == value);
        IndexRange range = simple.rangeOf(s);
        REQUIRE(range.min <= value);
        REQUIRE(value <= range.max);
      }
    }
  }
  CHECK(simpleNodes < exactNodes);
}
