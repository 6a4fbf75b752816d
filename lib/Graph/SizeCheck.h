#pragma once
#include "Graph/Graph.h"
#include "Graph/SizeSolver.h"

#include <functional>
#include <map>

namespace fusec {

/// Why operands or attributes do not fit an operator. Who asks decides how to say it: the verifier as it stands, the
/// importer with the node's operands and with the options that would mend it.
struct Misfit {
  enum class Kind {
    Operands,  // types, ranks or fixed sizes are wrong
    Attribute, // the value of an attribute is
    Value,     // the value of a constant operand is
    Unequal, // sizes[0] and sizes[1] must be equal, and only for some symbols are; the text ends where they follow
    Indivisible, // sizes[0] must be a multiple of `number`, and only for some symbols is
    TooSmall,    // sizes[0] must be at least `number`, and only for some symbols is
    Less,        // sizes[0] must be at least sizes[1], and only for some symbols is
    NotFixed,    // the symbols in `sizes` must be fixed
  };
  Kind kind;
  std::string text;
  Shape sizes = {};
  int64_t number = 0;
  std::string rule = {}; // Indivisible, TooSmall: what must be so, as a SizeRule has it
};
using Report = std::function<Diagnostic(const Misfit &)>;
/// Asked about what only some symbols fulfil: true where that is seen to. A rule comes without a node.
using Require = std::function<bool(const SizeRule &rule, Need need)>;

/// Values of all symbols within their ranges: the smallest, the likely and some others.
std::vector<std::vector<int64_t>> sampleSymbols(const std::vector<Symbol> &symbols);

/// Whether two sizes are equal: as expressions, or for sampled values of the symbols where the normal form does not
/// decide, as for n*6 and floordiv(n, 2)*12 with even n.
bool sameSize(const DimExpr &a, const DimExpr &b, const std::vector<Symbol> &symbols);

/// The types of quantised factors.
inline bool isByte(DType t) { return t == DType::U8 || t == DType::I8; }

/// Product of dims [begin, end).
DimExpr product(const Shape &shape, size_t begin, size_t end);
/// `in` without the axes, or with size 1 in their place.
Shape reducedShape(const Shape &in, const std::vector<int64_t> &axes, bool keep);

/// What a slice reads of an axis: elements start, start + step, ... before `end`, in [0, size]; with a step backwards
/// `end` is -1 where the first element is read.
struct SliceBounds {
  DimExpr start, end, length;
};

/// How Resize gets its output's sizes: by one scale or one size for each of `axes`.
struct ResizeSizes {
  std::vector<int64_t> axes;
  std::string policy; // keep_aspect_ratio_policy
  bool isCrop;        // of the region `roi`: begins, then ends
  ConstantRef roi, scales;
  std::optional<std::vector<int64_t>> sizes; // in place of scales
};

/// The one place where sizes are compared: for the rules of operators (rules/) and for what the importer decomposes.
/// A check that fails is reported with what symbols would have to fulfil.
class SizeCheck {
public:
  /// When two sizes count as equal. What a model says must hold for all values of the symbols: Exact. Expressions that
  /// passes have rewritten may have lost their normal form: Sampled.
  enum class Equality { Exact, Sampled };

  SizeCheck(const std::vector<Symbol> &symbols, Equality equality, Report report,
            Require require = {})
      : symbols(symbols), equality(equality), report(std::move(report)),
        require(std::move(require)) {}

  const std::vector<Symbol> &symbols;

  Diagnostic misfit(Misfit m) const { return report(m); }
  bool same(const DimExpr &a, const DimExpr &b) const;
  /// same(), or Sampled and nothing speaks against it. It chooses between no two results: where none of the samples is
  /// a run that passes the tests, nothing speaks against anything.
  bool sameInRuns(const Shape &a, const Shape &b) const;
  /// No values of the symbols make them equal.
  bool mustDiffer(const DimExpr &a, const DimExpr &b) const;

