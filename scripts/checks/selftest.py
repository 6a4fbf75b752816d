"""Plants one violation after the other in a small tree and demands that scripts/check names it, and that the untouched
tree passes. Run by ctest."""

import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from common import STAGES

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "check")

# Of the clean tree: a tick list with an example.
LISTS = "### As `Op`\n- [ ] `lib/Graph/Lists.h`: there\n" + "".join(f"- lib/{stage}\n" for stage in STAGES)

# What is written where, and a part of the line that must come back.
PLANTED = [
    ("lib/Graph/Bad.h", '#include "Expr/Expr.h"\n', "Graph may not include Expr"),
    ("lib/Fusion/Bad.h", '#include "Tiling/schedule/Schedule.h"\n', "Fusion may not include Tiling"),
    ("lib/Tiling/schedule/Bad.h", '#include "Tiling/search/BestSchedules.h"\n', "Tiling/schedule may not include"),
    ("lib/Tiling/counts/Bad.h", '#include "Tiling/lower/Lower.h"\n', "Tiling/counts may not include Tiling/lower"),
    ("lib/Tiling/Bad.h", "int x;\n", "stands in no room of Tiling"),
    ("lib/Tiling/counts/Bad.cpp", "bool x = target.kind == TargetKind::Cpu;\n", "a kind of target: Target has fields"),
    ("lib/Tiling/counts/Bad.cpp", 'bool x = view.target->name == "sm_80";\n', "a kind of target: Target has fields"),
    ("lib/Runtime/Bad.h", '#include "Graph/Graph.h"\n', "Runtime may not include Graph"),
    ("lib/Runtime/Bad.h", "#include <fmt/format.h>\n", "fmt/format.h belongs to"),
    ("include/fusec/bad.h", '#include "Support/Result.h"\n', "may not include Support"),
    ("tools/fusec/bad.h", '#include "Driver/Pipeline.h"\n', "may not include Driver"),
    ("tools/fusert/bad.h", '#include "Bundle/Reader.h"\n', "may not include Bundle"),
    ("lib/Tiling/Bad.h", "#include <llvm/IR/Module.h>\n", "llvm/IR/Module.h belongs to lib/Codegen/"),
    ("lib/Driver/Bad.h", "#include <lld/Common/Driver.h>\n", "lld/Common/Driver.h belongs to"),
    ("lib/Graph/Bad.h", '#include "onnx-ml.pb.h"\n', "onnx-ml.pb.h belongs to lib/Onnx/"),
    ("lib/Driver/Bad.h", "#include <google/protobuf/message.h>\n", "belongs to lib/Onnx/"),
    ("lib/Runtime/Bad.h", '#include "Manifest_generated.h"\n', "belongs to lib/Bundle/"),
    ("lib/Runtime/Bad.h", "#include <cuda.h>\n", "cuda.h belongs to test/"),
    ("lib/Codegen/Bad.h", "#include <cblas.h>\n", "vendor or BLAS library"),
    ("lib/Runtime/Bad.h", 'const char *name = "libcublas.so.12";\n', "vendor or BLAS library"),
    ("lib/Codegen/extra.cmake", "find_library(x dnnl)\n", "vendor or BLAS library"),
    ("lib/Search/Bad.h", 'const char *home = getenv("HOME");\n', "the environment is read only in tools/"),
    ("lib/Search/CMakeLists.txt", "fusec_stage(Search\n  DEPS Support Graph)\n", "Search may not depend on Graph"),
    ("lib/Graph/CMakeLists.txt", "fusec_stage(Graph\n  DEPS Support Target)\n", "Graph depends on Target and includes"),
    ("lib/Graph/Bad.h", "int x;\n" * 701, "701 lines: over 700 needs a reason"),
    ("scripts/checks/long-files.txt", "lib/Gone.h 800 a table\n", "lib/Gone.h does not exist"),
    ("scripts/checks/long-files.txt", "lib/Gone.h because\n", "expected: path limit reason"),
    ("lib/Graph/Bad.h", "class A {\n" + "".join(f"  void f{i}();\n" for i in range(26)) + "};\n",
     "A has 26 functions of the class or that change it: over 25"),
    ("lib/Graph/Bad.h", "class A {\n  int x;\n};\n" + "".join(f"void f{i}(A &a);\n" for i in range(26)),
     "A has 26 functions of the class or that change it: over 25"),
    ("lib/Graph/Bad.cpp", "class A {\n  int x;\n};\n" + "\n".join(
        f"void f{i}(A &a) {{\n" + "  a = A();\n" * 78 + "}" for i in range(10)) + "\n",
     "A has 803 lines of the class over all its files: over 800"),
    ("lib/Graph/Bad.cpp", "void f() {\n" + "  g();\n" * 79 + "}\n", "f has 81 lines of the function: over 80"),
    ("lib/Graph/Bad.h", "void f(int a, int b, int c, int d, std::map<int, int> e, int g, int h);\n",
     "f has 7 parameters: over 6"),
    ("scripts/checks/large-code.txt", "fusec::Gone methods 30 a table\n", "fusec::Gone does not exist"),
    ("scripts/checks/large-code.txt", "fusec::Gone because\n", "expected: name methods|lines|function|parameters"),
    ("lib/Graph/README.md", "| word | " + "x" * 120 + " |\n", "a row over 120 columns"),
    ("lib/Graph/README.md", "x" * 121 + "\n", "over 120 columns"),
    ("scripts/README.md", "| word | " + "x" * 120 + " |\n" + "x" * 121 + "\n", "README.md:2: over 120 columns"),
    ("lib/Graph/README.md", "| word | - |\n" + "word " * 900 + "\n", "901 words: over 900"),
    ("lib/Graph/README.md", None, "lib/Graph/README.md: missing"),
    ("lib/Graph/Unlisted.cpp", "int x;\n", "does not list Unlisted.cpp"),
    ("lib/Graph/CMakeLists.txt", "fusec_stage(Graph\n  SOURCES\n    B.cpp\n    A.cpp)\n", "sources are not sorted"),
    ("lib/Graph/CMakeLists.txt", "fusec_stage(Graph\n  SOURCES\n    Gone.cpp)\n", "lists Gone.cpp, which does not"),
    ("lib/Movement/README.md", "# Movement\n", "lib/Movement: not a stage"),
    ("lib/Expr/lower/MatMul.cpp", "int x;\n", "lib/Expr/lower/MatMul.cpp: not called after a family: Contractions"),
    ("lib/Graph/rules/Windows.cpp", "int x;\n", "lib/Graph/rules/OpCheck does not exist"),
    ("docs/page.md", "text\n", "docs: not one of the top-level entries"),
    ("lib/README.md", "# lib\n", "does not name lib/Support"),
    ("lib/README.md", LISTS.replace("Lists.h`", "Gone.h`"), "lib/README.md:2: lib/Graph/Gone.h does not exist"),
    ("lib/README.md", LISTS.replace("`Op`", "`Other`"), "lib/Graph/Lists.h does not name Other"),
    ("lib/Graph/Unlisted.h", "struct Op {};\n", "lib/Graph/Unlisted.h names Op, and the list lacks it"),
    ("lib/README.md", LISTS + "## Words\n" + "| a | b |\n" * 41 + "## More\n", "41 words: more than 40"),
    ("README.md", "see [there](lib/Nowhere)\n", "names lib/Nowhere, which does not exist"),
    ("lib/Support/Diagnostics.def", 'FUSEC_DIAG(A, "E1234", Usage, "x")\n', "E1234 has no test under test/"),
    ("CMakeLists.txt", "project(x)\n", "FUSEC_STAGES is not the list of stages"),
    ("lib/Graph/Bad.h", "// see /ho" "me/someone/x\n", "a path of one machine"),
    ("scripts/lib.sh", "pip install --index-" "url x\n", "a registry's host"),
    ("lib/Graph/Bad.h", "// TO" "DO later\n", "unfinished"),
    ("lib/Graph/Bad.h", 'const char *text = "give --frobnicate=4";\n', "no tool has the option --frobnicate"),
    ("lib/Graph/Bad.h", "int x; \n", "white space at the end"),
    ("lib/Graph/Bad.h", "int x;", "no newline at the end"),
    ("lib/Graph/Bad.h", "// " + "x" * 120 + "\n", "over 120 columns"),
    ("lib/Graph/Bad.h", "/// Of each phase.\nint x;\n", "Bad.h:1: a comment begins with 'Of'"),
    ("lib/Graph/Bad.h", "int x;\n// Here.\n/// The same.\nint y;\n", "Bad.h:3: a comment begins with 'The same'"),
    ("lib/Graph/Bad.h", "struct X {\n  // Else it waits.\n  int x;\n};\n", "a comment begins with 'Else'"),
    ("lib/Graph/Bad.h", "/// So many of them.\nint x;\n", "a comment begins with 'So many'"),
    ("lib/Graph/Bad.h", "int   x  ;\n", "not formatted"),
]


