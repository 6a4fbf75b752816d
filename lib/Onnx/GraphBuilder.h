#pragma once
#include "Graph/SizeSolver.h"
#include "Onnx/FileReader.h"
#include "Onnx/Import.h"
#include "Onnx/IntegerRanges.h"
#include "Onnx/KnownValues.h"
#include "Onnx/NodeImporter.h"
#include "Onnx/Ramps.h"
#include "Support/DataTests.h"
#include "Support/Diag.h"

#include "onnx-ml.pb.h"

#include <functional>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace fusec {

/// Names visible at one place of a model. A subgraph sees the names around it, a function only its own.
struct NameScope {
  const NameScope *outer = nullptr;
  std::unordered_map<std::string, ValueId> names;
};

using OnnxAttributes = std::map<std::string, const onnx::AttributeProto *>;
using OnnxNodes = google::protobuf::RepeatedPtrField<onnx::NodeProto>;
using OnnxFunctions = std::map<std::string, const onnx::FunctionProto *>; // by functionKey()
std::string functionKey(const std::string &domain, const std::string &name,
                        const std::string &overload);

/// Refuses recursion, calls deeper than the limit and models whose functions expand to too many nodes,
/// before anything is expanded.
Status checkFunctions(const onnx::ModelProto &model, const OnnxFunctions &functions,
                      const Limits &limits, const std::string &path);

/// A type as a model declares it: any part may be missing.
struct DeclaredType {
  std::optional<DType> type;
  bool hasShape = false, isOutput = false;
  std::vector<std::optional<DimExpr>> dims;
};

/// A branch of an If that a run decides.
struct Branch {
  Branch *outer; // that it lies in
  NodeImporter &node;
  Region &around;    // where the If is to stand
  ValueId condition; // known to be a size, once tellCondition() has made it one
  bool ifTrue;       // it is taken
};

/// Where nodes are being imported to.
struct ImportFrame {
  NameScope *scope;
  Region *region;
  const std::map<std::string, int> *opsets;                      // by domain
  const OnnxAttributes *functionAttributes = nullptr;            // nullptr outside functions
  const std::map<std::string, DeclaredType> *declared = nullptr; // value_info and outputs by name
  const OnnxNodes *nodes = nullptr; // beside these; nullptr in functions
  std::string prefix;               // of names inside functions
  Branch *branch = nullptr;         // around this place
  bool isInLoop = false;            // or in a branch in one
  int depth = 0; // functions around this place, and subgraphs, which take more stack, twice
};

/// How a value that a Loop carries changes its size in a trip.
struct Growth {
  size_t axis;
  /// At most, over sizes around the loop; nothing where that is not known.
  std::optional<DimExpr> perTrip;
};
using Growths = std::map<size_t, Growth>; // by the value's number among what is carried

/// What a second import of the same model takes over from the first.
struct ImportMemory {
  /// What reading a tensor gave, by its (sparse: by its values') message, which the data may have left then.
  std::unordered_map<const onnx::TensorProto *, Result<ConstantRef>> tensors;
  SizeSolver sizes; // what the model's own nodes imply of these
  /// Inputs whose default value has to be known at compile time: what asks for it, in words.
  std::map<std::string, std::string> fixedInputs;
  bool allFixed = false;              // so are all inputs with a default value
  std::set<std::string> lostDefaults; // inputs whose initialisers do not fit what --shape says
  /// The carried values that do not keep their sizes, by the loop: its body, and its name, which tells calls of a
  /// function apart.
  std::map<std::pair<const onnx::GraphProto *, std::string>, Growths> growing;
};

/// Builds a Graph from a parsed model: scopes, functions, subgraphs, diagnostics.
class GraphBuilder {
public:
  /// The id of values whose producer was refused; what depends on them is only checked by name.
  static constexpr ValueId kPoisoned = -2;

  GraphBuilder(const std::string &path, const ImportOptions &options, ImportMemory &memory);
  Result<Graph> run(onnx::ModelProto &model);

