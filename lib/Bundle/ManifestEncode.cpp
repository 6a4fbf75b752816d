#include "Bundle/Manifest.h"

#include "Support/DimProgram.h"

#include "Manifest_generated.h"

#include <map>

namespace fusec::bundle {

namespace {

class Encoder {
public:
  flatbuffers::FlatBufferBuilder fb;
  explicit Encoder(const std::vector<uint32_t> &sections) : imageSections(sections) {}

  flatbuffers::Offset<fb::Manifest> manifest(const Model &m,
                                             const std::vector<WeightRange> &ranges) {
    size_t next = 0;
    auto symbols = list<fb::Symbol>(m.symbols, [&](const Symbol &s) {
      auto name = fb.CreateString(s.name);
      const size_t at = next++;
      const bool isTold = at < m.tunedSizes.size() && !m.tunedSizes[at].empty();
      auto tuned = isTold ? fb.CreateVector(m.tunedSizes[at]) : 0;
      return fb::CreateSymbol(fb, name, s.min, s.opt, s.max, s.divisor, tuned);
    });
    auto inputs = values(m.inputs), outputs = values(m.outputs);
    std::vector<fb::Weight> weights;
    for (const WeightRange &r : ranges)
      weights.emplace_back(r.offset, r.size, static_cast<uint8_t>(r.type));
    auto weightList = fb.CreateVectorOfStructs(weights);
    auto programs = list<fb::Program>(m.programs, [&](const Program &p) { return program(p); });
    auto definitionList = definitions(m.symbols);
    auto inferredList = m.inferred.empty() ? 0 : inferred(m.inferred);
    auto ruleList = m.rules.empty() ? 0 : rules(m.rules);
    flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::DataSize>>> dataSizes;
    if (!m.dataSizes.empty())
      dataSizes = list<fb::DataSize>(m.dataSizes, [&](const DataSize &d) {
        auto bound = expr(d.bound);
        auto node = d.testsData() ? fb.CreateString(d.test->node) : 0;
        return fb::CreateDataSize(fb, d.symbol, bound, node,
                                  d.testsData() ? static_cast<uint8_t>(d.test->kind) : kTestByName);
      });
    auto name = fb.CreateString(m.name), producer = fb.CreateString(m.producer);
    return fb::CreateManifest(fb, name, producer, symbols, inputs, outputs, weightList, programs,
                              inferredList, ruleList, definitionList, dataSizes, caches(m.caches));
  }

private:
  const std::vector<uint32_t> &imageSections;
  size_t nextImage = 0;
  struct CodeLess {
    bool operator()(const DimCode &a, const DimCode &b) const {
      if (a.code.size() != b.code.size())
        return a.code.size() < b.code.size();
      for (size_t i = 0; i < a.code.size(); ++i) {
        if (a.code[i].op != b.code[i].op)
          return a.code[i].op < b.code[i].op;
        if (a.code[i].value != b.code[i].value)
          return a.code[i].value < b.code[i].value;
      }
      return false;
    }
  };
  std::map<DimCode, flatbuffers::Offset<fb::Expr>, CodeLess>
      exprs; // equal expressions are stored once

  template <typename T, typename In, typename F>
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<T>>> list(const std::vector<In> &in,
                                                                        F make) {
    std::vector<flatbuffers::Offset<T>> out;
    for (const In &x : in)
      out.push_back(make(x));
    return fb.CreateVector(out);
  }

  flatbuffers::Offset<fb::Expr> expr(const DimCode &d) {
    auto found = exprs.find(d);
    if (found != exprs.end())
      return found->second;
    std::vector<fb::DimOp> ops;
    for (const DimCode::Instr &i : d.code)
      ops.emplace_back(static_cast<fb::DimOpCode>(i.op), i.value);
    auto e = fb::CreateExpr(fb, fb.CreateVectorOfStructs(ops));
    exprs.emplace(d, e);
    return e;
  }
  auto exprList(const std::vector<DimCode> &dims) {
    return list<fb::Expr>(dims, [&](const DimCode &d) { return expr(d); });
  }
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::InferredDim>>>
  inferred(const std::vector<InferredDim> &in) {
    return list<fb::InferredDim>(in, [&](const InferredDim &s) {
      std::vector<fb::Place> places;
      for (const InferredDim::Place &p : s.places)
        places.emplace_back(p.input, p.axis);
      auto name = fb.CreateString(s.name);
      auto value = expr(s.value);
      return fb::CreateInferredDim(fb, name, value, fb.CreateVectorOfStructs(places));
    });
  }
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::DimRule>>>
  rules(const std::vector<DimRule> &in) {
    return list<fb::DimRule>(in, [&](const DimRule &r) {
      auto left = expr(r.left), right = expr(r.right);
      auto node = fb.CreateString(r.node), op = fb.CreateString(r.op),
           text = fb.CreateString(r.text);
      return fb::CreateDimRule(fb, static_cast<fb::DimRuleKind>(r.kind), left, right, node, op,
                               text, r.tested);
    });
  }
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::Value>>>
  values(const std::vector<Value> &in) {
    return list<fb::Value>(in, [&](const Value &v) {
      auto name = fb.CreateString(v.name);
      return fb::CreateValue(fb, name, static_cast<uint8_t>(v.type), exprList(v.shape), v.weight);
    });
  }
  /// Absent where there is none.
  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::Definition>>>
  definitions(const std::vector<Symbol> &symbols) {
    std::vector<flatbuffers::Offset<fb::Definition>> out;
    for (size_t s = 0; s < symbols.size(); ++s) {
      const DimProgram *program = symbols[s].definition.get();
      if (!program)
        continue;
      std::vector<fb::NumberOp> ops;
      for (const DimProgram::Instr &i : program->code)
        ops.emplace_back(static_cast<uint8_t>(i.op), static_cast<uint8_t>(i.type), i.args[0],
                         i.args[1], i.args[2], i.value);
      auto node = fb.CreateString(program->node);
      out.push_back(
          fb::CreateDefinition(fb, static_cast<int32_t>(s), node, fb.CreateVectorOfStructs(ops)));
    }
    return out.empty() ? 0 : fb.CreateVector(out);
  }
  /// Absent where there is none.
  flatbuffers::Offset<flatbuffers::Vector<const fb::Cache *>> caches(const std::vector<Cache> &in) {
    std::vector<fb::Cache> out;
    for (const Cache &c : in)
      out.emplace_back(c.input, c.output, c.axis, c.inputRoom, c.outputRoom, c.kept);
    return out.empty() ? 0 : fb.CreateVectorOfStructs(out);
  }
  auto copies(const std::vector<Copy> &in) {
    std::vector<fb::Copy> out;
    for (const Copy &c : in)
      out.emplace_back(c.from, c.to);
    return fb.CreateVectorOfStructs(out);
  }

