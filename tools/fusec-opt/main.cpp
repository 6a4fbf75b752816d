// fusec-opt: reads a program in any textual IR, or an ONNX model as a graph, runs named passes over it and prints
// it, or runs it in the reference interpreter.
#include "Language.h"
#include "Support/Diag.h"
#include "common/Names.h"
#include "common/NpyWriter.h"
#include "common/StandardOutput.h"

#include "Driver/State.h"
#include "Onnx/Import.h"
#include "Reference/GraphInterpreter.h"
#include "Support/NamedText.h"
#include "Support/Text.h"
#include "Tiling/candidates/SearchChoices.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>

namespace fusec::opt {

const std::vector<Language> &languages() {
  static const std::vector<Language> list = {graphLanguage, exprLanguage, girLanguage,
                                             kernelLanguage};
  return list;
}

Result<TensorValue> findInput(const std::vector<NamedTensor> &inputs, const std::string &name,
                              const ConstantRef &defaultValue) {
  for (const NamedTensor &t : inputs)
    if (t.name == name)
      return t.value;
  if (defaultValue)
    return toTensorValue(*defaultValue);
  return Diagnostic{Diag::BadOption, "--input", "no value is given for input '" + name + "'"};
}

namespace {

struct CommandLine {
  std::string file, output = "-", constants, outputDir;
  std::vector<std::string> passes, inputs, dims, shapes, setInputs;
  bool interpret = false, listPasses = false, noFold = false, roundEach = false,
       constantInitialisers = false;
};

Result<std::string> readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  if (path == "-")
    text << std::cin.rdbuf();
  else if (file)
    text << file.rdbuf();
  else
    return Diagnostic{Diag::UnreadableFile, path, "cannot be read"};
  return text.str();
}

Result<std::unique_ptr<Program>> parse(const std::string &text, const std::string &path,
                                       const ConstantStore &store) {
  if (Stage stage; isDump(text, stage))
    return parseDump(text, path, store);
  TextReader reader(text, path);
  for (const Language &l : languages())
    if (reader.peekIs(l.firstToken))
      return l.parse(text, path, store);
  return reader.error("the text begins with none of the IRs' first words");
}

std::string folderOf(const std::string &path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

Result<std::unique_ptr<Program>> load(const CommandLine &line, const ConstantStore &store) {
  if (std::filesystem::path(line.file).extension() == ".onnx") {
    ImportOptions options;
    for (const std::string &d : line.dims)
      FUSEC_CHECK(parseDimOption(d, options));
    for (const std::string &s : line.shapes)
      FUSEC_CHECK(parseShapeOption(s, options));
    options.setInputs = line.setInputs;
    options.constantInitialisers = line.constantInitialisers;
    if (!line.noFold)
      options.evaluator = referenceEvaluator();
    return importModel(line.file, options);
  }
  FUSEC_TRY(std::string text, readFile(line.file));
  return parse(text, line.file, store);
}

Result<std::vector<NamedTensor>> readInputs(const CommandLine &line, const Program &program) {
  std::vector<NamedTensor> list;
  for (const std::string &spec : line.inputs) {
    const auto pair = splitNamed(spec, program.inputNames());
    if (!pair)
      return Diagnostic{Diag::BadOption, "--input " + spec, "expected NAME=FILE"};
    FUSEC_TRY(ConstantRef c, readTensorFile(pair->second));
    list.push_back({pair->first, toTensorValue(*c)});
  }
  return list;
}

Status interpret(const CommandLine &line, const Program &program) {
  FUSEC_TRY(auto inputs, readInputs(line, program));
  FUSEC_TRY(auto outputs, program.interpret(inputs, line.roundEach));
  std::vector<std::string> names;
  for (const NamedTensor &t : outputs)
    names.push_back(t.name);
  const std::vector<std::string> files = tools::npyNamesFor(names);
  if (!line.outputDir.empty()) {
    std::printf("%s", tools::renamedFiles(names, files).c_str());
    std::error_code error;
    std::filesystem::create_directories(line.outputDir, error);
    if (error)
      return Diagnostic{Diag::CannotWrite, line.outputDir, error.message()};
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    const NamedTensor &t = outputs[i];
    ConstantRef c = toConstant(t.value);
    std::string shape;
    for (int64_t d : c->dims)
      shape += (shape.empty() ? "" : "x") + std::to_string(d);
    std::printf("%s: %s %s\n", t.name.c_str(), std::string(name(c->type)).c_str(), shape.c_str());
    if (!line.outputDir.empty())
      FUSEC_CHECK(tools::writeNpy(line.outputDir + "/" + files[i], c->type, c->dims, c->bytes,
                                  c->sizeBytes));
  }
  return success();
}

Status run(const CommandLine &line) {
  const bool toFile = line.output != "-";
  const ConstantStore given(line.constants.empty() ? folderOf(line.file) : line.constants);
  FUSEC_TRY(auto program, load(line, given));
  FUSEC_CHECK(program->verify());
  for (const std::string &pass : line.passes) {
    FUSEC_CHECK(program->runPass(pass));
    FUSEC_CHECK(program->verify());
  }
  if (line.interpret)
    return interpret(line, *program);
  std::error_code error;
  if (toFile && std::filesystem::equivalent(line.file, line.output, error) &&
      std::filesystem::path(line.file).extension() == ".onnx")
    return Diagnostic{Diag::BadOption, "-o " + line.output,
                      "is the model itself, which the text would replace; give another name"};
  ConstantStore taken(!line.constants.empty() ? line.constants
                      : toFile                ? folderOf(line.output)
                                              : "");
  const std::string text = program->print(&taken);
  if (!taken.failures().empty())
    return taken.failures();
  // Without a folder of its own the text must find its constants where the input's are.
  if (!toFile && line.constants.empty() && !parse(text, line.file, given))
    return Diagnostic{Diag::BadOption, "--constants",
                      "the text has constants that are too large to print; give a folder for "
                      "them, or a file with -o, beside which they are written"};
  if (!toFile) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return success();
  }
  std::ofstream out(line.output, std::ios::binary);
  out << text;
  out.close();
  if (!out)
    return Diagnostic{Diag::CannotWrite, line.output, "cannot be written"};
  return success();
}

int runTool(int argc, char **argv) {
  CommandLine line;
  CLI::App app("Runs passes and interpreters over fusec's textual IRs", "fusec-opt");
  app.add_option("file", line.file, "program text, - for standard input, or a model.onnx");
  app.add_option("--passes", line.passes, "comma-separated passes to run, in order")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->option_text("TEXT (repeatable)");
  app.add_option("-o", line.output, "where the text goes (default: standard output)");
  app.add_option("--constants", line.constants,
                 "folder of constants too large to print (default: the folder of the text)");
  app.add_flag("--interpret", line.interpret, "run the program instead of printing it");
  app.add_flag("--round-each-value", line.roundEach,
               "graph: round every value to its declared type");
  app.add_option("--input", line.inputs,
                 "NAME=FILE (.npy, or .pb with one TensorProto): value of an input")
      ->allow_extra_args(false)
      ->option_text("TEXT (repeatable)");
  app.add_option("--output-dir", line.outputDir, "folder for outputs as NAME.npy");
  app.add_option("--dim", line.dims, "NAME=N or NAME=MIN..MAX[:OPT] of a model's symbolic dim")
      ->allow_extra_args(false)
      ->option_text("TEXT (repeatable)");
  app.add_option("--shape", line.shapes, "INPUT:1x3x224x224 or INPUT:[batch,3]")
      ->allow_extra_args(false)
      ->option_text("TEXT (repeatable)");
  app.add_option("--set-input", line.setInputs,
                 "NAME=VALUE: a model's input that becomes a constant")
      ->allow_extra_args(false)
      ->option_text("TEXT (repeatable)");
  app.add_flag("--constant-initializers", line.constantInitialisers,
               "as of fusec: a model's initializers that are inputs too become constants");
  app.add_flag("--no-fold", line.noFold, "import a model without folding constants");
  app.add_flag("--list-passes", line.listPasses,
               "print the passes of every IR, and what schedules are chosen from");
  app.set_version_flag("--version", "fusec-opt " FUSEC_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &e) {
    if (e.get_exit_code() == 0)
      return app.exit(e);
    Diagnostic wrong{Diag::BadOption, "command line",
                     std::string(e.what()) + " (fusec-opt --help lists the options)"};
    std::fprintf(stderr, "%s\n", format(wrong).c_str());
    return static_cast<int>(ExitCode::Usage);
  }
  if (line.listPasses) {
    for (const Language &l : {graphLanguage, exprLanguage, girLanguage})
      for (const PassHelp &p : l.passes())
        std::printf("%s: %s - %s\n", std::string(l.name).c_str(), p.name.c_str(),
                    p.summary.c_str());
    for (const auto &[kind, name, summary] : tiling::kSearchChoices)
      std::printf("schedule: %s - %s: %s\n", std::string(name).c_str(), std::string(kind).c_str(),
                  std::string(summary).c_str());
    return 0;
  }
  if (line.file.empty()) {
    std::fprintf(stderr, "%s\n", format({Diag::BadOption, "", "no input file"}).c_str());
    return static_cast<int>(ExitCode::Usage);
  }
  Status status = run(line);
  if (status.ok())
    return 0;
  for (const Diagnostic &d : status.errors())
    std::fprintf(stderr, "%s\n", format(d).c_str());
  return static_cast<int>(exitCode(status.errors()));
}

} // namespace
} // namespace fusec::opt

int main(int argc, char **argv) {
  fusec::tools::StandardOutput output;
  return output.finish(fusec::opt::runTool(argc, argv));
}
