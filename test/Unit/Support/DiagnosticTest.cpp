// How diagnostics are shown, and the table of codes.
#include "Support/Diagnostic.h"
#include "Support/Diag.h"

#include <catch2/catch_test_macros.hpp>

#include <set>

using namespace fusec;

TEST_CASE("a diagnostic is one coded line, whatever names it holds") {
  // No input is known that ends in an internal error, so that its text stands here.
  Diagnostic bug{Diag::InternalError, "kernel 'k1'", "the module does not verify:\n  bad\tcall"};
  CHECK(format(bug) == "error[E1000] kernel 'k1': the module does not verify:\\x0a  bad\\x09call");
  CHECK(formatJson(bug) == "{\"level\":\"error\",\"code\":\"E1000\",\"id\":\"InternalError\","
                           "\"where\":\"kernel 'k1'\",\"text\":\"the module does not "
                           "verify:\\\\x0a  bad\\\\x09call\"}");
  CHECK(exitCode(bug.id) == ExitCode::Internal);
}

TEST_CASE("codes are unique and begin with the exit code") {
  struct Row {
    Diag id;
    ExitCode exit;
  };
  const Row rows[] = {
#define FUSEC_DIAG(id, code, exitCode, summary) {Diag::id, ExitCode::exitCode},
#include "Support/Diagnostics.def"
  };
  std::set<std::string_view> seen;
  for (const Row &row : rows) {
    CAPTURE(code(row.id));
    REQUIRE(code(row.id).size() == 5);
    CHECK(seen.insert(code(row.id)).second);
    CHECK(code(row.id)[1] - '0' == static_cast<int>(row.exit));
    CHECK(exitCode(row.id) == row.exit);
  }
}
