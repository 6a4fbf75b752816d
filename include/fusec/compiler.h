// The compiler as a C++ library: options in, one bundle out. Needs the standard library alone; the program fusec is a
// command line over it.
//
//   fusec::compiler::Options options;
//   options.input = "model.onnx";
//   options.output = "model.bundle";
//   options.targets = {"host", "sm_90"};
//   fusec::compiler::Outcome outcome = fusec::compiler::compile(options);
//   for (const fusec::compiler::Error &error : outcome.errors)
//     std::cerr << error.line << '\n';
//
// No function throws, prints or reads the environment. Calls may run side by side. The bytes of a bundle depend on the
// input and the targets alone: not on threads, folders, the time, the locale or earlier calls.
#ifndef FUSEC_COMPILER_H
#define FUSEC_COMPILER_H

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fusec::compiler {

/// What is asked for, in the words of fusec's command line.
struct Options {
  std::string input;                  // ONNX model, or a dump of a stage up to gir
  std::string output;                 // bundle to write, through a temporary file beside it
  std::vector<std::string> targets;   // "host", "sm_90", "sim:gfx90a"; none: host, or a dump's own
  std::vector<std::string> dims;      // "batch=4", "batch=1..64", "batch=1..64:8"
  std::vector<std::string> shapes;    // "x:1x3x224x224", "x:[batch,3,224,224]"
  std::vector<std::string> setInputs; // inputs as constants: "sr=16000", "x=[1,2]", "x=@x.npy"
  bool constantInitialisers = false;  // also those that are inputs, which runs could replace
  std::vector<std::string> markOutputs; // inner tensors that become outputs as well
  /// Stages whose text goes to `print`; "all": each one. Without an output the last of them ends the work.
  std::vector<std::string> dumpStages;
  /// Passes behind which the program's text goes to `print`: "expr/compose". Ends the work as dumpStages does.
  std::vector<std::string> dumpAfter;
  std::string only; // node or kernel whose part alone is printed; empty: everything
  bool resumable =
      false;           // what is printed can be gone on from: it has the decisions in front of gir
  std::string dumpDir; // takes one file a stage and the constants; empty: none
  std::string stopAfter; // no bundle is made, except after the last stage where one is asked for
  std::string decisions; // file of plan and schedules to follow instead of searching
  /// File that takes plan and schedules, "-": `print`; no output: all that is made.
  std::string emitDecisions;
  std::string page; // file that takes the page of explain()
  /// Sizes that explain() predicts for: "batch=2,seq=37"; what it does not name is as kernels are tuned for it.
  std::vector<std::string> at;
  std::string ptxasPath; // empty: targets of NVIDIA get PTX only; "none": the same, by wish
  std::string minDriver; // CUDA version of the oldest driver to load it: "12.4"; empty: any
  /// Kernels of GPUs end with an error where they would wait for each other for ever, and each launch is waited for, so
  /// that a kernel that fails is known by its name. Sim targets find such waits in any case.
  bool checked = false;
  bool resources = false;     // explain() makes machine code as well and tells what it takes
  std::string signingKeyPath; // Ed25519 secret key that signs the bundle; empty: it is not signed
  std::string searchMode = "full";  // how kernels are searched: one of searchModes()
  int fusionCandidates = 3;         // patterns kept for each equation (FusionStitching's k)
  int fusionGroup = 2;              // consumers whose patterns are combined at once
  int fusionBeam = 3;               // plans that the beam search keeps
  int fusionEvaluations = 50;       // kernels an equation that the accurate model is asked for
  int fusionQuickEvaluations = 200; // kernels an equation that the quick model looks at
  /// Equations of the kernels of a program that the accurate model weighs with all that it knows.
  int fusionThorough = 5800;
  int threads = 0; // that compile; 0: one a core
  std::function<void(std::string_view text)> print;
  std::function<void(std::string_view what, std::string_view target)> progress; // a step begins
};

/// One thing that is wrong with the input, the options or the machine; or a warning, whose code begins with W.
struct Error {
  std::string code; // stable, such as "E3102"
  int exitCode; // 1 internal, 2 usage, 3 bad input, 4 unsupported, 5 limit, 6 environment; warning: 0
  std::string where;    // file, and node or tensor of the model
  std::string text;     // what was expected, what was given, what to do
  std::string line;     // all of it: "error[E3102] m.onnx: ...", without a line break
  std::string jsonLine; // the same as one JSON object
};

struct Report {
  struct Step {
    std::string what; // a stage, or one of its passes: "expr", "expr/compose"
    double seconds;
  };
  struct Target {
    std::string name;
    int kernels, steps;
    double
        predictedSec; // of a run: of branches what sizes leave open, loops once; negative: not known
    int64_t evaluations, quickEvaluations; // of the search for kernels; 0 where a file made it
    int64_t cursoryEvaluations; // kernels looked at less closely, after those of fusionThorough
    int64_t thoroughEquations;  // of the kernels before those
  };
  std::vector<Step> times;
  std::vector<Target> targets;
  /// Facts to know: no machine code without ptxas, a search cut short.
  std::vector<std::string> notes;
  std::vector<Error> warnings;
  int64_t bundleBytes = 0;
};

struct Outcome {
  std::vector<Error> errors; // all that were found in one run; none: done
  Report report;             // of a run without errors
  bool ok() const { return errors.empty(); }
  int exitCode() const { return ok() ? 0 : errors.front().exitCode; }
};

Outcome compile(const Options &options);

/// What a compiler would do with the model and why: kernels, predicted bytes and seconds beside those of the plan in
/// which every equation is a kernel of its own, and for each value that passes between kernels the reason.
struct Explanation {
  std::vector<Error> errors, warnings;
  std::vector<std::string> notes; // as in Report
  std::string text;
  std::string json; // a line for each target
  std::string html; // the page, which needs nothing else
  bool ok() const { return errors.empty(); }
};
/// Makes no bundle, and code only for `resources`; `output`, `stopAfter`: empty. The page goes into `page`, if given.
Explanation explain(const Options &options);

/// Decisions, kernels, sizes and weights of two bundles.
struct Difference {
  std::vector<Error> errors;
  bool equal = false; // byte for byte
  std::string text;
  std::string json; // one line
  bool ok() const { return errors.empty(); }
};
Difference diff(const std::string &bundleA, const std::string &bundleB);

/// Makes an Ed25519 key pair: the secret key in a new file `path`, the public one in `path`.pub.
std::vector<Error> makeSigningKey(const std::string &path);

/// An error about the command line, made by the same rules.
Error usageError(std::string where, std::string text);

/// The text as a JSON string, quotes included; bytes that are not UTF-8 become \\xNN.
std::string jsonString(std::string_view text);

struct StageName {
  std::string_view name, help;
};
/// Names for dumpStages and stopAfter, in the order of the data.
std::vector<StageName> stages();
/// Names for searchMode: "full", and each paper's search alone.
std::vector<StageName> searchModes();
/// Names for targets; those of GPUs also after "sim:".
std::vector<std::string> targets();
/// The operators of ONNX that are compiled, as a Markdown table.
std::string operatorsMarkdown();
std::string_view version(); // "0.1.0"

} // namespace fusec::compiler

#endif