  using MakeValues = std::function<Result<std::vector<ValueId>>(const std::vector<ValueId> &)>;
  /// Imports a subgraph into a region: `inputTypes` are the types of its inputs, `ofFirst` what is known of the first
  /// one. The subgraph's own inputs are those of the region, or what `make` makes of them there. The frame is that of
  /// the node that is being imported.
  Result<Region> importSubgraph(const onnx::GraphProto &proto,
                                const std::vector<TypedShape> &inputTypes,
                                const std::string &nodeName, const IntegerRange &ofFirst = {},
                                const MakeValues &make = nullptr);
  /// Imports a subgraph in place, as of these inputs (an If with a constant condition has none), and returns its
  /// outputs.
  Result<std::vector<ValueId>> inlineSubgraph(const onnx::GraphProto &proto,
                                              const std::vector<ValueId> &inputs,
                                              const std::string &nodeName);
  /// A region of inputs of these types, with the nodes that `body` makes of them; it returns the outputs.
  Result<Region> makeRegion(const std::vector<TypedShape> &inputTypes, const MakeValues &body);

  /// Adds the nodes that `make` makes behind those of a region.
  Status extendRegion(Region &region, const std::function<Status()> &make);

  std::string where(const std::string &what) const { return path + ": " + what; }
  ValueId constantValue(ConstantRef c, const std::string &name = "");
  std::string uniqueName(const std::string &wanted);
  Result<ConstantRef> tensor(const onnx::TensorProto &t, const std::string &where);
  Result<ConstantRef> sparseTensor(const onnx::SparseTensorProto &t, const std::string &place);

  Graph graph;
  KnownValues knownValues;
  const ImportOptions &options;
  Diagnostics errors, warnings;
  ImportFrame *frame = nullptr;

