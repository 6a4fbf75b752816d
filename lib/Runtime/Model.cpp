#include "Runtime/Model.h"

#include "Bundle/Reader.h"
#include "Runtime/CpuFeatures.h"
#include "Runtime/DimBounds.h"
#include "Runtime/Error.h"

namespace fusec::rt {

fusert_status Model::load(const fusert_load_options &options, const std::string &where) {
  const auto verify =
      options.verify == FUSERT_VERIFY_CODE ? bundle::Verify::Code : bundle::Verify::Full;
  Result<bundle::Model> read = bundle::readBundle(file.data, file.size, verify, where);
  if (!read)
    return fail(read.errors());
  content = std::move(*read);
  FUSERT_TRY(choose(options.target));
  describe();
  const DeviceKind *kind = findDeviceKind(program->target);
  if (!kind)
    return fail(FUSERT_UNSUPPORTED,
                where + ": this runtime has no device for target '" + program->target + "'");
  device = kind->make(options.device);
  return device->load(*program, content.weights);
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

void Model::describe() {
  auto side = [&](const std::vector<bundle::Value> &values, std::vector<ValueText> &out) {
    out.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      for (const bundle::DimCode &d : values[i].shape)
        out[i].texts.push_back(d.str(content.symbols));
      for (size_t d = 0; d < values[i].shape.size(); ++d) {
        const DimBounds b = boundsOf(values[i].shape[d], content.symbols);
        out[i].dims.push_back({b.min, b.max, out[i].texts[d].c_str()});
      }
    }
  };
  side(content.inputs, inputTexts);
  side(content.outputs, outputTexts);
}

} // namespace fusec::rt