  /// "`what` must be equal: ..."
  Status sameDim(const DimExpr &a, const DimExpr &b, const std::string &what) const;
  /// "the numbers of elements must be equal: ..." Shapes of one number of elements are rarely one expression, even
  /// where a model says both.
  Status sameCount(const DimExpr &a, const DimExpr &b) const;
  /// `text` says what `given` must be.
  Status sameShape(const Shape &given, const Shape &wanted, const std::string &text,
                   Need need = Need::Solved) const;
  /// "`what` must be a multiple of ..."
  Status multiple(const DimExpr &size, int64_t divisor, const std::string &what) const;
  /// "`what` must be at least ..."
  Status atLeast(const DimExpr &size, int64_t least, const std::string &what) const;
  /// `text` says that `size` has to be `least` at least.
  Status noLess(const DimExpr &size, const DimExpr &least, const std::string &text,
                Need need = Need::Tested) const;
  // What these report, for callers that have found that it does not hold.
  Diagnostic unequal(const DimExpr &a, const DimExpr &b, const std::string &what) const;
  Diagnostic unlike(const Shape &given, const Shape &wanted, const std::string &text) const;
  Diagnostic indivisible(const DimExpr &size, int64_t divisor, const std::string &what) const;
  Diagnostic tooSmall(const DimExpr &size, int64_t least, const std::string &what) const;

  /// numpy's rule: sizes are equal or 1, aligned at the last axis. Which of them are 1 may be for a run to say: the
  /// result is the larger one then. Where that leads nowhere, and of sizes that hang on each other, equal ones are
  /// assumed, if a symbol can make them so.
  Result<Shape> broadcast(const std::vector<const Shape *> &shapes) const;
  /// `from` broadcasts to `to` and leaves it as it is.
  Status broadcastsTo(const Shape &from, const Shape &to, const std::string &text) const;
  /// numpy's rule for a product of matrices: [M,K] x [K,N], leading axes broadcast, a vector loses its axis.
  Result<Shape> matMul(const Shape &a, const Shape &b) const;
  /// The size of each letter of an equation's terms, one letter an axis of the operand. Operands broadcast 1 against n,
  /// and where a run may say so letters of the result alone, `kept`; the axes of one operand, of which a diagonal is
  /// taken, do not. `called` names a letter.
  Result<std::map<char, DimExpr>> einsum(const std::vector<std::string> &terms,
                                         const std::vector<const Shape *> &shapes,
                                         const std::string &kept,
                                         const std::function<std::string(char)> &called) const;
  /// A scale or a zero point, called `name`: one number, or one for each of `count`.
  Status quantParameter(const Shape &given, const DimExpr &count, const std::string &name) const;
  /// A scale or a zero point of a factor or of the product: one number; one a row ([M] or [..,M,1], `rows`) or one a
  /// column ([N] or [..,1,N]) of `product`.
  Status sideParameter(const Shape &given, const Shape &product, bool rows,
                       const std::string &name) const;
  /// How many windows of `extent` lie along an axis of `size` with zeros at both ends. With `ceilMode` the last one may
  /// reach beyond the zeros at the end, but not start in them.
  Result<DimExpr> windowCount(const DimExpr &size, int64_t extent, int64_t stride, int64_t padBegin,
                              int64_t padEnd, bool ceilMode) const;
  /// Bounds as ONNX gives them, negative ones from the end, clamped.
  Result<SliceBounds> slice(const DimExpr &size, const DimExpr &start, const DimExpr &end,
                            int64_t step) const;
  /// Axes without a fixed size must have the scale 1.
  Result<Shape> resized(const Shape &in, const ResizeSizes &how) const;

private:
  bool seenTo(SizeRule::Kind kind, const DimExpr &left, const DimExpr &right, std::string text,
              Need need = Need::Solved) const {
    return require && require({kind, left, right, {}, {}, std::move(text)}, need);
  }
  Result<DimExpr> broadcast(const DimExpr &a, const DimExpr &b, bool toFirst) const;

  Equality equality;
  Report report;
  Require require;
};

} // namespace fusec
