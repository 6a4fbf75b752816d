// fusec-reduce: makes a failing input smaller. A model or a dump loses nodes, outputs and lines for as long as a
// command finds what is left interesting.
#include "Minimise.h"
#include "Parts.h"
#include "Support/Diag.h"
#include "Trial.h"
#include "common/NumberFrom.h"
#include "common/StandardOutput.h"

#include "Driver/State.h"
#include "fusec/compiler.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

using namespace fusec;
using namespace fusec::reduce;
namespace fs = std::filesystem;

namespace {

struct CommandLine {
  std::string output;
  compiler::Options import; // of a model
  std::vector<std::string> command;
  int seconds = 60;
};

Result<std::string> readFile(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  if (!in)
    return Diagnostic{Diag::UnreadableFile, path, "cannot be read"};
  return text.str();
}

std::string folderOf(const std::string &path) {
  std::string folder = fs::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

bool names(const std::string &text, const fs::path &constant) {
  return text.find(constant.stem().string()) != std::string::npos;
}

/// Brings the constants that a text names by digest beside the output; keeps a list of the files that are new.
class Constants {
public:
  Status copy(const std::string &text, const std::string &from, const std::string &to) {
    std::error_code error;
    if (fs::equivalent(from, to, error))
      return success();
    for (const fs::directory_entry &entry : fs::directory_iterator(from, error)) {
      const fs::path target = fs::path(to) / entry.path().filename();
      if (target.extension() != ".bin" || !names(text, target) || fs::exists(target, error))
        continue;
      fs::copy_file(entry.path(), target, error);
      if (error)
        return Diagnostic{Diag::CannotWrite, to, error.message()};
      added.push_back(target);
    }
    return success();
  }
  void removeUnused(const std::string &text) const {
    std::error_code error;
    for (const fs::path &path : added)
      if (!names(text, path))
        fs::remove(path, error);
  }

private:
  std::vector<fs::path> added;
};

/// What is reduced as text: a dump as it is, a model as the dump of its graph. Constants lie beside the output.
Result<std::string> startText(const CommandLine &line, Constants &constants) {
  FUSEC_TRY(std::string text, readFile(line.import.input));
  const std::string to = folderOf(line.output);
  std::error_code error;
  fs::create_directories(to, error);
  Stage stage;
  if (isDump(text, stage) || fs::path(line.import.input).extension() != ".onnx") {
    FUSEC_CHECK(constants.copy(text, folderOf(line.import.input), to));
    return text;
  }
  compiler::Options import = line.import;
  import.dumpDir = line.output + ".import";
  import.stopAfter = "graph";
  compiler::Outcome outcome = compiler::compile(import);
  if (!outcome.ok()) {
    std::fprintf(stderr, "%s\n", outcome.errors.front().line.c_str());
    return Diagnostic{Diag::BadOption, import.input,
                      "the model is reduced as the dump of its graph, and it has none"};
  }
  FUSEC_TRY(text, readFile(import.dumpDir + "/graph.txt"));
  FUSEC_CHECK(constants.copy(text, import.dumpDir, to));
  fs::remove_all(import.dumpDir, error);
  return text;
}

size_t numParts(const Graph &graph) { return graph.body.nodes.size(); }
size_t numParts(const ExprProgram &program) { return program.items.size(); }
size_t numOutputs(const Graph &graph) { return graph.body.outputs.size(); }
size_t numOutputs(const ExprProgram &program) { return program.outputs.size(); }

class Reducer {
public:
  Reducer(const CommandLine &line) : trial(line.output, line.command, line.seconds) {}

  Status run(const std::string &start) {
    text = start;
    FUSEC_TRY(bool interesting, trial.isInteresting(text));
    if (!interesting)
      return Diagnostic{Diag::BadOption, trial.commandText(),
                        "the command does not exit with 0 for the input itself"};
    Stage stage;
    if (isDump(text, stage) && stage <= Stage::Expr)
      FUSEC_CHECK(reduceProgram(stage));
    reduceLines();
    FUSEC_CHECK(std::move(failure));
    return trial.finish();
  }

  const std::string &result() const { return text; }
  void report(const std::string &start) const {
    auto lines = [](const std::string &t) { return std::count(t.begin(), t.end(), '\n'); };
    std::fprintf(stderr, "%s%ld lines -> %ld lines, %d candidates tried\n", parts.c_str(),
                 static_cast<long>(lines(start)), static_cast<long>(lines(text)), trial.tried);
  }

private:
  bool accept(const std::string &candidate) {
    if (!failure)
      return false;
    Result<bool> interesting = trial.isInteresting(candidate);
    if (!interesting) {
      failure = interesting.errors();
      return false;
    }
    if (*interesting)
      text = candidate;
    return *interesting;
  }

  /// Nodes and outputs in turn until neither loses any.
  template <typename Program>
  void reduceParts(Program program, const std::function<std::string(const Program &)> &print) {
    const size_t before = numParts(program);
    auto tryParts = [&](size_t count, auto cut) {
      Program best = program;
      minimise(count, [&](const Choice &kept) {
        std::optional<Program> candidate = cut(program, kept);
        if (!candidate || !accept(print(*candidate)))
          return false;
        best = std::move(*candidate);
        return true;
      });
      program = std::move(best);
    };
    for (size_t last = 0, now = numParts(program) + numOutputs(program); now != last;) {
      tryParts(numParts(program), [](const Program &p, const Choice &k) { return partOf(p, k); });
      tryParts(numOutputs(program),
               [](const Program &p, const Choice &k) { return withOutputs(p, k); });
      last = std::exchange(now, numParts(program) + numOutputs(program));
    }
    parts = std::to_string(before) + " nodes -> " + std::to_string(numParts(program)) + " nodes, ";
  }

  Status reduceProgram(Stage stage) {
    CompileState state;
    ConstantStore store(folderOf(trial.path()));
    Status loaded = loadDump(text, trial.path(), {}, store, state);
    if (!loaded) {
      std::fprintf(stderr, "note: reduced by lines alone: %s\n",
                   format(loaded.errors().front()).c_str());
      return success();
    }
    if (stage == Stage::Graph)
      reduceParts<Graph>(state.graph, [&](const Graph &graph) {
        CompileState with;
        with.targets = state.targets;
        with.graph = graph;
        return dumpStage(stage, with, &store);
      });
    else
      reduceParts<ExprProgram>(state.program, [&](const ExprProgram &program) {
        CompileState with;
        with.targets = state.targets;
        with.program = program;
        return dumpStage(stage, with, &store);
      });
    return store.failures().empty() ? success() : Status(store.failures());
  }

  void reduceLines() {
    std::vector<std::string> lines;
    std::stringstream in(text);
    for (std::string line; std::getline(in, line);)
      lines.push_back(line + "\n");
    minimise(lines.size(), [&](const Choice &kept) {
      std::string candidate;
      for (size_t i = 0; i < lines.size(); ++i)
        candidate += kept[i] ? lines[i] : "";
      return accept(candidate);
    });
  }

  Trial trial;
  std::string text, parts;
  Status failure = success();
};

Status reduceInput(const CommandLine &line) {
  Constants constants;
  FUSEC_TRY(std::string start, startText(line, constants));
  Reducer reducer(line);
  Status status = reducer.run(start);
  constants.removeUnused(reducer.result());
  FUSEC_CHECK(std::move(status));
  reducer.report(start);
  return success();
}

int runTool(int argc, char **argv) {
  CommandLine line;
  CLI::App app{"Makes a model or a dump smaller for as long as a command exits with 0.\n"
               "A model becomes a dump of its graph; dumps of graph and expr lose nodes, then "
               "outputs, all dumps "
               "lines.",
               "fusec-reduce"};
  app.add_option("input", line.import.input, "ONNX model or dump")->required();
  app.add_option("-o", line.output, "where the smaller dump goes; its constants go beside it")
      ->required();
  app.add_option("--dim", line.import.dims, "as of fusec, for a model")
      ->allow_extra_args(false)
      ->option_text("TEXT (repeatable)");
  app.add_option("--shape", line.import.shapes, "as of fusec, for a model")
      ->allow_extra_args(false)
      ->option_text("TEXT (repeatable)");
  app.add_option("--set-input", line.import.setInputs, "as of fusec, for a model")
      ->allow_extra_args(false)
      ->option_text("TEXT (repeatable)");
  app.add_flag("--constant-initializers", line.import.constantInitialisers,
               "as of fusec, for a model");
  app.add_option("--target", line.import.targets, "targets that the dump names (default host)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->option_text("TEXT (repeatable)");
  app.add_option("--timeout", line.seconds, "seconds after which a command counts as failed")
      ->check(fusec::tools::numberFrom(1));
  app.add_option("command", line.command,
                 "after --: the command; the path of a candidate becomes its last argument")
      ->required();
  app.set_version_flag("--version", "fusec-reduce " FUSEC_VERSION);
  auto fail = [](const Diagnostics &errors) {
    for (const Diagnostic &d : errors)
      std::fprintf(stderr, "%s\n", format(d).c_str());
    return static_cast<int>(exitCode(errors));
  };
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    if (error.get_exit_code() == 0)
      return app.exit(error);
    return fail({{Diag::BadOption, "command line",
                  std::string(error.what()) + " (fusec-reduce --help lists the options)"}});
  }
  Status status = reduceInput(line);
  return status ? 0 : fail(status.errors());
}

} // namespace

int main(int argc, char **argv) {
  tools::StandardOutput output;
  return output.finish(runTool(argc, argv));
}
