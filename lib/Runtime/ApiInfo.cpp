// The part of the C API that tells what a bundle holds.
#include "Runtime/ApiHandles.h"
#include "Runtime/DimBounds.h"
#include "Runtime/ExecPlan.h"
#include "Runtime/SizeTests.h"
#include "Runtime/Structs.h"
#include "Support/DimProgram.h"

using namespace fusec;
using namespace fusec::rt;

namespace {

fusert_status valueInfo(const bundle::Value &v, const Model::ValueText &text,
                        fusert_value_info *out) {
  fusert_value_info info{};
  info.name = v.name.c_str();
  info.type = static_cast<fusert_dtype>(v.type);
  info.rank = static_cast<int32_t>(v.shape.size());
  info.dims = text.dims.data();
  info.has_default = v.weight >= 0;
  return writeInfo(info, out);
}

uint64_t codeBytes(const bundle::Program &program) {
  uint64_t bytes = 0;
  for (const bundle::Image &i : program.images)
    bytes += i.code.size();
  return bytes;
}

/// Symbols in front of those that stand for the rows of caches.
size_t numComputed(const bundle::Model &model) {
  size_t count = model.symbols.size();
  for (const bundle::Cache &c : model.caches)
    for (SymbolId s : {c.inputRoom, c.outputRoom, c.kept})
      if (s >= 0)
        count = std::min(count, static_cast<size_t>(s));
  return count;
}

size_t countSteps(const std::vector<bundle::Step> &steps) {
  size_t n = steps.size();
  for (const bundle::Step &s : steps)
    n += countSteps(s.thenSteps) + countSteps(s.elseSteps);
  return n;
}

} // namespace

