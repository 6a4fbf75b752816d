#include "Gir/Traffic.h"

#include "Gir/Walk.h"

#include <algorithm>

namespace fusec {
namespace {

class Counter {
public:
  explicit Counter(const GirKernel &kernel) : kernel(kernel) {
    for (const Symbol &s : kernel.symbols)
      opt.push_back(s.opt);
  }

  Traffic run() {
    for (const Phase &p : kernel.phases) {
      double blocks = 1;
      for (const Phase::Block &b : p.blocks)
        blocks *= valueOf(b.trip);
      list(p.body, blocks);
    }
    return total;
  }

private:
  double valueOf(const DimExpr &d) const {
    return static_cast<double>(std::max<int64_t>(0, d.evaluate(opt).value_or(1)));
  }

  /// A trip that is computed counts with its upper bound, where it has one.
  double trips(NodeId trip) const {
    const Scalar &s = kernel.body[trip];
    if (s.op == ScalarOp::Const)
      return static_cast<double>(std::max<int64_t>(0, s.imm));
    if (s.op == ScalarOp::Dim)
      return valueOf(s.dim);
    const int64_t most = kernel.body.rangeOf(trip).max;
    return most == INT64_MAX ? 1 : static_cast<double>(std::max<int64_t>(0, most));
  }

  void list(const std::vector<Stmt> &stmts, double times) {
    for (const Stmt &s : stmts) {
      for (NodeId id : kernel.body.reachable(exprRoots(s))) {
        const Scalar &node = kernel.body[id];
        if ((node.op == ScalarOp::Read || node.op == ScalarOp::ReadIf) && isGlobal(node.index))
          total.read += times;
      }
      if (writesBuffer(s))
        for (BufferId b : {s.buffer, s.indexBuffer})
          if (b >= 0 && isGlobal(b)) {
            total.written += times;
            if (s.kind == StmtKind::Accumulate)
              total.read += times;
          }
      const double inside = s.kind == StmtKind::Loop ? times * trips(s.trip) : times;
      list(s.body, inside);
      list(s.elseBody, inside);
    }
  }

  bool isGlobal(BufferId b) const { return kernel.buffers[b].level == MemLevel::Global; }

  const GirKernel &kernel;
  std::vector<int64_t> opt;
  Traffic total;
};

} // namespace

Traffic globalTraffic(const GirKernel &kernel) { return Counter(kernel).run(); }

bool isMonotone(const Traffic &before, const Traffic &after) {
  return after.read <= before.read && after.written <= before.written;
}

} // namespace fusec
