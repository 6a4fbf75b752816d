// How many registers a lane needs: the most that is live at once.
#include "Kernels.h"

#include <algorithm>
#include <map>
#include <random>

using namespace fusec;
using namespace fusec::test;

namespace {

/// Registers of a kernel of 4 lanes with accumulators %a of 8 elements, %b of 3, and scalars %r, %s, %w (f64).
int64_t registersOf(const std::string &body) {
  return registersPerLane(
      kernelFrom("kernel @k units 1 lanes 4 {\n  param %x f32[64]\n  param out %y f32[64]\n"
                 "  register %a f32[8]\n  register %b f32[3]\n  register %r f32[]\n"
                 "  register %s f32[]\n  register %w f64[]\n  phase () {\n" +
                 body + "  }\n}\n"));
}

/// A nest that sums into an accumulator and stores it.
std::string init(const std::string &acc, int elements) {
  return "unroll i in " + std::to_string(elements) + " { %" + acc + "[i] = 0.0 }\n";
}
std::string sum(const std::string &acc, int elements) {
  return "seq k in 4 { unroll j in " + std::to_string(elements) + " { lane l in 4 { %" + acc +
         "[j] sum= %x[k*4 + l] } } }\n";
}
std::string store(const std::string &acc, int elements) {
  return "unroll i in " + std::to_string(elements) + " { lane l in 4 { %y[i*4 + l] = %" + acc +
         "[i] } }\n";
}
std::string nest(const std::string &acc, int elements) {
  return init(acc, elements) + sum(acc, elements) + store(acc, elements);
}

} // namespace

TEST_CASE("nests whose accumulators do not live at once need those of the larger one") {
  CHECK(registersOf(nest("a", 8) + nest("b", 3)) == 8);
  CHECK(registersOf(init("a", 8) + sum("a", 8) + nest("b", 3) + store("a", 8)) == 11);
  CHECK(registersOf("seq t in 3 {\n" + nest("a", 8) + nest("b", 3) + "}\n") == 8);
}

TEST_CASE("a value that a loop's next iteration reads, or what stands behind it, lives through the "
          "loop") {
  // Never set anew, or only in part.
  CHECK(registersOf("seq t in 3 {\n" + sum("a", 8) + nest("b", 3) + "}\n" + store("a", 8)) == 11);
  CHECK(registersOf("seq t in 3 {\n" + store("a", 8) + nest("b", 3) + init("a", 7) + sum("a", 8) +
                    "}\n") == 11);
  CHECK(registersOf("seq t in 3 {\n" + init("a", 7) + sum("a", 8) + store("a", 8) + nest("b", 3) +
                    "}\n") == 11);
  CHECK(registersOf("seq t in 3 {\n if lt(t, 1) {\n" + init("a", 8) + "}\n" + sum("a", 8) +
                    store("a", 8) + nest("b", 3) + "}\n") == 11);
  CHECK(registersOf("seq t in 3 {\n%a[0] = 0.0\n" + sum("a", 8) + store("a", 8) + nest("b", 3) +
                    "}\n") == 11);
  CHECK(registersOf("seq t in 3 {\n" + nest("a", 8) + "%b[0] = 0.0\n%b[1] = 0.0\n%b[2] = 0.0\n" +
                    sum("b", 3) + store("b", 3) + "}\n") == 8);
  CHECK(registersOf("seq t in 3 {\n seq z in t { %r[] = 1.0 }\n%y[t] = %r[]\n" + nest("a", 8) +
                    "}\n") == 9); // perhaps not set
  // Set and read under one condition: set anew each time.
  const std::string bounds = "if lt(t*4 + l, 9) { %r[] = 1.0 }\n";
  CHECK(registersOf("seq t in 3 {\nlane l in 4 {\n" + bounds +
                    "if lt(t*4 + l, 9) { %y[t*4 + l] = %r[] }\n}\n" + nest("a", 8) + "}\n") == 8);
  CHECK(registersOf("seq t in 3 {\nlane l in 4 {\n" + bounds +
                    "if lt(t*4 + l, 10) { %y[t*4 + l] = %r[] }\n}\n" + nest("a", 8) + "}\n") == 9);
  // From before it.
  CHECK(registersOf("%r[] = 1.0\nseq t in 3 {\n" + nest("a", 8) + "}\n%y[0] = %r[]\n") == 9);
  CHECK(registersOf("%r[] = 1.0\nseq t in 3 {\n%y[t] = %r[]\n" + nest("a", 8) + "}\n") == 9);
  CHECK(registersOf("seq t in 3 {\n" + nest("a", 8) + "%r[] = 1.0\n}\n%y[0] = %r[]\n") == 9);
  CHECK(registersOf("%r[] = 1.0\n%y[0] = %r[]\nseq t in 3 {\n" + nest("a", 8) + "}\n") == 8);
}

TEST_CASE("the last reader of registers leaves them to what it makes") {
  CHECK(registersOf("%r[] = 1.0\n%s[] = exp(%r[])\n%y[0] = %s[]\n") == 1);
  CHECK(registersOf("%r[] = 1.0\n%s[] = exp(%r[])\n%y[0] = add(%r[], %s[])\n") == 2);
  CHECK(registersOf("%w[] = 1.0\n%y[0] = cast(f32, %w[])\n") == 2);
}