  flatbuffers::Offset<fb::Kernel> kernel(const Kernel &k) {
    auto symbol = fb.CreateString(k.symbol);
    auto grids = exprList(k.grids);
    std::vector<fb::Param> params;
    for (const Param &p : k.params)
      params.emplace_back(static_cast<uint8_t>(p.type), p.written);
    auto paramList = fb.CreateVectorOfStructs(params);
    auto dims = fb.CreateVector(k.dims);
    auto nodes = fb.CreateVectorOfStrings(k.onnxNodes);
    flatbuffers::Offset<fb::Expr> rounds;
    if (k.hasRounds())
      rounds = expr(k.rounds);
    auto dynamicShared = k.dynamicShared.empty() ? 0 : fb.CreateVector(k.dynamicShared);
    return fb::CreateKernel(fb, symbol, grids, paramList, dims, k.scratchBytes, k.units, k.lanes,
                            nodes, k.gridBarrier, rounds, k.roundsFirst, k.roundsLast, k.waits,
                            k.resident, dynamicShared, k.sharedAlign);
  }

  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::Guard>>>
  guards(const std::vector<Guard> &in) {
    return list<fb::Guard>(
        in, [&](const Guard &g) { return fb::CreateGuard(fb, expr(g.value), g.modulus); });
  }

  flatbuffers::Offset<fb::Variant> variant(const Variant &v) {
    auto tests = guards(v.guards);
    return fb::CreateVariant(fb, v.kernel, tests, fb.CreateVector(v.arguments));
  }

  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<fb::Step>>>
  steps(const std::vector<Step> &in) {
    return list<fb::Step>(in, [&](const Step &s) {
      auto name = fb.CreateString(s.name);
      auto variants = list<fb::Variant>(s.variants, [&](const Variant &v) { return variant(v); });
      auto thenSteps = steps(s.thenSteps), elseSteps = steps(s.elseSteps);
      auto before = copies(s.before), thenCopies = copies(s.thenCopies);
      auto elseCopies = copies(s.elseCopies), after = copies(s.after);
      auto tests = s.guards.empty() ? 0 : guards(s.guards);
      return fb::CreateStep(fb, static_cast<fb::StepKind>(s.kind), name, variants, s.condition,
                            s.tripCount, s.iteration, s.nextCondition, thenSteps, elseSteps, before,
                            thenCopies, elseCopies, after, s.symbol, tests);
    });
  }

  flatbuffers::Offset<fb::Program> program(const Program &p) {
    auto target = fb.CreateString(p.target), decisions = fb.CreateString(p.decisions);
    auto images = list<fb::Image>(p.images, [&](const Image &i) {
      return fb::CreateImage(fb, static_cast<fb::ImageKind>(i.kind), imageSections[nextImage++],
                             i.minDriver);
    });
    auto kernels = list<fb::Kernel>(p.kernels, [&](const Kernel &k) { return kernel(k); });
    auto tensors = list<fb::Tensor>(p.tensors, [&](const Tensor &t) {
      auto name = fb.CreateString(t.name);
      auto shape = exprList(t.shape);
      return fb::CreateTensor(fb, name, static_cast<fb::TensorKind>(t.kind),
                              static_cast<uint8_t>(t.type), shape, t.weight, t.firstStep,
                              t.lastStep);
    });
    auto inputs = fb.CreateVector(p.inputs), outputs = fb.CreateVector(p.outputs);
    auto stepList = steps(p.steps);
    return fb::CreateProgram(fb, target, images, kernels, tensors, inputs, outputs, stepList,
                             p.maxBlockThreads, p.maxSharedBytes, decisions, p.checked,
                             p.maxDynamicShared);
  }
};

} // namespace

std::vector<uint8_t> encodeManifest(const Model &model, const std::vector<WeightRange> &weights,
                                    const std::vector<uint32_t> &imageSections) {
  Encoder encoder(imageSections);
  fb::FinishManifestBuffer(encoder.fb, encoder.manifest(model, weights));
  const uint8_t *data = encoder.fb.GetBufferPointer();
  return std::vector<uint8_t>(data, data + encoder.fb.GetSize());
}

} // namespace fusec::bundle
