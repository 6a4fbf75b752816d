#include "Gir/Traffic.h"

#include "Gir/Walk.h"
#include "Support/OptValues.h"

#include <algorithm>

namespace fusec {
namespace {

class Counter {
public:
  explicit Counter(const GirKernel &kernel) : kernel(kernel), traffic(kernel.buffers.size()) {
    opt = optValues(kernel.symbols);
  }

  std::vector<ElementTraffic> run() {
    for (size_t number = 0; number < kernel.phases.size(); ++number) {
      const Phase &p = kernel.phases[number];
      const bool again =
          kernel.rounds && number >= kernel.rounds->first && number < kernel.rounds->last;
      double blocks = again ? valueOf(kernel.rounds->count) : 1;
      for (const Phase::Block &b : p.blocks)
        blocks *= valueOf(b.trip);
      list(p.body, blocks);
    }
    return std::move(traffic);
  }

  double timesInBlock(const StatementPath &site) const {
    double times = 1;
    for (const PathStep &step : site.path)
      if (step.stmt->kind == StmtKind::Loop)
        times *= trips(step.stmt->trip);
    return times;
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
        if (node.op == ScalarOp::Read || node.op == ScalarOp::ReadIf)
          traffic[static_cast<size_t>(node.index)].read += times;
      }
      if (writesBuffer(s))
        for (BufferId b : {s.buffer, s.indexBuffer})
          if (b >= 0) {
            traffic[static_cast<size_t>(b)].written += times;
            if (s.kind != StmtKind::Store)
              traffic[static_cast<size_t>(b)].read += times;
          }
      const double inside = s.kind == StmtKind::Loop ? times * trips(s.trip) : times;
      list(s.body, inside);
      list(s.elseBody, inside);
    }
  }

  const GirKernel &kernel;
  std::vector<int64_t> opt;
  std::vector<ElementTraffic> traffic;
};

} // namespace

std::vector<ElementTraffic> trafficByBuffer(const GirKernel &kernel) {
  return Counter(kernel).run();
}

double timesInBlock(const GirKernel &kernel, const StatementPath &site) {
  return Counter(kernel).timesInBlock(site);
}

ElementTraffic globalTraffic(const GirKernel &kernel) {
  ElementTraffic total;
  const std::vector<ElementTraffic> traffic = trafficByBuffer(kernel);
  for (size_t b = 0; b < traffic.size(); ++b)
    if (kernel.buffers[b].level == MemLevel::Global) {
      total.read += traffic[b].read;
      total.written += traffic[b].written;
    }
  return total;
}

bool isMonotone(const ElementTraffic &before, const ElementTraffic &after) {
  return after.read <= before.read && after.written <= before.written;
}

} // namespace fusec
