#include "Runtime/Context.h"

#include "Runtime/Error.h"
#include "Runtime/Executor.h"
#include "Runtime/FpEnvironment.h"
#include "Runtime/SharedCaches.h"
#include "Runtime/SizeTests.h"
#include "Support/DimProgram.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace fusec::rt {

Context::~Context() {
  if (queue)
    queue->finish(); // before the memory that it may use goes
}

fusert_status Context::init(const fusert_context_options &options) {
  memory = options.memory ? *options.memory : defaultAllocator();
  counting = options.counters != 0;
  callerStream = options.stream != nullptr;
  QueueOptions q;
  q.threads = options.threads;
  q.counters = counting;
  q.ownPool = options.pool == nullptr;
  if (options.pool)
    q.pool = *options.pool;
  q.memory = memory;
  q.stream = options.stream;
  q.simSeed = options.sim_seed;
  FUSERT_TRY(model->device->createQueue(q, queue));

  const bundle::Program &p = *model->program;
  for (int32_t t : p.inputs)
    inputs.push_back({t, true, {}});
  std::set<int32_t> seen;
  for (int32_t t : p.outputs)
    outputs.push_back(
        {t, p.tensors[t].kind == bundle::TensorKind::Output && seen.insert(t).second, {}});
  if (bundle::numGiven(model->content) == 0)
    return setSymbols({});
  return FUSERT_OK;
}

fusert_status Context::ready() const {
  if (!plan)
    return fail(FUSERT_NOT_READY, "the model has symbolic dimensions: set shapes first");
  return FUSERT_OK;
}

fusert_status Context::setShapes(const fusert_shape *shapes, size_t count) {
  const std::vector<bundle::Value> &values = model->content.inputs;
  if (count != values.size())
    return fail(FUSERT_INVALID_ARGUMENT, "the model has " + std::to_string(values.size()) +
                                             " inputs, given are " + std::to_string(count) +
                                             " shapes");
  dims.clear();
  for (size_t i = 0; i < count; ++i) {
    const auto rank = static_cast<int32_t>(values[i].shape.size());
    if (shapes[i].rank != rank || (rank > 0 && !shapes[i].dims))
      return fail(FUSERT_INVALID_ARGUMENT, "input '" + values[i].name + "' has rank " +
                                               std::to_string(rank) + ", given is " +
                                               std::to_string(shapes[i].rank));
    dims.insert(dims.end(), shapes[i].dims, shapes[i].dims + rank);
  }
  if (const std::string problem = model->solver.solve(dims, solved); !problem.empty()) {
    // The node that needs them to fit says more than that they do not.
    const std::string rule = brokenRule(model->content.rules, namesOf(model->content),
                                        sizesFromDims(model->content, dims), true);
    return fail(FUSERT_INVALID_ARGUMENT, rule.empty() ? problem : rule);
  }
  return setSymbols(solved);
}

fusert_status Context::setSymbols(std::span<const int64_t> values) {
  // The computed ones behind them are the same then.
  if (plan && std::equal(values.begin(), values.end(), symbols.begin()))
    return FUSERT_OK;
  return planFor(values, cacheRows);
}

fusert_status Context::shareCaches(int64_t rows) {
  if (rows < 0)
    return fail(FUSERT_INVALID_ARGUMENT,
                "caches have no room for " + std::to_string(rows) + " rows");
  if (rows > 0 && model->content.caches.empty())
    return fail(FUSERT_INVALID_ARGUMENT,
                "the model has no caches: no output begins with the rows of an input");
  if (rows == cacheRows)
    return FUSERT_OK;
  if (plan)
    return planFor(std::span(symbols).first(bundle::numGiven(model->content)), rows);
  cacheRows = rows;
  return FUSERT_OK;
}

