#pragma once
#include "Support/DType.h"
#include "Support/Dim.h"
#include "Support/Text.h"

#include <functional>
#include <string>
#include <vector>

namespace fusec {

enum class ScalarOp : uint8_t {
#define FUSEC_SCALAR_OP(name, mnemonic, arity) name,
#include "Expr/ScalarOps.def"
};
std::string_view mnemonic(ScalarOp op);
/// The number of operands; -1: any number.
int arity(ScalarOp op);

using NodeId = int32_t;
constexpr NodeId kNoNode = -1;

/// One scalar operation of a Body.
struct Scalar {
  ScalarOp op;
  /// The type of the result.
  DType type;
  /// Earlier nodes of the same Body.
  std::vector<NodeId> args;
  /// The axis or loop variable of Axis, the tensor or buffer of Read and ReadIf, the state of State and Part.
  int32_t index = 0;
  /// The value of a Const of an integer or bool type, or the number of a kernel's read.
  int64_t imm = 0;
  /// The value of a Const of a float type, which has it exactly.
  double fimm = 0;
  /// The value of Dim.
  DimExpr dim;
  bool operator==(const Scalar &) const = default;
};

/// Inclusive bounds of an integer node.
struct IndexRange {
  int64_t min = INT64_MIN, max = INT64_MAX;
  /// What a leaf's values are below, where that says more than `max`.
  std::optional<DimExpr> extent;
};
/// The range of an axis that runs over [0, extent): numeric bounds under the symbols' ranges and, where the extent
/// is symbolic, the extent itself, so that divisions by it fold too.
IndexRange rangeOfExtent(const DimExpr &extent, const std::vector<Symbol> &symbols);

/// A set of scalar expressions in SSA form: node i refers to nodes < i only. `add` hash-conses and
/// simplifies, so equal expressions get equal ids; the result of every simplification has the same bits as
/// the original for all inputs (integer index arithmetic assumes no overflow).
///
/// Index arithmetic (i64 Add, Sub, Mul, FloorDiv, FloorMod over Axis, Step, Dim, Const) is kept in a
/// quasi-affine normal form: a sum of constant or Dim coefficients times atoms, sorted; divisions split by
/// the ranges of their parts, so that with d in [0, 64): ((s*768 + h*64 + d) floordiv 64) floormod 12 = h.
/// `rangeOf` supplies the ranges of Axis and Step leaves.
class Body {
public:
  std::vector<Scalar> nodes;

  /// The range of each axis for the simplifier. Must be set before the axes are used in divisions.
  std::vector<IndexRange> axisRanges;
  /// The symbols, for their ranges.
  std::vector<Symbol> symbolTable;
  IndexRange stepRange{0, INT64_MAX, std::nullopt};

  NodeId add(Scalar s);
  /// Hash-conses without simplifying: for the text parser, which must give back what was printed.
  NodeId addExact(Scalar s);
  /// The node that is equal; kNoNode: there is none.
  NodeId find(const Scalar &s) const;
  const Scalar &operator[](NodeId id) const { return nodes[id]; }

  /// A number, rounded to t where that is a float type. An integer type must have it.
  NodeId constant(DType t, double v);
  /// A number of an integer or bool type.
  NodeId constantInt(DType t, int64_t v);
  NodeId index(int64_t v) { return constantInt(DType::I64, v); }
  NodeId axis(int32_t a);
  NodeId step();
  NodeId state(int32_t s, DType t);
  NodeId part(int32_t s, DType t);
  /// A Const where d is constant.
  NodeId dim(const DimExpr &d);
  NodeId read(int32_t tensor, DType t, std::vector<NodeId> indices);
  NodeId readIf(int32_t tensor, DType t, NodeId predicate, NodeId otherwise,
                std::vector<NodeId> indices);
  NodeId unary(ScalarOp op, NodeId a);
  /// Comparisons give bool.
  NodeId binary(ScalarOp op, NodeId a, NodeId b);
  NodeId fma(NodeId a, NodeId b, NodeId c);
  NodeId select(NodeId predicate, NodeId then, NodeId otherwise);
  /// `a` itself where it has the type.
  NodeId cast(DType to, NodeId a);
  NodeId castSat(DType to, NodeId a);
  /// A bool. kNoNode means true, as an operand and as the result.
  NodeId logicalAnd(NodeId a, NodeId b);

  /// Copies node `root` of `from` into this body. `leaf` is asked for every Axis, Step, State, Part, Read and ReadIf
  /// (with its operands already copied) and returns the replacement, or kNoNode to copy it as it is.
  NodeId import(const Body &from, NodeId root,
                const std::function<NodeId(const Scalar &copied, NodeId original)> &leaf);
  /// Nodes reachable from `roots`, in id order.
  std::vector<NodeId> reachable(const std::vector<NodeId> &roots) const;
  /// For each node, whether evaluating `roots` needs it where the values of the nodes `atHand` are known.
  std::vector<bool> neededBeside(const std::vector<NodeId> &atHand,
                                 const std::vector<NodeId> &roots) const;
  /// Drops what `roots` do not need and numbers the rest in the order of the printed text, so that a body
  /// and its printed and parsed twin have equal ids. Updates `roots`.
  void compact(const std::vector<NodeId *> &roots);
  IndexRange rangeOf(NodeId id) const;

private:
  void rehash();
  /// An open-addressing table over `nodes`. Its size is a power of two.
  std::vector<NodeId> slots;
  size_t hashedNodes = 0; // nodes[0, hashedNodes) are in `slots`
  mutable std::vector<IndexRange> rangeCache;
  mutable std::vector<bool> rangeKnown;
  mutable std::vector<IndexRange> rangeCacheAxes; // the axisRanges that the cache was made with
};

/// The sum of coefficients[a] * axis a, `rest` and `constant`. Coefficients are DimExpr, so that symbolic strides work.
struct AffineForm {
  std::vector<DimExpr> coefficients; // one per axis
  /// An i64 node without Axis leaves; kNoNode: 0.
  NodeId rest = kNoNode;
  DimExpr constant;
};
/// The node as such a sum; nullopt where it is not affine in the axes (divisions, reads, products of axes).
std::optional<AffineForm> affineForm(const Body &body, NodeId id, int numAxes);

/// Bodies print as nested calls; a node used more than once is bound by `let`: "let t0 = add(%x[i, j], 1.5);
/// mul(t0, t0)". i64 sums and products print infix ("i*64 + j - 1"), symbolic dims as dim(n*2), conversions as
/// cast(f16, x), and ReadIf as if(predicate, %x[i - 1], else). The caller supplies the names of leaves;
/// constants carry their type only where it is not the type that the context asks for ("1.5" f32, "i32 3").
struct BodyNames {
  std::function<std::string(int32_t)> axis;   // "i"
  std::function<std::string(int32_t)> tensor; // "%x"
  const std::vector<Symbol> *symbols;
  /// The types that the context asks for, where they are known.
  std::vector<DType> rootTypes;
};
std::string print(const Body &body, const std::vector<NodeId> &roots, const BodyNames &names,
                  int indent);
/// The names of leaves for BodyReader (BodyText.h), which reads such text.
struct BodyParser {
  std::function<std::optional<int32_t>(std::string_view)> axis;
  /// Takes the name without '%'.
  std::function<std::optional<std::pair<int32_t, DType>>(std::string_view)> tensor;
  const std::vector<Symbol> *symbols;
  /// The type of state(i) and part(i) in a cascade.
  std::optional<DType> stateType = std::nullopt;
};

} // namespace fusec
