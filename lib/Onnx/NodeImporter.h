#pragma once
#include "Graph/SizeCheck.h"
#include "Onnx/HostNumbers.h"
#include "Onnx/Import.h"

#include <optional>
#include <string>
#include <vector>

namespace onnx {
class AttributeProto;
class GraphProto;
} // namespace onnx

namespace fusec {

class GraphBuilder;

using Attributes = std::map<std::string, Attribute>;

/// What the function of an operator family sees of one ONNX node, and what it makes of it. Attribute
/// accessors record a diagnostic and return the default when the attribute is unusable; the caller looks
/// at `errors` after the function returned, and refuses attributes that nobody asked for.
class NodeImporter {
public:
  NodeImporter(GraphBuilder &builder, std::string opType, int opset, std::string nodeName,
               std::map<std::string, const onnx::AttributeProto *> attributes,
               std::vector<ValueId> inputs, std::vector<std::string> outputNames);

  const std::string &op() const { return opType; }
  int opset() const { return opsetVersion; }
  const std::string &name() const { return nodeName; }
  GraphBuilder &graphBuilder() { return builder; }
  const Graph &graph() const;
  const std::vector<Symbol> &symbols() const { return graph().symbols; }

  // Inputs
  size_t numInputs() const { return inputs.size(); }
  bool has(size_t i) const { return i < inputs.size() && inputs[i] != kNoValue; }
  ValueId id(size_t i) const { return i < inputs.size() ? inputs[i] : kNoValue; }
  const std::vector<ValueId> &ids() const { return inputs; }
  const Value &in(size_t i) const;
  const Shape &shape(size_t i) const { return in(i).shape; }
  DType type(size_t i) const { return in(i).type; }
  int64_t rank(size_t i) const { return static_cast<int64_t>(in(i).shape.size()); }
  const Shape &shapeOf(ValueId id) const;
  DType typeOf(ValueId id) const;
  // known(), ints() and constant() have an effect beyond their answer: where this is nothing and the operand hangs on
  // inputs of the model that have default values, these become constants, which no run can give (W0004), and the whole
  // import is repeated. They are for operands whose value decides about sizes or about whether the operator can be
  // served, and come behind the attributes that may say that the operand has no effect.
  /// Elements of an integer input when they are constants or expressions over symbols.
  std::optional<std::vector<DimExpr>> known(size_t i) const { return knownOf(id(i)); }
  /// A number as a size (HostNumbers::size). Where floats compute it, that they are exact is preferred to a size that
  /// stands for itself.
  std::optional<DimExpr> sizeOf(HostNumbers::Id x) const;
  /// As known(), of a value that need not be an operand.
  std::optional<std::vector<DimExpr>> knownOf(ValueId value) const;
  /// Elements of a constant integer input.
  std::optional<std::vector<int64_t>> ints(size_t i) const;
  ConstantRef constant(size_t i) const;
  // peek() and peekInts() return known() and ints() without that effect: for checks, and for a better form, where the
  // value happens to be known and a run-time value serves as well.
  std::optional<std::vector<DimExpr>> peek(size_t i) const;
  std::optional<std::vector<int64_t>> peekInts(size_t i) const;
  /// Has that effect alone, for a value that need not be an operand: `id` has to be known at compile time.
  void ask(ValueId id) const;

  // Outputs
  size_t numOutputs() const { return outputNames.size(); }
  bool wants(size_t i) const { return i < outputNames.size() && !outputNames[i].empty(); }
  /// Type and shape that the model declares for output `i`.
  std::optional<TypedShape> declared(size_t i) const;
  /// The sizes that the model declares for output `i`, those that it leaves open as nullopt; where it declares none, as
  /// many of these as its rank has to be (GraphBuilder::declaredRank).
  std::optional<std::vector<std::optional<DimExpr>>> declaredSizes(size_t i) const;

