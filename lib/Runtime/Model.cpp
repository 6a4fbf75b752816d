#include "Runtime/Model.h"

#include "Bundle/Reader.h"
#include "Runtime/CpuFeatures.h"
#include "Runtime/Error.h"
#include "Runtime/SizeTests.h"
#include "Support/DimProgram.h"

#include <algorithm>
#include <cstring>

namespace fusec::rt {

fusert_status Model::load(const fusert_load_options &options, const std::string &where) {
  const auto verify =
      options.verify == FUSERT_VERIFY_CODE ? bundle::Verify::Code : bundle::Verify::Full;
  bundle::PublicKey key;
  if (options.public_key)
    std::memcpy(key.data(), options.public_key, key.size());
  Result<bundle::Model> read =
      bundle::readBundle(file.data, file.size, verify, where, options.public_key ? &key : nullptr);
  if (!read)
    return fail(read.errors());
  content = std::move(*read);
  for (bundle::Program &p : content.programs)
    p.decisions = {}; // for people alone, and as long as the model is large
  describe();
  if (options.info_only)
    return options.target ? choose(options.target) : FUSERT_OK;
  FUSERT_TRY(loadProgram(options, where));
  outline = outlineOf(content, *program);
  solver = SymbolSolver(content);
  return FUSERT_OK;
}

fusert_status Model::loadProgram(const fusert_load_options &options, const std::string &where) {
  if (const DeviceKind *any = findDeviceKindByWord(options.target ? options.target : ""))
    return loadBest(*any, options.device);
  FUSERT_TRY(choose(options.target));
  const DeviceKind *kind = findDeviceKind(program->target);
  if (!kind)
    return fail(FUSERT_UNSUPPORTED,
                where + ": this runtime has no device for target '" + program->target + "'");
  device = kind->make(options.device);
  return device->load(*program, content);
}

fusert_status Model::choose(const char *target) {
  // "host" is the compiler's word for the best level of the machine at hand.
  if (target && std::string_view(target) == "host")
    target = nullptr;
  std::string inside;
  int best = 0;
  for (const bundle::Program &p : content.programs) {
    inside += (inside.empty() ? "" : ", ") + p.target;
    const int level = levelOfTarget(p.target);
    if (target ? p.target == target : level > best && level <= cpuLevel()) {
      program = &p;
      best = level;
    }
  }
  if (program)
    return FUSERT_OK;
  if (target)
    return fail(FUSERT_UNSUPPORTED, "the bundle has no program for '" + std::string(target) +
                                        "'; it has " + inside +
                                        ". Compile with --target=" + target);
  return fail(FUSERT_UNSUPPORTED, "the bundle has no program for this processor (x86-64-v" +
                                      std::to_string(cpuLevel()) + "); it has " + inside +
                                      ". Name one of them, or compile with --target=x86-64-v" +
                                      std::to_string(cpuLevel()));
}

/// The newest architecture whose code the device takes: a GPU runs no code for a newer one than it is, and the driver
/// knows best which older ones it runs. An old driver may take older architectures alone.
fusert_status Model::loadBest(const DeviceKind &kind, int32_t ordinal) {
  std::vector<const bundle::Program *> candidates;
  std::string inside;
  for (const bundle::Program &p : content.programs) {
    inside += (inside.empty() ? "" : ", ") + p.target;
    if (kind.serves(p.target))
      candidates.push_back(&p);
  }
  if (candidates.empty())
    return fail(FUSERT_UNSUPPORTED,
                "the bundle has no program for '" + std::string(kind.any) + "'; it has " + inside);
  const auto newer = [](const bundle::Program *a, const bundle::Program *b) {
    return std::pair(a->target.size(), a->target) > std::pair(b->target.size(), b->target);
  };
  std::stable_sort(candidates.begin(), candidates.end(), newer);
  int32_t driverNeeded = 0;    // the lowest version
  std::string tooOld, refused; // what was said of the newest one
  for (const bundle::Program *p : candidates) {
    program = p;
    device = kind.make(ordinal);
    const fusert_status status = device->load(*p, content);
    const int32_t needed = status == FUSERT_UNAVAILABLE ? device->driverNeeded() : 0;
    if (status != FUSERT_UNSUPPORTED && needed == 0)
      return status;
    if (p == candidates.front())
      refused = lastError();
    if (needed != 0 && (driverNeeded == 0 || needed < driverNeeded)) {
      driverNeeded = needed;
      tooOld = lastError();
    }
  }
  device.reset();
  if (driverNeeded != 0)
    return fail(FUSERT_UNAVAILABLE, tooOld);
  return fail(FUSERT_UNSUPPORTED, "GPU number " + std::to_string(ordinal) +
                                      " runs none of the bundle's programs (" + inside + "); " +
                                      refused);
}

void Model::describe() {
  const std::vector<DimBounds> ranges = boundsOf(content.symbols);
  for (const Symbol &s : content.symbols)
    definitionTexts.push_back(s.definition ? s.definition->str(content.symbols) : "");
  auto side = [&](const std::vector<bundle::Value> &values, std::vector<ValueText> &out) {
    out.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      for (const bundle::DimCode &d : values[i].shape)
        out[i].texts.push_back(d.str(content.symbols));
      for (size_t d = 0; d < values[i].shape.size(); ++d) {
        const DimBounds b = boundsOf(values[i].shape[d], ranges);
        out[i].dims.push_back({b.min, b.max, out[i].texts[d].c_str()});
      }
    }
  };
  boundTexts.resize(content.symbols.size());
  for (const bundle::DataSize &d : content.dataSizes)
    boundTexts[static_cast<size_t>(d.symbol)] = d.bound.str(content.symbols);
  side(content.inputs, inputTexts);
  side(content.outputs, outputTexts);
  for (const bundle::Program &p : content.programs)
    describe(p.steps, {}, variants.emplace_back());
  for (const bundle::InferredDim &s : content.inferred)
    inferredTexts.push_back(s.value.str(content.symbols));
  const std::vector<Symbol> names = namesOf(content);
  for (const bundle::DimRule &r : content.rules)
    ruleTexts.push_back(ruleText(r.kind, r.left.str(names), r.right.str(names)));
}

void Model::describe(const std::vector<bundle::Step> &steps,
                     const std::vector<bundle::Guard> &around,
                     std::vector<VariantText> &out) const {
  for (const bundle::Step &step : steps) {
    for (const bundle::Variant &variant : step.variants) {
      std::vector<bundle::Guard> all = around;
      all.insert(all.end(), variant.guards.begin(), variant.guards.end());
      out.push_back({&step, &variant, guardWords(all, content.symbols)});
    }
    std::vector<bundle::Guard> inside = around;
    inside.insert(inside.end(), step.guards.begin(), step.guards.end());
    describe(step.thenSteps, inside, out);
    describe(step.elseSteps, around, out);
  }
}

} // namespace fusec::rt
