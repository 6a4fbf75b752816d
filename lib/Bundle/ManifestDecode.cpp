#include "Bundle/Manifest.h"
#include "Support/Diag.h"
#include "Support/DimProgram.h"

#include "Manifest_generated.h"

namespace fusec::bundle {

namespace {

constexpr int kMaxTableDepth = 160;        // FlatBuffers tables; steps nest at most 64 deep
constexpr uint32_t kMaxTables = 16u << 20; // FlatBuffers tables in one manifest

std::string text(const flatbuffers::String *s) { return s ? s->str() : std::string(); }

template <typename Vec, typename F> void each(const Vec *v, F f) {
  if (v)
    for (auto x : *v)
      f(x);
}

/// An absent expression becomes an empty one, which check() refuses.
DimCode expr(const fb::Expr *e) {
  DimCode d;
  d.code.clear();
  if (e)
    each(e->ops(), [&](const fb::DimOp *op) {
      d.code.push_back({static_cast<DimCode::Op>(op->code()), op->value()});
    });
  return d;
}

template <typename Vec> std::vector<DimCode> exprs(const Vec *v) {
  std::vector<DimCode> out;
  each(v, [&](const fb::Expr *e) { out.push_back(expr(e)); });
  return out;
}
template <typename Vec> std::vector<Copy> copies(const Vec *v) {
  std::vector<Copy> out;
  each(v, [&](const fb::Copy *c) { out.push_back({c->from(), c->to()}); });
  return out;
}
template <typename Vec> std::vector<Value> values(const Vec *v) {
  std::vector<Value> out;
  each(v, [&](const fb::Value *x) {
    out.push_back({text(x->name()), static_cast<DType>(x->type()), exprs(x->shape()), x->weight()});
  });
  return out;
}
template <typename Vec> std::vector<int32_t> ints(const Vec *v) {
  return v ? std::vector<int32_t>(v->begin(), v->end()) : std::vector<int32_t>();
}

DataTest testOf(const fb::DataSize &d, const std::vector<Symbol> &symbols) {
  if (d.test() != kTestByName)
    return static_cast<DataTest>(d.test());
  const auto s = static_cast<size_t>(d.symbol());
  return (s < symbols.size() ? testByEnding(symbols[s].name) : std::nullopt)
      .value_or(DataTest::Indices);
}

Kernel kernel(const fb::Kernel *k) {
  Kernel out;
  out.symbol = text(k->symbol());
  out.grids = exprs(k->grids());
  each(k->params(), [&](const fb::Param *p) {
    out.params.push_back({static_cast<DType>(p->type()), p->written()});
  });
  out.dims = ints(k->dims());
  out.scratchBytes = k->scratch_bytes();
  out.units = k->units();
  out.lanes = k->lanes();
  each(k->onnx_nodes(), [&](const flatbuffers::String *s) { out.onnxNodes.push_back(text(s)); });
  out.gridBarrier = k->grid_barrier();
  out.waits = k->waits();
  out.resident = k->resident();
  if (k->dynamic_shared())
    out.dynamicShared.assign(k->dynamic_shared()->begin(), k->dynamic_shared()->end());
  out.sharedAlign = k->shared_align();
  out.roundsFirst = k->rounds_first();
  out.roundsLast = k->rounds_last();
  if (k->rounds())
    out.rounds = expr(k->rounds());
  return out;
}

std::vector<Guard> guards(const flatbuffers::Vector<flatbuffers::Offset<fb::Guard>> *list) {
  std::vector<Guard> out;
  each(list, [&](const fb::Guard *g) { out.push_back({expr(g->value()), g->modulus()}); });
  return out;
}

// Recursion is bounded by the verifier's depth limit.
Step step(const fb::Step *s) {
  Step out;
  out.kind = static_cast<StepKind>(s->kind());
  out.name = text(s->name());
  each(s->variants(), [&](const fb::Variant *v) {
    Variant variant;
    variant.kernel = v->kernel();
    variant.guards = guards(v->guards());
    variant.arguments = ints(v->arguments());
    out.variants.push_back(std::move(variant));
  });
  out.condition = s->condition();
  out.tripCount = s->trip_count();
  out.iteration = s->iteration();
  out.nextCondition = s->next_condition();
  each(s->then_steps(), [&](const fb::Step *x) { out.thenSteps.push_back(step(x)); });
  each(s->else_steps(), [&](const fb::Step *x) { out.elseSteps.push_back(step(x)); });
  out.before = copies(s->before());
  out.thenCopies = copies(s->then_copies());
  out.elseCopies = copies(s->else_copies());
  out.after = copies(s->after());
  out.symbol = s->symbol();
  out.guards = guards(s->guards());
  return out;
}

Program program(const fb::Program *p, std::vector<uint32_t> &imageSections) {
  Program out;
  out.target = text(p->target());
  out.maxBlockThreads = p->max_block_threads();
  out.maxSharedBytes = p->max_shared_bytes();
  out.maxDynamicShared = p->max_dynamic_shared();
  out.decisions = text(p->decisions());
  out.checked = p->checked();
  each(p->images(), [&](const fb::Image *i) {
    Image image;
    image.kind = static_cast<ImageKind>(i->kind());
    image.minDriver = i->min_driver();
    out.images.push_back(std::move(image));
    imageSections.push_back(i->section());
  });
  each(p->kernels(), [&](const fb::Kernel *k) { out.kernels.push_back(kernel(k)); });
  each(p->tensors(), [&](const fb::Tensor *t) {
    Tensor x;
    x.name = text(t->name());
    x.kind = static_cast<TensorKind>(t->kind());
    x.type = static_cast<DType>(t->type());
    x.shape = exprs(t->shape());
    x.weight = t->weight();
    x.firstStep = t->first_step();
    x.lastStep = t->last_step();
    out.tensors.push_back(std::move(x));
  });
  out.inputs = ints(p->inputs());
  out.outputs = ints(p->outputs());
  each(p->steps(), [&](const fb::Step *s) { out.steps.push_back(step(s)); });
  return out;
}

} // namespace

Result<DecodedManifest> decodeManifest(const uint8_t *bytes, size_t size,
                                       const std::string &where) {
  flatbuffers::Verifier verifier(bytes, size, kMaxTableDepth, kMaxTables);
  if (size < 8 || !fb::VerifyManifestBuffer(verifier))
    return Diagnostic{Diag::BadBundle, where,
                      "the manifest is not a well-formed FlatBuffer of type FUSM"};
  const fb::Manifest *m = fb::GetManifest(bytes);
  DecodedManifest out;
  out.model.name = text(m->name());
  out.model.producer = text(m->producer());
  each(m->symbols(), [&](const fb::Symbol *s) {
    out.model.symbols.push_back({text(s->name()), s->min(), s->opt(), s->max(), s->divisor()});
    std::vector<int64_t> &tuned = out.model.tunedSizes.emplace_back();
    // No more than is refused: many symbols may share one vector.
    for (size_t i = 0; s->tuned() && i < std::min<size_t>(s->tuned()->size(), kMostTunedSizes + 1);
         ++i)
      tuned.push_back(s->tuned()->Get(static_cast<flatbuffers::uoffset_t>(i)));
  });
  each(m->inferred(), [&](const fb::InferredDim *s) {
    InferredDim size{text(s->name()), expr(s->value()), {}};
    each(s->places(), [&](const fb::Place *p) { size.places.push_back({p->input(), p->axis()}); });
    out.model.inferred.push_back(std::move(size));
  });
  each(m->rules(), [&](const fb::DimRule *r) {
    out.model.rules.push_back({static_cast<fusec::SizeRule::Kind>(r->kind()), expr(r->left()),
                               expr(r->right()), text(r->node()), text(r->op()), text(r->text()),
                               r->tested()});
  });
  each(m->definitions(), [&](const fb::Definition *d) {
    DimProgram program;
    program.node = text(d->node());
    each(d->ops(), [&](const fb::NumberOp *op) {
      program.code.push_back({static_cast<DimProgram::Op>(op->code()),
                              static_cast<DType>(op->type()),
                              {op->a(), op->b(), op->c()},
                              op->value()});
    });
    const auto s = static_cast<size_t>(d->symbol()); // one beyond the symbols: nothing is defined
    if (s < out.model.symbols.size())
      out.model.symbols[s].definition = std::make_shared<DimProgram>(std::move(program));
  });
  each(m->caches(), [&](const fb::Cache *c) {
    out.model.caches.push_back(
        {c->input(), c->output(), c->axis(), c->input_room(), c->output_room(), c->kept()});
  });
  out.model.inputs = values(m->inputs());
  out.model.outputs = values(m->outputs());
  each(m->weights(), [&](const fb::Weight *w) {
    out.weights.push_back({w->offset(), w->size(), static_cast<DType>(w->type())});
  });
  each(m->data_sizes(), [&](const fb::DataSize *d) {
    DataSize size{d->symbol(), expr(d->bound()), std::nullopt};
    if (d->test_of())
      size.test = TestOfData{testOf(*d, out.model.symbols), text(d->test_of())};
    out.model.dataSizes.push_back(std::move(size));
  });
  each(m->programs(),
       [&](const fb::Program *p) { out.model.programs.push_back(program(p, out.imageSections)); });
  return out;
}

} // namespace fusec::bundle
