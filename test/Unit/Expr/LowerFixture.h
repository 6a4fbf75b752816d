#pragma once
#include "Expr/Lower.h"
#include "Expr/Passes.h"
#include "Reference/ExprInterpreter.h"
#include "Reference/GraphInterpreter.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <random>

namespace fusec::test {

/// Random small numbers, repeatable: the seed is printed with every failure.
class Random {
public:
  explicit Random(uint32_t seed) : engine(seed) {}
  int64_t integer(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine() % static_cast<uint64_t>(high - low + 1));
  }
  bool chance(int percent) { return integer(0, 99) < percent; }
  double real(double low, double high) {
    return low + (high - low) * static_cast<double>(engine() % 1000003) / 1000003.0;
  }
  template <typename T> const T &pick(const std::vector<T> &list) {
    return list[static_cast<size_t>(integer(0, static_cast<int64_t>(list.size()) - 1))];
  }
  /// Extents 1..4, and now and then 0 where that is allowed.
  std::vector<int64_t> dims(int64_t rank, bool mayBeEmpty = false) {
    std::vector<int64_t> list;
    for (int64_t d = 0; d < rank; ++d)
      list.push_back(mayBeEmpty && chance(4) ? 0 : integer(1, 4));
    return list;
  }
  TensorValue tensor(DType t, std::vector<int64_t> dims, double low, double high) {
    TensorValue v(t, std::move(dims));
    for (int64_t i = 0; i < v.numElements(); ++i) {
      if (isFloat(t))
        v.floats[static_cast<size_t>(i)] = real(low, high);
      else
        v.ints[static_cast<size_t>(i)] =
            integer(static_cast<int64_t>(low), static_cast<int64_t>(high));
    }
    v.round();
    return v;
  }

private:
  std::mt19937 engine;
};

inline std::string problems(const Diagnostics &errors) {
  std::string text;
  for (const Diagnostic &d : errors)
    text += format(d) + "\n";
  return text;
}

/// A graph under construction together with the values that its inputs take in the test.
class GraphMaker {
public:
  Graph graph;
  std::vector<TensorValue> inputs;
  double tolerance =
      2e-5; // of 1 + |expected|, for floats of 32 and 64 bits; 16-bit ones get their own

  GraphMaker() { graph.name = "test"; }

  Shape shapeOf(const std::vector<int64_t> &dims) const { return Shape(dims.begin(), dims.end()); }
  ValueId input(TensorValue v) { return input(v, shapeOf(v.dims)); }
  ValueId input(TensorValue v, Shape shape) {
    ValueId id = graph.addValue({name("x"), v.type, std::move(shape), nullptr, {}});
    graph.body.inputs.push_back(id);
    values[id] = toConstant(v);
    inputs.push_back(std::move(v));
    return id;
  }
  ValueId constant(const TensorValue &v) {
    ValueId id = graph.addValue({name("c"), v.type, shapeOf(v.dims), toConstant(v), {}});
    values[id] = graph.value(id).constant;
    return id;
  }
  ValueId ints(const std::vector<int64_t> &v) {
    TensorValue t(DType::I64, {static_cast<int64_t>(v.size())});
    t.ints = v;
    return constant(t);
  }

  using Attributes = std::map<std::string, Attribute>;
  /// Adds a node. Shapes are given where the operator takes them from the graph or a symbol is in them; the
  /// reference knows the others.
  std::vector<ValueId> node(OpKind op, std::vector<ValueId> in, Attributes attributes,
                            std::vector<DType> types, std::vector<Shape> shapes = {}) {
    Node n{op,
           std::string(info(op).name) + "_" + std::to_string(graph.body.nodes.size()),
           std::string(info(op).name),
           std::move(in),
           {},
           std::move(attributes),
           {}};
    for (size_t i = 0; i < types.size(); ++i)
      n.outputs.push_back(graph.addValue(
          {name("y"), types[i], i < shapes.size() ? shapes[i] : Shape{}, nullptr, {}}));
    std::vector<ConstantRef> operands;
    for (ValueId id : n.inputs)
      operands.push_back(id == kNoValue ? nullptr : values[id]);
    if (graph.symbols.empty()) {
      auto result = referenceEvaluator()(graph, n, operands);
      if (!result.ok())
        FAIL(problems(result.errors()));
      for (size_t i = 0; i < types.size(); ++i) {
        graph.value(n.outputs[i]).shape = shapeOf((*result)[i]->dims);
        values[n.outputs[i]] = (*result)[i];
      }
    }
    std::vector<ValueId> outputs = n.outputs;
    graph.body.nodes.push_back(std::move(n));
    graph.body.outputs.insert(graph.body.outputs.end(), outputs.begin(), outputs.end());
    return outputs;
  }

  /// The lowered program computes what the graph does: as it leaves the lowering, and after all passes.
  void check() {
    INFO(print(graph, nullptr));
    if (auto s = verify(graph); !s.ok())
      FAIL(problems(s.errors()));
    auto expected = evaluate(graph, inputs);
    if (!expected.ok())
      FAIL(problems(expected.errors()));
    auto program = lowerGraph(graph);
    if (!program.ok())
      FAIL(problems(program.errors()));
    compare(*program, *expected, "lowered");
    for (const Pass<ExprProgram> &pass : exprPasses())
      REQUIRE(pass.run(*program).ok());
    compare(*program, *expected, "after the passes");
  }

private:
  std::string name(const std::string &base) { return base + std::to_string(graph.values.size()); }

  void compare(const ExprProgram &program, const std::vector<TensorValue> &expected,
               const char *when) {
    INFO(when << "\n" << print(program, nullptr));
    if (auto s = verify(program); !s.ok())
      FAIL(problems(s.errors()));
    auto got = evaluate(program, inputs);
    if (!got.ok())
      FAIL(problems(got.errors()));
    REQUIRE(got->size() == expected.size());
    for (size_t o = 0; o < expected.size(); ++o) {
      const TensorValue &a = (*got)[o], &e = expected[o];
      REQUIRE(a.type == e.type);
      REQUIRE(a.dims == e.dims);
      double limit = e.type == DType::F16 ? 4e-3 : e.type == DType::BF16 ? 3e-2 : tolerance;
      for (int64_t i = 0; i < e.numElements(); ++i) {
        double x = a.number(i), y = e.number(i);
        if (x == y || (std::isnan(x) && std::isnan(y)))
          continue;
        INFO("output " << o << " element " << i << ": " << x << " instead of " << y);
        CHECK(isFloat(e.type));
        CHECK(std::fabs(x - y) <= limit * (1 + std::fabs(y)));
        if (!isFloat(e.type) || !(std::fabs(x - y) <= limit * (1 + std::fabs(y))))
          return; // one element a tensor says enough
      }
    }
  }

  std::map<ValueId, ConstantRef> values;
};

/// Runs `body` for `count` seeds.
template <typename F> void forSeeds(uint32_t count, F body) {
  for (uint32_t seed = 1; seed <= count; ++seed) {
    INFO("seed " << seed);
    Random random(seed * 7919);
    body(random);
  }
}

} // namespace fusec::test
