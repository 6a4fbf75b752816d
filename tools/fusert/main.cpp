// fusert: runs, times, describes and checks bundles and measures machines, over the runtime library alone.
#include "Commands.h"
#include "Support/Diag.h"
#include "ToolError.h"
#include "common/NumberFrom.h"
#include "common/StandardOutput.h"

#include <CLI/CLI.hpp>

#include <cstdio>

namespace fusert {

std::string jsonString(const std::string &text) {
  std::string out = "\"";
  for (unsigned char c : text) {
    char buffer[8];
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20 || c == 0x7f) {
      std::snprintf(buffer, sizeof buffer, "\\u%04x", c);
      out += buffer;
    } else {
      out += static_cast<char>(c);
    }
  }
  return out + "\"";
}

namespace {

void addCommon(CLI::App *command, SessionOptions &o, bool inputs) {
  command->add_option("bundle", o.bundle, "the bundle")->required();
  command->add_option("--target", o.target,
                      inputs ? "program to load, such as sim:sm_90 (default: best for this CPU)"
                             : "only this program (default: all)");
  command->add_flag("--verify-code", o.verifyCodeOnly,
                    "check the digests of the code alone, not those of the weights");
  command->add_option("--public-key", o.publicKey,
                      "file with an Ed25519 key: refuse a bundle that is not signed by it");
  command
      ->add_option("--dim", o.dims,
                   inputs ? "NAME=VALUE of a symbolic dimension"
                          : "NAME=VALUE of a symbolic dimension: what memory a run needs there")
      ->allow_extra_args(false)
      ->option_text("TEXT (repeatable)");
  if (!inputs)
    return;
  command->add_option("--device", o.device, "number of the GPU")
      ->check(fusec::tools::numberFrom(0));
  command
      ->add_option(
          "--input", o.inputs,
          "NAME=FILE (.npy, or .pb with one TensorProto); bfloat16 is saved with ml_dtypes, "
          "or its bits as uint16")
      ->allow_extra_args(false)
      ->option_text("TEXT (repeatable)");
  command
      ->add_option("--random", o.random,
                   "seed for the inputs that no file gives (bench: 1 where none is given)")
      ->check(fusec::tools::numberFrom(0));
  command->add_option("--threads", o.threads, "threads that run (default: all)")
      ->check(fusec::tools::numberFrom(1));
  command
      ->add_option("--share-caches", o.cacheRows,
                   "outputs that continue inputs, as info lists them, lie in the memory of these, "
                   "which has room for so many rows: what is old is not copied")
      ->check(fusec::tools::numberFrom(1));
  command->add_flag("--counters", o.counters, "count (sim) or time (CPU) each kernel");
  command
      ->add_option("--sim-seed", o.simSeed,
                   "sim: run blocks and threads in an order drawn from this number")
      ->check(fusec::tools::numberFrom(1));
}

void addCalibrate(CLI::App *command, CalibrateOptions &o) {
  command->add_option("--target", o.target,
                      "what to measure: a CPU's name, cuda or sm_90 (default: this CPU)");
  command->add_option("--threads", o.threads, "threads to measure beside one (default: all)")
      ->check(fusec::tools::numberFrom(1));
  command->add_option("--repetitions", o.repetitions, "of each measurement (default 5)")
      ->check(CLI::Range(1, 1000));
  command->add_option("--largest", o.largestMebibytes, "MiB of memory to measure (default 1024)")
      ->check(CLI::Range(1, 1 << 20));
  command->add_flag("--json", o.json, "print JSON: seconds, bytes a second");
  command->footer(R"(Figures, each the median of the repetitions:
  launch         a kernel of one empty block, launched on the calling thread by the executor
  phase          a further phase of such a kernel
  cold_launch    such a launch when the core's own caches have forgotten its code and data
  cycle          of the core, from multiplications that wait for each other
  shared_launch  a kernel of a block for each thread: handed to them all, which meet, and joined
  shared_phase   a further phase of such a kernel: what a barrier between all cores costs
  woken_launch   a shared launch when the other threads sleep, as at the start of a run
  read           sums of vectors; copy: loads and stores, both counted; stream: a copy with stores
                 that go past the caches; rows: a copy along four rows of a page at once; product:
                 a read with two multiply-adds for each vector. Each thread has memory of its own.
The table is in the form of lib/Target/Cpu.cpp: launchSec and deviceBarrierSec are shared_launch and
shared_phase (those of one thread where there is one), ownLaunchSec is cold_launch. A level of memory
has the copy of a working set: of half its size for a core's own cache, well beyond those for a
shared cache, the largest for dram. All are a core's share, that of dram is of all threads together.

Of a GPU (--target cuda), which the driver translates the kernels for:
  launch         an empty kernel, behind others in a stream
  block_barrier  of 256 threads; grid_barrier: of one block on each multiprocessor
  shared         reads of the multiprocessors' own memory
  l2             a copy in what half of the last cache holds; read, copy: of device memory
The table is in the form of lib/Target/Nvidia.cpp, its dram is the largest copy.)");
}

int dispatch(int argc, char **argv) {
  CLI::App app{"Runs bundles made by fusec."};
  app.set_version_flag("--version", "fusert " FUSEC_VERSION);
  app.require_subcommand(1);
  RunOptions runOptions;
  BenchOptions benchOptions;
  InfoOptions infoOptions;
  CheckOptions checkOptions;
  CalibrateOptions calibrateOptions;

  CLI::App *runCommand = app.add_subcommand("run", "run once");
  addCommon(runCommand, runOptions.session, true);
  runCommand->add_option(
      "--output-dir", runOptions.outputDir,
      "write each output to NAME.npy here; names that cannot be are changed, and told");

  CLI::App *benchCommand = app.add_subcommand("bench", "run again and again, print times");
  addCommon(benchCommand, benchOptions.session, true);
  benchCommand->add_option("--min-time", benchOptions.minSeconds, "seconds to measure (default 1)");
  benchCommand->add_option("--warm-up", benchOptions.warmUp, "runs before")
      ->check(fusec::tools::numberFrom(0));
  benchCommand->add_flag("--json", benchOptions.json, "print JSON");

  CLI::App *infoCommand = app.add_subcommand("info", "print what a bundle holds; needs no device");
  addCommon(infoCommand, infoOptions.session, false);
  infoCommand->add_flag("--json", infoOptions.json, "print JSON");

  CLI::App *checkCommand = app.add_subcommand("check", "run once and compare outputs");
  addCommon(checkCommand, checkOptions.session, true);
  checkCommand->add_option("--expect", checkOptions.expected, "NAME=FILE")
      ->required()
      ->allow_extra_args(false)
      ->option_text("TEXT (repeatable) REQUIRED");
  checkCommand->add_option("--rtol", checkOptions.rtol, "relative tolerance (default 1e-3)");
  checkCommand->add_option("--atol", checkOptions.atol, "absolute tolerance (default 1e-7)");

  CLI::App *calibrateCommand =
      app.add_subcommand("calibrate", "measure launches, barriers and bandwidths of this machine");
  addCalibrate(calibrateCommand, calibrateOptions);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &e) {
    if (e.get_exit_code() == 0)
      return app.exit(e);
    throw ToolError(fusec::Diag::BadOption, "command line",
                    std::string(e.what()) + " (fusert --help lists the forms)");
  }
  if (*runCommand)
    return run(runOptions);
  if (*benchCommand) {
    if (!benchOptions.session.random)
      benchOptions.session.random = 1;
    return bench(benchOptions);
  }
  if (*infoCommand)
    return info(infoOptions);
  if (*calibrateCommand)
    return calibrate(calibrateOptions);
  return check(checkOptions);
}

} // namespace
} // namespace fusert

int main(int argc, char **argv) {
  fusec::tools::StandardOutput output;
  auto fail = [](const fusec::Diagnostic &d) {
    std::fprintf(stderr, "%s\n", fusec::format(d).c_str());
    return static_cast<int>(fusec::exitCode(d.id));
  };
  try {
    return output.finish(fusert::dispatch(argc, argv));
  } catch (const fusert::ToolError &e) {
    return fail(e.diagnostic);
  } catch (const std::bad_alloc &) {
    return fail({fusec::Diag::OutOfMemory, "", "no memory for the inputs and outputs"});
  } catch (const std::exception &e) {
    return fail({fusec::Diag::InternalError, "", e.what()});
  }
}
