#pragma once
#include "Driver/State.h"
#include "Graph/Passes.h"
#include "Onnx/Import.h"
#include "Reference/GraphInterpreter.h"

#include <catch2/catch_test_macros.hpp>

namespace fusec::test {

/// The equations of a model's file, as the compiler plans them: imported, all passes of Graph and Expr run.
inline ExprProgram equationsOf(const std::string &model) {
  ImportOptions import;
  import.evaluator = referenceEvaluator();
  Result<Graph> graph = importOnnx(model, import);
  REQUIRE(graph.ok());
  for (const Pass<Graph> &pass : graphPasses({referenceEvaluator()}))
    REQUIRE(pass.run(*graph).ok());
  Result<ExprProgram> program = lowerProgram(*graph, true);
  REQUIRE(program.ok());
  return *program;
}

} // namespace fusec::test
