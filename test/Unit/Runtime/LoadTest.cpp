// Files that are loaded, replaced, cut off, shared, or no files at all.
#include "Bundle/Writer.h"
#include "TestModels.h"
#include "fusec/runtime.h"

#include <atomic>
#include <filesystem>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace test;
namespace fs = std::filesystem;

namespace {

const float kWeight[4] = {10, 20, 30, 40}, kOther[4] = {1, 1, 1, 1};

struct Folder {
  fs::path dir;
  Folder() {
    std::string name = (fs::temp_directory_path() / "fusec-load-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()));
    dir = name;
  }
  ~Folder() { fs::remove_all(dir); }
  std::string put(const std::string &name, const float (&w)[4]) const {
    REQUIRE(writeBundle(constantModel(w), dir / name).ok());
    return dir / name;
  }
};

fusert_status loadAs(const std::string &path, fusert_weights weights, fusert_model &model) {
  fusert_load_options options{};
  options.struct_size = sizeof options;
  options.weights = weights;
  return fusert_load_file(path.c_str(), &options, &model);
}

/// What constantModel's context gives for the input 0 0 0 0: its weights; empty when a call fails.
std::vector<float> weightsSeen(fusert_model model) {
  fusert_context c = 0;
  fusert_context_options options{};
  options.struct_size = sizeof options;
  options.threads = 1;
  int64_t n = 4;
  std::vector<float> x(4, 0), y(4, -1);
  fusert_buffer in{x.data(), 16}, out{y.data(), 16};
  const bool good = fusert_context_create(model, &options, &c) == FUSERT_OK &&
                    fusert_set_symbols(c, &n, 1) == FUSERT_OK &&
                    fusert_run(c, &in, 1, &out, 1) == FUSERT_OK;
  fusert_context_destroy(c);
  return good ? y : std::vector<float>();
}

std::vector<float> list(const float (&w)[4]) { return std::vector<float>(w, w + 4); }

long residentBytes() {
  std::ifstream in("/proc/self/statm");
  long total = 0, resident = 0;
  in >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

} // namespace

TEST_CASE("a file that is replaced or unlinked while it is loaded") {
  Folder folder;
  for (const fusert_weights how : {FUSERT_WEIGHTS_MAP, FUSERT_WEIGHTS_COPY}) {
    fusert_model model = 0;
    const std::string path = folder.put("m", kWeight);
    REQUIRE(loadAs(path, how, model) == FUSERT_OK);
    folder.put("m", kOther); // renamed over it, as fusec does
    CHECK(weightsSeen(model) == list(kWeight));
    fs::remove(path);
    CHECK(weightsSeen(model) == list(kWeight));
    fusert_unload(model);
  }
}

TEST_CASE("a copied bundle survives what is done to the file in place") {
  Folder folder;
  fusert_model model = 0;
  const std::string path = folder.put("m", kWeight);
  REQUIRE(loadAs(path, FUSERT_WEIGHTS_COPY, model) == FUSERT_OK);
  REQUIRE(truncate(path.c_str(), 0) == 0); // a mapping would end with SIGBUS
  CHECK(weightsSeen(model) == list(kWeight));
  std::ofstream(path) << "something else";
  CHECK(weightsSeen(model) == list(kWeight));
  fusert_unload(model);
}

TEST_CASE("paths that are no bundles") {
  Folder folder;
  const auto refused = [](const std::string &path) {
    fusert_model model = 7;
    const fusert_status status = fusert_load_file(path.c_str(), nullptr, &model);
    CHECK(model == 7); // untouched
    INFO(path << ": " << fusert_last_error());
    CHECK(fusert_last_error()[0] != 0);
    return status;
  };
  const std::string fifo = folder.dir / "fifo", loop = folder.dir / "loop";
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  REQUIRE(symlink("loop", loop.c_str()) == 0);
  CHECK(refused(fifo) == FUSERT_IO_ERROR); // and does not wait for a writer
  CHECK(refused(loop) == FUSERT_IO_ERROR);
  CHECK(refused(folder.dir) == FUSERT_IO_ERROR);
  CHECK(refused("/dev/zero") == FUSERT_IO_ERROR);
  CHECK(refused("") == FUSERT_IO_ERROR);
  CHECK(refused("/" + std::string(5000, 'a')) == FUSERT_IO_ERROR);
  CHECK(refused(folder.dir / "\xff\xfe") == FUSERT_IO_ERROR);
  std::ofstream(folder.dir / "empty");
  CHECK(refused(folder.dir / "empty") == FUSERT_BAD_BUNDLE);
  std::ofstream(folder.dir / "zip") << "PK\x03\x04" << std::string(1000, 'x');
  CHECK(refused(folder.dir / "zip") == FUSERT_BAD_BUNDLE);
  fs::copy_file(folder.put("m", kWeight), folder.dir / "long");
  std::ofstream(folder.dir / "long", std::ios::app) << std::string(1 << 20, '\0');
  CHECK(refused(folder.dir / "long") == FUSERT_BAD_BUNDLE);
}

TEST_CASE("many bundles with the same names of kernels in one process") {
  Folder folder;
  std::vector<fusert_model> models;
  for (int i = 0; i < 200; ++i) {
    const float w[4] = {float(i), 1, 2, 3};
    models.push_back(0);
    REQUIRE(loadAs(folder.put("m", w), FUSERT_WEIGHTS_MAP, models.back()) == FUSERT_OK);
  }
  for (int i = 0; i < 200; ++i)
    REQUIRE(weightsSeen(models[static_cast<size_t>(i)]) == std::vector<float>{float(i), 1, 2, 3});
  for (fusert_model m : models)
    fusert_unload(m);
}

TEST_CASE("one file opened by many threads at once, beside threads that run others") {
  Folder folder;
  const std::string path = folder.put("m", kWeight), other = folder.put("o", kOther);
  fusert_model steady = 0;
  REQUIRE(loadAs(other, FUSERT_WEIGHTS_MAP, steady) == FUSERT_OK);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        if (t % 4 == 3) {
          wrong += weightsSeen(steady) != list(kOther);
          continue;
        }
        fusert_model model = 0;
        wrong += loadAs(path, t % 2 ? FUSERT_WEIGHTS_COPY : FUSERT_WEIGHTS_MAP, model) != FUSERT_OK;
        wrong += weightsSeen(model) != list(kWeight);
        wrong += fusert_unload(model) != FUSERT_OK;
      }
    });
  for (std::thread &t : threads)
    t.join();
  CHECK(wrong == 0);
  fusert_unload(steady);
}