TEST_CASE("both branches of an If take their registers from the same ones") {
  const std::string both = nest("a", 8) + nest("b", 3);
  const std::string bounds = "unroll i in 8 { if lt(i, 5) { %a[i] = 0.0 } else { %a[i] = 1.0 } }\n";
  CHECK(registersOf("seq t in 3 { if lt(t, 2) {\n" + both + "} else {\n" + both + "} }\n") == 8);
  CHECK(registersOf("seq t in 3 { if lt(t, 2) {\n" + both + "} else {\n" + bounds + sum("a", 8) +
                    store("a", 8) + nest("b", 3) + "} }\n") == 8);
  CHECK(registersOf("if lt(%x[0], 2.0) {\n" + init("a", 8) + "} else {\n" + init("a", 8) + "}\n" +
                    nest("b", 3) + store("a", 8)) == 11);
  CHECK(registersOf("if lt(%x[0], 2.0) {\n" + nest("a", 8) + "} else {\n" + nest("b", 3) + "}\n") ==
        8);
}

namespace {

/// A random kernel as text, and what its registers hold while it runs: each statement reads at one time and writes at
/// the next one.
class RandomKernel {
public:
  explicit RandomKernel(unsigned seed) : random(seed) { body = list(0); }

  std::string text() const {
    std::string out = "kernel @k units 1 lanes 4 {\n  param out %y f32[64]\n";
    for (int r = 0; r < kRegisters; ++r)
      out += "  register %r" + std::to_string(r) + " f32[" + (r < kArrays ? "3" : "") + "]\n";
    return out + "  phase () {\n" + body.text + "  }\n}\n";
  }

  /// The most elements that are live at one time of a run.
  int64_t most() {
    run(body, {});
    std::vector<int64_t> live(static_cast<size_t>(2 * time + 2));
    for (const auto &[first, last] : lives)
      for (int t = first; t <= last; ++t)
        ++live[static_cast<size_t>(t)];
    return *std::max_element(live.begin(), live.end());
  }

private:
  static constexpr int kRegisters = 4, kArrays = 2; // the first ones have 3 elements
  struct Node {
    enum { List, Loop, If, Write } kind = List;
    std::string text, var;
    std::vector<Node> inner; // If: two lists
    int target = 0, source = 0, limit = 0;
    std::string targetIndex, sourceIndex;
  };

  int below(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

  /// One of the loops' variables, each of three iterations, or a constant.
  std::string index(int r) {
    if (r >= kArrays)
      return "";
    return around.empty() || below(3) == 0 ? std::to_string(below(3))
                                           : around[static_cast<size_t>(below(int(around.size())))];
  }

  Node list(int depth) {
    Node out;
    for (int n = 1 + below(4); n > 0; --n) {
      out.inner.push_back(statement(depth));
      out.text += out.inner.back().text;
    }
    return out;
  }

  Node statement(int depth) {
    Node out;
    const int kind = depth < 2 ? below(7) : 7;
    if (kind < 3) {
      out.kind = Node::Loop;
      out.var = "v" + std::to_string(vars++);
      around.push_back(out.var);
      out.inner = {list(depth + 1)};
      around.pop_back();
      out.text =
          (below(2) == 0 ? "seq " : "unroll ") + out.var + " in 3 {\n" + out.inner[0].text + "}\n";
    } else if (kind == 3 && !around.empty()) {
      out.kind = Node::If;
      out.var = around.back();
      out.limit = 1 + below(2);
      out.inner = {list(depth + 1), list(depth + 1)};
      out.text = "if lt(" + out.var + ", " + std::to_string(out.limit) + ") {\n" +
                 out.inner[0].text + "} else {\n" + out.inner[1].text + "}\n";
    } else {
      out.kind = Node::Write;
      out.target = below(kRegisters + 1), out.source = below(kRegisters);
      out.targetIndex = index(out.target), out.sourceIndex = index(out.source);
      const std::string value = "%r" + std::to_string(out.source) + "[" + out.sourceIndex + "]";
      out.text = (out.target == kRegisters
                      ? "%y[0]"
                      : "%r" + std::to_string(out.target) + "[" + out.targetIndex + "]") +
                 (below(3) == 0 && out.target < kRegisters ? " = 1.0" : " = exp(" + value + ")") +
                 "\n";
      if (out.text.find("exp") == std::string::npos)
        out.source = -1;
    }
    return out;
  }

  using Values = std::map<std::string, int>;
  static std::pair<int, int> element(int r, const std::string &at, const Values &values) {
    const auto it = values.find(at);
    return {r, at.empty() ? 0 : it != values.end() ? it->second : std::stoi(at)};
  }

  void run(const Node &node, Values values) {
    if (node.kind == Node::If)
      return run(node.inner[values.at(node.var) < node.limit ? 0 : 1], values);
    for (int i = 0; i < (node.kind == Node::Loop ? 3 : 1); ++i) {
      if (node.kind == Node::Loop)
        values[node.var] = i;
      for (const Node &inner : node.inner)
        run(inner, values);
    }
    if (node.kind != Node::Write)
      return;
    ++time;
    if (node.source >= 0)
      if (const auto it = open.find(element(node.source, node.sourceIndex, values));
          it != open.end())
        lives[it->second].second = 2 * time;
    if (node.target < kRegisters) {
      open[element(node.target, node.targetIndex, values)] = lives.size();
      lives.push_back({2 * time + 1, 2 * time + 1});
    }
  }

  std::mt19937 random;
  std::vector<std::string> around;
  int vars = 0, time = 0;
  Node body;
  std::map<std::pair<int, int>, size_t> open; // element -> its last life
  std::vector<std::pair<int, int>> lives;     // first and last time
};

} // namespace

TEST_CASE("random kernels never hold more registers than they are said to need") {
  int64_t needed = 0, sums = 0;
  for (unsigned seed = 1; seed <= 3000; ++seed) {
    RandomKernel random(seed);
    GirKernel kernel = kernelFrom(random.text());
    INFO("seed " << seed << "\n" << random.text());
    CHECK(registersPerLane(kernel) >= random.most());
    needed += registersPerLane(kernel);
    sums += 8;
  }
  CHECK(needed < sums * 3 / 4);
}