  /// What the model declares for a tensor named `name` here.
  const DeclaredType *declaredType(const std::string &name) const;
  /// The rank that follows from what the model declares of the tensor, or of what element-wise nodes make of it.
  std::optional<size_t> declaredRank(std::string name) const;
  /// Gives a value that an operator made up the name of the model's tensor.
  void nameValue(ValueId id, const std::string &name);
  /// Advice where two dims must be equal and are n and min(n, c), as where positions are sliced from a table of c rows,
  /// and the user's own range of n goes beyond c.
  std::optional<std::string> boundAdvice(const DimExpr &a, const DimExpr &b) const;
  /// What the nodes ask of sizes. Where that determines some, the import is repeated with what they are.
  SizeSolver &solver() { return memory.sizes; }
  IntegerRanges integerRanges;
  Ramps ramps; // integers that nodes make of sizes, where there are too many to know each
  /// Whether the node at hand may be one that a run leaves out.
  bool isConditional() const { return frame->region != &graph.body; }
  /// Whether a loop is around it. What is asked of sizes there cannot be left out in runs that make no trip, as it is
  /// in runs that do not take a branch (isTaken).
  bool isInLoop() const { return frame->isInLoop; }
  /// For `node`: 1 in runs that take the branch around it, else 0, as far as that follows from sizes.
  std::optional<DimExpr> isTaken(const std::string &node);
  /// Makes a condition that depends on data a size, 0 or 1, which is known before the If.
  Status tellCondition(Branch &branch);
  bool foundContradiction = false; // between what several nodes ask of sizes
  /// A new symbol that depends on data, at most `bound`, called `name` or something like it. What --dim or the nodes
  /// behind say of it narrows its range.
  DimExpr newDataSize(const std::string &name, const DimExpr &bound);
  /// A size of the data that must be 0 in a run, for a test of a node's data.
  DimExpr newTest(const std::string &node, DataTest test);
  std::vector<SymbolId> dataSizes; // all of these, in the order in which they were made
  /// Value `id` has to be known at compile time, as `who` says. Where it is not, and would be if inputs had their
  /// default values in every run, these are noted. The import is then to be repeated.
  void needsConstant(ValueId id, const std::string &who);
  void noteOperands(const Node &node); // for needsConstant()
  /// The elements of a node's output are beyond the limit on expressions, or follow from such elements.
  void noteBeyondLimit(const Node &node, const std::vector<DimExpr> &elements);
  /// The symbols in what such a value holds; nullptr for any other.
  const std::set<SymbolId> *beyondLimit(ValueId id) const;
  bool foundFixed = false;
  /// What is known of the values that grow in the loop of this body; an import that adds to it is to be repeated, and
  /// what it found of sizes is forgotten.
  Growths &growing(const onnx::GraphProto &body, const std::string &name) {
    return memory.growing[{&body, name}];
  }
  bool foundGrowth = false;
  std::vector<DimExpr> grownSizes; // of such values, in trips and behind their loops
  bool hasDefaults() const { return defaults.size() > memory.lostDefaults.size(); }
  /// The first node that was refused, and why, as a rule on sizes that might be 0; nothing where none was.
  std::optional<SizeRule> firstRefusal() const;
  /// Initialisers and inputs were accepted: only then may another import of the nodes go better.
  bool usable = false;
  ValueId newValue(const std::string &wantedName, DType type, Shape shape);

private:
  Status header(const onnx::ModelProto &model);
  /// Keeps the diagnostics of a failed step and goes on, so that one run lists all of them.
  bool note(Status status);
  /// What is refused here is noted, and its name is bound to kPoisoned.
  void initialisers(const onnx::GraphProto &proto, const std::string &prefix);
  /// The values of --set-input, and the sizes that they fix.
  Status readSetInputs(const onnx::GraphProto &proto);
  Status readSetInput(const onnx::ValueInfoProto &input, const std::string &value);
  Status fixSize(const std::string &name, int64_t size, const std::string &place);
  /// Returns the inputs that --shape names and the model has not.
  std::set<std::string> graphInputs(const onnx::GraphProto &proto, NameScope &scope);
  /// Options that do not fit the model stand alone: what follows from them is no error of the model.
  Status checkOptions(const onnx::GraphProto &proto, const std::set<std::string> &unknownInputs);
  /// What is wrong with names of --dim. Nodes may make sizes that depend on data: it is asked behind these.
  Diagnostics unknownDims() const;
  Status graphInput(const onnx::ValueInfoProto &input);
  /// An input that is its initialiser in every run: --shape may say of it what is so.
  Status constantInput(const onnx::ValueInfoProto &input, const Constant &value);
  /// What --shape says of an input that has this initialiser, or none.
  Result<std::optional<Shape>> shapeOption(const onnx::ValueInfoProto &input,
                                           const Constant *initialiser);
  /// Whether the initialiser of this name is no constant but what an input is where a run leaves it out.
  bool isDefault(const std::string &name) const;
  bool mayBecomeConstant(ValueId id) const;
  Status defaultInput(const onnx::ValueInfoProto &input, const ConstantRef &value);
  /// Input `id` is what --shape says, which its initialiser is not.
  void loseDefault(ValueId id, const Constant &value);
  void warnOfFixedInputs(const onnx::GraphProto &proto);
  void warnOfDefaultInputs();
  /// The data of a tensor may move out of its message, which belongs to this builder's caller for the whole import:
  /// each is read once, also where it is refused.
  Result<ConstantRef> readOnce(const onnx::TensorProto &t, const std::string &place,
                               const std::function<Result<ConstantRef>()> &read);
  Result<Shape> givenShape(const onnx::TypeProto_Tensor &type, const std::string &name,
                           const std::vector<ShapeEntry> &entries);
  Result<Shape> declaredShape(const onnx::ValueInfoProto &input, const std::string &place);
  /// The last size of `given` stands in place of what the file has there.
  void replaceSize(const onnx::TypeProto_Tensor &type, const Shape &given);
  /// The symbol of this name, made where it is new. Where its range leaves one value, that: a symbol that no input's
  /// shape mentions could not be solved when shapes are set.
  DimExpr sizeNamed(const std::string &name);
  /// Keeps the names of the main graph from what is imported in between, such as subgraphs.
  void reserveNames(const onnx::GraphProto &proto);
  /// Takes a name reserved for the main graph; false where it is none or was taken before.
  bool mainName(const std::string &name);
  /// An input or output of the main graph, under its own name.
  ValueId mainValue(const std::string &name, DType type, Shape shape);
  Status graphOutputs(const onnx::GraphProto &proto, const NameScope &scope);
  /// Leaves the symbols that sizes hang on, and the rules that the nodes made of them.
  void settleSizes();
  DimExpr addDataSize(std::string name, std::string_view ending, const DimExpr &bound,
                      const std::optional<TestOfData> &test);
  bool contradicts(const DeclaredType &declared, const Value &value) const;
  std::string declaredText(const DeclaredType &declared) const;
  /// Warns of types and shapes that the nodes around the current frame contradict, and asks for sizes that they leave
  /// open.
  void checkDeclarations(const std::map<std::string, DeclaredType> &declared);
  /// Whether the sizes of a tensor that `maker` makes may be what is declared: then they have to be in every run.
  bool askDeclared(const std::string &name, const DeclaredType &declared, const Value &value,
                   const Node &maker);
  void addOutput(const std::string &name, ValueId id);
  Status markOutputs();
  /// All errors, those of nodes that one operator and one reason have in common as one.
  Diagnostics groupedRefusals() const;
  DeclaredType readType(const onnx::TypeProto &type);
  /// Whether the tensor is one number, as far as that can be told before it is imported.
  bool isScalar(const std::string &name) const;
  std::map<std::string, DeclaredType> declarations(const onnx::GraphProto &proto);
  Status subgraphBody(const onnx::GraphProto &proto, NameScope &scope, Region &region,
                      std::vector<ValueId> &outputs);
  /// Binds the inputs of a subgraph to values: those given, or new ones of the given types.
  Status bindInputs(const onnx::GraphProto &proto, const std::vector<ValueId> &values,
                    NameScope &scope, const std::string &place);
  /// Names the unsupported operators of a subgraph whose inputs are not known.
  void checkSubgraphs(const onnx::NodeProto &node, const std::string &nodeName);
  /// More functions and subgraphs around the frame than a stack of 256 KiB holds.
  Status refuseTooDeep(const std::string &place) const {
    const int most = options.limits.functionDepth + options.limits.subgraphDepth / 2;
    if (frame->depth < most)
      return success();
    return Diagnostic{Diag::LimitExceeded, place,
                      "functions and subgraphs are nested more than " + std::to_string(most) +
                          " deep, where a subgraph counts as two"};
  }
  void importNodes(const OnnxNodes &nodes);
  void importNode(const onnx::NodeProto &node, size_t index);
  Status tryNode(const onnx::NodeProto &node, const std::string &nodeName);
  Result<OnnxAttributes> attributesOf(const onnx::NodeProto &node, const std::string &place);
  Status importOperator(const onnx::NodeProto &node, const std::string &nodeName, int opset,
                        OnnxAttributes attributes, std::vector<ValueId> inputs, const OpRow &row);
  Status inlineFunction(const onnx::NodeProto &node, const onnx::FunctionProto &function,
                        const std::string &nodeName, OnnxAttributes attributes,
                        const std::vector<ValueId> &inputs);
  std::optional<ValueId> lookUp(const std::string &name) const;
  Status bind(const std::string &name, ValueId value, const std::string &place);
  /// Remembers what a node makes, for --mark-output.
  void noteOutput(const std::string &name, ValueId value);
  std::string describe(const std::vector<ValueId> &inputs) const;

