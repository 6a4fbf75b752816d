#pragma once
#include "Expr/Body.h"

#include <map>

namespace fusec {

/// The text of a Body in parts, for constructs that place the roots themselves.
struct BodyText {
  std::string lets; // one line each, indented, with line ends
  std::vector<std::string> roots;
};
BodyText textOf(const Body &body, const std::vector<NodeId> &roots, const BodyNames &names,
                int indent);

/// Operations of a body that may stand one inside the other, more than the largest body of compose has (Inline.h):
/// functions over bodies may recurse as deep.
constexpr int kMostNested = 1024;
/// Guarded reads of a body that may stand one inside the other. Code for one takes 1 to 2 KiB of stack, and 3 of the
/// 512 operations that compose leaves a body.
constexpr int kMostNestedReads = 180;
/// How many operations of a body stand one inside the other, and how many of them are guarded reads.
struct Nesting {
  int operations = 0, guardedReads = 0;
};
Nesting nestingOf(const Body &body);
/// The limits in words.
std::string nestedText();

/// Reads the parts again: first the lets, then expressions one by one. Nodes are made as written, without
/// simplification.
class BodyReader {
public:
  BodyReader(TextReader &in, Body &body, const BodyParser &names)
      : in(in), body(body), names(names) {}

  Status readLets();
  /// One expression; a constant without a type takes `context` (i64 when there is none).
  Result<NodeId> expression(std::optional<DType> context) { return sum(context); }
  /// "%name" as the names know it.
  Result<std::pair<int32_t, DType>> tensor();
  /// "[e, e, ...]", i64 each.
  Result<std::vector<NodeId>> indices();

private:
  using Context = std::optional<DType>;
  NodeId make(ScalarOp op, DType type, std::vector<NodeId> args, int32_t index = 0);
  Status needI64(NodeId a, const char *where);
  Result<NodeId> sum(Context context);
  Result<NodeId> term(Context context);
  Result<NodeId> primary(Context context);
  Result<NodeId> literal(DType type);
  bool atLiteral() const;
  Result<NodeId> read();
  Result<NodeId> conditionalRead();
  Result<NodeId> dimension();
  Result<NodeId> cascadeState(ScalarOp op);
  Result<NodeId> call(const std::string &word, Context context);

  TextReader &in;
  Body &body;
  const BodyParser &names;
  std::map<std::string, NodeId> lets;
  int depth = 0;
};

} // namespace fusec
