// The C API: checks arguments, finds the objects behind handles, keeps exceptions inside.
#include "Runtime/ApiHandles.h"
#include "Runtime/Calibrate.h"
#include "Runtime/Structs.h"
#include "Support/DimProgram.h"
#include "fusec/bundle_format.h"

#include <cstring>

using namespace fusec;
using namespace fusec::rt;

namespace fusec::rt {

// Never destroyed: handles stay checkable in atexit handlers.
Handles<Model, 0x4d> &models() {
  static auto *table = new Handles<Model, 0x4d>;
  return *table;
}
Handles<Context, 0x43> &contexts() {
  static auto *table = new Handles<Context, 0x43>;
  return *table;
}

} // namespace fusec::rt

namespace {

template <typename Open>
fusert_status load(const fusert_load_options *given, fusert_model *out, const std::string &where,
                   Open open) {
  fusert_load_options options;
  FUSERT_TRY(readOptions(given, options, "options"));
  if (options.info_only < 0 || options.info_only > 1 ||
      bitsOf(options.verify) > FUSERT_VERIFY_CODE ||
      bitsOf(options.weights) > FUSERT_WEIGHTS_COPY || options.device < 0)
    return fail(FUSERT_INVALID_ARGUMENT, "options have an unknown value");
  auto m = std::make_shared<Model>();
  fusert_status status = open(*m, options.weights == FUSERT_WEIGHTS_COPY);
  if (status == FUSERT_OK)
    status = m->load(options, where);
  if (options.log) {
    if (status == FUSERT_OK)
      options.log(options.log_user, FUSERT_LOG_INFO,
                  (where + (m->device ? ": loaded the program for '" + m->program->target + "'"
                                      : ": read for information"))
                      .c_str());
    else
      options.log(options.log_user, FUSERT_LOG_ERROR, lastError());
  }
  if (status == FUSERT_OK)
    *out = models().add(std::move(m));
  return status;
}

} // namespace

