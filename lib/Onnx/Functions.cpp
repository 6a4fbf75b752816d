#include "Onnx/GraphBuilder.h"
#include "Support/Diag.h"

namespace fusec {

std::string functionKey(const std::string &domain, const std::string &name,
                        const std::string &overload) {
  std::string key = domain == "ai.onnx" ? "" : domain;
  key += '\0';
  key += name;
  key += '\0';
  return key + overload;
}

namespace {

/// Counts the nodes that each function expands to, callees first. A function chain is at most as deep as
/// the limit, so recursion here is bounded.
class Counter {
public:
  Counter(const OnnxFunctions &functions, const Limits &limits, const std::string &path)
      : functions(functions), limits(limits), path(path) {}

  Result<int64_t> nodes(const OnnxNodes &list, int depth) {
    int64_t total = 0;
    for (const auto &node : list) {
      auto it = functions.find(functionKey(node.domain(), node.op_type(), node.overload()));
      int64_t count = 1;
      if (it != functions.end()) {
        FUSEC_TRY(count, function(it->first, *it->second, depth + 1));
      }
      total += count;
      for (const auto &a : node.attribute()) {
        if (a.has_g()) {
          FUSEC_TRY(int64_t inner, nodes(a.g().node(), depth));
          total += inner;
        }
        for (const auto &g : a.graphs()) {
          FUSEC_TRY(int64_t inner, nodes(g.node(), depth));
          total += inner;
        }
      }
      if (total > limits.nodes)
        return Diagnostic{Diag::LimitExceeded, path,
                          "the model has more than " + std::to_string(limits.nodes) +
                              " nodes after functions are inlined"};
    }
    return total;
  }

private:
  Result<int64_t> function(const std::string &key, const onnx::FunctionProto &f, int depth) {
    if (auto it = done.find(key); it != done.end()) {
      if (it->second.count < 0)
        return Diagnostic{Diag::BadGraph, path + ": function '" + f.name() + "'",
                          "calls itself; functions must not be recursive"};
      if (depth + it->second.height > limits.functionDepth)
        return tooDeep(f);
      height = it->second.height;
      return it->second.count;
    }
    if (depth > limits.functionDepth)
      return tooDeep(f);
    done[key] = {-1, 0};
    int tallest = 0, before = height;
    height = 0;
    FUSEC_TRY(int64_t count, nodesWithHeight(f.node(), depth, tallest));
    done[key] = {count, tallest + 1};
    height = std::max(before, tallest + 1);
    return count;
  }

  Result<int64_t> nodesWithHeight(const OnnxNodes &list, int depth, int &tallest) {
    FUSEC_TRY(int64_t count, nodes(list, depth));
    tallest = height;
    return count;
  }

  Diagnostic tooDeep(const onnx::FunctionProto &f) const {
    return {Diag::LimitExceeded, path + ": function '" + f.name() + "'",
            "function calls are nested more than " + std::to_string(limits.functionDepth) +
                " deep"};
  }

  struct Entry {
    int64_t count; // -1 while it is being counted
    int height;    // of the call tree below, itself included
  };
  const OnnxFunctions &functions;
  const Limits &limits;
  const std::string &path;
  std::map<std::string, Entry> done;
  int height = 0; // tallest call tree met so far in the current function
};

} // namespace

Status checkFunctions(const onnx::ModelProto &model, const OnnxFunctions &functions,
                      const Limits &limits, const std::string &path) {
  Counter counter(functions, limits, path);
  FUSEC_TRY([[maybe_unused]] int64_t total, counter.nodes(model.graph().node(), 0));
  for (const auto &f : model.functions()) {
    FUSEC_TRY([[maybe_unused]] int64_t count, counter.nodes(f.node(), 1));
  }
  return success();
}

} // namespace fusec
