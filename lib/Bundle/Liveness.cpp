#include "Bundle/Liveness.h"

#include <algorithm>

namespace fusec::bundle {

namespace {

class Walker {
public:
  explicit Walker(size_t numTensors) : intervals(numTensors) {}
  std::vector<Interval> intervals;

  void walk(const std::vector<Step> &steps) {
    for (const Step &s : steps)
      walk(s);
  }

private:
  int32_t now = 0;
  std::vector<int32_t> log; // every tensor touched so far, in order

  void touch(int32_t tensor) {
    if (tensor < 0)
      return;
    Interval &i = intervals[tensor];
    if (i.first < 0)
      i.first = now;
    i.last = std::max(i.last, now);
    log.push_back(tensor);
  }
  void copies(const std::vector<Copy> &list) {
    for (const Copy &c : list) {
      touch(c.from);
      touch(c.to);
    }
    ++now;
  }

  void walk(const Step &s) {
    if (s.kind == StepKind::Launch) {
      for (const Variant &v : s.variants)
        for (int32_t t : v.arguments)
          touch(t);
      ++now;
      return;
    }
    if (s.kind == StepKind::Size) {
      touch(s.tripCount);
      ++now;
      return;
    }
    if (s.kind == StepKind::Where) {
      walk(s.thenSteps);
      walk(s.elseSteps);
      return;
    }
    if (s.kind == StepKind::If) {
      touch(s.condition);
      ++now;
      walk(s.thenSteps);
      copies(s.thenCopies);
      walk(s.elseSteps);
      copies(s.elseCopies);
      return;
    }
    const int32_t before = now;
    touch(s.condition);
    touch(s.tripCount);
    touch(s.iteration);
    copies(s.before);
    const size_t logStart = log.size();
    const int32_t bodyFirst = now;
    walk(s.thenSteps);
    touch(s.nextCondition);
    copies(s.thenCopies);
    const int32_t after = now;
    const size_t logEnd = log.size();
    loops.push_back({before, bodyFirst, after,
                     std::vector<int32_t>(log.begin() + logStart, log.begin() + logEnd)});
    copies(s.after);
  }

public:
  struct LoopRange {
    int32_t before, bodyFirst, after; // body: bodyFirst .. after-1
    std::vector<int32_t> touched;
  };
  std::vector<LoopRange> loops; // inner ones first
};

} // namespace

std::vector<Interval> computeLiveness(const Program &program) {
  Walker walker(program.tensors.size());
  walker.walk(program.steps);
  for (const Walker::LoopRange &loop : walker.loops)
    for (int32_t t : loop.touched) {
      Interval &i = walker.intervals[t];
      if (i.first < loop.bodyFirst || i.last >= loop.after) {
        i.first = std::min(i.first, loop.before);
        i.last = std::max(i.last, loop.after);
      }
    }
  return walker.intervals;
}

} // namespace fusec::bundle