extern "C" {

const char *fusert_status_name(fusert_status status) {
  static const char *const names[] = {
      "OK",          "INVALID_ARGUMENT", "INVALID_HANDLE", "NOT_READY",
      "BUSY",        "BAD_BUNDLE",       "UNSUPPORTED",    "IO_ERROR",
      "NO_MEMORY",   "OUT_OF_RANGE",     "UNAVAILABLE",    "DEVICE_ERROR",
      "DEVICE_LOST", "CHECK_FAILED",     "INTERNAL",       "BAD_SIGNATURE"};
  const uint32_t i = bitsOf(status);
  return i < sizeof names / sizeof *names ? names[i] : "UNKNOWN";
}
const char *fusert_last_error(void) { return lastError(); }
uint32_t fusert_version(void) { return FUSERT_VERSION; }
uint32_t fusert_format_version(void) { return FUSEC_FORMAT_VERSION; }
size_t fusert_dtype_bytes(fusert_dtype type) {
  return bitsOf(type) < kNumDTypes ? static_cast<size_t>(sizeInBytes(static_cast<DType>(type))) : 0;
}

fusert_status fusert_load_file(const char *path, const fusert_load_options *options,
                               fusert_model *model) {
  return guarded([&]() -> fusert_status {
    if (!path)
      return nullArgument("path");
    if (!model)
      return nullArgument("model");
    return load(options, model, path,
                [&](Model &m, bool copy) { return m.file.openFile(path, copy); });
  });
}

fusert_status fusert_load_memory(const void *bytes, size_t size, const fusert_load_options *options,
                                 fusert_model *model) {
  return guarded([&]() -> fusert_status {
    if (!bytes)
      return nullArgument("bytes");
    if (!model)
      return nullArgument("model");
    return load(options, model, "bundle",
                [&](Model &m, bool copy) { return m.file.useMemory(bytes, size, copy); });
  });
}

fusert_status fusert_unload(fusert_model model) {
  return guarded([&]() -> fusert_status {
    if (!models().remove(model))
      return fail(FUSERT_INVALID_HANDLE, "not a loaded model");
    return FUSERT_OK;
  });
}

fusert_status fusert_context_create(fusert_model model, const fusert_context_options *given,
                                    fusert_context *context) {
  return withModel(model, [&](const std::shared_ptr<Model> &m) -> fusert_status {
    if (!context)
      return nullArgument("context");
    if (!m->device)
      return fail(FUSERT_INVALID_ARGUMENT, "the model was loaded with info_only");
    fusert_context_options options;
    FUSERT_TRY(readOptions(given, options, "options"));
    fusert_thread_pool pool;
    fusert_allocator memory;
    if (options.pool) {
      FUSERT_TRY(readOptions(options.pool, pool, "options.pool"));
      if (!pool.parallel)
        return nullArgument("options.pool->parallel");
      options.pool = &pool;
    }
    if (options.memory) {
      FUSERT_TRY(readOptions(options.memory, memory, "options.memory"));
      if (!memory.allocate || !memory.release)
        return nullArgument("options.memory->allocate or release");
      options.memory = &memory;
    }
    if (options.threads < 0)
      return fail(FUSERT_INVALID_ARGUMENT, "options.threads is negative");
    auto c = std::make_shared<Context>(m);
    FUSERT_TRY(c->init(options));
    *context = contexts().add(std::move(c));
    return FUSERT_OK;
  });
}

fusert_status fusert_context_destroy(fusert_context context) {
  return guarded([&]() -> fusert_status {
    std::shared_ptr<Context> c = contexts().get(context);
    if (!c)
      return fail(FUSERT_INVALID_HANDLE, "not a context");
    // Stays busy for ever: a call that found the object meanwhile must not start.
    if (c->busy.exchange(true, std::memory_order_acquire))
      return fail(FUSERT_BUSY, "the context is in use by another call");
    contexts().remove(context);
    return FUSERT_OK;
  });
}

fusert_status fusert_set_shapes(fusert_context context, const fusert_shape *shapes, size_t count) {
  return withContext(context, [&](Context &c) {
    return shapes || count == 0 ? c.setShapes(shapes, count) : nullArgument("shapes");
  });
}

fusert_status fusert_set_symbols(fusert_context context, const int64_t *values, size_t count) {
  return withContext(context, [&](Context &c) {
    FUSERT_TRY(checkSymbolCount(*c.model, count));
    return values || count == 0 ? c.setSymbols({values, count}) : nullArgument("values");
  });
}

fusert_status fusert_share_caches(fusert_context context, int64_t rows) {
  return withContext(context, [&](Context &c) { return c.shareCaches(rows); });
}

fusert_status fusert_get_input_shape(fusert_context context, size_t index, int64_t *dims,
                                     int32_t *rank) {
  return withContext(context, [&](Context &c) {
    if (!rank || (!dims && *rank > 0))
      return nullArgument("dims or rank");
    return index < c.model->content.inputs.size()
               ? c.shapeOf(c.model->content.inputs[index], dims, rank)
               : noSuch("input", index);
  });
}

fusert_status fusert_get_output_shape(fusert_context context, size_t index, int64_t *dims,
                                      int32_t *rank) {
  return withContext(context, [&](Context &c) {
    if (!rank || (!dims && *rank > 0))
      return nullArgument("dims or rank");
    return index < c.model->content.outputs.size()
               ? c.shapeOf(c.model->content.outputs[index], dims, rank)
               : noSuch("output", index);
  });
}

fusert_status fusert_workspace_bytes(fusert_context context, size_t *bytes) {
  return withContext(
      context, [&](Context &c) { return bytes ? c.workspaceBytes(bytes) : nullArgument("bytes"); });
}

fusert_status fusert_set_workspace(fusert_context context, void *memory, size_t bytes) {
  return withContext(context, [&](Context &c) {
    return memory ? c.setWorkspace(memory, bytes) : nullArgument("memory");
  });
}

fusert_status fusert_input_buffer(fusert_context context, size_t index, void **data,
                                  size_t *bytes) {
  return withContext(context, [&](Context &c) {
    return data && bytes ? c.ownBuffer(true, index, data, bytes) : nullArgument("data or bytes");
  });
}

fusert_status fusert_output_buffer(fusert_context context, size_t index, void **data,
                                   size_t *bytes) {
  return withContext(context, [&](Context &c) {
    return data && bytes ? c.ownBuffer(false, index, data, bytes) : nullArgument("data or bytes");
  });
}

fusert_status fusert_run(fusert_context context, const fusert_buffer *inputs, size_t input_count,
                         const fusert_buffer *outputs, size_t output_count) {
  return withContext(context,
                     [&](Context &c) { return c.run(inputs, input_count, outputs, output_count); });
}

fusert_status fusert_counters_json(fusert_context context, const char **json) {
  return withContext(context,
                     [&](Context &c) { return json ? c.counters(json) : nullArgument("json"); });
}

fusert_status fusert_calibrate(const fusert_calibrate_options *given, fusert_figure_fn take,
                               void *user) {
  return guarded([&]() -> fusert_status {
    fusert_calibrate_options options;
    FUSERT_TRY(readOptions(given, options, "options"));
    if (!take)
      return nullArgument("take");
    constexpr int32_t kRepetitions = 5, kMost = 1000, kMostThreads = 1024;
    constexpr int64_t kLargest = int64_t{1} << 30, kMostBytes = int64_t{1} << 40;
    if (options.repetitions == 0)
      options.repetitions = kRepetitions;
    if (options.largest_bytes == 0)
      options.largest_bytes = kLargest;
    if (options.threads < 0 || options.threads > kMostThreads || options.repetitions < 1 ||
        options.repetitions > kMost || options.largest_bytes < 1 ||
        options.largest_bytes > kMostBytes)
      return fail(FUSERT_INVALID_ARGUMENT, "options have an unknown value");
    return calibrate(options, take, user);
  });
}

} // extern "C"