  // Attributes
  bool hasAttribute(const std::string &key) const { return attributes.count(key) != 0; }
  int64_t attrInt(const std::string &key, std::optional<int64_t> defaultValue = std::nullopt);
  double attrFloat(const std::string &key, std::optional<double> defaultValue = std::nullopt);
  std::string attrString(const std::string &key, const std::string &defaultValue);
  std::vector<int64_t> attrInts(const std::string &key, std::vector<int64_t> defaultValue = {});
  std::vector<double> attrFloats(const std::string &key);
  std::vector<std::string> attrStrings(const std::string &key,
                                       std::vector<std::string> defaultValue = {});
  std::optional<DType> attrType(const std::string &key); // an ONNX element type number
  ConstantRef attrTensor(const std::string &key);        // nullptr when absent
  ConstantRef attrSparseTensor(const std::string &key);  // likewise, made dense
  const onnx::GraphProto *attrGraph(const std::string &key);
  /// Marks an attribute as read where it has no effect on the result.
  void ignore(const std::string &key) { used.push_back(key); }

  // Making nodes. The types of the outputs are what the operator's rule (Graph/rules) says: `shapes` are asked for by
  // those rules alone that do not derive them (Reshape, Slice, Split, ...).
  /// Adds one operation and returns its outputs, of which there are `count` at most; what is known at compile time
  /// becomes a constant.
  Result<std::vector<ValueId>> emit(OpKind op, std::vector<ValueId> in, Attributes attrs,
                                    std::vector<Shape> shapes = {},
                                    std::vector<Region> regions = {}, size_t count = SIZE_MAX);
  /// The first output alone.
  Result<ValueId> emitOne(OpKind op, std::vector<ValueId> in, Attributes attrs = {},
                          std::vector<Shape> shapes = {});
  /// Binds ONNX output `i` to a value.
  void result(size_t i, ValueId value);
  /// emit() whose outputs are the node's outputs, in order; those that the model leaves out are absent. Attributes that
  /// are not in `attrs` are the node's, or what Ops.def says where it leaves them out.
  Status finish(OpKind op, std::vector<ValueId> in, Attributes attrs = {},
                std::vector<Shape> shapes = {}, std::vector<Region> regions = {});
  /// The value that was made. Where it was refused, that is noted in `errors`, and a value of this type and shape
  /// stands in for it, with which the operator's function can go on.
  ValueId orStandIn(Result<ValueId> made, DType type, Shape shape);
  ValueId constantValue(ConstantRef c);
  ValueId intsValue(const std::vector<int64_t> &v); // vector i64
  ValueId scalarValue(DType type, double v);
  /// The size that the number `count` (i64 of rank 0) is in each run, from 0 to `bound`; called after dimension `axis`
  /// of output `i`. What has it stands behind this.
  Result<DimExpr> dataSize(ValueId count, const DimExpr &bound, size_t i, size_t axis);
  /// dataSize() in two steps: a size, which nothing uses before it is told; then the number, known to be it.
  DimExpr newSize(const DimExpr &bound, size_t i, size_t axis);
  /// The name by which --dim knows it.
  std::string nameOfNewSize(size_t i, size_t axis) const;
  Result<ValueId> tellSize(const DimExpr &size, ValueId count);
  /// A Reshape to `shape`, whose dims may be symbolic.
  ValueId reshape(ValueId x, Shape shape);
  /// The operand that describes `shape`: a constant, or kNoValue where it is symbolic.
  ValueId shapeOperand(const Shape &shape);

