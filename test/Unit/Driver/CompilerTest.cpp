// The public C++ header: it stands alone here, beside the standard library.
#include "fusec/compiler.h"

#include <catch2/catch_all.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <locale>
#include <sstream>
#include <unistd.h>

namespace fs = std::filesystem;
using namespace fusec::compiler;

namespace {

const std::string kModel = FUSEC_SOURCE_DIR "/models/digits-transformer.onnx";

struct Folder {
  fs::path path = fs::temp_directory_path() / ("fusec-compiler-" + std::to_string(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const std::string &name) const { return (path / name).string(); }
};

std::string bytesOf(const std::string &path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

/// The bundle's bytes; its dumps lie in `dumpDir`.
std::string compiled(Options options) {
  Outcome outcome = compile(options);
  for (const Error &error : outcome.errors)
    UNSCOPED_INFO(error.line);
  REQUIRE(outcome.ok());
  std::string bytes = bytesOf(options.output);
  CHECK(outcome.report.bundleBytes == static_cast<int64_t>(bytes.size()));
  CHECK(outcome.report.targets.size() == options.targets.size());
  return bytes;
}

/// Writes 1234567.5 as "1.234.567,5", and yes for true.
struct Foreign : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
  std::string do_truename() const override { return "ja"; }
};

struct GlobalLocale {
  std::locale before = std::locale::global(std::locale(std::locale(), new Foreign));
  ~GlobalLocale() { std::locale::global(before); }
};

} // namespace

TEST_CASE("A bundle and its dumps do not depend on threads, folders, the locale or earlier calls") {
  Folder folder;
  Options options;
  options.input = kModel;
  options.output = folder / "first";
  options.targets = {"x86-64-v3", "sm_90", "gfx942"};
  options.dims = {"batch=1..2000:1234"};
  options.dumpDir = folder / "dumps";
  options.threads = 1;
  const std::string first = compiled(options);
  REQUIRE_FALSE(first.empty());

  options.threads = 2;
  options.dumpDir.clear();
  CHECK(compiled(options) == first);

  fs::create_directories(folder / "other");
  fs::copy_file(kModel, folder / "other/renamed.onnx");
  options.input = folder / "other/renamed.onnx";
  options.output = folder / "other/b";
  CHECK(compiled(options) == first);

  GlobalLocale foreign;
  std::ostringstream control;
  control << 1234567 << ' ' << 0.5;
  REQUIRE(control.str() == "1.234.567 0,5"); // new streams do write otherwise now
  options.input = kModel;
  options.dumpDir = folder / "foreign";
  CHECK(compiled(options) == first);
  int compared = 0;
  for (const fs::directory_entry &entry : fs::directory_iterator(folder / "dumps")) {
    std::string name = entry.path().filename().string();
    INFO(name);
    CHECK(bytesOf(folder / "foreign/" + name) == bytesOf(entry.path().string()));
    ++compared;
  }
  CHECK(compared > 7);
}

TEST_CASE("What is asked for wrongly comes back as coded errors") {
  Folder folder;
  auto only = [](const Options &options) {
    Outcome outcome = compile(options);
    REQUIRE(outcome.errors.size() == 1);
    CHECK_FALSE(outcome.ok());
    CHECK(outcome.exitCode() == outcome.errors[0].exitCode);
    return outcome.errors[0];
  };
  Options options;
  CHECK(only(options).line ==
        "error[E2001] command line: expected a model, as in: fusec model.onnx -o model.bundle");
  options.input = folder / "none.onnx";
  CHECK(only(options).line ==
        "error[E2001] -o: expected the bundle to write, as in: fusec model.onnx -o model.bundle");
  options.output = folder / "b";
  Error absent = only(options);
  CHECK(absent.code == "E3001");
  CHECK(absent.exitCode == 3);
  CHECK(absent.where == options.input);
  CHECK(absent.line == "error[E3001] " + absent.where + ": " + absent.text);
  CHECK(absent.jsonLine.find("\"code\":\"E3001\"") != std::string::npos);
  options.threads = -1;
  CHECK(only(options).code == "E2001");
  options.threads = 0;
  options.stopAfter = "nowhere";
  CHECK(only(options).line == "error[E2001] --stop-after=nowhere: no such stage; stages are graph, "
                              "expr, plan, schedule, gir, llvm, asm, object");
}

TEST_CASE("A stop makes no bundle and says so") {
  Folder folder;
  Options options;
  options.input = kModel;
  options.output = folder / "b";
  options.stopAfter = "expr";
  Outcome outcome = compile(options);
  REQUIRE(outcome.ok());
  CHECK(outcome.report.notes ==
        std::vector<std::string>{"stopped after expr: " + options.output + " is not written"});
  CHECK_FALSE(fs::exists(options.output));
}

TEST_CASE("Dumps and progress reach the caller in the order of the data") {
  Options options;
  options.input = kModel;
  options.targets = {"x86-64-v3"};
  options.stopAfter = "gir";
  options.dumpStages = {"all"};
  std::string text, steps;
  options.print = [&](std::string_view part) { text += part; };
  options.progress = [&](std::string_view what, std::string_view) {
    steps += std::string(what) + ' ';
  };
  REQUIRE(compile(options).ok());
  size_t at = 0;
  for (const StageName &stage : stages()) {
    if (stage.name == "llvm")
      break;
    INFO(stage.name);
    at = text.find("# fusec dump " + std::string(stage.name), at);
    REQUIRE(at != std::string::npos);
  }
  CHECK(steps == "import graph expr plan schedule decide gir ");
  std::vector<std::string> known = targets();
  CHECK(std::find(known.begin(), known.end(), "sm_90") != known.end());
  CHECK(operatorsMarkdown().find("| Softmax |") != std::string::npos);
  CHECK(std::count(version().begin(), version().end(), '.') == 2);
}

TEST_CASE("Explanations and differences come as texts, whatever the locale") {
  Folder folder;
  Options options;
  options.input = kModel;
  options.targets = {"x86-64-v3", "sm_90"};
  const Explanation first = explain(options);
  REQUIRE(first.ok());
  CHECK(first.text.find(" for sm_90: ") != std::string::npos);
  CHECK(std::count(first.json.begin(), first.json.end(), '\n') == 2);
  CHECK(first.html.rfind("<!DOCTYPE html>", 0) == 0);

  options.output = folder / "bundle";
  CHECK(explain(options).errors.at(0).line ==
        "error[E2001] explain: makes no bundle and stops where the plan is known");
  compiled(options);
  Difference same = diff(options.output, options.output);
  REQUIRE(same.ok());
  CHECK(same.equal);

  GlobalLocale foreign;
  options.output.clear();
  const Explanation again = explain(options);
  CHECK(again.text == first.text);
  CHECK(again.json == first.json);
  CHECK(again.html == first.html);
  options.output = folder / "bundle";
  CHECK(diff(options.output, options.output).text == same.text);
  CHECK(diff(options.output, options.output).json == same.json);
  CHECK(diff(options.output, folder / "none").errors.at(0).code == "E3001");
}