/// All that follows from the `given` values and from the room of shared caches; 0: they share none.
fusert_status Context::planFor(std::span<const int64_t> given, int64_t rows) {
  fresh.assign(given.begin(), given.end());
  if (const std::string problem = admit(model->content, fresh); !problem.empty())
    return fail(FUSERT_INVALID_ARGUMENT, problem);
  if (rows > 0)
    if (const std::string problem = rt::shareCaches(model->content, rows, fresh); !problem.empty())
      return fail(FUSERT_INVALID_ARGUMENT, problem);
  if (!spare)
    spare = std::make_unique<ExecPlan>(model->outline);
  FUSERT_TRY(spare->build(fresh));
  for (const bundle::Cache &c : model->content.caches)
    if (rows > 0 && spare->tensorBytes[inputs[static_cast<size_t>(c.input)].tensor] !=
                        spare->tensorBytes[outputs[static_cast<size_t>(c.output)].tensor])
      return fail(FUSERT_BAD_BUNDLE, "input and output of a cache differ in size");
  std::swap(plan, spare);
  cacheRows = rows;
  for (const bundle::Cache &c : model->content.caches) {
    Slot &output = outputs[static_cast<size_t>(c.output)];
    output.cache = rows > 0 ? c.input : -1;
    if (rows > 0)
      output.own.reset();
  }
  symbols = fresh;
  sizesAreKnown = false;
  callerWorkspace = nullptr;
  bound = false;
  for (std::vector<Slot> *side : {&inputs, &outputs})
    for (Slot &s : *side) {
      s.data = nullptr;
      if (plan->isSized(s.tensor)) {
        s.mostBytes = plan->mostBytes(s.tensor);
        continue; // its memory only grows
      }
      // With an equal size it keeps what the caller has written, such as another value than the default.
      if (s.own.size() != plan->tensorBytes[s.tensor])
        s.own.reset();
      s.device.release();
    }
  return FUSERT_OK;
}

fusert_status Context::shapeOf(const bundle::Value &value, int64_t *dims, int32_t *rank) const {
  FUSERT_TRY(ready());
  const auto n = static_cast<int32_t>(value.shape.size());
  if (*rank < n) {
    *rank = n;
    return fail(FUSERT_INVALID_ARGUMENT, "no room for " + std::to_string(n) + " dimensions");
  }
  *rank = n;
  for (int32_t d = 0; d < n; ++d)
    dims[d] = value.shape[d].evaluate(sizesAreKnown ? plan->symbols() : symbols).value_or(0);
  return FUSERT_OK;
}

fusert_status Context::resolve(std::vector<Slot> &slots, const fusert_buffer *buffers, size_t count,
                               bool input, bool &changed) {
  if (!buffers && count != 0)
    return fail(FUSERT_INVALID_ARGUMENT, std::string(input ? "inputs" : "outputs") +
                                             " is null, given with a count of " +
                                             std::to_string(count) + " instead of 0");
  if (buffers && count != slots.size())
    return fail(FUSERT_INVALID_ARGUMENT, "the model has " + std::to_string(slots.size()) +
                                             (input ? " inputs" : " outputs") + ", given are " +
                                             std::to_string(count) + " buffers");
  for (size_t i = 0; i < slots.size(); ++i) {
    Slot &s = slots[i];
    void *p = buffers ? buffers[i].data : nullptr;
    const bool isSized = plan->isSized(s.tensor);
    const size_t bytes = isSized ? 0 : plan->tensorBytes[s.tensor];
    if (p) {
      if (isSized && buffers[i].bytes < static_cast<uint64_t>(s.mostBytes)) [[unlikely]]
        return fail(FUSERT_INVALID_ARGUMENT, "output '" + model->program->tensors[s.tensor].name +
                                                 "' has up to " + std::to_string(s.mostBytes) +
                                                 " bytes, as the data decides, given are " +
                                                 std::to_string(buffers[i].bytes));
      if (!isSized && buffers[i].bytes != bytes) [[unlikely]]
        return fail(FUSERT_INVALID_ARGUMENT, std::string(input ? "input '" : "output '") +
                                                 model->program->tensors[s.tensor].name + "' has " +
                                                 std::to_string(bytes) + " bytes, given are " +
                                                 std::to_string(buffers[i].bytes));
      if (s.cache >= 0 && p != inputs[static_cast<size_t>(s.cache)].data)
        return fail(FUSERT_INVALID_ARGUMENT,
                    "output '" + model->content.outputs[i].name + "' shares the memory of input '" +
                        model->content.inputs[static_cast<size_t>(s.cache)].name +
                        "', and is given another buffer");
      if (p == s.data)
        continue;
      const auto align =
          static_cast<uintptr_t>(sizeInBytes(model->program->tensors[s.tensor].type));
      if (reinterpret_cast<uintptr_t>(p) % align != 0)
        return fail(FUSERT_INVALID_ARGUMENT, "the buffer of '" +
                                                 model->program->tensors[s.tensor].name +
                                                 "' is not aligned to its element type");
    } else if (s.cache >= 0) {
      p = inputs[static_cast<size_t>(s.cache)].data;
    } else if (const int32_t weight = input ? model->content.inputs[i].weight : -1;
               bytes > 0 && weight >= 0 && !s.own.data()) {
      p = model->device->weight(weight);
    } else if (bytes > 0) {
      size_t n;
      FUSERT_TRY(ownBuffer(input, i, &p, &n));
    }
    changed |= p != s.data;
    s.data = p;
  }
  return FUSERT_OK;
}

