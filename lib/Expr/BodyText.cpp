// Text of a Body, and `compact`, which numbers nodes as the parser would.
#include "Expr/BodyText.h"

#include <algorithm>
#include <map>

namespace fusec {
namespace {

bool isLeaf(const Scalar &s) {
  return s.op == ScalarOp::Const || s.op == ScalarOp::Axis || s.op == ScalarOp::Step ||
         s.op == ScalarOp::Dim || s.op == ScalarOp::State || s.op == ScalarOp::Part ||
         (s.op == ScalarOp::Read && s.args.empty());
}
bool isComparison(ScalarOp op) {
  return op == ScalarOp::Eq || op == ScalarOp::Ne || op == ScalarOp::Lt || op == ScalarOp::Le;
}
bool isTest(ScalarOp op) { return op == ScalarOp::IsNan || op == ScalarOp::IsInf; }
bool isConversion(ScalarOp op) {
  return op == ScalarOp::Cast || op == ScalarOp::CastSat || op == ScalarOp::Bitcast;
}

/// A ReadIf prints predicate, indices, else-value.
NodeId operandInTextOrder(const Scalar &s, size_t i) {
  if (s.op != ScalarOp::ReadIf || i == 0)
    return s.args[i];
  return s.args[i + 1 < s.args.size() ? i + 1 : 1];
}

/// Calls `leave` for `root` and what is below it, operands first in the order of their text, where it is not done yet.
/// Not by recursion: maps that follow each other make a body as deep as it is large.
template <typename Done, typename Leave>
void operandsFirst(const std::vector<Scalar> &nodes, NodeId root, Done isDone, Leave leave) {
  std::vector<std::pair<NodeId, size_t>> open; // and which operand comes next
  if (!isDone(root))
    open.push_back({root, 0});
  while (!open.empty()) {
    auto &[id, next] = open.back();
    if (next < nodes[id].args.size()) {
      const NodeId operand = operandInTextOrder(nodes[id], next++);
      if (!isDone(operand))
        open.push_back({operand, 0});
      continue;
    }
    leave(id);
    open.pop_back();
  }
}

/// Chooses the nodes that get a `let`, and the order of the lets: nodes that are used more than once, except short
/// index expressions and leaves.
class LetOrder {
public:
  LetOrder(const Body &body, const std::vector<NodeId> &roots)
      : body(body), met(body.nodes.size()) {
    for (NodeId id : body.reachable(roots))
      for (NodeId a : body[id].args)
        ++met[a].uses;
    for (NodeId r : roots)
      ++met[r].uses;
    for (NodeId r : roots)
      visit(r);
  }
  std::vector<NodeId> lets;

private:
  static constexpr int kInlineNodes = 12;
  static constexpr int kInlineDepth = 100; // deeper nesting is cut by a let

  struct Met {
    int uses = 0, depth = 0;
    int nodes = 0; // tree size, or more than kInlineNodes for what is no index expression
    bool done = false;
  };

  void visit(NodeId root) {
    operandsFirst(
        body.nodes, root, [&](NodeId id) { return met[id].done; }, [&](NodeId id) { leave(id); });
  }
  void leave(NodeId id) {
    Met &own = met[id];
    own.done = true;
    const Scalar &s = body[id];
    own.nodes = 1;
    for (NodeId a : s.args) {
      own.nodes = std::min(own.nodes + met[a].nodes, kInlineNodes + 1);
      own.depth = std::max(own.depth, met[a].depth + 1);
    }
    if (s.type != DType::I64 || s.op == ScalarOp::Read || s.op == ScalarOp::ReadIf ||
        isConversion(s.op))
      own.nodes = kInlineNodes + 1;
    if ((own.uses > 1 && !isLeaf(s) && own.nodes > kInlineNodes) || own.depth > kInlineDepth) {
      lets.push_back(id);
      own.depth = 0;
    }
  }

  const Body &body;
  std::vector<Met> met; // by node
};

class BodyPrinter {
public:
  BodyPrinter(const Body &body, const BodyNames &names) : body(body), names(names) {}
  std::map<NodeId, std::string> bound;

  enum Level { Sum, Term, Primary };
  using Context = std::optional<DType>;

  std::string text(NodeId id, Context context, Level level = Sum) {
    if (auto it = bound.find(id); it != bound.end())
      return it->second;
    return definition(id, context, level);
  }

  std::string definition(NodeId id, Context context, Level level = Sum) {
    const Scalar &s = body[id];
    switch (s.op) {
    case ScalarOp::Const: return constant(s, context);
    case ScalarOp::Axis: return names.axis(s.index);
    case ScalarOp::Step: return "step";
    case ScalarOp::Dim: return "dim(" + s.dim.str(*names.symbols) + ")";
    case ScalarOp::State:
    case ScalarOp::Part: return std::string(mnemonic(s.op)) + "(" + std::to_string(s.index) + ")";
    case ScalarOp::Read: return names.tensor(s.index) + indices(s, 0);
    case ScalarOp::ReadIf:
      return "if(" + text(s.args[0], DType::Bool) + ", " + names.tensor(s.index) + indices(s, 2) +
             ", " + text(s.args[1], s.type) + ")";
    case ScalarOp::Select:
      return "select(" + text(s.args[0], DType::Bool) + ", " + text(s.args[1], context) + ", " +
             text(s.args[2], body[s.args[1]].type) + ")";
    default: break;
    }
    if (s.type == DType::I64 && s.op == ScalarOp::Add)
      return parenthesised(level > Sum, sum(s));
    if (s.type == DType::I64 && s.op == ScalarOp::Mul)
      return parenthesised(level > Term, text(s.args[0], DType::I64, Term) + "*" +
                                             text(s.args[1], DType::I64, Primary));
    std::string out = std::string(mnemonic(s.op)) + "(";
    if (isConversion(s.op))
      out += std::string(name(s.type)) + ", ";
    Context operand =
        isComparison(s.op) || isTest(s.op) || isConversion(s.op) ? Context() : context;
    for (size_t i = 0; i < s.args.size(); ++i) {
      out += (i ? ", " : "") + text(s.args[i], operand);
      operand = body[s.args[0]].type;
    }
    return out + ")";
  }

private:
  static std::string parenthesised(bool needed, std::string s) {
    return needed ? "(" + s + ")" : s;
  }

