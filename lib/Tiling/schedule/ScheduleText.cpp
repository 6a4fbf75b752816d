#include "Tiling/schedule/Message.h"

#include "Support/WholeText.h"

#include <algorithm>
#include <ranges>
#include <set>

namespace fusec {

namespace {

constexpr int kMaxDepth = 64; // of loops: their readers recurse
constexpr std::string_view kLeafNames[] = {"init",    "compute", "combine", "store",
                                           "stage",   "carry",   "sort",    "select",
                                           "barrier", "correct", "counters"};
constexpr std::string_view kLoopNames[] = {"block", "unit", "lane", "seq", "unroll"};

std::string axisName(const Schedule &schedule, AxisId axis) {
  return axis < 0 ? "step" : nameToText(schedule.axes[axis].name);
}

/// The words that a text may have at a place; of many the first ones.
std::string oneOf(const auto &list) {
  constexpr size_t kMostTold = 12;
  std::string words;
  for (size_t i = 0; i < std::size(list) && i <= kMostTold; ++i)
    words += (i == 0 ? "" : ", ") + (i == kMostTold ? "..." : nameToText(list[i]));
  return words.empty() ? "none" : words;
}

void printTree(const Schedule &schedule, const std::vector<TreeNode> &nodes, int indent,
               std::string &out) {
  for (const TreeNode &node : nodes) {
    out.append(indent * 2, ' ');
    if (const LeafNode *leaf = node.leaf()) {
      out += print(schedule, *leaf) + "\n";
      continue;
    }
    out += print(schedule, *node.loop()) + " {\n";
    printTree(schedule, node.loop()->children, indent + 1, out);
    out.append(indent * 2, ' ');
    out += "}\n";
  }
}

class Parser {
public:
  Parser(TextReader &in, const ExprProgram &original) : in(in), pattern(original) {}

  Result<Schedule> parse() {
    FUSEC_CHECK(in.expect("schedule"));
    FUSEC_TRY(schedule.name, in.nameText());
    FUSEC_CHECK(in.expect("units"));
    FUSEC_TRY(schedule.units, number());
    FUSEC_CHECK(in.expect("lanes"));
    FUSEC_TRY(schedule.lanes, number());
    FUSEC_CHECK(in.expect("{"));
    while (in.accept("via"))
      FUSEC_CHECK(parseRewrite());
    while (!in.peekIs("tree")) {
      if (in.accept("axis"))
        FUSEC_CHECK(parseAxis());
      else if (in.accept("operand"))
        FUSEC_CHECK(parseOperand());
      else if (in.accept("edge"))
        FUSEC_CHECK(parseEdge());
      else if (in.accept("keep"))
        FUSEC_CHECK(parseKept());
      else
        return unexpected("'axis', 'operand', 'edge', 'keep' or 'tree'");
    }
    for (TensorId t : tiling::valuesInside(pattern)) // none is taken for granted
      if (const std::string &value = pattern.tensors[t].name; leveled.count(t) == 0)
        return in.error("expected 'edge " + nameToText(value) +
                        "' and its level, register, shared or global; found no line for it");
    FUSEC_CHECK(in.expect("tree"));
    FUSEC_CHECK(in.expect("{"));
    FUSEC_CHECK(parseTree(schedule.tree, 0));
    FUSEC_CHECK(in.expect("}"));
    std::ranges::sort(schedule.kept);
    return std::move(schedule);
  }

private:
  Diagnostic unexpected(const std::string &expected) const {
    return in.error("expected " + expected + ", found '" + std::string(in.peek().text) + "'");
  }

  /// The place of the last one in the list that is called so.
  Result<int> placeOf(const std::string &name, const char *what, const auto &list,
                      auto nameOf) const {
    const auto names = std::views::transform(list, nameOf);
    for (size_t i = list.size(); i-- > 0;)
      if (names[i] == name)
        return static_cast<int>(i);
    return in.error(what + (" (" + oneOf(names)) + "), found '" + name + "'");
  }

  Result<int> number() {
    FUSEC_TRY(int64_t value, in.integer());
    if (value < INT32_MIN || value > INT32_MAX)
      return in.error("expected a number of 32 bits, found " + std::to_string(value));
    return static_cast<int>(value);
  }