  // Diagnostics
  Diagnostic fail(Diag id, std::string text) const;
  Diagnostic mismatch(std::string text) const; // ShapeMismatch, with the inputs' types
  /// For a shape that is not the wanted one: as above, or where open sizes alone tell them apart, what may
  /// differ and how to fix it (UnsupportedShape).
  Diagnostic mismatch(const std::string &text, const Shape &given, const Shape &wanted) const {
    return sizes().unlike(given, wanted, text);
  }
  Diagnostic undecided(std::string text) const; // UnsupportedShape, likewise
  Diagnostic unsupported(std::string text) const;
  std::string inputTypes() const;
  /// UnsupportedShape where those of these operands that are not known must be. Says what makes constants of inputs of
  /// the model, and fixes what is beyond the limit on expressions, where that suffices; LimitExceeded where the limit
  /// alone is in the way.
  Diagnostic needsConstant(const std::string &text, const std::vector<size_t> &operands) const;
  /// UnsupportedShape where sizes must be fixed; says with which --dim they are.
  Diagnostic needsFixed(const std::string &text, Shape sizes, const Shape &more = {}) const;
  // Common checks
  Result<int64_t> axis(int64_t a, int64_t rank) const; // to 0..rank-1
  Result<std::vector<int64_t>> axes(const std::vector<int64_t> &list,
                                    int64_t rank) const; // sorted, unique
  /// Compares sizes; what does not fit is said of this node, with the options that mend it.
  SizeCheck sizes() const;
  Result<Shape> broadcast(const std::vector<const Shape *> &shapes) const {
    return sizes().broadcast(shapes);
  }
  Status sameDim(const DimExpr &a, const DimExpr &b, const std::string &what) const {
    return sizes().sameDim(a, b, what);
  }
  /// Input `i` has one element; `text` says so.
  Status oneElement(size_t i, const std::string &text) const;
  /// Input `i`, where there is one, is a scale or a zero point: one number, or one for each of `count`.
  Status quantParameter(size_t i, const DimExpr &count) const;
  /// Input `i`, where there is one, is a quantParameter, or has one number for each row or column of a product.
  Status sideParameter(size_t i, const Shape &product, bool rows) const;

  Diagnostics errors;
  std::vector<ValueId> results; // by output
  std::string unusedAttribute() const;
  /// What to say of an attribute that nobody asked for: no opset has it, another one has, or fusec does without.
  Diagnostic unreadAttribute(const std::string &key) const;

  /// Asks the model's sizes for what this node needs; false where that cannot be had.
  bool require(SizeRule rule, Need need) const;

private:
  void preferExact(HostNumbers::Id x) const;
  /// What the rule of an operator, or another check of sizes, found.
  Diagnostic say(const Misfit &m) const;
  /// What is said of one that other nodes' rules exclude: these are named.
  std::optional<Diagnostic> contradiction(const Misfit &m) const;
  Attributes withOwn(OpKind op, Attributes attrs);
  Status checkSizes(const std::vector<TypedShape> &types) const;
  const onnx::AttributeProto *attribute(const std::string &key, int type);
  void attributeError(const std::string &key, const std::string &text);
  std::string attributePlace(const std::string &key) const;
  ConstantRef read(Result<ConstantRef> c); // nullptr where it fails, which is noted
  /// UnsupportedShape with `text`, which ends where the two sizes follow that may differ.
  Diagnostic openSizes(std::string text, const DimExpr &a, const DimExpr &b) const;

  GraphBuilder &builder;
  std::string opType;
  int opsetVersion;
  std::string nodeName;
  std::map<std::string, const onnx::AttributeProto *> attributes;
  std::vector<ValueId> inputs;
  std::vector<std::string> outputNames;
  std::vector<std::string> used;
};

/// The newest opset of ONNX's own domain that is read.
constexpr int kNewestOpset = 28;

/// One operator of a family: the ONNX name, the opset versions it is served for, its operand counts (-1:
/// any number) and the function that makes Graph nodes of it.
struct OpRow {
  std::string_view name;
  int minOpset, maxOpset;
  int minInputs, maxInputs;
  int maxOutputs;
  Status (*import)(NodeImporter &node);
  std::string_view note = ""; // restrictions, for the generated operator list
  uint32_t optional = 0;      // bit i: input i may be left out although one behind it is mandatory
};

} // namespace fusec