  std::string path;
  ExternalFiles files;
  std::map<std::string, int> opsets;
  OnnxFunctions functions;
  std::unordered_set<std::string> usedNames;
  std::unordered_set<std::string> mainNames; // of usedNames: reserved for the main graph, not taken
  std::set<std::string> dimNames;            // every dim_param of the model
  std::unordered_map<std::string, int> nextSuffix;
  std::unordered_set<ValueId> passedOn; // inputs and outputs of the graph so far, from addOutput on
  std::unordered_set<ValueId> madeUp;   // values that have no name of the model's yet
  std::map<Hash128, ValueId> constantIds;
  ImportMemory &memory;
  std::map<std::string, ConstantRef> setInputs;
  std::map<std::string, ConstantRef> defaults; // of inputs, by name
  std::unordered_set<std::string> inputNames;  // where initialisers of these names are defaults
  /// Operands of what nodes make of constants and default values alone, and where needsConstant() has been.
  std::unordered_map<ValueId, std::vector<ValueId>> madeFrom;
  std::unordered_set<ValueId> followed;
  /// Values whose elements would be known but for the limit on expressions, and the symbols in these.
  std::unordered_map<ValueId, std::set<SymbolId>> symbolsBeyondLimit;
  std::map<std::string, DimExpr> sizes; // of the names that inputs have for them
  std::map<std::string, std::vector<InferredSize::Place>>
      dimPlaces; // where inputs have these names
  /// What --shape says in place of a name of the file; nothing where it says several things.
  std::map<std::string, std::optional<DimExpr>> givenSizes;
  int64_t untold = 0;      // warnings of declarations beyond those that are told
  bool staleSizes = false; // --shape gives another size than the file: what this declares is void
  std::unordered_map<std::string, ValueId> nodeOutputs; // of the main graph, functions inlined
  struct NodePlace {
    std::string name, kind; // "conv1", "(Conv, opset 18)"
  };
  std::map<std::string, NodePlace> nodePlaces; // of refused nodes, by Diagnostic::where
};

} // namespace fusec
