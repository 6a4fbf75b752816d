// Compositions of long chains: the work grows with their length. It is counted by allocations and their bytes, for
// every copy of a node or a name makes some.
#include "../AllocationMeter.h"
#include "../ParseProgram.h"
#include "Expr/Passes.h"

#include <catch2/catch_all.hpp>

using namespace fusec;
using namespace fusec::test;

namespace {

/// Maps that follow each other, each with a node of the model; `value` reads %in.
ExprProgram chain(int length, const std::string &value) {
  std::string tensors, bodies, before = "x";
  for (int i = 0; i < length; ++i) {
    const std::string name = "t" + std::to_string(i);
    tensors += "tensor %" + name + ": f32[4,4] " + (i + 1 == length ? "output\n" : "temp\n");
    std::string body = value;
    body.replace(body.find("%in"), 3, "%" + before);
    bodies += "map " + name + " [i:4, j:4] @\"a node named " + name + "\"\n  %" + name + " = " +
              body + "\n";
    before = name;
  }
  return parse("expr chain\ntensor %x: f32[4,4] input\ntensor %w: f32[4] input\n" + tensors +
               "inputs (%x, %w)\noutputs (%" + before + ")\n" + bodies);
}

Allocations workFor(const ExprProgram &program, size_t &equations) {
  Allocations work;
  ExprProgram copy = program;
  meter = &work;
  copy = compose(std::move(copy));
  meter = nullptr;
  equations = copy.items.size();
  return work;
}

} // namespace

TEST_CASE("compose: the work grows with the length of a chain") {
  // Arithmetic that ends with a full body and begins anew; movement that is one map of all the model's nodes.
  for (const auto &[value, most] :
       {std::pair("add(%in[i, j], %w[j])", 40), std::pair("%in[j, i]", 1)}) {
    size_t equations = 0;
    const Allocations one = workFor(chain(2000, value), equations),
                      two = workFor(chain(4000, value), equations),
                      four = workFor(chain(8000, value), equations);
    CHECK(equations <= static_cast<size_t>(most));
    for (const auto &[small, large] : {std::pair(one, two), std::pair(two, four)}) {
      CHECK(large.count < 2.2 * small.count);
      CHECK(large.bytes < 2.2 * small.bytes);
    }
    // A copy of half a full body for each map would take several times as many bytes.
    CHECK(four.bytes < int64_t{8000} * 16000);
  }
}
