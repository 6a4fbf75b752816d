#pragma once
// Messages for whoever edits a schedule's text: they name its parts as the text does. A broken rule is told as what is
// expected and where, what is given, and what to do where that is not plain:
//   unroll n:7 has a step that divides that of unroll n:16 around it, given 7
#include "Support/Text.h"
#include "Tiling/schedule/BoundSchedule.h"

#include <concepts>

namespace fusec {

/// A loop without what it holds, a statement, a digit of an operand and a read that is kept, as in the schedule's text.
std::string print(const Schedule &schedule, const LoopNode &loop);
std::string print(const Schedule &schedule, const LeafNode &leaf);
std::string print(const Schedule &schedule, const LayoutDigit &digit);
std::string print(const ReusedRead &kept);

namespace tiling {

/// One message, put together of words, numbers, sizes and parts of the schedule. A Statement is told with the loops
/// around it; lists have commas, an empty one and a null are "none".
class Message {
public:
  template <typename... Pieces>
  explicit Message(const BoundSchedule &bound, const Pieces &...pieces) : bound(bound) {
    (add(pieces), ...);
  }
  std::string text;

private:
  void add(const char *words) { text += words; }
  void add(std::string_view words) { text += words; }
  void add(std::integral auto number) { text += std::to_string(number); }
  void add(MemLevel level) { text += name(level); }
  void add(const DimExpr &size) { text += size.str(bound.program.expr.symbols); }
  void add(const ScheduleAxis &axis) { text += "axis " + nameToText(axis.name); }
  void add(const Operand &operand) { text += "operand " + nameToText(operand.name); }
  void add(const ReadPlace &place) { text += print(place); }
  void add(const ReusedRead &kept) { text += print(kept); }
  void add(const LayoutDigit &digit) { text += print(bound.schedule, digit); }
  void add(const LoopNode &loop) { text += print(bound.schedule, loop); }
  void add(const Rewrite &via) { text += print(via); }
  void add(const LeafNode &leaf) { text += print(bound.schedule, leaf); }
  void add(const Statement &statement) {
    add(*statement.leaf);
    statement.loops.empty() ? add(" outside of all loops") : (add(" in "), add(statement.loops));
  }
  template <typename T> void add(const T *one) { one ? add(*one) : add("none"); }
  template <typename T> void add(const std::vector<T> &list) {
    for (const T &one : list) {
      add(&one == list.data() ? "" : ", ");
      add(one);
    }
    add(list.empty() ? "none" : "");
  }

  const BoundSchedule &bound;
};

template <typename... Pieces>
std::string message(const BoundSchedule &bound, const Pieces &...pieces) {
  return Message(bound, pieces...).text;
}

} // namespace tiling
} // namespace fusec
