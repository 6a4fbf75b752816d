#pragma once
#include "Driver/Decisions.h"
#include "Driver/Resources.h"
#include "Driver/SizedPrediction.h"
#include "Tiling/counts/MemoryRequests.h"
#include "Tiling/counts/Prediction.h"
#include "Tiling/space/SpaceReport.h"

namespace fusec {

/// Launches and what they are predicted to take, at the symbols' opt values; those in branches and loops counted once.
struct Sums {
  int64_t launches = 0;
  double readBytes = 0, writtenBytes = 0, seconds = 0;
};

/// A value that one equation of a kernel hands to another.
struct InnerEdge {
  std::string tensor, producer, consumer;
  std::string level; // one of levelMeanings
};

/// What threads read in one phase of a kernel and hold for a later one.
struct HeldTensor {
  std::string tensor, first, again; // the equations that read it and find it held
};

/// What one launch of a kernel waits for, as its seconds have it.
struct BarrierCounts {
  double ofBlock = 0;  // taken by the threads of a block, the average one where blocks differ
  double ofDevice = 0; // by all blocks, or launches where those cost less
  int counters = 0;    // borders of phases at which a block waits for those whose values it reads
};

struct ExplainedKernel {
  std::string name;   // of the code: k_...; several launches may run it
  int launches = 0;   // of this code in the plan
  std::string step;   // of the execution plan
  std::string within; // branch or loop that holds it; empty: none
  std::vector<std::string> nodes, equations;
  std::vector<int> phaseStarts;             // positions of equations that begin a phase, without 0
  std::vector<std::string> inputs, outputs; // tensors
  std::vector<InnerEdge> edges;
  std::vector<HeldTensor> held;
  Prediction prediction;   // of one launch
  double quickSeconds = 0; // of one launch, by the fidelity that the search explores with
  /// Levels of memory, nearest first, and what counts against each one's bandwidth (Prediction::levelBytes).
  std::vector<std::pair<std::string, double>> levelBytes;
  MemoryRequests moved; // of one launch: what its instructions ask for
  BarrierCounts barriers;
  std::optional<StepReads> stepReads;       // of a scan's kernel
  std::optional<tiling::SpaceReport> space; // of a tree of several nests
  std::vector<std::string> rules;           // of Gir that held in its code, by name
  Sums unfused;                             // its equations, a kernel each
  MemoryRequests unfusedMoved;              // what the unfused kernels' instructions ask for
  std::vector<std::string> schedules;       // text, one a variant
  std::vector<std::string> guards;          // of each of these, in words; empty: none
  // The search logs of the variant that the figures are for; empty if the plan was not searched.
  search::Log considered;
  std::vector<search::Log> consideredOfPhases;
};

/// The plan for all sizes, or one for runs of some sizes alone.
struct ExplainedPlan {
  std::string where;                                  // "length = 1"; empty: for all sizes
  std::vector<std::pair<std::string, int64_t>> sizes; // of symbols, which all its figures are for
  std::vector<ExplainedKernel> kernels;               // in launch order
  Sums totals, unfused;
  /// What the kernels of the plan for all sizes would take there, if that is another. They are tuned for the sizes that
  /// are left to them.
  std::optional<Sums> forAllSizes;
  struct Between {
    std::string tensor, producer, consumer, reason;
    std::vector<std::string> producerNodes, consumerNodes; // of the model
    int from = -1, to = -1; // kernels; -1: a branch or loop of the host
    int tensors = 0;        // different ones that pass from the one kernel to the other
  };
  std::vector<Between>
      apart; // in the plan for all sizes alone: the search tells no reasons in others
};

struct ExplainedTarget {
  std::string model; // name of its file
  std::string graph; // what the model calls itself; empty where that says no more
  std::string target;
  bool onCpu = false;
  int cores = 0;          // that the figures are for
  double flopsPerSec = 0; // of all of them
  /// Symbols for which nobody favours a size: names and ranges, "1..64" or, without one, "MIN..MAX".
  std::vector<std::pair<std::string, std::string>> withoutSize;
  std::vector<SizedPrediction>
      tuned; // at the sizes that kernels are tuned for, where these are several
  std::vector<SizedPrediction> asked; // at the sizes that the user asks about
  struct SizeRule {
    std::string rule, node, op, reason; // "b = c"
    bool tested = false;                // when shapes are set
  };
  std::vector<std::pair<std::string, std::string>> inferred; // sizes that follow from symbols
  std::vector<SizeRule> sizeRules;
  /// Sizes that the host computes when shapes are set, since no expression over the symbols gives them.
  struct ComputedSize {
    std::string name, definition, node;
    std::string bound; // of one that depends on data, which has no definition
    std::optional<TestOfData> test;
  };
  std::vector<ComputedSize> computed;
  /// Inputs that outputs continue (Expr/Caches.h), and what a run in one memory leaves unread and unwritten.
  struct Cache {
    std::string input, output;
    int axis = 0;
    bool grows = false;
    double savedBytes = 0;
  };
  std::vector<Cache> caches;
  ExplainedPlan plan; // that runs at the symbols' opt values
  /// The plans that run at other sizes, in the order in which a run asks, each at sizes that differ from the opt values
  /// in nothing but what it needs.
  std::vector<ExplainedPlan> otherPlans;
  /// The sums without vertical composition; absent where a dump holds the composed equations.
  std::optional<Sums> uncomposed;
  bool withResources = false; // they were asked for
  std::optional<std::vector<KernelResources>> resources;
};

/// The plan of every target beside the plans in which every equation is a kernel of its own, composed and not. `state`
/// holds plan and schedules, `path` is that of the model or dump, `sizes` are texts for parseSizes.
Result<std::vector<ExplainedTarget>> explain(const CompileState &state, const std::string &path,
                                             const std::vector<std::string> &sizes);

std::string explanationText(const std::vector<ExplainedTarget> &targets);
/// One object a line, a line for each target.
std::string explanationJson(const std::vector<ExplainedTarget> &targets);
/// One page with all that it shows inside.
std::string explanationHtml(const std::vector<ExplainedTarget> &targets);

/// Levels of values inside a kernel, from the nearest outwards, and what they stand for.
std::vector<std::pair<std::string, std::string>> levelMeanings(bool onCpu);

/// "1.23 MB", three digits, independent of the locale.
std::string bytesText(double bytes);

} // namespace fusec