def cleanTree():
    files = {
        "CMakeLists.txt": f"set(FUSEC_STAGES {' '.join(STAGES)})\n",
        "README.md": "# fusec\n",
        "lib/README.md": LISTS,
        "lib/Graph/Lists.h": "struct Op {};\n",
        "lib/Graph/Comment.h": "// Op is listed.\n// Of a longer comment only the first line counts.\n",
        ".clang-format": "BasedOnStyle: LLVM\n",
        "lib/Graph/Graph.h": '#pragma once\n#include "Support/Result.h"\n',
        "lib/Codegen/Emitter.h": "#pragma once\n#include <llvm/IR/Module.h>\n",
        "lib/Runtime/Model.h": "#pragma once\n#include <dlfcn.h>\n",
    }
    for stage in STAGES:
        files[f"lib/{stage}/README.md"] = f"# {stage}\n"
        files[f"lib/{stage}/CMakeLists.txt"] = f"fusec_stage({stage})\n"
    return files


def run(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as file:
                file.write(text)
        return subprocess.run([sys.executable, CHECK, "--root", root], capture_output=True, text=True, check=False)


def main():
    clean = cleanTree()
    failures = []
    result = run(clean)
    if result.returncode != 0:
        failures.append(f"the clean tree does not pass:\n{result.stdout}{result.stderr}")
    for path, text, expected in PLANTED:
        files = dict(clean)
        if text is None:
            del files[path]
        else:
            files[path] = text
        result = run(files)
        if result.returncode != 1 or expected not in result.stdout:
            failures.append(f"{path}: expected '{expected}', got:\n{result.stdout}{result.stderr}")
    for failure in failures:
        print(failure)
    print(f"{len(PLANTED) - len(failures)} of {len(PLANTED)} planted violations caught")
    return 1 if failures else 0


sys.exit(main())
