#pragma once
#include "Session.h"

namespace fusert {

struct RunOptions {
  SessionOptions session;
  std::string outputDir;
};
struct BenchOptions {
  SessionOptions session;
  double minSeconds = 1.0;
  int warmUp = 3;
  bool json = false;
};
struct InfoOptions {
  SessionOptions session;
  bool json = false;
};
struct CheckOptions {
  SessionOptions session;
  std::vector<std::string> expected; // NAME=FILE
  double rtol = 1e-3, atol = 1e-7;
};
struct CalibrateOptions {
  std::string target; // empty: this CPU
  int threads = 0;    // 0: all
  int repetitions = 5;
  int64_t largestMebibytes = 1024;
  bool json = false;
};

// Each returns the tool's exit code or throws a ToolError.
int run(const RunOptions &options);
int bench(const BenchOptions &options);
int info(const InfoOptions &options);
int check(const CheckOptions &options);
int calibrate(const CalibrateOptions &options);

std::string jsonString(const std::string &text);
using fusec::tools::printable;

} // namespace fusert
