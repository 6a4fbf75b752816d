// Random programs of movement, arithmetic and reductions give the same bits after every pass and through text.
#include "ProgramTools.h"

#include <set>

using namespace fusec;
using namespace fusec::test;

namespace {

class Generator {
public:
  explicit Generator(uint32_t seed) : random(seed) {}

  ExprProgram make(int equations) {
    program.name = "random";
    program.symbols = {{"n", 1, 3, 6, 1}, {"m", 1, 4, 6, 1}};
    for (int i = 0; i < 3; ++i)
      program.inputs.push_back(program.addTensor(
          {"x" + std::to_string(i), TensorKind::Input, DType::F32, shape(), nullptr}));
    program.inputs.push_back(
        program.addTensor({"ids", TensorKind::Input, DType::I64, {DimExpr(5)}, nullptr}));
    pool = {0, 1, 2};
    for (int i = 0; i < equations; ++i)
      step(i);

    for (size_t t = 4; t < program.tensors.size(); ++t)
      if (!read.count(static_cast<TensorId>(t)) || pick(8) == 0) {
        program.tensors[t].kind = TensorKind::Output;
        program.outputs.push_back(static_cast<TensorId>(t));
      }
    return std::move(program);
  }
  int pick(int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); }

private:
  DimExpr extent() {
    switch (pick(4)) {
    case 0: return DimExpr::symbol(0);
    case 1: return DimExpr::symbol(1);
    default: return DimExpr(1 + pick(6));
    }
  }
  Shape shape() {
    Shape s;
    for (int d = 1 + pick(3); d > 0; --d)
      s.push_back(extent());
    return s;
  }
  TensorId source() {
    TensorId t = pool[static_cast<size_t>(pick(static_cast<int>(pool.size())))];
    read.insert(t);
    return t;
  }
  const Shape &shapeOf(TensorId t) { return program.tensors[static_cast<size_t>(t)].shape; }

  void begin(const Shape &s, const std::vector<DimExpr> &reduction = {}) {
    e = Equation();
    axes.clear();
    for (const DimExpr &d : s)
      e.axes.push_back({"i" + std::to_string(e.axes.size()), d});
    e.numSpatial = static_cast<int>(s.size());
    for (const DimExpr &d : reduction)
      e.axes.push_back({"k" + std::to_string(e.axes.size()), d});
    setRanges(e, program.symbols);
    for (size_t a = 0; a < e.axes.size(); ++a)
      axes.push_back(e.body.axis(static_cast<int>(a)));
    out = s;
  }
  void end(int i, NodeId result) {
    e.name = "e" + std::to_string(i);
    e.onnxNodes = {"node" + std::to_string(i)};
    e.results = {result};
    e.outputs = {
        program.addTensor({"t" + std::to_string(i), TensorKind::Temp, DType::F32, out, nullptr})};
    compact(e);
    pool.push_back(e.outputs[0]);
    program.items.push_back({e});
  }
  NodeId op(ScalarOp o, NodeId a, NodeId b) { return e.body.binary(o, a, b); }
  NodeId number(double v) { return e.body.constant(DType::F32, v); }
  NodeId readAt(TensorId t, std::vector<NodeId> at) {
    return e.body.read(t, DType::F32, std::move(at));
  }