  Status parseRewrite() {
    Rewrite rewrite;
    FUSEC_TRY(rewrite.alternative, in.nameText());
    FUSEC_CHECK(placeOf(rewrite.alternative, "expected an alternative", alternatives(),
                        &Alternative::name));
    if (in.peek().kind == TextReader::Kind::Integer) {
      FUSEC_TRY(rewrite.choice, in.integer());
    }
    if (in.accept("of")) {
      FUSEC_TRY(rewrite.first, equationRef());
      FUSEC_CHECK(in.expect("to"));
      FUSEC_TRY(int last, equationRef());
      rewrite.count = last - rewrite.first + 1;
      if (rewrite.count < 1)
        return in.error("expected equations in their order, found e" +
                        std::to_string(rewrite.first) + " to e" + std::to_string(last));
    }
    std::optional<ExprProgram> next = rewritten(pattern, {rewrite});
    if (!next)
      return in.error("expected an alternative that applies to the pattern, found '" +
                      print(rewrite) + "'");
    schedule.via.push_back(std::move(rewrite));
    pattern = std::move(*next);
    return success();
  }

  Result<int> equationRef() {
    FUSEC_TRY(std::string text, in.identifier());
    const int last = static_cast<int>(scheduledEquations(pattern).size()) - 1;
    if (const auto e = wholeNumber<int>(text.substr(1)); text[0] == 'e' && e && *e <= last)
      return *e;
    return in.error("expected one of e0 to e" + std::to_string(last) + ", found '" + text + "'");
  }

  Status parseAxis() {
    ScheduleAxis axis;
    FUSEC_TRY(axis.name, in.nameText());
    do {
      AxisUse use;
      use.reduction = in.accept("reduction");
      if (!use.reduction)
        FUSEC_CHECK(in.expect("spatial"));
      FUSEC_CHECK(in.expect("("));
      do {
        FUSEC_TRY(int position, number());
        use.positions.push_back(position);
      } while (in.accept(","));
      FUSEC_CHECK(in.expect(")"));
      FUSEC_CHECK(in.expect("of"));
      do {
        FUSEC_TRY(int equation, equationRef());
        use.equations.push_back(equation);
      } while (in.accept(","));
      axis.uses.push_back(std::move(use));
    } while (in.accept("and"));
    axis.extent = DimExpr(1);
    const Equation &first = *scheduledEquations(pattern)[axis.uses[0].equations[0]];
    for (int position : axis.uses[0].positions) {
      if (position < 0 || position >= static_cast<int>(first.axes.size()))
        return in.error("axis " + nameToText(axis.name) + ": expected a position below " +
                        std::to_string(first.axes.size()) + ", found " + std::to_string(position));
      axis.extent = axis.extent * first.axes[position].extent;
    }
    schedule.axes.push_back(std::move(axis));
    return success();
  }

  Result<AxisId> axisRef() {
    FUSEC_TRY(std::string name, in.nameText());
    if (name == "step")
      return kStepAxis;
    FUSEC_TRY(const int axis,
              placeOf(name, "expected an axis or step", schedule.axes, &ScheduleAxis::name));
    return AxisId(axis);
  }

  Result<ReadPlace> readRef() {
    FUSEC_TRY(std::string text, in.identifier()); // "e0.r1" is one identifier token
    const size_t dot = std::min(text.find(".r"), text.size() - 1);
    const auto equation = wholeNumber<int>(text.substr(1, dot - 1));
    const auto read = wholeNumber<int>(text.substr(std::min(dot + 2, text.size())));
    if (text[0] != 'e' || !equation || !read)
      return in.error("expected a read such as e0.r1, found '" + text + "'");
    return ReadPlace{*equation, 0, *read};
  }

  Result<ReadPlace> readPlace() {
    FUSEC_TRY(ReadPlace place, readRef());
    if (in.accept("rank")) {
      FUSEC_TRY(place.rank, number());
    }
    return place;
  }

  Status parseKept() {
    ReusedRead kept;
    FUSEC_TRY(kept.read, readPlace());
    FUSEC_TRY(kept.level, parseLevel());
    FUSEC_CHECK(in.expect("from"));
    if (!in.accept("store")) {
      FUSEC_TRY(kept.from, readPlace());
    }
    schedule.kept.push_back(kept);
    return success();
  }

