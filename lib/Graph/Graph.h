#pragma once
#include "Graph/Constant.h"
#include "Support/DType.h"
#include "Support/Dim.h"
#include "Support/SizeRules.h"
#include "Support/TypeText.h"

#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace fusec {

/// One row of Ops.def. Semantics are those of the newest ONNX opset that fusec reads, in one normalised form: the
/// importer turns older forms and attributes that became inputs into it.
enum class OpKind : uint16_t {
#define FUSEC_OP(name, ...) name,
#include "Graph/Ops.def"
};
struct OpInfo {
  std::string_view name;
  /// A maximum of -1: any number.
  int minInputs, maxInputs;
  int minOutputs, maxOutputs;
  /// Their text, which OpAttributes.h reads.
  std::string_view attributes;
};
constexpr size_t kNumOpKinds = 0
#define FUSEC_OP(...) +1
#include "Graph/Ops.def"
    ;
const OpInfo &info(OpKind op);
std::optional<OpKind> parseOpKind(std::string_view name);

using ValueId = int32_t;
constexpr ValueId kNoValue = -1; // an optional input or output that is absent

using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>,
                               std::vector<double>, std::vector<std::string>, DType, ConstantRef>;

struct TypedShape {
  DType type;
  Shape shape;
};

/// A tensor in SSA form: defined once, by a graph input, a constant or a node output.
struct Value {
  /// The ONNX name. Unique within its graph and the graphs around it.
  std::string name;
  DType type = DType::F32;
  Shape shape;
  /// Set if and only if the value is a constant. Constants are readable in every region.
  ConstantRef constant;
  /// Elements (row-major) of a small integer or bool tensor that depends on symbols only, such as the result of
  /// Shape; empty when not known. An annotation: the value still has its producer.
  std::vector<DimExpr> known;
  /// What a graph input is where a run leaves it out; null: no run may.
  ConstantRef defaultValue = nullptr;
};

struct Region;

/// One operation. `attributes` holds only those named in Ops.def, all present (defaults filled in).
struct Node {
  OpKind op;
  /// The ONNX node's name, or "<OpType>_<index>" where the model gives none.
  std::string name;
  /// The model's type of operator, for messages.
  std::string onnxOp;
  /// kNoValue where an optional one is absent.
  std::vector<ValueId> inputs, outputs;
  std::map<std::string, Attribute> attributes;
  /// Then and else of If, the body of Loop and Scan.
  std::vector<Region> regions;

  // An attribute that must be there, of that type.
  int64_t intAttr(std::string_view key) const;
  double floatAttr(std::string_view key) const;
  const std::string &stringAttr(std::string_view key) const;
  const std::vector<int64_t> &intsAttr(std::string_view key) const;
  bool hasAttr(std::string_view key) const;
  bool hasInput(size_t i) const { return i < inputs.size() && inputs[i] != kNoValue; }
  bool hasOutput(size_t i) const { return i < outputs.size() && outputs[i] != kNoValue; }
};

/// A list of nodes in topological order. Values of all regions live in the one table of Graph; a region
/// may read values of the regions around it (constants excepted) only when it lists them in `captures`.
struct Region {
  /// The graph's inputs, or iteration, condition and carried values of Loop. A branch of If has none.
  std::vector<ValueId> inputs;
  std::vector<ValueId> captures; // sorted
  std::vector<Node> nodes;
  std::vector<ValueId> outputs;
};

/// A model after import: typed, shaped (symbolic dims allowed), functions inlined.
struct Graph {
  std::string name;
  std::vector<Symbol> symbols;
  SizeRules sizeRules; // what nodes ask of the symbols
  std::vector<Value> values;
  Region body;

  ValueId addValue(Value v);
  const Value &value(ValueId id) const { return values[id]; }
  Value &value(ValueId id) { return values[id]; }
};

/// The symbol that a DataSize node gives its value; nullopt where the graph has none of this name that depends on data.
std::optional<SymbolId> sizedSymbol(const Graph &graph, const Node &node);
/// The symbols in a value's shape and known elements, without repetition.
std::vector<SymbolId> symbolsIn(const Value &value);

/// The spelling of types in the text form and in messages: "f32[batch,3]".
std::string typeText(const Value &v, const std::vector<Symbol> &symbols);

/// Prints the text form. Constants of at most 16 elements are printed in full, larger ones by digest: their bytes go
/// to `store` (print) and come from it (parse). print(parse(print(g))) == print(g).
std::string print(const Graph &graph, ConstantStore *store);
Result<Graph> parseGraph(std::string_view text, const std::string &fileName,
                         const ConstantStore &store);

/// Checks every rule of this header; run at stage borders. Errors are BadIr diagnostics.
Status verify(const Graph &graph);

} // namespace fusec
