#pragma once
// Programs of tests, from their text.
#include "Expr/Expr.h"
#include "Support/Text.h"

#include <catch2/catch_test_macros.hpp>

namespace fusec::test {

/// The program that the text says; a text that does not parse or verify fails the test.
inline ExprProgram parse(const std::string &text) {
  ConstantStore store("");
  Result<ExprProgram> program = parseExpr(text, "test", store);
  if (!program)
    FAIL(format(program.errors().front()) << "\n" << text);
  if (Status status = verify(*program); !status)
    FAIL(format(status.errors().front()) << "\n" << text);
  return std::move(*program);
}

} // namespace fusec::test