  Status parseOperand() {
    Operand operand;
    FUSEC_TRY(operand.name, in.nameText());
    FUSEC_TRY(const ReadPlace place, readRef());
    operand.equation = place.equation;
    operand.read = place.read;
    FUSEC_TRY(operand.level, parseLevel());
    FUSEC_CHECK(in.expect("("));
    do {
      LayoutDigit digit;
      if (in.accept("[")) {
        FUSEC_TRY(digit.index, number());
        FUSEC_CHECK(in.expect("]"));
      } else {
        FUSEC_TRY(digit.axis, axisRef());
      }
      if (in.accept("/")) {
        FUSEC_TRY(digit.divide, in.integer());
      }
      if (in.accept("%")) {
        FUSEC_TRY(digit.modulus, in.integer());
      }
      operand.digits.push_back(digit);
    } while (in.accept(","));
    FUSEC_CHECK(in.expect(")"));
    if (in.accept("pad")) {
      FUSEC_TRY(operand.padElements, in.integer());
    }
    schedule.operands.push_back(std::move(operand));
    return success();
  }

  Result<MemLevel> parseLevel() {
    for (MemLevel level : {MemLevel::Register, MemLevel::Shared, MemLevel::Global})
      if (in.accept(name(level)))
        return level;
    return unexpected("register, shared or global");
  }

  Status parseEdge() {
    FUSEC_TRY(std::string tensor, in.nameText());
    const std::vector<TensorId> inside = tiling::valuesInside(pattern);
    auto nameOf = [&](TensorId t) { return pattern.tensors[t].name; };
    FUSEC_TRY(const int place,
              placeOf(tensor, "expected a value inside the kernel", inside, nameOf));
    const TensorId t = inside[place];
    FUSEC_TRY(MemLevel level, parseLevel());
    if (!leveled.insert(t).second)
      return in.error("expected one level of edge " + nameToText(tensor) + ", found " +
                      std::string(name(level)) + " behind another");
    tiling::setLevel(schedule, t, level);
    if (level != MemLevel::Shared || !in.accept("in"))
      return success();
    FUSEC_TRY(const std::string other, in.nameText());
    FUSEC_TRY(const int taken,
              placeOf(other, "expected a value inside the kernel", inside, nameOf));
    schedule.edges.back().in = inside[taken];
    return success();
  }

  Status parseTree(std::vector<TreeNode> &nodes, int depth) {
    if (depth > kMaxDepth)
      return in.error("expected loops at most " + std::to_string(kMaxDepth) + " deep, found more");
    while (!in.accept("}")) {
      FUSEC_TRY(std::string word, in.identifier());
      const auto kindIn = [&](const auto &names) {
        return std::find(std::begin(names), std::end(names), word) - std::begin(names);
      };
      if (const auto kind = kindIn(kLoopNames); kind < std::ssize(kLoopNames)) {
        LoopNode loop{static_cast<LoopKind>(kind)};
        FUSEC_TRY(loop.axis, axisRef());
        FUSEC_CHECK(in.expect(":"));
        FUSEC_TRY(loop.step, in.integer());
        FUSEC_CHECK(in.expect("{"));
        FUSEC_CHECK(parseTree(loop.children, depth + 1));
        nodes.push_back(std::move(loop));
      } else if (const auto kind = kindIn(kLeafNames); kind < std::ssize(kLeafNames)) {
        FUSEC_TRY(const LeafNode leaf, parseLeaf(static_cast<LeafKind>(kind)));
        nodes.emplace_back(leaf);
      } else {
        return in.error("expected a loop (" + oneOf(kLoopNames) + ") or a statement (" +
                        oneOf(kLeafNames) + "), found '" + word + "'");
      }
    }
    return success();
  }

  Result<LeafNode> parseLeaf(LeafKind kind) {
    LeafNode leaf{kind};
    if (kind == LeafKind::Carry) {
      FUSEC_TRY(leaf.carry, number());
    } else if (kind == LeafKind::Stage) {
      FUSEC_TRY(std::string operand, in.nameText());
      FUSEC_TRY(const int place,
                placeOf(operand, "expected an operand", schedule.operands, &Operand::name));
      leaf.operand = OperandIndex(place);
    } else if (!leaf.isBorder()) {
      FUSEC_TRY(leaf.equation, equationRef());
    }
    if (in.accept("rank")) {
      FUSEC_TRY(leaf.rank, number());
      leaf.rank = std::max(leaf.rank, 0);
    }
    if (kind == LeafKind::Compute && in.accept("kernel")) {
      FUSEC_TRY(leaf.kernel, in.nameText());
    }
    return leaf;
  }

