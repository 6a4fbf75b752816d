#include "Bundle/AtomicFile.h"

#include "Support/Diag.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace fusec::bundle {

namespace {

/// Removes `prefix`PID.N in `folder` where process PID is gone.
void removeLeftovers(const std::string &folder, const std::string &prefix) {
  DIR *dir = opendir(folder.c_str());
  if (!dir)
    return;
  while (const dirent *entry = readdir(dir)) {
    const char *name = entry->d_name;
    if (std::strncmp(name, prefix.c_str(), prefix.size()) != 0)
      continue;
    char *end = nullptr;
    const long pid = std::strtol(name + prefix.size(), &end, 10);
    if (pid <= 0 || *end != '.' || kill(static_cast<pid_t>(pid), 0) == 0 || errno != ESRCH)
      continue;
    unlink((folder + "/" + name).c_str());
  }
  closedir(dir);
}

mode_t currentUmask() {
  const mode_t mask = umask(077);
  umask(mask);
  return mask;
}

} // namespace

AtomicFile::AtomicFile(std::string p) : path(std::move(p)) {
  const size_t slash = path.rfind('/');
  folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  base = slash == std::string::npos ? path : path.substr(slash + 1);
}

AtomicFile::~AtomicFile() {
  if (fd >= 0)
    close(fd);
  if (!temporary.empty())
    unlink(temporary.c_str());
}

Diagnostic AtomicFile::failed(const char *what) const {
  return Diagnostic{Diag::CannotWrite, path, std::string(what) + ": " + std::strerror(errno)};
}

Status AtomicFile::open() {
  struct stat st;
  if (base.empty())
    return Diagnostic{Diag::CannotWrite, path, "is not the name of a file"};
  if (stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode))
    return Diagnostic{Diag::CannotWrite, path, "exists and is not a regular file"};
  static std::atomic<unsigned> counter{0};
  const std::string prefix = base + ".tmp.";
  removeLeftovers(folder, prefix);
  const std::string name =
      folder + "/" + prefix + std::to_string(getpid()) + "." + std::to_string(counter++);
  fd = ::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (fd < 0)
    return failed("cannot create a temporary file beside it");
  temporary = name;
  return success();
}

Status AtomicFile::write(const void *data, size_t sizeBytes) {
  const char *p = static_cast<const char *>(data);
  while (sizeBytes > 0) {
    const ssize_t n = ::write(fd, p, std::min<size_t>(sizeBytes, 1 << 30));
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return failed("cannot write");
    p += n;
    sizeBytes -= static_cast<size_t>(n);
  }
  return success();
}

Status AtomicFile::commit() {
  if (fchmod(fd, 0666 & ~currentUmask()) != 0 || fsync(fd) != 0)
    return failed("cannot write");
  const int closing = fd;
  fd = -1;
  if (close(closing) != 0)
    return failed("cannot write");
  if (rename(temporary.c_str(), path.c_str()) != 0)
    return failed("cannot rename the temporary file");
  temporary.clear();
  // Some file systems cannot sync a folder; the file itself is safe by now.
  const int dir = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (dir >= 0) {
    fsync(dir);
    close(dir);
  }
  return success();
}

Status writeWhole(const std::string &path, std::string_view text) {
  AtomicFile file(path);
  FUSEC_CHECK(file.open());
  FUSEC_CHECK(file.write(text.data(), text.size()));
  return file.commit();
}

} // namespace fusec::bundle