fusert_status Context::checkOverlap() const {
  auto bytesOf = [&](const Slot &slot) {
    if (!plan->isSized(slot.tensor))
      return plan->tensorBytes[slot.tensor];
    return slot.data ? static_cast<size_t>(slot.mostBytes) : 0;
  };
  auto overlap = [&](const Slot &a, const Slot &b) {
    const auto x = reinterpret_cast<uintptr_t>(a.data), y = reinterpret_cast<uintptr_t>(b.data);
    return x < y + bytesOf(b) && y < x + bytesOf(a);
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    bool bad = false;
    for (size_t j = 0; j < inputs.size(); ++j)
      bad |= static_cast<int32_t>(j) != outputs[i].cache && overlap(outputs[i], inputs[j]);
    for (size_t j = 0; j < i; ++j)
      bad |= overlap(outputs[i], outputs[j]);
    if (bad)
      return fail(FUSERT_INVALID_ARGUMENT, "the buffer of output '" +
                                               model->content.outputs[i].name +
                                               "' overlaps that of an input or of another output");
  }
  return FUSERT_OK;
}

fusert_status Context::stage(Slot &s, bool input) {
  s.staged = false;
  void *address = s.data;
  if (s.cache >= 0) {
    s.staged = inputs[static_cast<size_t>(s.cache)].staged;
    plan->setAddress(s.tensor, s.staged ? deviceOf(s) : address);
    return FUSERT_OK;
  }
  bool ofDevice = false;
  if (s.data) {
    const std::string what = std::string("the buffer of ") + (input ? "input '" : "output '") +
                             model->program->tensors[s.tensor].name + "'";
    FUSERT_TRY(model->device->findMemory(s.data, what, ofDevice));
    if (ofDevice && !model->device->hostMemory() &&
        reinterpret_cast<uintptr_t>(s.data) % FUSEC_GPU_BUFFER_ALIGN != 0)
      return fail(FUSERT_INVALID_ARGUMENT,
                  what + " lies in device memory and must begin at a multiple of " +
                      std::to_string(FUSEC_GPU_BUFFER_ALIGN) + " bytes");
  }
  if (plan->isSized(s.tensor)) {
    s.staged = !model->device->hostMemory() && !ofDevice;
    return FUSERT_OK; // the run gives it its address
  }
  if (s.data && !ofDevice) {
    s.staged = true;
    FUSERT_TRY(s.device.grow(*model->device, memory, plan->tensorBytes[s.tensor]));
    address = s.device.data();
  }
  if (s.primary)
    plan->setAddress(s.tensor, address);
  return FUSERT_OK;
}

fusert_status Context::execute() {
  const bool host = model->device->hostMemory();
  model->device->poison(plan->workspace, plan->workspaceBytes);
  for (const Slot &s : outputs)
    if (s.primary && s.cache < 0 && !plan->isSized(s.tensor))
      model->device->poison(s.data, plan->tensorBytes[s.tensor]);
  if (!host)
    for (Slot &s : inputs)
      if (s.staged)
        FUSERT_TRY(
            queue->copy(s.device.data(), s.data, plan->tensorBytes[s.tensor], Direction::ToDevice));
  FUSERT_TRY(Executor(*plan, *queue, host, this).run());
  for (Slot &s : outputs)
    FUSERT_TRY(giveOutput(s));
  return FUSERT_OK;
}