  std::string sum(const Scalar &s) {
    const Scalar &b = body[s.args[1]];
    std::string left = text(s.args[0], DType::I64, Sum);
    if (b.op == ScalarOp::Const && b.imm < 0 && b.imm != INT64_MIN)
      return left + " - " + std::to_string(-b.imm);
    return left + " + " + text(s.args[1], DType::I64, Term);
  }

  std::string indices(const Scalar &s, size_t first) {
    std::string out = "[";
    for (size_t i = first; i < s.args.size(); ++i)
      out += (i > first ? ", " : "") + text(s.args[i], DType::I64);
    return out + "]";
  }

  std::string constant(const Scalar &s, Context context) {
    if (s.type == DType::Bool)
      return s.imm ? "true" : "false";
    std::string value = !isFloat(s.type)       ? std::to_string(s.imm)
                        : s.type == DType::F64 ? floatToText(s.fimm)
                                               : floatToText(static_cast<float>(s.fimm));
    bool implied = context ? *context == s.type : s.type == DType::I64;
    return implied ? value : std::string(name(s.type)) + " " + value;
  }

  const Body &body;
  const BodyNames &names;
};

} // namespace

BodyText textOf(const Body &body, const std::vector<NodeId> &roots, const BodyNames &names,
                int indent) {
  LetOrder order(body, roots);
  BodyPrinter printer(body, names);
  BodyText out;
  std::vector<std::string> axisNames;
  for (NodeId id : body.reachable(roots))
    if (body[id].op == ScalarOp::Axis)
      axisNames.push_back(names.axis(body[id].index));
  int counter = 0;
  for (NodeId id : order.lets) {
    std::string letName;
    do
      letName = "t" + std::to_string(counter++);
    while (std::find(axisNames.begin(), axisNames.end(), letName) != axisNames.end());
    out.lets += std::string(static_cast<size_t>(indent), ' ') + "let " + letName + " = " +
                printer.definition(id, std::nullopt) + ";\n";
    printer.bound[id] = letName;
  }
  for (size_t i = 0; i < roots.size(); ++i)
    out.roots.push_back(printer.text(
        roots[i], i < names.rootTypes.size() ? std::optional(names.rootTypes[i]) : std::nullopt));
  return out;
}

std::string nestedText() {
  return std::to_string(kMostNested) + " operations, or " + std::to_string(kMostNestedReads) +
         " guarded reads, stand one inside the other";
}

Nesting nestingOf(const Body &body) {
  std::vector<Nesting> depths(body.nodes.size());
  Nesting most;
  for (size_t id = 0; id < depths.size(); ++id) {
    Nesting &own = depths[id];
    for (NodeId a : body.nodes[id].args) {
      const Nesting &inner = depths[static_cast<size_t>(a)];
      own.operations = std::max(own.operations, inner.operations + 1);
      own.guardedReads = std::max(own.guardedReads, inner.guardedReads);
    }
    own.guardedReads += body.nodes[id].op == ScalarOp::ReadIf;
    most.operations = std::max(most.operations, own.operations);
    most.guardedReads = std::max(most.guardedReads, own.guardedReads);
  }
  return most;
}

std::string print(const Body &body, const std::vector<NodeId> &roots, const BodyNames &names,
                  int indent) {
  BodyText parts = textOf(body, roots, names, indent);
  std::string out;
  if (!parts.lets.empty())
    out = "\n" + parts.lets + std::string(static_cast<size_t>(indent), ' ');
  for (size_t i = 0; i < parts.roots.size(); ++i)
    out += (i ? ", " : "") + parts.roots[i];
  return out;
}

void Body::compact(const std::vector<NodeId *> &roots) {
  std::vector<NodeId> ids;
  for (NodeId *r : roots)
    if (*r != kNoNode)
      ids.push_back(*r);
  Body out;
  out.axisRanges = std::move(axisRanges);
  out.symbolTable = std::move(symbolTable);
  out.stepRange = stepRange;
  std::vector<NodeId> copy(nodes.size(), kNoNode);
  auto visit = [&](NodeId root) {
    operandsFirst(
        nodes, root, [&](NodeId id) { return copy[id] != kNoNode; },
        [&](NodeId id) {
          Scalar s = std::move(nodes[id]);
          for (NodeId &a : s.args)
            a = copy[a];
          copy[id] = out.addExact(std::move(s));
        });
  };
  const std::vector<NodeId> lets = LetOrder(*this, ids).lets;
  out.nodes.reserve(nodes.size());
  for (NodeId let : lets)
    visit(let);
  for (NodeId r : ids)
    visit(r);
  for (NodeId *r : roots)
    if (*r != kNoNode)
      *r = copy[*r];
  *this = std::move(out);
}

} // namespace fusec