  void step(int i) {
    TensorId t = source();
    const Shape s = shapeOf(t);
    const size_t rank = s.size();
    switch (rank == 0 ? 8 : pick(9)) {
    case 0: { // transpose
      std::vector<size_t> order(rank);
      for (size_t d = 0; d < rank; ++d)
        order[d] = d;
      std::shuffle(order.begin(), order.end(), random);
      Shape to(rank);
      for (size_t d = 0; d < rank; ++d)
        to[d] = s[order[d]];
      begin(to);
      std::vector<NodeId> at(rank);
      for (size_t d = 0; d < rank; ++d)
        at[order[d]] = axes[d];
      return end(i, readAt(t, at));
    }
    case 1: { // flatten and split again
      DimExpr total = numElements(s);
      begin(pick(2) ? Shape{total} : Shape{s[0], exactRest(s)});
      NodeId flat = axes[0];
      if (axes.size() == 2)
        flat = op(ScalarOp::Add, op(ScalarOp::Mul, axes[0], e.body.dim(e.axes[1].extent)), axes[1]);
      std::vector<NodeId> at(rank);
      DimExpr inner = 1;
      for (size_t d = rank; d-- > 0;) {
        NodeId q = op(ScalarOp::FloorDiv, flat, e.body.dim(inner));
        at[d] = op(ScalarOp::FloorMod, q, e.body.dim(s[d]));
        inner = inner * s[d];
      }
      return end(i, readAt(t, at));
    }
    case 2: { // pad one dimension
      size_t d = static_cast<size_t>(pick(static_cast<int>(rank)));
      int before = pick(3), after = pick(3);
      Shape to = s;
      to[d] = s[d] + before + after;
      begin(to);
      NodeId at = op(ScalarOp::Sub, axes[d], e.body.index(before));
      NodeId p = e.body.logicalAnd(op(ScalarOp::Le, e.body.index(0), at),
                                   op(ScalarOp::Lt, at, e.body.dim(s[d])));
      std::vector<NodeId> indices = axes;
      indices[d] = at;
      return end(i, e.body.readIf(t, DType::F32, p, number(pick(3) - 1), indices));
    }
    case 3: { // concat with another tensor of the same other dims, here itself reversed
      Shape to = s;
      to[0] = s[0] * 2;
      begin(to);
      NodeId first = op(ScalarOp::Lt, axes[0], e.body.dim(s[0]));
      std::vector<NodeId> second = axes;
      second[0] = op(ScalarOp::Sub, e.body.dim(s[0] * 2 - 1), axes[0]);
      NodeId rest = e.body.readIf(t, DType::F32, op(ScalarOp::Le, e.body.dim(s[0]), axes[0]),
                                  number(0), second);
      return end(i, e.body.readIf(t, DType::F32, first, rest, axes));
    }
    case 4: { // gather along the first dimension, clamped
      Shape to = s;
      to[0] = 5;
      begin(to);
      std::vector<NodeId> at = axes;
      NodeId id = e.body.read(3, DType::I64, {axes[0]});
      at[0] = op(ScalarOp::Min, op(ScalarOp::Max, id, e.body.index(0)), e.body.dim(s[0] - 1));
      return end(i, readAt(t, at));
    }
    case 5: { // reduce the last dimension
      Shape to(s.begin(), s.end() - 1);
      begin(to, {s.back()});
      e.kind = EquationKind::Reduction;
      e.monoid = pick(2) ? Monoid::Sum : Monoid::Max;
      NodeId v = readAt(t, axes);
      return end(i, pick(2) ? v : op(ScalarOp::Mul, v, v));
    }
    case 6: { // broadcast along a new leading axis
      Shape to = s;
      to.insert(to.begin(), extent());
      if (to.size() > 4)
        return;
      begin(to);
      return end(i, op(ScalarOp::Add, readAt(t, {axes.begin() + 1, axes.end()}), number(0.5)));
    }
    default: { // element-wise, with itself transposed where that fits
      begin(s);
      NodeId a = readAt(t, axes);
      switch (pick(4)) {
      case 0: return end(i, e.body.unary(ScalarOp::Neg, a));
      case 1: return end(i, op(ScalarOp::Max, a, number(0)));
      case 2: return end(i, op(ScalarOp::Add, op(ScalarOp::Mul, a, number(0.5)), number(1)));
      default:
        return end(
            i, e.body.select(op(ScalarOp::Lt, a, number(1)), op(ScalarOp::Div, number(1), a), a));
      }
    }
    }
  }
  DimExpr exactRest(const Shape &s) {
    DimExpr r = 1;
    for (size_t d = 1; d < s.size(); ++d)
      r = r * s[d];
    return r;
  }

  std::mt19937 random;
  ExprProgram program;
  std::vector<TensorId> pool;
  std::set<TensorId> read;
  Equation e;
  Shape out;
  std::vector<NodeId> axes;
};

} // namespace

TEST_CASE("random programs keep their bits through all passes and through text") {
  size_t before = 0, after = 0;
  for (uint32_t seed = 1; seed <= 400; ++seed) {
    Generator generator(seed);
    ExprProgram original = generator.make(12);
    INFO("seed " << seed);
    requireValid(original);
    std::vector<int64_t> symbols = {1 + generator.pick(6), 1 + generator.pick(6)};
    std::mt19937 random(seed);
    auto inputs = randomInputs(original, symbols, random);
    bool bound[2] = {false, false}; // a symbol that no input shows has no value
    for (TensorId id : original.inputs)
      for (const DimExpr &d : original.tensors[static_cast<size_t>(id)].shape)
        if (d.op() == DimExpr::Op::Symbol)
          bound[d.symbolId()] = true;
    if (!bound[0] || !bound[1])
      continue;
    auto expected = run(original, inputs);
    ExprProgram p = original;
    for (const Pass<ExprProgram> &pass : exprPasses()) {
      INFO("pass " << pass.name);
      ExprProgram q = p;
      REQUIRE(pass.run(q).ok());
      requireValid(q);
      auto got = run(q, inputs);
      if (!sameBits(expected, got))
        FAIL("seed " << seed << " pass " << pass.name << "\n"
                     << print(p, nullptr) << "\n"
                     << print(q, nullptr));
      p = std::move(q);
    }
    std::string text = print(p, nullptr);
    ExprProgram again = parse(text);
    REQUIRE(print(again, nullptr) == text);
    for (size_t i = 0; i < p.items.size(); ++i)
      REQUIRE(equation(again, i).body.nodes == equation(p, i).body.nodes);
    REQUIRE(sameBits(expected, run(again, inputs)));
    before += original.items.size();
    after += p.items.size();
  }
  CHECK(after < before * 3 / 4);
}