/// What kernels have written elsewhere goes where the caller expects it.
fusert_status Context::giveOutput(Slot &s) {
  const size_t bytes = plan->tensorBytes[s.tensor];
  if (bytes == 0 || (s.primary && !s.staged))
    return FUSERT_OK;
  if (!s.data && s.own.size() < bytes)
    FUSERT_TRY(s.own.allocate(memory, bytes));
  const bool toHost = !model->device->hostMemory() && s.staged;
  return queue->copy(s.data ? s.data : s.own.data(),
                     s.primary ? deviceOf(s) : plan->addresses[s.tensor], bytes,
                     toHost ? Direction::ToHost : Direction::OnDevice);
}

bool Context::anyStaged() const {
  const auto staged = [](const Slot &s) { return s.staged; };
  return std::any_of(inputs.begin(), inputs.end(), staged) ||
         std::any_of(outputs.begin(), outputs.end(), staged);
}

bool Context::anyOfCallersDevice() const {
  const auto given = [](const Slot &s) { return s.data && !s.staged; };
  return !model->device->hostMemory() &&
         (callerWorkspace || std::any_of(inputs.begin(), inputs.end(), given) ||
          std::any_of(outputs.begin(), outputs.end(), given));
}

namespace {

/// From begin() to end() of a queue, whatever leaves in between.
class Running {
public:
  explicit Running(Queue &queue) : queue(queue) {}
  Running(const Running &) = delete;
  Running &operator=(const Running &) = delete;
  ~Running() {
    if (!open)
      return;
    // Nothing more may be thrown: where an exception is on its way, it says more than what these find.
    try {
      if (wait)
        queue.finish();
    } catch (...) {
    }
    try {
      queue.end();
    } catch (...) {
    }
  }
  fusert_status end() {
    const fusert_status finished = wait ? queue.finish() : FUSERT_OK;
    open = false;
    const fusert_status ended = queue.end();
    return finished == FUSERT_OK ? ended : finished;
  }
  bool wait = false; // for what has been enqueued

private:
  Queue &queue;
  bool open = true;
};

} // namespace

fusert_status Context::run(const fusert_buffer *in, size_t inputCount, const fusert_buffer *out,
                           size_t outputCount) {
  FUSERT_TRY(ready());
  sizesAreKnown = false;
  FUSERT_TRY(queue->begin());
  Running running(*queue);
  bool changed = !bound;
  fusert_status resolved = resolve(inputs, in, inputCount, true, changed);
  if (resolved == FUSERT_OK)
    resolved = resolve(outputs, out, outputCount, false, changed);
  if (resolved == FUSERT_OK && changed)
    resolved = checkOverlap();
  if (resolved != FUSERT_OK) {
    bound = false; // some slots may have changed already: all are bound anew next time
    return resolved;
  }
  if (changed) {
    FUSERT_TRY(ensureWorkspace());
    bound = false; // until all slots are bound
    for (std::vector<Slot> *side : {&inputs, &outputs})
      for (Slot &s : *side)
        FUSERT_TRY(stage(s, side == &inputs));
    bound = true;
  }
  FpEnvironment environment;
  running.wait = !callerStream || anyStaged();
  fusert_status status = FUSERT_OK;
  if (anyOfCallersDevice())
    status = queue->followDefaultStream();
  if (status == FUSERT_OK)
    status = execute();
  const fusert_status ended = running.end();
  sizesAreKnown = status == FUSERT_OK && ended == FUSERT_OK;
  return status == FUSERT_OK ? ended : status;
}

fusert_status Context::counters(const char **json) {
  if (!counting)
    return fail(FUSERT_INVALID_ARGUMENT, "the context was made without counters");
  countersText = queue->countersJson();
  *json = countersText.c_str();
  return FUSERT_OK;
}

} // namespace fusec::rt