  TextReader &in;
  ExprProgram pattern; // after the alternatives
  Schedule schedule;
  std::set<TensorId> leveled; // values whose edge has been read
};

} // namespace

std::string print(const Schedule &schedule, const LayoutDigit &digit) {
  std::string text =
      digit.index >= 0 ? "[" + std::to_string(digit.index) + "]" : axisName(schedule, digit.axis);
  if (digit.divide != 1)
    text += "/" + std::to_string(digit.divide);
  if (digit.modulus != 0)
    text += "%" + std::to_string(digit.modulus);
  return text;
}

std::string print(const Schedule &schedule, const LoopNode &loop) {
  return std::string(kLoopNames[static_cast<int>(loop.kind)]) + " " +
         axisName(schedule, loop.axis) + ":" + std::to_string(loop.step);
}

std::string print(const Schedule &schedule, const LeafNode &leaf) {
  std::string out(kLeafNames[static_cast<int>(leaf.kind)]);
  if (leaf.kind == LeafKind::Stage)
    out += " " + nameToText(schedule.operands[leaf.operand].name);
  else if (leaf.kind == LeafKind::Carry)
    out += " " + std::to_string(leaf.carry);
  else if (!leaf.isBorder())
    out += " e" + std::to_string(leaf.equation);
  if (leaf.kind == LeafKind::Correct || leaf.rank > 0)
    out += " rank " + std::to_string(leaf.rank);
  if (!leaf.kernel.empty())
    out += " kernel " + nameToText(leaf.kernel);
  return out;
}

std::string print(const ReusedRead &kept) {
  return "keep " + print(kept.read) + " " + std::string(name(kept.level)) + " from " +
         (kept.from ? print(*kept.from) : "store");
}

std::string print(const ReadPlace &place) {
  return "e" + std::to_string(place.equation) + ".r" + std::to_string(place.read) +
         (place.rank > 0 ? " rank " + std::to_string(place.rank) : "");
}

std::string print(const Schedule &schedule, const ExprProgram &original) {
  const tiling::ScheduledProgram scheduled(original, schedule.via);
  const ExprProgram &pattern = scheduled.expr;
  std::string out = "schedule " + nameToText(schedule.name) + " units " +
                    std::to_string(schedule.units) + " lanes " + std::to_string(schedule.lanes) +
                    " {\n";
  for (const Rewrite &rewrite : schedule.via)
    out += "  via " + quoted(rewrite.alternative) +
           print(rewrite).substr(rewrite.alternative.size()) + "\n";
  for (const ScheduleAxis &axis : schedule.axes) {
    out += "  axis " + nameToText(axis.name);
    for (const AxisUse &use : axis.uses) {
      out += &use == &axis.uses[0] ? "" : " and";
      out += use.reduction ? " reduction (" : " spatial (";
      for (size_t i = 0; i < use.positions.size(); ++i)
        out += (i ? ", " : "") + std::to_string(use.positions[i]);
      out += ") of ";
      for (size_t i = 0; i < use.equations.size(); ++i)
        out += (i ? ", e" : "e") + std::to_string(use.equations[i]);
    }
    out += " # extent " + axis.extent.str(pattern.symbols) + "\n";
  }
  for (const Operand &operand : schedule.operands) {
    out += "  operand " + nameToText(operand.name) + " e" + std::to_string(operand.equation) +
           ".r" + std::to_string(operand.read) + " " + std::string(name(operand.level)) + " (";
    for (size_t i = 0; i < operand.digits.size(); ++i)
      out += (i ? ", " : "") + print(schedule, operand.digits[i]);
    out += ")";
    if (operand.padElements != 0)
      out += " pad " + std::to_string(operand.padElements);
    out += "\n";
  }
  std::vector<EdgeLevel> edges = schedule.edges;
  for (TensorId t : tiling::valuesInside(pattern))
    if (tiling::levelOf(schedule, t) == MemLevel::Global)
      edges.push_back({t, MemLevel::Global});
  for (auto [tensor, level, in] : edges)
    out += "  edge " + nameToText(pattern.tensors[tensor].name) + " " + std::string(name(level)) +
           (in < 0 ? "" : " in " + nameToText(pattern.tensors[in].name)) + "\n";
  for (const ReusedRead &kept : schedule.kept)
    out += "  " + print(kept) + "\n";
  out += "  tree {\n";
  printTree(schedule, schedule.tree, 2, out);
  return out + "  }\n}\n";
}

Result<Schedule> parseSchedule(TextReader &in, const ExprProgram &pattern) {
  return Parser(in, pattern).parse();
}

} // namespace fusec
