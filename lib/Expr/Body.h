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
int arity(ScalarOp op); // -1: variadic

using NodeId = int32_t;
constexpr NodeId kNoNode = -1;

/// One scalar operation of a Body.
struct Scalar {
  ScalarOp op;
  DType type;               // result type
  std::vector<NodeId> args; // earlier nodes of the same Body
  int32_t index =
      0; // Axis: axis or loop variable; Read, ReadIf: tensor or buffer; State, Part: state
  int64_t imm = 0; // Const of an integer or bool type; reads of a kernel: their numbers
  double fimm = 0; // Const of a float type (exactly representable in `type`)
  DimExpr dim;     // Dim
  bool operator==(const Scalar &) const = default;
};

/// Inclusive bounds of an integer node.
struct IndexRange {
  int64_t min = INT64_MIN, max = INT64_MAX;
  std::optional<DimExpr>
      extent; // of a leaf: its values are < extent, where that says more than `max`
};
/// Range of an axis that runs over [0, extent): numeric bounds under the symbols' ranges and, where the extent
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

  /// Ranges of axes for the simplifier; index = axis. Must be set before the axes are used in divisions.
  std::vector<IndexRange> axisRanges;
  std::vector<Symbol> symbolTable; // ranges of symbols
  IndexRange stepRange{0, INT64_MAX, std::nullopt};

  NodeId add(Scalar s);
  /// Hash-conses without simplifying: for the text parser, which must give back what was printed.
  NodeId addExact(Scalar s);
  NodeId find(const Scalar &s) const; // kNoNode when there is no such node
  const Scalar &operator[](NodeId id) const { return nodes[id]; }

  NodeId constant(DType t, double v);     // floats (rounded to t), or integers of exact value
  NodeId constantInt(DType t, int64_t v); // integers and bool
  NodeId index(int64_t v) { return constantInt(DType::I64, v); }
  NodeId axis(int32_t a);
  NodeId step();
  NodeId state(int32_t s, DType t);
  NodeId part(int32_t s, DType t);
  NodeId dim(const DimExpr &d); // Const when d is constant
  NodeId read(int32_t tensor, DType t, std::vector<NodeId> indices);
  NodeId readIf(int32_t tensor, DType t, NodeId predicate, NodeId otherwise,
                std::vector<NodeId> indices);
  NodeId unary(ScalarOp op, NodeId a);
  NodeId binary(ScalarOp op, NodeId a, NodeId b); // comparisons give bool
  NodeId fma(NodeId a, NodeId b, NodeId c);
  NodeId select(NodeId predicate, NodeId then, NodeId otherwise);
  NodeId cast(DType to, NodeId a); // no node when the type is already `to`
  NodeId castSat(DType to, NodeId a);
  NodeId logicalAnd(NodeId a,
                    NodeId b); // bool; kNoNode means "true" on either side and as the result

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
  std::vector<NodeId> slots; // open-addressing table over `nodes`; size a power of two
  size_t hashedNodes = 0;    // nodes[0, hashedNodes) are in `slots`
  mutable std::vector<IndexRange> rangeCache;
  mutable std::vector<bool> rangeKnown;
  mutable std::vector<IndexRange> rangeCacheAxes; // the axisRanges that the cache was made with
};

/// sum of coefficient[a] * axis a + rest, where `rest` (kNoNode = 0) holds no axis. Coefficients are DimExpr,
/// so that symbolic strides work.
struct AffineForm {
  std::vector<DimExpr> coefficients; // one per axis
  NodeId rest = kNoNode;             // i64 node without Axis leaves, or kNoNode
  DimExpr constant;                  // added to rest
};
/// nullopt when the node is not affine in the axes (divisions, reads, products of axes).
std::optional<AffineForm> affineForm(const Body &body, NodeId id, int numAxes);

/// Bodies print as nested calls; a node used more than once is bound by `let`: "let t0 = add(%x[i, j], 1.5);
/// mul(t0, t0)". i64 sums and products print infix ("i*64 + j - 1"), symbolic dims as dim(n*2), conversions as
/// cast(f16, x), and ReadIf as if(predicate, %x[i - 1], else). The caller supplies the names of leaves;
/// constants carry their type only where it is not the type that the context asks for ("1.5" f32, "i32 3").
struct BodyNames {
  std::function<std::string(int32_t)> axis;   // "i"
  std::function<std::string(int32_t)> tensor; // "%x"
  const std::vector<Symbol> *symbols;
  std::vector<DType> rootTypes; // what the context asks for, where it is known
};
std::string print(const Body &body, const std::vector<NodeId> &roots, const BodyNames &names,
                  int indent);
/// The names of leaves for BodyReader (BodyText.h), which reads such text.
struct BodyParser {
  std::function<std::optional<int32_t>(std::string_view)> axis;
  std::function<std::optional<std::pair<int32_t, DType>>(std::string_view)>
      tensor; // name without '%'
  const std::vector<Symbol> *symbols;
  std::optional<DType> stateType = std::nullopt; // of state(i) and part(i), in a cascade
};

} // namespace fusec
