#include "RawBundle.h"
#include "Support/Diag.h"

#include <filesystem>
#include <fstream>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace test;

namespace {

const float kWeight[4] = {1, 2, 3, 4};

struct KeyPair {
  SecretKey secret;
  PublicKey open;
  explicit KeyPair(uint8_t seed) {
    const std::array<uint8_t, 32> bytes{seed};
    REQUIRE(crypto_sign_seed_keypair(open.data(), secret.data(), bytes.data()) == 0);
  }
};

std::vector<uint8_t> signedBundle(const KeyPair &pair) {
  return *writeBundle(constantModel(kWeight), &pair.secret);
}

/// "" or code and text.
std::string refusalBy(const std::vector<uint8_t> &file, const PublicKey *key) {
  Result<Model> read = readBundle(file.data(), file.size(), Verify::Full, "b", key);
  return read.ok() ? "" : std::string(code(read.errors()[0].id)) + " " + read.errors()[0].text;
}

std::string folder() {
  std::string name = (std::filesystem::temp_directory_path() / "fusec-key-XXXXXX").string();
  REQUIRE(mkdtemp(name.data()));
  return name;
}

void put(const std::string &path, const std::string &text) {
  std::ofstream(path, std::ios::binary) << text;
}

const char *const kNotSigned =
    "E3204 not signed, but a public key was given: sign it with fusec --sign";
const char *const kDoesNotFit =
    "E3204 the signature does not fit the header: one of them was changed";

} // namespace

TEST_CASE("a signed bundle is taken with its key and without one") {
  const KeyPair pair(1);
  const std::vector<uint8_t> file = signedBundle(pair);
  CHECK(refusalBy(file, &pair.open) == "");
  CHECK(refusalBy(file, nullptr) == "");
  CHECK(file == signedBundle(pair)); // the same bytes each time
  CHECK(file != signedBundle(KeyPair(2)));
}

TEST_CASE("signing adds the signature behind the header and changes nothing else") {
  const std::vector<uint8_t> with = signedBundle(KeyPair(1)),
                             plain = *writeBundle(constantModel(kWeight));
  REQUIRE(with.size() == plain.size()); // there is room in the padding
  fusec_bundle_header a, b;
  std::memcpy(&a, with.data(), sizeof a);
  std::memcpy(&b, plain.data(), sizeof b);
  CHECK(a.signature_kind == FUSEC_SIGNATURE_ED25519);
  CHECK(b.signature_kind == FUSEC_SIGNATURE_NONE);
  const size_t table = a.section_count * sizeof(fusec_bundle_section);
  CHECK(std::memcmp(with.data() + sizeof a + sizeof(fusec_bundle_signature),
                    plain.data() + sizeof a, table) == 0);
  CHECK(std::equal(with.begin() + 4096, with.end(), plain.begin() + 4096));
}

TEST_CASE("what the key's holder did not sign is refused") {
  const KeyPair pair(1), other(2);
  CHECK(refusalBy(*writeBundle(constantModel(kWeight)), &pair.open) == kNotSigned);
  CHECK(refusalBy({1, 2, 3}, &pair.open) == kNotSigned);
  CHECK(refusalBy(signedBundle(other), &pair.open) ==
        "E3204 signed with another key: the given public key is " + hex(pair.open.data(), 32) +
            ", the file's is " + hex(other.open.data(), 32));

  // The other one's signature under our key's name, and our signature of another file.
  std::vector<uint8_t> forged = signedBundle(other);
  std::copy(pair.open.begin(), pair.open.end(), forged.begin() + sizeof(fusec_bundle_header));
  CHECK(refusalBy(forged, &pair.open) == kDoesNotFit);
  std::vector<uint8_t> moved = signedBundle(pair);
  const std::vector<uint8_t> elsewhere = *writeBundle(addModel(), &pair.secret);
  std::copy_n(elsewhere.begin() + sizeof(fusec_bundle_header), sizeof(fusec_bundle_signature),
              moved.begin() + sizeof(fusec_bundle_header));
  CHECK(refusalBy(moved, &pair.open) == kDoesNotFit);
}

TEST_CASE("every changed byte of a signed bundle is refused, with the key and without") {
  const KeyPair pair(1);
  std::vector<uint8_t> file = signedBundle(pair);
  size_t accepted = 0, wrongCode = 0;
  for (size_t i = 0; i < file.size(); ++i)
    for (uint8_t mask : {0x01, 0x80, 0xff}) {
      file[i] ^= mask;
      // Header and signature by the signature, all else by the digests that it covers.
      const bool outer = i < sizeof(fusec_bundle_header) + sizeof(fusec_bundle_signature);
      const std::string keyed = refusalBy(file, &pair.open);
      accepted += keyed.empty();
      wrongCode += keyed.rfind(outer ? "E3204" : "E3201", 0) != 0;
      accepted += outer && refusalBy(file, nullptr).empty();
      file[i] ^= mask;
    }
  CHECK(accepted == 0);
  CHECK(wrongCode == 0);
}

