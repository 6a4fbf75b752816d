#pragma once
// Runs a bundle on tensors of the interpreter.
#include "Reference/TensorValue.h"
#include "fusec/runtime.h"

#include <cstring>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

namespace fusec::test {

inline std::string runtimeError(const char *what) {
  return std::string(what) + ": " + fusert_last_error();
}

/// A folder for dumps and bundles of one test, removed at its end.
struct Scratch {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("fusec-random-" + std::to_string(getpid()));
  Scratch() { std::filesystem::create_directories(path); }
  ~Scratch() { std::filesystem::remove_all(path); }
};

/// A bundle in one context, whose sizes change from run to run.
class LoadedBundle {
public:
  LoadedBundle(const std::string &bundle, const std::string &target) {
    fusert_load_options options = {};
    options.struct_size = sizeof options;
    options.target = target == "host" ? nullptr : target.c_str();
    if (fusert_load_file(bundle.c_str(), &options, &model) != FUSERT_OK)
      failed = runtimeError("load");
    else if (fusert_context_create(model, nullptr, &context) != FUSERT_OK)
      failed = runtimeError("context");
  }
  LoadedBundle(const LoadedBundle &) = delete;
  LoadedBundle &operator=(const LoadedBundle &) = delete;
  ~LoadedBundle() {
    if (context)
      fusert_context_destroy(context);
    if (model)
      fusert_unload(model);
  }

  /// Empty and `outputs` filled, or what went wrong.
  std::string run(const std::vector<TensorValue> &inputs, std::vector<TensorValue> &outputs) {
    if (!failed.empty())
      return failed;
    std::vector<fusert_shape> shapes;
    for (const TensorValue &t : inputs)
      shapes.push_back({static_cast<int32_t>(t.dims.size()), t.dims.data()});
    if (fusert_set_shapes(context, shapes.data(), shapes.size()) != FUSERT_OK)
      return runtimeError("set shapes");
    std::vector<ConstantRef> data;
    std::vector<fusert_buffer> feeds;
    for (const TensorValue &t : inputs) {
      data.push_back(toConstant(t));
      feeds.push_back(
          {const_cast<uint8_t *>(data.back()->bytes), static_cast<size_t>(data.back()->sizeBytes)});
    }
    if (fusert_run(context, feeds.data(), feeds.size(), nullptr, 0) != FUSERT_OK)
      return runtimeError("run");
    fusert_model_info info = {};
    info.struct_size = sizeof info;
    fusert_get_model_info(model, &info);
    for (size_t i = 0; i < info.outputs; ++i) {
      fusert_value_info value = {};
      value.struct_size = sizeof value;
      fusert_get_output_info(model, i, &value);
      std::vector<int64_t> dims(16);
      auto rank = static_cast<int32_t>(dims.size());
      void *bytes = nullptr;
      size_t size = 0;
      if (fusert_get_output_shape(context, i, dims.data(), &rank) != FUSERT_OK ||
          fusert_output_buffer(context, i, &bytes, &size) != FUSERT_OK)
        return runtimeError("output");
      dims.resize(static_cast<size_t>(rank));
      std::vector<uint8_t> copy(size);
      if (size)
        std::memcpy(copy.data(), bytes, size);
      outputs.push_back(
          toTensorValue(*makeConstant(static_cast<DType>(value.type), dims, std::move(copy))));
    }
    return "";
  }

private:
  fusert_model model = 0;
  fusert_context context = 0;
  std::string failed;
};

/// Runs a bundle once; empty and `outputs` filled, or what went wrong.
inline std::string runBundle(const std::string &bundle, const std::string &target,
                             const std::vector<TensorValue> &inputs,
                             std::vector<TensorValue> &outputs) {
  return LoadedBundle(bundle, target).run(inputs, outputs);
}

} // namespace fusec::test
