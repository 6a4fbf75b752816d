// What turns of a loop make of an index: places side by side, the same for all, or neither.
#include "Expr/TurnsOfGroup.h"

#include <catch2/catch_test_macros.hpp>

using namespace fusec;

namespace {

/// Axis 0 is the loop's variable, axis 1 another one.
struct Group {
  Body body;
  std::vector<Symbol> symbols;
  int64_t size = 4;

  Group() {
    body.axisRanges = {{0, 1 << 20, std::nullopt}, {0, 1 << 20, std::nullopt}};
    symbols.push_back({"n", 8, 64, 4096, 8});
    symbols.push_back({"m", 1, 64, 4096, 1});
    body.symbolTable = symbols;
  }
  NodeId turn() { return body.axis(0); }
  NodeId other() { return body.axis(1); }
  NodeId binary(ScalarOp op, NodeId a, int64_t b) { return body.binary(op, a, body.index(b)); }
  NodeId add(NodeId a, NodeId b) { return body.binary(ScalarOp::Add, a, b); }
  TurnsOfGroup turns() {
    return {body, symbols, size,
            [this](int32_t axis) { return axis == 0 ? Progress{1, size} : Progress{}; },
            [](const Scalar &read) { return read.index == 1; }};
  }
  bool liesTogether(NodeId id) {
    TurnsOfGroup all = turns();
    return all.liesTogether(all.of(id));
  }
  bool isSame(NodeId id) { return turns().isSame(id); }
};

} // namespace

TEST_CASE("turns lie together behind a multiple of their number") {
  Group g;
  CHECK(g.liesTogether(g.turn()));
  CHECK(g.liesTogether(g.add(g.binary(ScalarOp::Mul, g.other(), 12), g.turn())));
  CHECK(g.liesTogether(g.add(g.turn(), g.body.index(8))));
  CHECK(!g.liesTogether(g.add(g.turn(), g.body.index(2))));
  CHECK(!g.liesTogether(g.add(g.binary(ScalarOp::Mul, g.other(), 6), g.turn())));
  CHECK(!g.liesTogether(g.add(g.other(), g.turn())));
  CHECK(!g.liesTogether(g.binary(ScalarOp::Mul, g.turn(), 4)));
  // Rows as long as a symbol says, which is a multiple of 8 or of nothing.
  const auto row = [&](int symbol) {
    return g.body.binary(ScalarOp::Mul, g.other(), g.body.dim(DimExpr::symbol(symbol)));
  };
  CHECK(g.liesTogether(g.add(row(0), g.turn())));
  CHECK(!g.liesTogether(g.add(row(1), g.turn())));
}

TEST_CASE("turns of a row taken apart stay in it where its length is a multiple of their number") {
  Group g;
  const NodeId flat = g.add(g.binary(ScalarOp::Mul, g.other(), 4), g.turn());
  CHECK(g.liesTogether(g.binary(ScalarOp::FloorMod, flat, 60)));
  CHECK(g.isSame(g.binary(ScalarOp::FloorDiv, flat, 60)));
  CHECK(!g.liesTogether(g.binary(ScalarOp::FloorMod, flat, 62)));
  CHECK(!g.isSame(g.binary(ScalarOp::FloorDiv, flat, 62)));
}

TEST_CASE("a bound that is a multiple of their number says the same of all turns") {
  Group g;
  CHECK(g.isSame(g.binary(ScalarOp::Lt, g.turn(), 100)));
  CHECK(!g.isSame(g.binary(ScalarOp::Lt, g.turn(), 102)));
  CHECK(g.isSame(g.body.binary(ScalarOp::Le, g.body.index(8), g.turn())));
  CHECK(!g.isSame(g.binary(ScalarOp::Le, g.turn(), 8)));
  CHECK(g.isSame(g.binary(ScalarOp::Lt, g.other(), 3)));
}

TEST_CASE("what a read finds is the same where nothing changes it") {
  Group g;
  CHECK(g.isSame(g.body.read(0, DType::I64, {g.other()})));
  CHECK(!g.isSame(g.body.read(1, DType::I64, {g.other()})));
  CHECK(!g.isSame(g.body.read(0, DType::I64, {g.turn()})));
}