TEST_CASE("every shorter and every longer signed bundle is refused") {
  const KeyPair pair(1);
  std::vector<uint8_t> file = signedBundle(pair);
  size_t accepted = 0;
  for (size_t n = 0; n < file.size(); ++n) {
    const std::vector<uint8_t> cut(file.begin(), file.begin() + static_cast<std::ptrdiff_t>(n));
    accepted += refusalBy(cut, &pair.open).empty();
    accepted += refusalBy(cut, nullptr).empty();
  }
  CHECK(accepted == 0);
  file.push_back(0);
  CHECK(refusalBy(file, &pair.open).find("something appended") != std::string::npos);
}

TEST_CASE("nothing is parsed before the signature was found good") {
  // Each of these would be refused in other words if its header were looked at.
  const KeyPair pair(1), other(2);
  const std::vector<std::function<void(fusec_bundle_header &)>> edits = {
      [](auto &h) { h.version = 99; }, [](auto &h) { h.section_count = UINT32_MAX; },
      [](auto &h) { h.magic[0] = 'X'; }, [](auto &h) { h.file_bytes = 1; }};
  for (const auto &edit : edits) {
    std::vector<uint8_t> file = signedBundle(other);
    fusec_bundle_header header;
    std::memcpy(&header, file.data(), sizeof header);
    edit(header);
    const fusec_bundle_signature signature = sign(header, other.secret); // right, by the wrong key
    std::memcpy(file.data(), &header, sizeof header);
    std::memcpy(file.data() + sizeof header, &signature, sizeof signature);
    CHECK(refusalBy(file, &pair.open).rfind("E3204 signed with another key", 0) == 0);
    CHECK(refusalBy(file, &other.open).rfind("E3204", 0) != 0);
    CHECK(refusalBy(file, &other.open) != "");
  }
}

TEST_CASE("a signature of a kind that does not exist, and one that is not there") {
  const auto kind = [](uint32_t n) {
    RawBundle raw(constantModel(kWeight));
    raw.editTable = [n](fusec_bundle_header &h, std::vector<fusec_bundle_section> &) {
      h.signature_kind = n;
    };
    return refusal(raw.bytes());
  };
  CHECK(kind(2).find("signature of unknown kind 2") != std::string::npos);
  CHECK(kind(1).find("do not fit each other") != std::string::npos);
}

TEST_CASE("key files") {
  const std::string dir = folder(), path = dir + "/key";
  REQUIRE(makeKey(path).ok());
  struct stat st;
  REQUIRE(stat(path.c_str(), &st) == 0);
  CHECK((st.st_mode & 0777) == 0600);
  const Result<SecretKey> key = readSecretKey(path);
  REQUIRE(key.ok());
  std::string publicText;
  std::ifstream(path + ".pub") >> publicText;
  CHECK(publicText == hex(key->data() + 32, 32));
  PublicKey open;
  std::copy_n(key->begin() + 32, 32, open.begin());
  CHECK(refusalBy(*writeBundle(constantModel(kWeight), &*key), &open) == "");

  // The same key as bytes and in capitals.
  put(dir + "/raw", std::string(key->begin(), key->end()));
  CHECK(*readSecretKey(dir + "/raw") == *key);
  std::string capitals = hex(key->data(), 64);
  for (char &c : capitals)
    c = static_cast<char>(std::toupper(c));
  put(dir + "/capitals", capitals + "\r\n");
  CHECK(*readSecretKey(dir + "/capitals") == *key);

  CHECK(makeKey(path).errors()[0].id == Diag::CannotWrite); // never over another key
  std::filesystem::remove(path);
  CHECK(makeKey(path).errors()[0].id == Diag::CannotWrite); // the .pub is still there
  CHECK(!std::filesystem::exists(path));
  CHECK(readSecretKey(path).errors()[0].id == Diag::UnreadableFile);
  CHECK(readSecretKey(dir).errors()[0].id == Diag::UnreadableFile);
  std::string halves = hex(key->data(), 64);
  halves[127] = halves[127] == '0' ? '1' : '0'; // the public half of another key
  for (const std::string &text : {std::string(), std::string("key"), hex(key->data(), 32),
                                  hex(key->data(), 64) + "00", halves, std::string(64, 'x')}) {
    put(dir + "/bad", text);
    INFO(text);
    REQUIRE(!readSecretKey(dir + "/bad").ok());
    CHECK(readSecretKey(dir + "/bad").errors()[0].id == Diag::BadOption);
  }
  std::filesystem::remove_all(dir);
}
