// The writer's system calls fail one after the other, or the process dies in front of each: the name stands for the
// old bundle or for the whole new one, and nothing is left behind for long.
#include "Bundle/Writer.h"
#include "Support/Diag.h"
#include "TestModels.h"

#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <fcntl.h>
#include <filesystem>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

long failAt = 0;  // the n-th call from now fails; 0: none
int failWith = 0; // errno; 0: the process is killed
bool shortWrites = false;

/// True when this call is the one that fails.
bool fails() {
  if (failAt == 0 || --failAt > 0)
    return false;
  if (failWith == 0)
    kill(getpid(), SIGKILL);
  errno = failWith;
  return true;
}

} // namespace

// The program's own definitions come before those of libc.
extern "C" {
int open(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
  va_end(list);
  return fails() ? -1 : static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
ssize_t write(int fd, const void *data, size_t size) {
  if (fails())
    return -1;
  return syscall(SYS_write, fd, data, shortWrites && size > 1 ? size / 2 + 1 : size);
}
int fsync(int fd) { return fails() ? -1 : static_cast<int>(syscall(SYS_fsync, fd)); }
int fchmod(int fd, mode_t mode) {
  return fails() ? -1 : static_cast<int>(syscall(SYS_fchmod, fd, mode));
}
int rename(const char *from, const char *to) {
  return fails() ? -1 : static_cast<int>(syscall(SYS_rename, from, to));
}
int close(int fd) {
  const auto result = static_cast<int>(syscall(SYS_close, fd)); // closed also where it fails
  return fails() ? -1 : result;
}
}

using namespace test;
namespace fs = std::filesystem;

namespace {

const float kOld[4] = {1, 2, 3, 4}, kNew[4] = {5, 6, 7, 8};

/// A folder with the old bundle in it.
struct Folder {
  fs::path dir;
  std::string path;
  std::vector<uint8_t> oldBytes, newBytes;
  Folder()
      : oldBytes(*writeBundle(constantModel(kOld))), newBytes(*writeBundle(constantModel(kNew))) {
    std::string name = (fs::temp_directory_path() / "fusec-write-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()));
    dir = name;
    path = dir / "m.bundle";
    REQUIRE(writeBundle(constantModel(kOld), path).ok());
  }
  ~Folder() { fs::remove_all(dir); }
  std::vector<uint8_t> bytes() const {
    std::ifstream in(path, std::ios::binary);
    return std::vector<uint8_t>(std::istreambuf_iterator<char>(in), {});
  }
  bool whole() const { return bytes() == oldBytes || bytes() == newBytes; }
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(dir), {}));
  }
};

/// Runs `work` in a child; its exit status as waitpid gives it.
template <typename F> int inChild(F work) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

} // namespace

TEST_CASE("each system call of the writer fails") {
  for (const int error : {EIO, ENOSPC, EMFILE}) {
    Folder folder;
    long n = 1;
    for (bool reached = true; reached; ++n) {
      failAt = n;
      failWith = error;
      const Status written = writeBundle(constantModel(kNew), folder.path);
      reached = failAt == 0;
      failAt = 0;
      INFO("call " << n << ", error " << error);
      REQUIRE(folder.whole());
      REQUIRE(folder.entries() == 1); // no temporary file
      if (written.ok())
        REQUIRE(folder.bytes() == folder.newBytes);
      else
        CHECK(written.errors()[0].id == Diag::CannotWrite);
      REQUIRE(writeBundle(constantModel(kOld), folder.path).ok());
    }
    CHECK(n > 10);
  }
}

TEST_CASE("interrupted and short writes are gone on with") {
  Folder folder;
  failAt = 3;
  failWith = EINTR;
  const Status interrupted = writeBundle(constantModel(kNew), folder.path);
  REQUIRE(interrupted.ok());
  CHECK(folder.bytes() == folder.newBytes);
  shortWrites = true;
  const Status slow = writeBundle(constantModel(kOld), folder.path);
  shortWrites = false;
  REQUIRE(slow.ok());
  CHECK(folder.bytes() == folder.oldBytes);
}

TEST_CASE("the process is killed in front of each system call of the writer") {
  Folder folder;
  int killed = 0;
  for (long n = 1;; ++n) {
    const int status = inChild([&] {
      failAt = n;
      failWith = 0;
      (void)writeBundle(constantModel(kNew), folder.path).ok();
    });
    INFO("call " << n);
    REQUIRE(folder.whole());
    REQUIRE(folder.entries() <= 2); // the bundle and what the dead one left
    REQUIRE(writeBundle(constantModel(kOld), folder.path).ok());
    REQUIRE(folder.entries() == 1);
    if (!WIFSIGNALED(status))
      break;
    ++killed;
  }
  CHECK(killed > 10);
}

TEST_CASE("a limit on the size of files") {
  for (const bool dies : {false, true}) {
    Folder folder;
    const int status = inChild([&] {
      signal(SIGXFSZ, dies ? SIG_DFL : SIG_IGN);
      const rlimit limit{5000, 5000};
      setrlimit(RLIMIT_FSIZE, &limit);
      Status written = writeBundle(constantModel(kNew), folder.path);
      _exit(written.ok() ? 1 : written.errors()[0].id == Diag::CannotWrite ? 0 : 2);
    });
    CHECK((dies ? WIFSIGNALED(status) : status == 0));
    CHECK(folder.bytes() == folder.oldBytes);
    CHECK(folder.entries() == (dies ? 2u : 1u));
    REQUIRE(writeBundle(constantModel(kNew), folder.path).ok());
    CHECK(folder.entries() == 1);
  }
}

TEST_CASE("two writers of one name") {
  Folder folder;
  for (int round = 0; round < 20; ++round) {
    std::vector<pid_t> children;
    for (const auto &weights : {&kOld, &kNew})
      if (children.push_back(fork()); children.back() == 0)
        _exit(writeBundle(constantModel(*weights), folder.path).ok() ? 0 : 1);
    for (const pid_t child : children) {
      int status = 0;
      waitpid(child, &status, 0);
      REQUIRE(status == 0);
    }
    REQUIRE(folder.whole());
    REQUIRE(folder.entries() == 1);
  }
}
