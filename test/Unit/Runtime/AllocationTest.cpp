// Every allocation of load, create, run and destroy may fail: the call says NO_MEMORY, nothing leaks, the next try
// works. Setting shapes takes none once others have been set.
#include "Allocations.h"
#include "FakeDriver.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> live{0};
thread_local long taken = 0;
thread_local long failAt = 0; // the n-th allocation of this thread from now fails; 0: none

void *take(std::size_t bytes) {
  ++taken;
  if (failAt > 0 && --failAt == 0)
    throw std::bad_alloc();
  void *p = std::malloc(bytes ? bytes : 1);
  if (!p)
    throw std::bad_alloc();
  ++live;
  return p;
}
void give(void *p) {
  if (p)
    --live;
  std::free(p);
}

} // namespace

void *operator new(std::size_t bytes) { return take(bytes); }
void *operator new[](std::size_t bytes) { return take(bytes); }
void *operator new(std::size_t bytes, const std::nothrow_t &) noexcept {
  try {
    return take(bytes);
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}
void operator delete(void *p) noexcept { give(p); }
void operator delete(void *p, const std::nothrow_t &) noexcept { give(p); }
void operator delete[](void *p) noexcept { give(p); }
void operator delete(void *p, std::size_t) noexcept { give(p); }
void operator delete[](void *p, std::size_t) noexcept { give(p); }

using namespace test;

long test::allocations() { return taken; }

namespace {

/// One whole life of a model; the first status that is not FUSERT_OK.
fusert_status wholeLife(const std::vector<uint8_t> &bytes, const fusert_load_options *load) {
  static float x[100], w[100], y[100], s[1];
  fusert_model model = 0;
  fusert_context context = 0;
  fusert_context_options options{};
  options.struct_size = sizeof options;
  options.threads = 2;
  int64_t n = 100;
  fusert_buffer inputs[] = {{x, sizeof x}, {w, sizeof w}},
                outputs[] = {{y, sizeof y}, {s, sizeof s}};
  fusert_status status = fusert_load_memory(bytes.data(), bytes.size(), load, &model);
  if (status == FUSERT_OK)
    status = fusert_context_create(model, &options, &context);
  if (status == FUSERT_OK)
    status = fusert_set_symbols(context, &n, 1);
  if (status == FUSERT_OK)
    status = fusert_run(context, inputs, 2, outputs, 2);
  const long armed = failAt;
  failAt = 0;
  fusert_context_destroy(context);
  fusert_unload(model);
  failAt = armed;
  return status;
}

void eachAllocationFails(const std::vector<uint8_t> &bytes, const fusert_load_options *load) {
  REQUIRE(wholeLife(bytes, load) == FUSERT_OK); // tables that stay
  long n = 1;
  for (;; ++n) {
    const long before = live; // the checks below allocate too
    failAt = n;
    const fusert_status status = wholeLife(bytes, load);
    const bool unused = failAt > 0;
    failAt = 0;
    const long leaked = live - before;
    REQUIRE(leaked == 0);
    if (unused) {
      REQUIRE(status == FUSERT_OK);
      break;
    }
    INFO("allocation " << n << ": " << fusert_last_error());
    REQUIRE((status == FUSERT_NO_MEMORY ||
             status == FUSERT_OK)); // a thread that cannot start is no error
  }
  CHECK(n > 50);
  CHECK(wholeLife(bytes, load) == FUSERT_OK);
}

} // namespace

TEST_CASE("the n-th allocation fails") { eachAllocationFails(*writeBundle(addModel()), nullptr); }

TEST_CASE("the n-th allocation fails: signed") {
  fusert_load_options load{};
  load.struct_size = sizeof load;
  load.public_key = kPublicKey.data();
  eachAllocationFails(*writeBundle(addModel(), &kSecretKey), &load);
}

TEST_CASE("the n-th allocation fails: sim") {
  Model m = addModel();
  Program &p = m.programs[0];
  setTarget(p, "sim:sm_90");
  p.images[0].code = kernelImage("sim:sm_90");
  p.tensors[4].shape = {100}; // "partial"
  p.kernels = {kernel("good_add", {2}, {in, in, out}, {0}),
               kernel("good_pair", {2}, {in, out, out}, {0})};
  for (Kernel &k : p.kernels) {
    k.units = 2;
    k.lanes = 32;
  }
  fusert_load_options load{};
  load.struct_size = sizeof load;
  load.target = "sim:sm_90";
  eachAllocationFails(*writeBundle(m), &load);
}

TEST_CASE("the n-th allocation of a run fails: gpu") {
  for (const Vendor &v : vendors) {
    Fake fake(v);
    const std::vector<uint8_t> bytes = gpuBundle(v.target);
    std::vector<float> x(100, 1), y(100, -1);
    const fusert_buffer in{x.data(), 400}, out{y.data(), 400};
    fusert_status status = FUSERT_NO_MEMORY;
    for (long n = 1; status != FUSERT_OK; ++n) {
      REQUIRE(n < 1000);
      Loaded loaded(bytes, v.target);
      failAt = n;
      status = fusert_run(loaded.context, &in, 1, &out, 1);
      failAt = 0;
      CHECK((status == FUSERT_OK || status == FUSERT_NO_MEMORY));
      CHECK(fake.state().pushed == 0); // what was current before is so again
      CHECK(loaded.run(x.data(), y.data()) == FUSERT_OK);
    }
    fake.requireClean();
  }
}

TEST_CASE("shapes that change back and forth take no memory") {
  Model sums =
      addModel(); // with what a change has to decide: a variant, a rule that is tested, an inferred size
  Step &first = sums.programs[0].steps[0];
  first.variants.insert(first.variants.begin(), first.variants[0]);
  first.variants[0].guards = {{DimCode::symbol(0), 16}};
  sums.inferred = {{"k", DimCode::symbol(0), {{1, 0}}}};
  sums.rules = {{SizeRule::Kind::Equal, DimCode::symbol(0), DimCode::symbol(1), "add", "Add",
                 "so it must be", true}};
  for (const Model &m : {sums, roundsModel()}) {
    const std::vector<uint8_t> bytes = *writeBundle(m);
    fusert_model model = 0;
    fusert_context context = 0;
    REQUIRE(fusert_load_memory(bytes.data(), bytes.size(), nullptr, &model) == FUSERT_OK);
    REQUIRE(fusert_context_create(model, nullptr, &context) == FUSERT_OK);
    int bad = 0;
    auto change = [&] {
      for (int64_t n : {1000, 64, 7, 0, 1000, 65}) {
        const fusert_shape shapes[] = {{1, &n}, {1, &n}};
        bad += fusert_set_shapes(context, shapes, 2) != FUSERT_OK;
        bad += fusert_set_shapes(context, shapes, 2) != FUSERT_OK; // as they are
        const int64_t symbols[] = {n + 1, n + 1};
        bad += fusert_set_symbols(context, symbols, m.symbols.size()) != FUSERT_OK;
      }
    };
    CHECK(allocationsOf(change) == 0);
    CHECK(bad == 0);
    fusert_context_destroy(context);
    fusert_unload(model);
  }
}
