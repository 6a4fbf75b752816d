"""Plants one violation after the other in a small tree and demands that scripts/check names it, and that the untouched
tree passes; the same for scripts/check --tidy where there is clang-tidy. Run by ctest."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from common import STAGES

CHECK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "check")
TIDY_RULES = os.path.join(os.path.dirname(CHECK), "..", ".clang-tidy")

# Of the clean tree: a tick list with an example.
LISTS = "### As `Op`\n- [ ] `lib/Graph/Lists.h`: there\n- [ ] `lib/Gir/ops`: each\n"
LISTS += "".join(f"- lib/{stage}\n" for stage in STAGES)

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
    ("lib/Graph/Bad.h", "class B {\n" + "".join(f"  void f{i}();\n" for i in range(20)) + "};\nclass A : public B {\n" +
     "".join(f"  void f{i}();\n" for i in range(14, 26)) + "};\n",
     "A has 26 functions of the class or that change it: over 25"),
    ("lib/Graph/Bad.cpp", "class A {\n" + "".join(f"  void f{i}(const int &a, int = 0);\n" for i in range(26)) +
     "};\nvoid A::f0(const int &, int b) {}\n",
     "A has 26 functions of the class or that change it: over 25"),
    ("lib/Graph/Bad.cpp", "class A {\n  int x;\n};\n" + "\n".join(
        f"void f{i}(A &a) {{\n" + "  a = A();\n" * 78 + "}" for i in range(10)) + "\n",
     "A has 803 lines of the class over all its files: over 800"),
    ("lib/Graph/Bad.cpp", "void f() {\n" + "  g();\n" * 79 + "}\n", "f has 81 lines of the function: over 80"),
    ("lib/Graph/Bad.h", "void f(int a, int b, int c, int d, std::map<int, int> e, int g, int h);\n",
     "f has 7 parameters: over 6"),
    ("scripts/checks/large-code.txt", "fusec::Gone methods 30 a table\n", "fusec::Gone does not exist"),
    ("scripts/checks/large-code.txt", "Large methods 40 a table\n",
     "Large: 30 functions of the class or that change it; 40 lets"),
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
    ("lib/README.md", LISTS.replace("`lib/Gir/ops`", "all"), "lib/Gir/ops/One.h names Op, and the list lacks it"),
    ("lib/README.md", LISTS.replace("lib/Gir/ops`", "lib/Expr`"), "lib/Expr does not name Op"),
    ("lib/README.md", LISTS + "## Words\n" + "| a | b |\n" * 41 + "## More\n", "41 words: more than 40"),
    ("lib/README.md", LISTS + "## Words\n| `Op` | a |\n| `Gone` | b |\n## More\n", "the glossary has Gone, which no"),
    ("README.md", "see [there](lib/Nowhere)\n", "names lib/Nowhere, which does not exist"),
    ("lib/Graph/README.md", "`Gone.h` holds it\n", "lib/Graph/README.md:1: names Gone.h, which does not exist"),
    ("lib/Graph/README.md", "see `lib/Graph/Gone.h`\n", "names lib/Graph/Gone.h, which does not exist"),
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
        "lib/Gir/ops/One.h": "struct One : Op {};\n",
        "lib/Graph/Large.h": "struct Large {\n" + "".join(f"  void f{i}();\n" for i in range(30)) + "};\n",
        "scripts/checks/large-code.txt": "Large methods 30 a table\n",
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


def run(files, *arguments, before=None):
    """What the check says of a tree of these files; `before`: of a clone, those that are committed."""
    with tempfile.TemporaryDirectory() as root:
        def write(texts):
            for path, text in texts.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as file:
                    file.write(text.replace("@ROOT@", root))

        environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        if before is not None:
            write(before)
            git = ["git", "-C", root, "-c", "user.name=n", "-c", "user.email=e", "-c", "core.hooksPath=/dev/null"]
            for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "before"]):
                subprocess.run([*git, *words], check=True, env=environment)
        write(files)
        return subprocess.run([sys.executable, CHECK, "--root", root, *arguments], cwd=root, env=environment,
                              capture_output=True, text=True, check=False)


def failuresOf(result, expected):
    """`expected`: a part of the line that must come back; "": nothing is to be complained about."""
    if result.returncode == (1 if expected else 0) and expected in result.stdout:
        return []
    return [f"expected '{expected}', got:\n{result.stdout}{result.stderr}"]


# What is written where, the files that the check is asked for (none: those that are changed), and what must come back.
LONG = "int f(int x) {\n" + "  ++x;\n" * 77 + "  return x;\n}\n"
TIDY_PLANTED = [
    ("lib/Graph/One.cpp", '#include "Graph/Used.h"\nUsed one() { return {}; }\n', ["lib/Graph/One.cpp"], ""),
    ("lib/Graph/One.cpp", "double f(int a, int b) { return a / b; }\n", ["lib/Graph/One.cpp"],
     "lib/Graph/One.cpp:1: result of integer division used in a floating point context; possible loss of precision "
     "[bugprone-integer-division] [tidy]"),
    ("lib/Graph/One.cpp", "double f(int a, int b) { return a / b; }\n", [], "[bugprone-integer-division]"),
    ("lib/Graph/One.cpp", "struct S { S(const S &); ~S(); int v; };\nint f(S s) { return s.v; }\n", [],
     "[performance-unnecessary-value-param]"),
    ("lib/Graph/One.cpp", '#include "Graph/Used.h"\nint one() { return 1; }\n', [],
     "lib/Graph/One.cpp:1: included header Used.h is not used directly [misc-include-cleaner]"),
    ("lib/Graph/One.cpp", LONG, [], ""),
    ("lib/Graph/One.cpp", LONG.replace("++x;\n", "++x;\n  ++x;\n", 1), [], "function 'f' exceeds"),
    ("lib/Graph/One.cpp", LONG.replace("++x;\n", "++x;\n  ++x;\n", 1).replace("f(", "listed("), [], ""),
    ("lib/Graph/One.cpp", "namespace other {\n" + LONG.replace("++x;\n", "++x;\n  ++x;\n", 1).replace("f(", "listed(") +
     "}\n", [], "function 'listed' exceeds"),
    ("lib/Graph/One.cpp", "int f(int a, int b, int c, int d, int e, int g, int h);\n" +
     "int f(int a, int b, int c, int d, int e, int g, int h) { return a; }\n", [], "function 'f' exceeds"),
    ("lib/Graph/Used.h", "#pragma once\nstruct Used {};\ninline double f(int a, int b) { return a / b; }\n", [],
     "lib/Graph/Used.h:3: result of integer division"),
    ("lib/Graph/One.cpp", "int f() { return 1 }\n", [], "clang cannot compile it: expected ';'"),
    ("lib/Graph/Other.cpp", "int x;\n", [], ""),
]


def tidyTree():
    file = "@ROOT@/lib/Graph/One.cpp"
    command = {"directory": "@ROOT@/build/release", "command": f"c++ -std=c++20 -I@ROOT@/lib -c {file}", "file": file}
    with open(TIDY_RULES, encoding="utf-8") as rules:
        return {
            ".clang-tidy": rules.read(),
            ".gitignore": "/build/\n",
            "scripts/checks/large-code.txt": "listed function 90 a table\n",
            "build/release/compile_commands.json": json.dumps([command]),
            "lib/Graph/Middle.h": '#pragma once\n#include "Graph/Used.h"\n',
            "lib/Graph/Used.h": "#pragma once\nstruct Used {};\n",
            "lib/Graph/One.cpp": '#include "Graph/Middle.h"\nUsed one() { return {}; }\n',
        }


def main():
    clean = cleanTree()
    failures = [f"the clean tree: {failure}" for failure in failuresOf(run(clean), "")]
    for path, text, expected in PLANTED:
        files = dict(clean)
        if text is None:
            del files[path]
        else:
            files[path] = text
        failures += [f"{path}: {failure}" for failure in failuresOf(run(files), expected)]
    count = len(PLANTED)
    if shutil.which("clang-tidy-19"):
        before = tidyTree()
        for path, text, asked, expected in TIDY_PLANTED:
            result = run({path: text}, "--tidy", *asked, before=before)
            failures += [f"--tidy, {path}: {failure}" for failure in failuresOf(result, expected)]
        count += len(TIDY_PLANTED)
    else:
        print("scripts/check --tidy is not tried: clang-tidy-19 is missing, which scripts/setup --tidy installs")
    for failure in failures:
        print(failure)
    print(f"{count - len(failures)} of {count} planted violations caught")
    return 1 if failures else 0


sys.exit(main())