TEST_CASE("weights are paged in when they are used") {
  constexpr int64_t count = 16 << 20; // 64 MiB
  const std::vector<float> w(count, 1.f);
  Model m = emptyModel();
  m.symbols.clear();
  Program &p = m.programs[0];
  p.tensors = {tensor("x", TensorKind::Input, {}), tensor("w", TensorKind::Constant, {count})};
  p.tensors[1].weight = 0;
  m.weights.push_back({DType::F32, reinterpret_cast<const uint8_t *>(w.data()), count * 4});
  p.images.clear(); // no kernels, no steps: the constant is the output
  addValue(m, true, 0);
  addValue(m, false, 1);
  Folder folder;
  const std::string path = folder.dir / "big";
  REQUIRE(writeBundle(m, path).ok());
  fusert_load_options options{};
  options.struct_size = sizeof options;
  options.verify = FUSERT_VERIFY_CODE;
  fusert_model model = 0;
  const long before = residentBytes();
  REQUIRE(fusert_load_file(path.c_str(), &options, &model) == FUSERT_OK);
#ifndef __SANITIZE_THREAD__ // whose own memory grows
  CHECK(residentBytes() - before < (8 << 20));
#else
  CHECK(before > 0);
#endif
  fusert_unload(model);
}

TEST_CASE("a public key at the C API") {
  Folder folder;
  const PublicKey other{1};
  const std::string path = folder.dir / "signed";
  REQUIRE(writeBundle(constantModel(kWeight), path, &kSecretKey).ok());
  fusert_load_options options{};
  options.struct_size = sizeof options;
  options.public_key = kPublicKey.data();
  for (const fusert_verify verify : {FUSERT_VERIFY_FULL, FUSERT_VERIFY_CODE}) {
    options.verify = verify;
    fusert_model model = 0;
    REQUIRE(fusert_load_file(path.c_str(), &options, &model) == FUSERT_OK);
    CHECK(weightsSeen(model) == list(kWeight));
    fusert_unload(model);
    CHECK(fusert_load_file(folder.put("plain", kWeight).c_str(), &options, &model) ==
          FUSERT_BAD_SIGNATURE);
    CHECK(std::string(fusert_status_name(FUSERT_BAD_SIGNATURE)) == "BAD_SIGNATURE");
    options.public_key = other.data();
    CHECK(fusert_load_file(path.c_str(), &options, &model) == FUSERT_BAD_SIGNATURE);
    options.public_key = kPublicKey.data();
  }
  // A caller with an older header does not ask for a signature.
  options.struct_size = offsetof(fusert_load_options, public_key);
  fusert_model model = 0;
  CHECK(fusert_load_file((folder.dir / "plain").c_str(), &options, &model) == FUSERT_OK);
  fusert_unload(model);
}