extern "C" {

fusert_status fusert_get_model_info(fusert_model model, fusert_model_info *out) {
  return withModel(model, [&](const std::shared_ptr<Model> &m) {
    fusert_model_info info{};
    info.name = m->content.name.c_str();
    info.producer = m->content.producer.c_str();
    info.target = m->program ? m->program->target.c_str() : "";
    info.inputs = m->content.inputs.size();
    info.outputs = m->content.outputs.size();
    info.symbols = bundle::numGiven(m->content);
    info.computed = numComputed(m->content) - info.symbols;
    info.programs = m->content.programs.size();
    info.inferred = m->content.inferred.size();
    info.size_rules = m->content.rules.size();
    info.caches = m->content.caches.size();
    for (const bundle::Weight &w : m->content.weights)
      info.weight_bytes += static_cast<uint64_t>(w.sizeBytes);
    if (m->program) {
      info.kernels = m->program->kernels.size();
      info.steps = countSteps(m->program->steps);
      info.code_bytes = codeBytes(*m->program);
    }
    return writeInfo(info, out);
  });
}

fusert_status fusert_get_input_info(fusert_model model, size_t index, fusert_value_info *info) {
  return withModel(model, [&](const std::shared_ptr<Model> &m) {
    return index < m->content.inputs.size()
               ? valueInfo(m->content.inputs[index], m->inputTexts[index], info)
               : noSuch("input", index);
  });
}

fusert_status fusert_get_output_info(fusert_model model, size_t index, fusert_value_info *info) {
  return withModel(model, [&](const std::shared_ptr<Model> &m) {
    return index < m->content.outputs.size()
               ? valueInfo(m->content.outputs[index], m->outputTexts[index], info)
               : noSuch("output", index);
  });
}

fusert_status fusert_get_symbol_info(fusert_model model, size_t index, fusert_symbol_info *out) {
  return withModel(model, [&](const std::shared_ptr<Model> &m) {
    if (index >= m->content.symbols.size())
      return noSuch("symbol", index);
    const Symbol &s = m->content.symbols[index];
    const std::string &text = m->definitionTexts[index], &bound = m->boundTexts[index];
    const std::vector<bundle::DataSize> &sizes = m->content.dataSizes;
    const auto size =
        std::ranges::find(sizes, static_cast<SymbolId>(index), &bundle::DataSize::symbol);
    const bool isTest = size != sizes.end() && size->testsData();
    const std::span<const int64_t> tuned = index < bundle::numGiven(m->content)
                                               ? bundle::tunedSizesOf(m->content, index)
                                               : std::span<const int64_t>();
    return writeInfo(fusert_symbol_info{0, s.name.c_str(), s.min, s.opt, s.max, s.divisor,
                                        s.definition ? text.c_str() : nullptr,
                                        s.definition ? s.definition->node.c_str() : nullptr,
                                        bound.empty() ? nullptr : bound.c_str(),
                                        isTest ? size->test->node.c_str() : nullptr,
                                        isTest ? name(size->test->kind).data() : nullptr,
                                        tuned.data(), tuned.size()},
                     out);
  });
}

fusert_status fusert_get_inferred_info(fusert_model model, size_t index,
                                       fusert_inferred_info *out) {
  return withModel(model, [&](const std::shared_ptr<Model> &m) {
    if (index >= m->content.inferred.size())
      return noSuch("inferred size", index);
    return writeInfo(fusert_inferred_info{0, m->content.inferred[index].name.c_str(),
                                          m->inferredTexts[index].c_str()},
                     out);
  });
}

fusert_status fusert_get_size_rule_info(fusert_model model, size_t index,
                                        fusert_size_rule_info *out) {
  return withModel(model, [&](const std::shared_ptr<Model> &m) {
    if (index >= m->content.rules.size())
      return noSuch("rule of sizes", index);
    const bundle::DimRule &r = m->content.rules[index];
    return writeInfo(fusert_size_rule_info{0, m->ruleTexts[index].c_str(), r.node.c_str(),
                                           r.op.c_str(), r.text.c_str(), r.tested, 0},
                     out);
  });
}

fusert_status fusert_get_cache_info(fusert_model model, size_t index, fusert_cache_info *out) {
  return withModel(model, [&](const std::shared_ptr<Model> &m) {
    if (index >= m->content.caches.size())
      return noSuch("cache", index);
    const bundle::Cache &c = m->content.caches[index];
    return writeInfo(fusert_cache_info{0, static_cast<size_t>(c.input),
                                       static_cast<size_t>(c.output), c.axis, c.grows()},
                     out);
  });
}

fusert_status fusert_get_program_info(fusert_model model, size_t index, fusert_program_info *out) {
  return withModel(model, [&](const std::shared_ptr<Model> &m) {
    if (index >= m->content.programs.size())
      return noSuch("program", index);
    const bundle::Program &p = m->content.programs[index];
    fusert_program_info info{};
    info.target = p.target.c_str();
    info.kernels = p.kernels.size();
    info.steps = countSteps(p.steps);
    info.images = p.images.size();
    info.code_bytes = codeBytes(p);
    info.variants = m->variants[index].size();
    for (const bundle::Kernel &k : p.kernels)
      info.dynamic_shared_bytes =
          std::max(info.dynamic_shared_bytes, static_cast<uint64_t>(k.dynamicSharedOfAll()));
    return writeInfo(info, out);
  });
}

fusert_status fusert_get_image_info(fusert_model model, size_t program, size_t index,
                                    fusert_image_info *out) {
  return withModel(model, [&](const std::shared_ptr<Model> &m) {
    static const char *const formats[] = {"elf", "cubin", "ptx", "code object"};
    if (program >= m->content.programs.size())
      return noSuch("program", program);
    const bundle::Program &p = m->content.programs[program];
    if (index >= p.images.size())
      return noSuch("image", index);
    fusert_image_info info{};
    info.format = formats[static_cast<int>(p.images[index].kind)];
    info.bytes = p.images[index].code.size();
    info.min_driver = p.images[index].minDriver;
    return writeInfo(info, out);
  });
}

fusert_status fusert_get_variant_info(fusert_model model, size_t program, size_t index,
                                      fusert_variant_info *out) {
  return withModel(model, [&](const std::shared_ptr<Model> &m) {
    if (program >= m->content.programs.size())
      return noSuch("program", program);
    if (index >= m->variants[program].size())
      return noSuch("variant", index);
    const Model::VariantText &variant = m->variants[program][index];
    const std::vector<bundle::Kernel> &kernels = m->content.programs[program].kernels;
    return writeInfo(
        fusert_variant_info{0, variant.step->name.c_str(),
                            kernels[static_cast<size_t>(variant.variant->kernel)].symbol.c_str(),
                            variant.guards.c_str()},
        out);
  });
}

fusert_status fusert_get_memory_info(fusert_model model, size_t program, const int64_t *symbols,
                                     size_t count, fusert_memory_info *out) {
  return withModel(model, [&](const std::shared_ptr<Model> &m) -> fusert_status {
    if (program >= m->content.programs.size())
      return noSuch("program", program);
    if (!symbols && count > 0)
      return nullArgument("symbols");
    FUSERT_TRY(checkSymbolCount(*m, count));
    std::vector<int64_t> values(symbols, symbols + count);
    if (const std::string problem = admit(m->content, values); !problem.empty())
      return fail(FUSERT_INVALID_ARGUMENT, problem);
    const bundle::Program &p = m->content.programs[program];
    const PlanOutline outline = outlineOf(m->content, p);
    ExecPlan plan(outline);
    FUSERT_TRY(plan.build(values));
    fusert_memory_info info{};
    size_t sizedBytes = 0;
    FUSERT_TRY(plan.mostSizedBytes(sizedBytes));
    info.workspace_bytes = plan.workspaceBytes + sizedBytes;
    for (int32_t t : p.inputs)
      info.input_bytes += plan.tensorBytes[static_cast<size_t>(t)];
    for (int32_t t : p.outputs)
      info.output_bytes += plan.tensorBytes[static_cast<size_t>(t)];
    return writeInfo(info, out);
  });
}

} // extern "C"
