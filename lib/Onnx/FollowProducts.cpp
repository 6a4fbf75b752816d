#include "Onnx/FollowProducts.h"

#include "Onnx/FollowMovement.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace fusec {

using Id = KnownValues::Id;
using Elements = KnownValues::Elements;
using Dims = std::vector<int64_t>;
using Op = DimProgram::Op;

namespace {

/// Products that are added up for one node.
constexpr int64_t kMostProducts = 4096;

/// The letters of each operand's axes and of the output's.
struct Terms {
  std::vector<std::string> operands;
  std::string out;
};

Terms termsOf(const std::string &equation) {
  const size_t arrow = equation.find("->");
  Terms t{{""}, equation.substr(arrow + 2)};
  for (char c : equation.substr(0, arrow))
    if (c == ',')
      t.operands.emplace_back();
    else
      t.operands.back() += c;
  return t;
}

/// Batches line up from the end: the axis in front of the matrix has the first letter of all.
Terms termsOfMatMul(size_t left, size_t right) {
  auto batch = [](size_t rank) {
    std::string letters;
    for (size_t d = rank; d-- > 2;)
      letters += static_cast<char>('A' + d - 2);
    return letters;
  };
  return {{batch(left) + (left > 1 ? "ik" : "k"), batch(right) + (right > 1 ? "kj" : "k")},
          batch(std::max(left, right)) + (left > 1 ? "i" : "") + (right > 1 ? "j" : "")};
}

class ProductFollower {
public:
  ProductFollower(KnownValues &values, const Node &node)
      : values(values), numbers(values.numbers), node(node),
        type(values.graph.value(node.outputs[0]).type) {}

  std::optional<Elements> run() const {
    if (node.op == OpKind::Einsum)
      return product(termsOf(node.stringAttr("equation")));
    if (node.op == OpKind::MatMul)
      return product(termsOfMatMul(dimsOf(0).size(), dimsOf(1).size()));
    return gemm();
  }

private:
  Dims dimsOf(size_t i) const { return staticDims(values.graph.value(node.inputs[i]).shape); }
  std::optional<Id> apply(Op op, Id a, Id b) const { return numbers.apply(op, type, {a, b, -1}); }

  /// Sums over all letters that the output lacks. An axis of 1 is repeated along another operand's.
  std::optional<Elements> product(const Terms &terms) const {
    std::vector<Elements> operands;
    std::map<char, int64_t> sizes;
    for (size_t i = 0; i < terms.operands.size(); ++i) {
      auto e = values.elements(node.inputs[i]);
      if (!e)
        return std::nullopt;
      operands.push_back(std::move(*e));
      const Dims dims = dimsOf(i);
      for (size_t d = 0; d < dims.size(); ++d)
        if (int64_t &size = sizes.try_emplace(terms.operands[i][d], 1).first->second; size == 1)
          size = dims[d];
    }
    std::string letters = terms.out;
    for (const auto &[letter, size] : sizes)
      if (letters.find(letter) == std::string::npos)
        letters += letter;
    Dims extents;
    for (char letter : letters)
      extents.push_back(sizes.at(letter));
    int64_t most = kMostProducts;
    for (int64_t extent : extents)
      if ((most /= std::max<int64_t>(extent, 1)) == 0)
        return std::nullopt;
    const int64_t count = productOf(extents, 0, terms.out.size()),
                  added = productOf(extents, terms.out.size(), extents.size());
    Elements made;
    for (int64_t first = 0; first < count * added; first += added) {
      std::optional<Id> sum;
      for (int64_t k = 0; k < added; ++k) {
        const auto term = factor(terms, operands, letters, coordinates(extents, first + k));
        sum = term && sum ? apply(Op::Add, *sum, *term) : term;
        if (!sum)
          return std::nullopt;
      }
      made.push_back(*sum);
    }
    if (added == 0)
      made.assign(static_cast<size_t>(count), number(0));
    return made;
  }

  /// One product, of the elements at `at`.
  std::optional<Id> factor(const Terms &terms, const std::vector<Elements> &operands,
                           const std::string &letters, const Dims &at) const {
    std::optional<Id> made;
    for (size_t i = 0; i < operands.size(); ++i) {
      const Dims dims = dimsOf(i);
      Dims own;
      for (size_t d = 0; d < dims.size(); ++d)
        own.push_back(dims[d] == 1 ? 0 : at[letters.find(terms.operands[i][d])]);
      const Id x = operands[i][flatIndex(dims, own)];
      made = i > 0 ? apply(Op::Mul, *made, x) : std::optional(x);
      if (!made)
        return std::nullopt;
    }
    return made;
  }

  Id number(double v) const {
    return isFloat(type) ? numbers.real(type, v) : numbers.integer(type, static_cast<int64_t>(v));
  }
  /// x times the attribute; nothing where that is no number of the type.
  std::optional<Id> scaled(Id x, const char *attribute) const {
    const double by = node.floatAttr(attribute);
    if (by == 1)
      return x;
    const bool isWhole = std::abs(by) < 0x1p53 && std::floor(by) == by;
    return isFloat(type) || isWhole ? apply(Op::Mul, x, number(by)) : std::nullopt;
  }

  std::optional<Elements> gemm() const {
    auto made = product(
        {{node.intAttr("transA") ? "ki" : "ik", node.intAttr("transB") ? "jk" : "kj"}, "ij"});
    if (!made)
      return std::nullopt;
    const auto more = node.hasInput(2) ? values.elements(node.inputs[2]) : std::nullopt;
    if (node.hasInput(2) && !more)
      return std::nullopt;
    const Dims out = staticDims(values.graph.value(node.outputs[0]).shape);
    for (size_t i = 0; i < made->size(); ++i) {
      auto v = scaled((*made)[i], "alpha");
      if (v && more) {
        const auto addend =
            scaled((*more)[broadcastIndex(dimsOf(2), out, static_cast<int64_t>(i))], "beta");
        v = addend ? apply(Op::Add, *v, *addend) : addend;
      }
      if (!v)
        return std::nullopt;
      (*made)[i] = *v;
    }
    return made;
  }

  KnownValues &values;
  HostNumbers &numbers;
  const Node &node;
  const DType type;
};

} // namespace

bool addsProducts(OpKind op) {
  return op == OpKind::MatMul || op == OpKind::Gemm || op == OpKind::Einsum;
}

std::optional<Elements> followProducts(KnownValues &values, const Node &node) {
  return ProductFollower(values, node).run();
}

} // namespace fusec
